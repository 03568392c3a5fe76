"""Values during a trace: what Python's operators, indices and NumPy's functions write on them."""
from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn, cast

import numpy as np

from kera_hw.driver.tracing.literals import array_text, kera_type, number
from kera_hw.driver.tracing.tracer import State, Symbol, Tracer
from kera_hw.frontend.sema.names.builtins import MODE_WORDS
from kera_hw.support import KeraError
from kera_hw.types import FixType, FloatType, IntType, TensorType, TupleType, Type, element_type, shape_of

_MANY = 256
"""Elements of a constant that is given by its value; a NaN is, by its text, the one NaN."""
_CHOICE = "`kera_hw.fn.select(c, a, b)` or `np.where`, which take both values and choose"


class NoAttribute(KeraError, AttributeError):
    """What traced values have not: an AttributeError for who looks whether they have it."""


class Operand(Symbol):
    """What operators stand for: a traced value, or a state, which acts as the value that it holds."""

    __hash__ = None  # type: ignore[assignment] - `==` gives a traced value
    __array_priority__ = 1000

    def _traced(self) -> Traced:
        raise NotImplementedError

    def _binary(self, sign: str, other: Any, swapped: bool = False) -> Traced:
        own = self._traced()
        first, second = (other, own) if swapped else (own, other)
        return own.tracer_op(f"{own.text_of(first)} {sign} {own.text_of(second)}")

    def __add__(self, other: Any) -> Traced:
        return self._binary("+", other)

    def __radd__(self, other: Any) -> Traced:
        return self._binary("+", other, True)

    def __sub__(self, other: Any) -> Traced:
        return self._binary("-", other)

    def __rsub__(self, other: Any) -> Traced:
        return self._binary("-", other, True)

    def __mul__(self, other: Any) -> Traced:
        return self._binary("*", other)

    def __rmul__(self, other: Any) -> Traced:
        return self._binary("*", other, True)

    def __truediv__(self, other: Any) -> Traced:
        return self._binary(self._traced().quotient("/"), other)

    def __rtruediv__(self, other: Any) -> Traced:
        return self._binary(self._traced().quotient("/"), other, True)

    def __floordiv__(self, other: Any) -> Traced:
        return self._binary(self._traced().quotient("//"), other)

    def __rfloordiv__(self, other: Any) -> Traced:
        return self._binary(self._traced().quotient("//"), other, True)

    def __mod__(self, other: Any) -> Traced:
        return self._binary(self._traced().quotient("%"), other)

    def __rmod__(self, other: Any) -> Traced:
        return self._binary(self._traced().quotient("%"), other, True)

    def __and__(self, other: Any) -> Traced:
        return self._binary("&", other)

    def __rand__(self, other: Any) -> Traced:
        return self._binary("&", other, True)

    def __or__(self, other: Any) -> Traced:
        return self._binary("|", other)

    def __ror__(self, other: Any) -> Traced:
        return self._binary("|", other, True)

    def __xor__(self, other: Any) -> Traced:
        return self._binary("^", other)

    def __rxor__(self, other: Any) -> Traced:
        return self._binary("^", other, True)

    def __lshift__(self, other: Any) -> Traced:
        return self._binary("<<", other)

    def __rlshift__(self, other: Any) -> Traced:
        return self._binary("<<", other, True)

    def __rshift__(self, other: Any) -> Traced:
        return self._binary(">>", other)

    def __rrshift__(self, other: Any) -> Traced:
        return self._binary(">>", other, True)

    def __eq__(self, other: object) -> Traced:  # type: ignore[override] - as NumPy's arrays
        return self._binary("==", other)

    def __ne__(self, other: object) -> Traced:  # type: ignore[override] - as NumPy's arrays
        return self._binary("!=", other)

    def __lt__(self, other: Any) -> Traced:
        return self._binary("<", other)

    def __le__(self, other: Any) -> Traced:
        return self._binary("<=", other)

    def __gt__(self, other: Any) -> Traced:
        return self._binary(">", other)

    def __ge__(self, other: Any) -> Traced:
        return self._binary(">=", other)

    def __matmul__(self, other: Any) -> Traced:
        return self._traced().call("matmul", self, other)

    def __rmatmul__(self, other: Any) -> Traced:
        return self._traced().call("matmul", other, self)

    def __pow__(self, other: Any, modulo: Any = None) -> NoReturn:
        self._traced().tracer.fail("There is no operation for `**`: multiply, or use `exp2` and `log2`.")

    __rpow__ = __pow__

    def __divmod__(self, other: Any) -> tuple[Traced, Traced]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Traced, Traced]:
        return other // self, other % self

    # -- in place ------------------------------------------------------------------------------------

    def _changed(self, new: Traced) -> Operand:
        """What `x += y` leaves in `x`."""
        raise NotImplementedError

    def __iadd__(self, other: Any) -> Operand:
        return self._changed(self + other)

    def __isub__(self, other: Any) -> Operand:
        return self._changed(self - other)

    def __imul__(self, other: Any) -> Operand:
        return self._changed(self * other)

    def __itruediv__(self, other: Any) -> Operand:
        return self._changed(self / other)

    def __ifloordiv__(self, other: Any) -> Operand:
        return self._changed(self // other)

    def __imod__(self, other: Any) -> Operand:
        return self._changed(self % other)

    def __iand__(self, other: Any) -> Operand:
        return self._changed(self & other)

    def __ior__(self, other: Any) -> Operand:
        return self._changed(self | other)

    def __ixor__(self, other: Any) -> Operand:
        return self._changed(self ^ other)

    def __ilshift__(self, other: Any) -> Operand:
        return self._changed(self << other)

    def __irshift__(self, other: Any) -> Operand:
        return self._changed(self >> other)

    def __imatmul__(self, other: Any) -> Operand:
        return self._changed(self @ other)

    def __neg__(self) -> Traced:
        return self._traced().prefixed("-")

    def __pos__(self) -> Traced:
        return self._traced()

    def __invert__(self) -> Traced:
        return self._traced().prefixed("!")

    def __abs__(self) -> Traced:
        return self._traced().call("abs", self)

    def __getitem__(self, entries: Any) -> Any:
        return self._traced().part(entries)

    def __len__(self) -> int:
        return self._traced().length()

    def __iter__(self) -> Iterator[Any]:
        whole = self._traced()
        return (whole.part(k) for k in range(whole.length()))

    # -- what would need the value -------------------------------------------------------------------

    def __bool__(self) -> NoReturn:
        self._refuse("Python asks whether this is true", f"instead of `if`, `and`, `or`, `not`: {_CHOICE}")

    def __int__(self) -> NoReturn:
        self._refuse("Python asks for this as an integer",
                     "`x.astype(\"i32\")` converts; to index a list make it "
                     "`kera_hw.constant(\"[u8; 3]\", list)`")

    __index__ = __int__

    def __float__(self) -> NoReturn:
        self._refuse("Python asks for this as a float",
                     "`x.astype(\"f32\")` converts; in place of the functions of `math` use `kera_hw.fn`")

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        self._refuse("NumPy asks for this as an array",
                     "use `kera_hw.fn`, or the operators; to index an array of NumPy's make it "
                     "`kera_hw.constant(\"[f32; 256]\", array)`")

    def __round__(self, digits: Any = None) -> NoReturn:
        self._refuse("Python asks for this rounded to an integer", "`kera_hw.fn.round` rounds floats")

    def _refuse(self, what: str, instead: str) -> NoReturn:
        message = f"{what}, but it is known only when the program runs."
        self._traced().tracer.fail(message, notes=(f"{instead[0].upper()}{instead[1:]}.",))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        from kera_hw.driver.tracing.numpy_names import ufunc_on

        return ufunc_on(self._traced(), ufunc, method, inputs, options)

    def __array_function__(self, function: Any, _types: Any, inputs: Any, options: Any) -> Any:
        from kera_hw.driver.tracing.numpy_names import function_on

        return function_on(self._traced(), function, inputs, options)

    # -- as of NumPy's arrays ----------------------------------------------------------------------------

    @property
    def type(self) -> Type:
        """The Kera type; ``str`` of it is its notation."""
        return self._traced().kind

    @property
    def shape(self) -> tuple[int, ...]:
        return shape_of(self.type)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def T(self) -> Traced:
        axes = tuple(range(self.ndim))[::-1]
        return self._traced().call("permute", self, axes=axes) if self.ndim > 1 else self._traced()

    def astype(self, kind: Any) -> Traced:
        """Converted as `as` does, element by element: to a type in Kera's notation, or a NumPy dtype."""
        own = self._traced()
        text = own.tracer.type_written(type_text(own.tracer, kind), own.tracer.files.caller())
        return own.tracer_op(f"{own.name} as {text}")

    def reshape(self, *shape: Any) -> Traced:
        own = self._traced()
        whole = len(shape) == 1 and isinstance(shape[0], (tuple, list))
        extents = [int(k) for k in cast("Sequence[int]", shape[0] if whole else shape)]
        if extents.count(-1) == 1:
            rest = int(np.prod([k for k in extents if k != -1], dtype=np.int64))
            extents[extents.index(-1)] = self.size // rest if rest else 0
        return own.call(f"reshape::<{', '.join(map(str, extents))}>", self)

    def ravel(self) -> Traced:
        return self.reshape(-1)

    def transpose(self, *axes: int) -> Traced:
        return self._traced().call("permute", self, axes=axes) if axes else self.T

    def at(self, *indices: Any, otherwise: Any) -> Traced:
        """The element at indices, ``otherwise`` where there is none."""
        own = self._traced()
        places = ", ".join(map(own.text_of, indices))
        return own.tracer_op(f"{own.name}.at({places}, else: {own.text_of(otherwise)})")

    def clamped(self, *indices: Any) -> Traced:
        """The element at indices, the nearest where there is none."""
        return self._method("clamped", *indices)

    def bits(self, high: int, low: int) -> Traced:
        return self._method("bits", high, low)

    def bit(self, place: int) -> Traced:
        return self._method("bit", place)

    def _method(self, name: str, *args: Any) -> Traced:
        own = self._traced()
        return own.tracer_op(f"{own.name}.{name}({', '.join(map(own.text_of, args))})")

    def __getattr__(self, name: str) -> Callable[..., Traced]:
        if name in ("sum", "prod", "mean", "min", "max", "any", "all", "argmin", "argmax"):
            def reduced(axis: int | None = None, **more: Any) -> Traced:
                return self._traced().call(name, self, **({} if axis is None else {"axis": axis}), **more)

            return reduced
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            self._traced().tracer.fail(f"A traced value has no `{name}`.", notes=(
                "Kera's built-ins are in `kera_hw.fn`.",))
        except KeraError as fault:
            raise NoAttribute(fault.diagnostics) from None


class Traced(Operand):
    """A value of the function that is traced: a name in the text, and the type of what it names."""

    def __init__(self, tracer: Tracer, name: str, kind: Type) -> None:
        self.tracer, self._name, self.kind = tracer, name, kind
        self.is_part = False
        self.states: list[State] = []  # whose value it is

    def __repr__(self) -> str:
        return f"<traced {self.kind}>"

    def _traced(self) -> Traced:
        return self

    @property
    def name(self) -> str:
        self.tracer.check_lives(self._name)
        return self._name

    def tracer_op(self, expression: str) -> Traced:
        """The value of an expression."""
        return Traced(self.tracer, *self.tracer.bind(expression))

    def text_of(self, value: Any) -> str:
        return text_of(self.tracer, value)

    def call(self, function: str, *args: Any, **named: Any) -> Traced:
        return self.tracer_op(call_text(self.tracer, function, args, named))

    def prefixed(self, sign: str) -> Traced:
        return self.tracer_op(f"{sign}{self.name}")

    def quotient(self, sign: str) -> str:
        """Kera's operator for a division of Python's, where both mean the same on this type."""
        kind = element_type(self.kind)
        if isinstance(kind, IntType):
            cutting = f"`kera_hw.kera(\"a {sign[0]} b\", a=.., b=..)` is the division that cuts toward zero."
            if sign == "/":
                message = f"`/` of integers, here {kind}, gives a float in Python."
                self.tracer.fail(message, notes=("`//` divides unsigned integers.", cutting))
            if kind.signed:
                message = f"`{sign}` rounds down in Python, and there is no such division of {kind}."
                self.tracer.fail(message, notes=(cutting,))
        elif sign != "/" and isinstance(kind, (FloatType, FixType)):
            self.tracer.fail(f"There is no `{sign}` of {kind}.", notes=("`fn.floor(a / b)` rounds down.",))
        return sign[0]

    def length(self) -> int:
        if isinstance(self.kind, TupleType):
            return len(self.kind.items)
        if not isinstance(self.kind, TensorType):
            self.tracer.fail(f"This is {self.kind}, which has no length.")
        return self.kind.shape[0]

    # -- indices ---------------------------------------------------------------------------------------

    def part(self, entries: Any) -> Any:
        if isinstance(self.kind, TupleType):
            count = len(self.kind.items)
            if not isinstance(entries, int) or not -count <= entries < count:
                self.tracer.fail(f"A tuple of {count} is taken apart by constants below {count}.")
            found = self.tracer_op(f"{self.name}.{entries % count}")
        else:
            text = self._entries(entries)
            if not text:
                return self
            found = self.tracer_op(f"{self.name}[{text}]")
        found.is_part = True
        return found

    def __setitem__(self, entries: Any, value: Any) -> None:
        """The name stands for the changed value from here on, as an array does; its parts are no views, so
        they are not set."""
        if self.is_part:
            message = "This is a part of another value, and setting it would leave that as it is."
            whole = "`x[0, 1] = y` sets an element of the whole; `x[0].copy()` is a value by itself."
            self.tracer.fail(message, notes=(whole,))
        text = self._entries(entries) or ".."
        new = self.tracer.unused("t")
        changed = f"{{ let mut {new} = {self.name}; {new}[{text}] = {self.text_of(value)}; {new} }}"
        self._become(self.tracer_op(changed))

    def _become(self, new: Traced) -> None:
        """This value changes, and with it what the states hold whose value it is."""
        if self.states and len(self.tracer.blocks) > 1:
            self.tracer.fail("A state gets its next value in the traced function itself.")
        self._name, self.kind = new.name, new.kind
        for state in self.states:
            state.value = self._name

    def _changed(self, new: Traced) -> Operand:
        """As of an array; a number is another one then."""
        if not isinstance(self.kind, TensorType) or new.kind != self.kind:
            return new
        self._become(new)
        return self

    def copy(self) -> Traced:
        """The value as it is now, by another name."""
        return Traced(self.tracer, self.name, self.kind)

    def __copy__(self) -> Traced:
        return self.copy()

    def __deepcopy__(self, _: Any) -> Traced:
        return self.copy()

    def _entries(self, entries: Any) -> str:
        shape = shape_of(self.kind)
        given = cast("Sequence[Any]", entries if isinstance(entries, tuple) else (entries,))
        if any(entry is Ellipsis for entry in given):
            at = next(k for k, entry in enumerate(given) if entry is Ellipsis)
            given = [*given[:at], *[slice(None)] * (len(shape) - len(given) + 1), *given[at + 1:]]
        if len(given) > len(shape):
            self.tracer.fail(f"This is {self.kind}: {len(shape)} axes, and here are {len(given)} indices.")
        texts = [self._entry(entry, extent) for entry, extent in zip(given, shape)]
        while texts and texts[-1] == "..":
            texts.pop()
        return ", ".join(texts)

    def _entry(self, entry: Any, extent: int) -> str:
        if isinstance(entry, slice):
            part = cast("slice[Any, Any, Any]", entry)
            bounds = (part.start, part.stop, part.step)
            if any(bound is not None and not isinstance(bound, (int, np.integer)) for bound in bounds):
                self.tracer.fail("The bounds of a slice are constants in Python.", notes=(
                    "`kera_hw.kera(\"x[i..i + 4]\", x=.., i=..)` takes a piece from a traced index on.",))
            start, stop, step = part.indices(extent)
            if step != 1:
                self.tracer.fail("A slice has no step.", notes=("`fn.reverse` and `fn.gather` reorder.",))
            return ".." if (start, stop) == (0, extent) else f"{start}..{max(start, stop)}"
        if isinstance(entry, (int, np.integer)) and not isinstance(entry, (bool, np.bool_)):
            place = int(cast("Any", entry))
            return str(place + extent if -extent <= place < 0 else place)
        if isinstance(entry, Operand):
            return self.text_of(entry)
        what = "None, a new axis" if entry is None else f"a {type(entry).__name__}"
        self.tracer.fail(f"An index is an integer or a slice, and this is {what}.", notes=(
            "`x.reshape(..)` adds axes; `kera_hw.fn.gather` and `np.where` choose elements.",))


class StateValue(Operand):
    """A variable of a stream: ``value`` is what it holds now, and at last what the next item begins with."""

    def __init__(self, tracer: Tracer, state: State) -> None:
        self._tracer, self._state = tracer, state
        self._held = Traced(tracer, state.name, tracer.typed(state.name, state.place).type)
        self._held.states.append(state)

    def __repr__(self) -> str:
        return f"<state {self._state.name}: {self._state.type}>"

    def _traced(self) -> Traced:
        return self.value

    @property
    def value(self) -> Traced:
        """What it holds: one object, which may be changed in place, until it is set."""
        return self._held

    @value.setter
    def value(self, new: Any) -> None:
        tracer = self._tracer
        if tracer.done or len(tracer.blocks) > 1:
            tracer.fail("A state gets its next value in the traced function itself.")
        text = text_of(tracer, new)
        if not isinstance(new, Operand) or str(new.type) != self._state.type:
            local = tracer.unused("t")
            new = Traced(tracer, *tracer.bind(f"{{ let {local}: {self._state.type} = {text}; {local} }}"))
        self._held.states.remove(self._state)
        self._held = new._traced()
        self._held.states.append(self._state)
        self._state.value = self._held.name

    def __setitem__(self, entries: Any, value: Any) -> None:
        self._held[entries] = value

    def _changed(self, new: Traced) -> Operand:
        self.value = new
        return self


def type_text(tracer: Tracer, kind: Any) -> str:
    """A type as written: Kera's notation, one of its types, or a NumPy dtype."""
    if isinstance(kind, (str, Type)):
        return str(kind)
    try:
        found = kera_type(np.dtype(kind))
    except TypeError:
        found = None
    if found is None:
        tracer.fail(f"{kind!r} is no type of Kera.", None, "K0919", ("Write it as text: \"[f32; 64]\".",))
    return found


def text_of(tracer: Tracer, value: Any) -> str:
    """A value as an expression: a traced one's name, a constant, a list of these. Raises KeraError."""
    if isinstance(value, Operand):
        traced = value._traced()  # pyright: ignore[reportPrivateUsage] - one family
        if traced.tracer is not tracer:
            tracer.fail("This value belongs to another trace.")
        return traced.name
    if isinstance(value, str):
        return value if value in MODE_WORDS else json.dumps(value, ensure_ascii=False)
    if isinstance(value, (list, tuple)):
        items = [text_of(tracer, item) for item in cast("Sequence[Any]", value)]
        if isinstance(value, list):
            return f"[{', '.join(items)}]"
        return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(cast("Any", value))
        kind = kera_type(array.dtype)
        if kind is not None:
            whole = f"[{kind}; {', '.join(map(str, array.shape))}]" if array.ndim else kind
            is_float = array.dtype.kind in "fV"
            if array.size >= _MANY and not (is_float and np.isnan(array.astype(np.float64)).any()):
                return tracer.array(array.copy(), whole)
            text = array_text(array, kind)
            return text if not array.ndim and "(" not in text.strip("()") else tracer.constant(text, whole)
    if isinstance(value, (bool, int, float)):
        text = number(value)
        if text is not None:
            return text
        tracer.fail(f"{value} needs a type: `np.float32({value!r})`.")
    what = type(cast("Any", value)).__name__
    tracer.fail(f"A {what} cannot be used here.", notes=("Traced values, numbers, arrays and lists can.",))


def call_text(tracer: Tracer, function: str, args: Sequence[Any], named: dict[str, Any]) -> str:
    """A call of a built-in."""
    positions = [text_of(tracer, value) for value in args]
    return f"{function}({', '.join([*positions, *(f'{k}: {text_of(tracer, v)}' for k, v in named.items())])})"
