"""Bitwise logic in LUTs."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self

from kera_hw.schedule.fpga.bits import Bits, has_signals, is_single
from kera_hw.schedule.fpga.cells.cell import Cell, Look, luts_of_function, wide_ps
from kera_hw.schedule.fpga.device import Device
from kera_hw.schedule.fpga.expressions import BitExpr, constant_runs, evaluate, support_size
from kera_hw.schedule.fpga.values import Value, like, spread


@dataclass(frozen=True, slots=True, kw_only=True)
class Lut(Cell):
    """out[i] = expr over one bit of each operand (operands of one bit are broadcast).

    At most 4 operands on 4-input devices: one LUT level, ``width`` LUTs.
    """

    inputs: tuple[Bits, ...]
    expr: BitExpr

    def look(self) -> Look:
        return Look("logic", "logic", "logic")

    def describe(self) -> str:
        return f"{self.width}-bit logic"

    def operands(self) -> tuple[Bits, ...]:
        return self.inputs

    def with_operands(self, moved: Callable[[Bits], Bits]) -> Self:
        return replace(self, inputs=tuple(map(moved, self.inputs)))

    def loads(self) -> list[tuple[Bits, int]]:
        return [(bits, self.width if is_single(bits) else 1) for bits in self.inputs]

    def logic_ps(self, device: Device, position: int = 0) -> int:
        return wide_ps(device, sum(map(has_signals, self.inputs)) - device.lut_inputs)

    def luts(self, device: Device, read: int = -1) -> float:
        return sum(
            (read >> low & (1 << width) - 1).bit_count()
            * luts_of_function(support_size(self.expr, constants), device)
            for low, width, constants in constant_runs(self.inputs, self.width)
        )

    def keeps_luts(self, device: Device) -> bool:
        return device.area.keeps_luts

    def evaluate(self, operands: Sequence[Value]) -> Value:
        wide = [spread(v, bits, self.width) for v, bits in zip(operands, self.inputs)]
        return like(evaluate(self.expr, wide, (1 << self.width) - 1), operands, self.width)
