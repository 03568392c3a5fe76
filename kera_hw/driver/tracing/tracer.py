"""One trace: the text written so far, what its names hold, and where in Python each line comes from."""
from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from hashlib import sha3_256
from typing import Any, NoReturn

from kera_hw.driver.tracing.places import Files, Place
from kera_hw.driver.values import Array
from kera_hw.frontend.expressions import TypedExpression, typed_expression
from kera_hw.support import Diagnostic, KeraError, Label
from kera_hw.types import Type

_WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
_MARK = re.compile(r" //@(\d+)$", re.MULTILINE)


class Symbol:
    """What stands for a value while a function is traced."""


@dataclass(frozen=True, slots=True)
class Named:
    """A name of the text: its type, the place whose value it is, and the block it lives in."""

    type: str
    place: Place
    block: int


@dataclass
class State:
    """A variable of a stream: declared as ``type``, now holding what ``value`` names."""

    name: str
    type: str
    initial: str
    place: Place
    value: str


@dataclass
class Tracer:
    """What a function has done so far; ``known`` are types of expressions, by their text without names."""

    files: Files
    names: dict[str, Named] = field(default_factory=dict[str, Named])
    constants: dict[str, str] = field(default_factory=dict[str, str])  # by their text or bytes, the name
    arrays: dict[str, Array] = field(default_factory=dict[str, Array])  # of constants without a text
    states: list[State] = field(default_factory=list[State])
    blocks: list[int] = field(default_factory=lambda: [0])
    done: bool = False
    known: dict[tuple[str, tuple[str, ...]], TypedExpression] = field(
        default_factory=dict[tuple[str, tuple[str, ...]], TypedExpression]
    )
    lines: list[str] = field(default_factory=list[str])
    places: list[Place] = field(default_factory=list[Place])
    _blocks_made: int = 0
    _names_made: int = 0

    # -- text -------------------------------------------------------------------------------------

    def bind(self, expression: str) -> tuple[str, Type]:
        """A name for the value of an expression. Raises KeraError for what the checker refuses."""
        place = self.files.caller()
        kind = self.typed(expression, place).type
        name = self.new_name(str(kind), place)
        self.lines.append(f"let {name}: {kind} = {self.marked(expression, place)};{self.mark(place)}")
        return name, kind

    def new_name(self, kind: str, place: Place) -> str:
        while True:
            self._names_made += 1
            name = f"v{self._names_made}"
            if name not in self.names:
                self.names[name] = Named(kind, place, self.blocks[-1])
                return name

    def declare(self, name: str, kind: str, place: Place) -> None:
        """A parameter or a state, which the whole text can name."""
        self.names[name] = Named(kind, place, 0)

    def unused(self, name: str) -> str:
        """The name, or one like it that nothing has."""
        while name in self.names:
            name += "_"
        return name

    def mark(self, place: Place) -> str:
        """A comment by which a line of text is known to come from a place."""
        self.places.append(place)
        return f" //@{len(self.places) - 1}"

    def marked(self, text: str, place: Place) -> str:
        """Text whose lines without a mark come from a place; the last gets none."""
        *first, last = text.split("\n")
        return "\n".join([*(line if _MARK.search(line) else line + self.mark(place) for line in first), last])

    def array(self, array: Array, kind: str) -> str:
        """The name of a constant that is given by its value, where its text would take long to read."""
        name = self.constant(sha3_256(array.tobytes()).hexdigest(), kind)
        self.arrays.setdefault(name, array)
        return name

    def constant(self, text: str, kind: str) -> str:
        """The name of a constant of the program."""
        name = self.constants.get(f"{kind} = {text}")
        if name is None:
            name = self.unused(f"C{len(self.constants)}")
            self.constants[f"{kind} = {text}"] = name
            self.names[name] = Named(kind, self.files.caller(), 0)
        return name

    # -- types ------------------------------------------------------------------------------------

    def typed(self, expression: str, place: Place) -> TypedExpression:
        """The checker's type of an expression over names of this trace. Raises KeraError."""
        plain = _MARK.sub("", expression)
        used = list(dict.fromkeys(word for word in _WORD.findall(plain) if word in self.names))
        kinds = tuple(self.names[name].type for name in used)
        numbers = {name: f"\0{k}" for k, name in enumerate(used)}  # which no name is spelled like
        key = (_WORD.sub(lambda found: numbers.get(found[0], found[0]), plain), kinds)
        if key not in self.known:
            found = typed_expression(plain, dict(zip(used, kinds)))
            if isinstance(found, list):
                raise KeraError([self.moved(item, place) for item in found])
            self.known[key] = found
        return self.known[key]

    def type_written(self, text: str, place: Place) -> Type:
        """A type in its own notation. Raises KeraError (K0919) for what is none."""
        found = typed_expression("p", {"p": text}) if text.strip() else []
        if isinstance(found, list):
            said = f" {found[0].message}" if found and found[0].code != "K0101" else ""
            self.fail(f"`{text}` is no type of Kera.{said}", place, "K0919", (
                "Types are written as in Kera: \"i16\", \"[f32; 64]\", \"fix<16, 8>\", \"(bool, u8)\".",
            ))
        return found.type

    # -- blocks of functions ------------------------------------------------------------------------

    @contextmanager
    def block(self) -> Generator[list[str]]:
        """Lines that are written meanwhile, kept apart; what they name lives no longer than that."""
        self._blocks_made += 1
        self.blocks.append(self._blocks_made)
        outer, self.lines = self.lines, []
        try:
            yield self.lines
        finally:
            self.lines = outer
            self.blocks.pop()

    def check_lives(self, name: str) -> None:
        """Raises KeraError (K0918) where a name's block has ended, or the trace."""
        named = self.names[name]
        if self.done or named.block not in self.blocks:
            self.fail(
                "This value belongs to a call that has ended.", None, "K0918",
                ("A value exists while the function that made it is traced: return it, or pass it on.",),
                (named.place, "it is made here"),
            )

    # -- messages -----------------------------------------------------------------------------------

    def fail(
        self, message: str, place: Place | None = None, code: str = "K0918", notes: tuple[str, ...] = (),
        because: tuple[Place, str] | None = None,
    ) -> NoReturn:
        """Raises KeraError for the place, by default the caller's."""
        where = self.files.caller() if place is None else place
        labels = () if because is None else (Label(because[0].span, because[1], because[0].file),)
        raise KeraError([Diagnostic(code, message, where.file, where.span, labels, notes)])

    def moved(self, item: Diagnostic, place: Place) -> Diagnostic:
        """A diagnostic about the text as one about Python: names as they are spelled there, no edits."""
        message = self.in_python(item.message)
        notes = tuple(map(self.in_python, item.notes))
        return replace(
            item, message=message, file=place.file, span=place.span, labels=(), notes=notes, fix=None,
        )

    def in_python(self, message: str) -> str:
        """A message with the text of Python in place of names made here."""
        def spelled(found: re.Match[str]) -> str:
            named = self.names.get(found[1])
            text = named.place.text if named is not None and re.fullmatch(r"[vC]\d+_*", found[1]) else ""
            return f"`{text if len(text) <= 40 else text[:37] + '...'}`" if text else found[0]

        return re.sub(r"`(\w+)`", spelled, message)


_CURRENT: ContextVar[Tracer | None] = ContextVar("kera_trace", default=None)


def current(what: str) -> Tracer:
    """The trace that is going on. Raises KeraError (K0918) where there is none."""
    tracer = _CURRENT.get()
    if tracer is None:
        Tracer(Files()).fail(
            f"{what} is used outside of a traced function.",
            notes=("Call it in a function under `@kera_hw.trace`.",),
        )
    return tracer


def during(tracer: Tracer, call: Callable[..., Any], values: Mapping[str, Any]) -> Any:
    """What a call gives while a trace goes on."""
    token = _CURRENT.set(tracer)
    try:
        return call(**values)
    finally:
        tracer.done = True
        _CURRENT.reset(token)


def taken_apart(text: str) -> tuple[list[str], list[int | None]]:
    """Lines without their marks, and each line's number of a place."""
    lines: list[str] = []
    numbers: list[int | None] = []
    for line in text.split("\n"):
        found = _MARK.search(line)
        numbers.append(int(found[1]) if found else None)
        lines.append(line[: found.start()] if found else line)
    return lines, numbers
