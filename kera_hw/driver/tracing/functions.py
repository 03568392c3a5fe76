"""Built-ins for traced values: `kera_hw.fn.NAME`, each by the name and with the parameters that Kera has."""
from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from kera_hw.driver.tracing.literals import array_text
from kera_hw.driver.tracing.tracer import State, Tracer, current
from kera_hw.driver.tracing.values import Operand, StateValue, Traced, text_of, type_text
from kera_hw.frontend.sema.names.builtins import BUILTINS
from kera_hw.frontend.sema.names.scope import closest
from kera_hw.support import KeraError
from kera_hw.types import FixType, IntType, Type, element_type, shape_of


class NoBuiltin(KeraError, AttributeError):
    """A name that is no built-in: an AttributeError for who looks whether there is one."""


class Builtins:
    """`fn.NAME(..)` calls a built-in; `fn.NAME[A, B](..)` gives it what stands in `::<..>`."""

    def __getattr__(self, name: str) -> Builtin:
        plain = name.rstrip("_")  # `assert` is a word of Python's
        if plain not in BUILTINS:
            if name.startswith("__"):
                raise AttributeError(name)
            meant = closest(plain, list(BUILTINS))
            hint = f"; did you mean `{meant}`?" if meant else "; `kera explain` lists them."
            try:
                current("A built-in").fail(f"Kera has no built-in `{name}`{hint}")
            except KeraError as fault:
                raise NoBuiltin(fault.diagnostics) from None
        return Builtin(plain)

    def __dir__(self) -> list[str]:
        return sorted(BUILTINS)

    def __repr__(self) -> str:
        return f"<{len(BUILTINS)} built-ins of Kera>"


class Builtin:
    """One built-in, to be called on traced values, numbers and arrays."""

    def __init__(self, name: str, sizes: str = "") -> None:
        self._name, self._sizes = name, sizes
        self.__name__ = name

    def __repr__(self) -> str:
        return f"<built-in {self._name}{self._sizes}({', '.join(BUILTINS[self._name].names)})>"

    def __getitem__(self, sizes: Any) -> Builtin:
        tracer = current(f"`{self._name}`")
        given = cast("tuple[Any, ...]", sizes) if isinstance(sizes, tuple) else (sizes,)
        texts = [str(item) if isinstance(item, int) else type_text(tracer, item) for item in given]
        return Builtin(self._name, f"::<{', '.join(texts)}>")

    def __call__(self, /, *args: Any, **named: Any) -> Any:
        tracer = current(f"`{self._name}`")
        positions = [_argument(tracer, value) for value in args]
        more = [f"{name}: {_argument(tracer, value)}" for name, value in named.items()]
        return _call(tracer, f"{self._name}{self._sizes}", [*positions, *more], (*args, *named.values()))


def _argument(tracer: Tracer, value: Any) -> str:
    if callable(value) and not isinstance(value, Operand):
        return ""  # a function, written by `_call`
    return text_of(tracer, value)


def _call(tracer: Tracer, head: str, texts: Sequence[str], values: Sequence[Any]) -> Traced:
    """A call, with the function among its arguments, if there is one, as a lambda."""
    place = tracer.files.caller()
    function = next((v for v in values if callable(v) and not isinstance(v, Operand)), None)
    if function is None:
        return Traced(tracer, *tracer.bind(f"{head}({', '.join(texts)})"))
    count = _parameter_count(tracer, function)

    def whole(body: str) -> str:
        return f"{head}({', '.join(f'{text}{body}' if text in ('', 'f: ') else text for text in texts)})"

    names = [f"a{k}" for k in range(count)]
    kinds = tracer.typed(whole(f"|{', '.join(names)}| {names[0] if names else '0'}"), place).lambda_params
    with tracer.block() as lines:
        params = [tracer.new_name(str(kind), place) for kind in kinds]
        result = function(*(Traced(tracer, name, kind) for name, kind in zip(params, kinds)))
        lines.append(text_of(tracer, result))
    inner = ("    " + line for made in lines for line in made.split("\n"))
    body = "\n".join([f"|{', '.join(params)}| {{", *inner, "}"])
    return Traced(tracer, *tracer.bind(whole(body)))


def _parameter_count(tracer: Tracer, function: Callable[..., Any]) -> int:
    try:
        return len(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        tracer.fail(f"{function!r} does not say how many arguments it takes; give a `lambda`.")


def kera(expression: str, /, **values: Any) -> Traced:
    """Any expression of Kera over the values given by name: `kera("if a < b { a } else { b }", a=x, b=y)`."""
    tracer = current("`kera`")
    if not values:
        return Traced(tracer, *tracer.bind(expression))
    # Bound at once: a value may be called as another one here.
    bound = f"({', '.join(values)},) = ({', '.join(text_of(tracer, value) for value in values.values())},)"
    return Traced(tracer, *tracer.bind(f"{{ let {bound}; {expression} }}"))


def constant(kind: Any, value: Any) -> Traced:
    """A constant of a type: a number, an array or lists of numbers. A number stands for all elements of a
    tensor. Integer arrays for fixed point hold its raw integers, as everywhere."""
    tracer = current("`constant`")
    written = tracer.type_written(type_text(tracer, kind), tracer.files.caller())
    return Traced(tracer, tracer.constant(_constant_text(tracer, written, value), str(written)), written)


def state(kind: Any, initial: Any = 0, name: str | None = None) -> StateValue:
    """A variable of the stream that is traced: at reset ``initial``, then what its ``value`` was last."""
    tracer = current("`state`")
    place = tracer.files.caller()
    if len(tracer.blocks) > 1:
        tracer.fail("A state is declared in the traced function itself.", place)
    written = tracer.type_written(type_text(tracer, kind), place)
    text = _constant_text(tracer, written, initial)
    tracer.typed(f"{{ let t: {written} = {text}; t }}", place)  # refused here, where it does not fit
    called = f"state{len(tracer.states)}" if name is None else name
    if not isinstance(cast("Any", called), str) or not called.isidentifier() or called in tracer.names:
        tracer.fail(f"A state cannot be called `{called}`, which is no name or one that is taken.", place)
    held = State(called, str(written), text, place, called)
    tracer.declare(called, str(written), place)
    tracer.states.append(held)
    return StateValue(tracer, held)


def _has_traced(value: Any) -> bool:
    parts = cast("Sequence[Any]", value) if isinstance(value, (list, tuple)) else ()
    return isinstance(value, Operand) or any(map(_has_traced, parts))


def _constant_text(tracer: Tracer, kind: Type, value: Any) -> str:
    """A value of a type as an expression."""
    if _has_traced(value):
        tracer.fail("A constant is known before the program runs, and this is a traced value.")
    element, shape = element_type(kind), shape_of(kind)
    single = not isinstance(value, list)
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(cast("Any", value))
        single = array.ndim == 0
        if isinstance(element, FixType) and array.dtype.kind in "iu":
            raw = IntType(element.width_bits, element.signed)
            text = f"bitcast::<{element}>({array_text(array, str(raw))})"
        else:
            text = array_text(array, str(element))
    else:
        text = text_of(tracer, value)
    return f"[{text}; {', '.join(map(str, shape))}]" if shape and single else text


fn = Builtins()
