"""Code of one function while it is written: bytes, and locals that are used again when nobody reads them."""
from __future__ import annotations

from collections import defaultdict

from kera_hw.types import FloatType, IntType, Type
from kera_hw.wasm.instructions import encode, unsigned
from kera_hw.wasm.module import EMPTY, ValueType


def value_type(kind: Type) -> ValueType:
    """Of a native scalar: what is narrower than 32 bits, and a bool, is an i32."""
    if isinstance(kind, FloatType):
        return ValueType.F32 if kind.width_bits == 32 else ValueType.F64
    return ValueType.I64 if isinstance(kind, IntType) and kind.width_bits == 64 else ValueType.I32


class Code:
    """``params`` take the first locals."""

    def __init__(self, params: tuple[ValueType, ...]) -> None:
        self._out = bytearray()
        self._params = len(params)
        self._types = list(params)
        self._free: dict[ValueType, list[int]] = defaultdict(list)
        self._last_set: tuple[int, int] | None = None

    @property
    def locals(self) -> tuple[ValueType, ...]:
        return tuple(self._types[self._params :])

    def finish(self) -> bytes:
        return bytes(self._out)

    def op(self, name: str, *immediates: int) -> None:
        self._out += encode(name, *immediates)

    def new_local(self, kind: ValueType) -> int:
        free = self._free[kind]
        if free:
            return free.pop()
        self._types.append(kind)
        return len(self._types) - 1

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
        self._last_set = None

    def end(self) -> None:
        self.op("end")
        self._last_set = None

    def otherwise(self) -> None:
        self.op("else")
        self._last_set = None
