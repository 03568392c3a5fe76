"""What unsigned 64-bit words do not exceed: of a product of small ones, machines need one instruction."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import add, mul

import numpy as np

from kera_hw.loops.program import Literal, Load, LoopProgram, Op, Operand, Var
from kera_hw.types import IntType, Type

_MOST = (1 << 64) - 1
Rule = Callable[[int, int], int]


def _filled(a: int, b: int) -> int:
    """The most with as many bits as the longer one."""
    return (1 << (a | b).bit_length()) - 1


RULES: Mapping[str, Rule] = {
    "bits.and": min,
    "bits.or": _filled,
    "bits.xor": _filled,
    "integer.add": add,
    "integer.mul": mul,
    "integer.min": min,
    "integer.max": max,
}
"""From what the operands do not exceed, where nothing wraps."""


class Bounds:
    """Told of operations in the order in which they are written."""

    def __init__(self, program: LoopProgram) -> None:
        self._most: dict[Var, int] = {}
        self._contents = {
            buffer.name: int(np.frombuffer(buffer.data, "<u8").max())
            for buffer in program.buffers
            if buffer.kind == "const" and _is_word(buffer.element) and buffer.size
        }

    def of(self, operand: Operand) -> int | None:
        """The most that an operand can be; None for what is no unsigned word."""
        if not _is_word(operand.type):
            return None
        return operand.bits if isinstance(operand, Literal) else self._most.get(operand, _MOST)

    def loaded(self, load: Load) -> None:
        if load.buffer in self._contents:
            self._most[load.result] = self._contents[load.buffer]

    def note(self, op: Op) -> None:
        (result,) = op.results
        if not _is_word(result.type):
            return
        found = self._found(op)
        if found is not None and found <= _MOST:
            self._most[result] = found

    def _found(self, op: Op) -> int | None:
        kinds = [operand.type for operand in op.operands]
        if op.opcode == "convert.cast" and isinstance(kinds[0], IntType) and not kinds[0].signed:
            return (1 << kinds[0].width_bits) - 1
        values = [value for operand in op.operands if (value := self.of(operand)) is not None]
        if op.opcode == "control.select":
            return max(values)
        if len(values) < len(kinds):
            return None
        if op.opcode == "bits.shr" and isinstance(op.operands[1], Literal):
            return values[0] >> min(op.operands[1].bits, 64)
        rule = RULES.get(op.opcode)
        return None if rule is None else rule(values[0], values[1])


def _is_word(kind: Type) -> bool:
    return isinstance(kind, IntType) and kind.width_bits == 64 and not kind.signed
