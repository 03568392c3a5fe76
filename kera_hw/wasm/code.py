"""Code of one function while it is written: bytes, and locals that are used again when nobody reads them."""
from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from kera_hw.graph.node import Origin
from kera_hw.types import FloatType, IntType, Type
from kera_hw.wasm.instructions import encode, unsigned
from kera_hw.wasm.module import EMPTY, ValueType


def value_type(kind: Type) -> ValueType:
    """Of a native scalar: what is narrower than 32 bits, and a bool, is an i32."""
    if isinstance(kind, FloatType):
        return ValueType.F32 if kind.width_bits == 32 else ValueType.F64
    return ValueType.I64 if isinstance(kind, IntType) and kind.width_bits == 64 else ValueType.I32


class Mark(NamedTuple):
    """What code is for, as people name it, and where that stands in source."""

    label: str
    place: Origin | None = None


NO_MARK = Mark("")
_MOST_NAMES = 3


class Code:
    """``params`` take the first locals.

    ``marks``: from which byte on the code is for what. ``labels``: what blocks are for, by the order in which
    they begin.
    """

    def __init__(self, params: tuple[ValueType, ...]) -> None:
        self._out = bytearray()
        self._params = len(params)
        self._types = list(params)
        self._free: dict[ValueType, list[int]] = defaultdict(list)
        self._last_set: tuple[int, int] | None = None
        self._mark = NO_MARK
        self.marks: list[tuple[int, Mark]] = []
        self.labels: list[str] = []
        self._names: dict[int, dict[str, None]] = defaultdict(dict)

    def mark(self, mark: Mark) -> Mark:
        """What follows is for that; what the code was for before."""
        before, self._mark = self._mark, mark
        if self.marks and self.marks[-1][0] == len(self._out):
            self.marks.pop()
        if not self.marks or self.marks[-1][1] != mark:
            self.marks.append((len(self._out), mark))
        return before

    @property
    def locals(self) -> tuple[ValueType, ...]:
        return tuple(self._types[self._params :])

    @property
    def local_names(self) -> dict[int, str]:
        """Of those that hold something named; the names of several things, in turn, are joined."""
        held = sorted(self._names.items())
        return {local: "/".join(list(names)[:_MOST_NAMES]) for local, names in held if names}

    def finish(self) -> bytes:
        return bytes(self._out)

    def op(self, name: str, *immediates: int) -> None:
        self._out += encode(name, *immediates)

    @property
    def name(self) -> str:
        """What the source calls what is being written, if it has a name."""
        return (self._mark.place and self._mark.place.name) or ""

    def new_local(self, kind: ValueType, name: str = "") -> int:
        """For what has that name in source."""
        free = self._free[kind]
        if not free:
            self._types.append(kind)
        local = free.pop() if free else len(self._types) - 1
        if name:
            self._names[local][name] = None
        return local

    def release(self, local: int) -> None:
        self._free[self._types[local]].append(local)

    def get(self, local: int) -> None:
        """A value that was set by the last instruction is kept on the stack as well."""
        if self._last_set == (len(self._out), local):
            del self._out[-1 - len(unsigned(local)) :]
            self.op("local.tee", local)
            self._last_set = None
            return
        self.op("local.get", local)

    def set(self, local: int) -> None:
        self.op("local.set", local)
        self._last_set = (len(self._out), local)

    def number(self, value: int) -> None:
        self.op("i32.const", value & 0xFFFF_FFFF)

    def begin(self, name: str) -> None:
        """A block, loop or branch that gives nothing."""
        self.op(name, EMPTY)
        self.labels.append(str(self._mark.place or ""))
        self._last_set = None

    def end(self) -> None:
        self.op("end")
        self._last_set = None

    def otherwise(self) -> None:
        self.op("else")
        self._last_set = None
