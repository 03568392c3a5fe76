"""Operations that calls share: one cell, in turn for each of them, behind multiplexers of its operands.

A sum may be an accumulator: its first operand is the result of another operator and its second its own
result of the cycle before, or nothing, both taken in the very stage they appear (``immediate``). So a chain
of products and sums takes one multiplier and one adder with a register, a term a cycle.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from kera_hw.schedule.fpga.bits import Bits, bits_width, cell_bits, const_bits
from kera_hw.schedule.fpga.cells.add import Add
from kera_hw.schedule.fpga.cells.call import Unit
from kera_hw.schedule.fpga.cells.cell import Look, levels, wide_ps
from kera_hw.schedule.fpga.cells.mul import Mul
from kera_hw.schedule.fpga.device import Device
from kera_hw.schedule.fpga.values import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator(Unit):
    """``cell`` for at most ``ways`` calls in turn; position k of its operands stands for cell k.

    ``registers`` follow it, of flip-flops. With ``held`` its operands go into one first, which halves the way
    from where they are chosen to a cell that is far. ``immediate``: operands come straight from the cells
    that give them, never from a register.
    """

    cell: Mul | Add
    registers: int
    ways: int
    immediate: bool = False
    held: bool = False

    @property
    def latency_cycles(self) -> int:
        return self.held + self.cell.inner_stages() + self.registers

    @property
    def initiation_interval(self) -> int:
        return 1

    @property
    def width(self) -> int:
        return self.cell.width

    def definition(self) -> Self:
        return replace(self, name="", ways=1)

    def look(self) -> Look:
        return self.cell.look()

    def describe(self) -> str:
        return f"{self.cell.describe()} in turn"

    def setup_ps(self, device: Device, operand: int = 0) -> int:
        """The operand's multiplexer, a wire, and the cell; an accumulator has one gate in its stead."""
        chosen = device.timing.lut_ps if self.immediate else wide_ps(device, levels(self.ways) - 1)
        if self.held:
            return round(chosen) if self.ways > 1 else 0
        if self.ways < 2:
            return self.cell.logic_ps(device)
        return round(chosen + self.cell.wire_ps(device.timing)) + self.cell.logic_ps(device)

    def clk_to_q_ps(self, device: Device) -> int:
        return self.cell.clk_to_q_ps(device, 0)

    def from_block(self, device: Device) -> bool:
        return self.cell.from_block(device) and not self.registers

    def luts(self, device: Device) -> float:
        return self.cell.luts(device)

    def keeps_luts(self, device: Device) -> bool:
        return self.cell.keeps_luts(device)

    def operand_luts(self, operands: Sequence[Bits]) -> int:
        """None here: what is chosen among depends on the schedule, see ``schedule.turns``."""
        return 0

    def flip_flops(self) -> int:
        return self.cell.flip_flops() + self.registers * self.width

    def brams(self, device: Device) -> int:
        return 0

    def dsps(self, device: Device) -> int:
        return self.cell.dsps(device)

    def on(self, operands: Sequence[Bits]) -> Mul | Add:
        """The cell with a call's operands; those left out are 0."""
        def given(bits: Bits) -> Bits:
            place = bits[0].cell if bits else None
            return bits if place is None else operands[place] or const_bits(0, bits_width(bits))

        return self.cell.with_operands(given)

    def evaluate(self, operands: Sequence[Value]) -> Value:
        return self.cell.evaluate([*operands, *(0 for _ in self.cell.operands()[len(operands) :])])


def shared_product(
    name: str, ways: int, side_bits: int, latency_cycles: int, held: bool = False
) -> Operator:
    """A multiplier of two signed operands of ``side_bits`` bits."""
    cell = Mul(
        width=2 * side_bits, a=cell_bits(0, side_bits), b=cell_bits(1, side_bits), a_signed=True,
        b_signed=True, latency_cycles=latency_cycles,
    )
    return Operator(name=name, cell=cell, registers=0, ways=ways, held=held)


def accumulator(name: str, ways: int, width: int) -> Operator:
    """An adder with a register: the first operand, and the second where the third, a bit, is set."""
    inputs = (cell_bits(1, width), cell_bits(2, 1))
    cell = Add(width=width, a=cell_bits(0, width), inputs=inputs, expr=("and", ("in", 0), ("in", 1)))
    return Operator(name=name, cell=cell, registers=1, ways=ways, immediate=True)


def operand_widths(unit: Operator) -> list[int]:
    """Bits of the operands that calls give."""
    return [bits_width(bits) for bits in unit.cell.operands() if bits]
