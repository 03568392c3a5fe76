"""Sums on carry chains, with the logic of their operands in the carry cells."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from kera_hw.schedule.fpga.bits import Bits, has_signals, is_single
from kera_hw.schedule.fpga.cells.cell import Cell, Look
from kera_hw.schedule.fpga.device import Device, Timing
from kera_hw.schedule.fpga.expressions import BitExpr, evaluate
from kera_hw.schedule.fpga.values import Value, like, narrow, spread, widen


def carry_ps(device: Device, width_bits: int) -> float:
    """Time through a carry chain of that many bits."""
    return device.timing.carry_base_ps + device.timing.carry_bit_ps * width_bits


@dataclass(frozen=True, slots=True, kw_only=True)
class Add(Cell):
    """out = a + f(b, c, d) + carry_in modulo 2^width, f bitwise over operands absorbed in the carry cells.

    Operands of one bit are broadcast. ``width`` counts the sum bits and, with ``carry_out``, one more for
    the carry.
    """

    a: Bits
    inputs: tuple[Bits, ...]  # b[, c[, d]]
    expr: BitExpr = ("in", 0)
    carry_in: Bits = ()  # empty: 0; constant or one bit
    carry_out: bool = False

    near: ClassVar[bool] = False

    def look(self) -> Look:
        return Look("sum", "sum", "add")

    def describe(self) -> str:
        return f"{self.width}-bit addition"

    @property
    def sum_width(self) -> int:
        """Bits of the sum proper; the carry-out, when asked for, is one more."""
        return self.width - 1 if self.carry_out else self.width

    def operands(self) -> tuple[Bits, ...]:
        return (self.a, *self.inputs, self.carry_in)

    def with_operands(self, moved: Callable[[Bits], Bits]) -> Self:
        inputs = tuple(map(moved, self.inputs))
        return replace(self, a=moved(self.a), inputs=inputs, carry_in=moved(self.carry_in))

    def loads(self) -> list[tuple[Bits, int]]:
        spread_out = [(bits, self.width if is_single(bits) else 1) for bits in (self.a, *self.inputs)]
        return [*spread_out, (self.carry_in, 1)]

    def logic_ps(self, device: Device, position: int = 0) -> int:
        entered = device.timing.carry_in_ps if has_signals(self.carry_in) else 0
        return round(carry_ps(device, self.width - position) + entered)

    def early_ps(self, device: Device, bit: int) -> int:
        """Carries run upwards."""
        return round(device.timing.carry_bit_ps * (self.width - 1 - bit))

    def wire_ps(self, timing: Timing) -> float:
        return timing.route_carry_ps

    def luts(self, device: Device, read: int = -1) -> float:
        area = device.area
        width = (read & (1 << self.width) - 1).bit_length()
        # A carry that comes from a signal enters an iCE40 chain through a position of its own.
        extra = area.carry_bits_per_cell == 1 and has_signals(self.carry_in)
        return -(-(width + extra) // area.carry_bits_per_cell) * area.luts_per_carry_cell if width else 0

    def keeps_luts(self, device: Device) -> bool:
        return True

    def evaluate(self, operands: Sequence[Value]) -> Value:
        summed, mask = self.sum_width, (1 << self.width) - 1
        wide = [spread(v, bits, summed) for v, bits in zip(operands[1:-1], self.inputs)]
        second = like(evaluate(self.expr, wide, (1 << summed) - 1), operands, summed)
        if self.width < 64:  # no intermediate sum can overflow 64 bits
            return (operands[0] + second + operands[-1]) & mask
        return narrow(widen(operands[0]) + widen(second) + widen(operands[-1]) & mask, self.width)
