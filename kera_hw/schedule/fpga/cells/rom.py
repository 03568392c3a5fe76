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

    def evaluate(self, operands: Sequence[Value]) -> Value:
        return lookup(operands[0], self.contents, self.width)
