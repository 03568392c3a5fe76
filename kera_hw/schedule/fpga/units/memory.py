"""Tables of constants in block RAM: memories that nothing writes, with one read port."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kera_hw.schedule.fpga.bits import Bits
from kera_hw.schedule.fpga.cells.call import Unit
from kera_hw.schedule.fpga.cells.cell import Look
from kera_hw.schedule.fpga.device import Device
from kera_hw.schedule.fpga.values import Value, lookup

DEEPEST = 2048
"""Entries beyond which a table is several."""


def block_shape(entries: int, device: Device) -> tuple[int, int]:
    """Words, and bits a word, of one block RAM for a table of that many entries; (0, 0) if there is none."""
    area = device.area
    if not area.bram_bits or entries > DEEPEST:
        return 0, 0
    depth = max(area.bram_bits // area.bram_width, 1 << (entries - 1).bit_length())
    least = (area.bram_bits // area.bram_width).bit_length()
    return depth, max(1, area.bram_width >> depth.bit_length() - least)


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory(Unit):
    """A call reads contents[address], 0 past the end, behind the registers inside: address, then output."""

    word_bits: int
    contents: tuple[int, ...]
    read_latency_cycles: int

    @property
    def latency_cycles(self) -> int:
        return self.read_latency_cycles

    @property
    def initiation_interval(self) -> int:
        return 1

    @property
    def width(self) -> int:
        return self.word_bits

    def look(self) -> Look:
        return Look("table", "table", "table")

    def describe(self) -> str:
        return f"{len(self.contents)}-entry table"

    def setup_ps(self, device: Device, operand: int = 0) -> int:
        return round(max(0.0, device.timing.bram_setup_ps - device.timing.setup_ps))

    def clk_to_q_ps(self, device: Device) -> int:
        return round(device.timing.bram_clk_to_q_ps)

    def luts(self, device: Device) -> float:
        return 0

    def operand_luts(self, operands: Sequence[Bits]) -> int:
        return 0

    def flip_flops(self) -> int:
        return 0

    def brams(self, device: Device) -> int:
        _, width = block_shape(len(self.contents), device)
        return -(-self.word_bits // width)

    def evaluate(self, operands: Sequence[Value]) -> Value:
        return lookup(operands[0], self.contents, self.word_bits)
