"""Multiplexers of words."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self

from kera_hw.schedule.fpga.bits import Bits
from kera_hw.schedule.fpga.cells.cell import Cell, Look, levels, wide_ps
from kera_hw.schedule.fpga.device import Device
from kera_hw.schedule.fpga.expressions import constants
from kera_hw.schedule.fpga.values import Value, choose


@dataclass(frozen=True, slots=True, kw_only=True)
class Mux(Cell):
    """out = choices[select], a select past the end takes the last choice: 2^k:1 multiplexer trees."""

    select: Bits
    choices: tuple[Bits, ...]

    def look(self) -> Look:
        return Look("mux", "selection", "mux")

    def describe(self) -> str:
        return f"{self.width}-bit {len(self.choices)}-way selection"

    def operands(self) -> tuple[Bits, ...]:
        return (self.select, *self.choices)

    def with_operands(self, moved: Callable[[Bits], Bits]) -> Self:
        return replace(self, select=moved(self.select), choices=tuple(map(moved, self.choices)))

    def loads(self) -> list[tuple[Bits, int]]:
        per_bit = max(1, len(self.choices) // 4)
        return [(self.select, self.width * per_bit), *((bits, 1) for bits in self.choices)]

    def logic_ps(self, device: Device, position: int = 0) -> int:
        return wide_ps(device, levels(len(self.choices)) - 1)

    def luts(self, device: Device, read: int = -1) -> float:
        rows = [constants(bits, self.width) for bits in self.choices]
        total = 0
        for bit in range(self.width):
            column = [row[bit] for row in rows]
            if not read >> bit & 1 or all(v is not None and v == column[0] for v in column):
                continue
            choices = len(column)
            total += choices - 1 if device.family == "ice40" or choices == 2 else -(-choices // 2)
        return total

    def keeps_luts(self, device: Device) -> bool:
        return device.area.keeps_luts

    def evaluate(self, operands: Sequence[Value]) -> Value:
        return choose(operands[0], operands[1:])
