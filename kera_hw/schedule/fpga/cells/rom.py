"""Tables of constants in LUTs."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self

from kera_hw.schedule.fpga.bits import Bits, bits_width
from kera_hw.schedule.fpga.cells.cell import Cell, Look, levels, wide_ps
from kera_hw.schedule.fpga.device import Device
from kera_hw.schedule.fpga.expressions import table_support
from kera_hw.schedule.fpga.values import Value, lookup

LEAF_BITS = 7
"""Inputs of the widest function that ECP5's sites make of LUTs and the multiplexers beside them."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A function of some bits of an address: bit i of ``table`` where pin k shows bit k of i."""

    pins: tuple[int, ...]
    table: int

    @property
    def luts(self) -> int:
        """LUT4s that it takes."""
        return 0 if len(self.pins) < 2 else 1 << max(0, len(self.pins) - 4)


def _leaf(table: int) -> Leaf:
    """The table of ``LEAF_BITS`` inputs over those that it depends on."""
    values = [table >> k & 1 for k in range(1 << LEAF_BITS)]
    pins = list(range(LEAF_BITS))
    for pin in reversed(range(LEAF_BITS)):
        low = [value for k, value in enumerate(values) if not k >> pin & 1]
        if low == [value for k, value in enumerate(values) if k >> pin & 1]:
            values = low
            pins.remove(pin)
    return Leaf(tuple(pins), sum(value << k for k, value in enumerate(values)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rom(Cell):
    """out = contents[address], 0 past the end. A table in block RAM is a ``units.memory.Memory``."""

    address: Bits
    contents: tuple[int, ...]

    def look(self) -> Look:
        return Look("table", "table", "table")

    def describe(self) -> str:
        return f"{len(self.contents)}-entry table"

    def operands(self) -> tuple[Bits, ...]:
        return (self.address,)

    def with_operands(self, moved: Callable[[Bits], Bits]) -> Self:
        return replace(self, address=moved(self.address))

    def loads(self) -> list[tuple[Bits, int]]:
        return [(self.address, self.width * max(1, len(self.contents) // 16))]

    def logic_ps(self, device: Device, position: int = 0) -> int:
        return wide_ps(device, levels(len(self.contents)) - device.lut_inputs)

    def luts(self, device: Device, read: int = -1) -> float:
        """Different tables of one LUT's inputs over all output bits, and the multiplexers behind them."""
        if self.in_leaves(device):
            return self._leaf_luts(read)
        inputs = min(device.lut_inputs, bits_width(self.address))
        size = 1 << inputs
        blocks = -(-len(self.contents) // size)
        tables: set[int] = set()
        muxes = 0
        for bit in (b for b in range(self.width) if read >> b & 1):
            column = [value >> bit & 1 for value in self.contents]
            own = {
                sum(v << i for i, v in enumerate(column[k * size : (k + 1) * size])) for k in range(blocks)
            }
            tables |= {table for table in own if table_support(table, inputs) > 1}
            muxes += max(0, len(own) - 1)
        return len(tables) + (muxes if device.family == "ice40" else 0)

    def keeps_luts(self, device: Device) -> bool:
        return device.area.keeps_luts

    def in_leaves(self, device: Device) -> bool:
        """Whether it is written as ``leaves``: synthesis takes up to twice the LUTs of a table that large."""
        return device.area.keeps_luts and len(self.contents) > 1 << LEAF_BITS

    def leaves(self, bit: int) -> list[Leaf]:
        """Of an output bit what it is for each value of the address's bits above a leaf's."""
        size, wide = 1 << LEAF_BITS, (len(self.contents) - 1).bit_length()
        column = sum((value >> bit & 1) << k for k, value in enumerate(self.contents))
        blocks = range(1 << wide - LEAF_BITS)
        return [_leaf(column >> k * size & (1 << size) - 1) for k in blocks]

    def _leaf_luts(self, read: int) -> int:
        different: set[Leaf] = set()
        muxes, wide = 0, (len(self.contents) - 1).bit_length()
        for bit in (b for b in range(self.width) if read >> b & 1):
            found = self.leaves(bit)
            different |= set(found)
            if len(set(found)) > 1:
                muxes += len(found) // 2
            muxes += bits_width(self.address) > wide  # words past the end are 0
        return sum(leaf.luts for leaf in different) + muxes

    def evaluate(self, operands: Sequence[Value]) -> Value:
        return lookup(operands[0], self.contents, self.width)
