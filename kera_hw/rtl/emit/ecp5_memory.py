"""ECP5's block RAMs as tables of constants, side by side for words wider than one holds."""
from __future__ import annotations

from dataclasses import dataclass

from kera_hw.rtl.emit.cells import Site, Start
from kera_hw.rtl.emit.text import declared_range, vector
from kera_hw.schedule.fpga.bits import Bits, bits_width, concat, const_bits
from kera_hw.schedule.fpga.units import Memory

STAGES = 2
BLOCK_BITS = 18432
_SHAPES = ((9, 36), (10, 18), (11, 9))
"""Address bits and word width of a block, deepest last."""


def shape(entries: int) -> tuple[int, int] | None:
    """Address bits and word width for a table of that many entries; None where no block is deep enough."""
    return next((found for found in _SHAPES if entries <= 1 << found[0]), None)


@dataclass(frozen=True, slots=True)
class Blocks:
    """Blocks of ``width``-bit words side by side; each with its DATA and how many of its bits are used."""

    width: int
    depth_bits: int
    address: Bits
    blocks: tuple[tuple[int, int], ...]


def memory_blocks(unit: Memory, address: Bits) -> Blocks:
    """One block for each slice of the word."""
    found = shape(len(unit.contents))
    assert found is not None and unit.latency_cycles == STAGES, "lowering cuts tables to what a block holds"
    depth_bits, width = found
    whole = concat([address, const_bits(0, depth_bits - bits_width(address))])
    blocks: list[tuple[int, int]] = []
    for low in range(0, unit.word_bits, width):
        data = sum((word >> low & (1 << width) - 1) << width * k for k, word in enumerate(unit.contents))
        blocks.append((data, min(width, unit.word_bits - low)))
    return Blocks(width, depth_bits, whole, tuple(blocks))


def write_blocks(unit: Memory, start: Start, site: Site) -> list[str]:
    """A ``kera_ecp5_rom`` for each block."""
    table = memory_blocks(unit, *start.arguments)
    address, width = vector(table.address, site.read), table.width
    enable = site.enable or "1'b1"
    lines: list[str] = []
    parts: list[str] = []
    for data, count in table.blocks:
        out, name = site.fresh(f"{site.wire}_word"), site.fresh(f"{site.wire}_rom")
        parameters = f".WIDTH({width}), .DEPTH_BITS({table.depth_bits}), .DATA({BLOCK_BITS}'h{data:x})"
        ports = f".clk(clk), .ce({enable}), .address({address}), .q({out})"
        lines += [f"wire {declared_range(width)}{out};", f"kera_ecp5_rom #({parameters}) {name} ({ports});"]
        parts.append(out if count == width else f"{out}[{count - 1}:0]")
    value = parts[0] if len(parts) == 1 else "{" + ", ".join(reversed(parts)) + "}"
    return [*lines, f"assign {site.wire} = {value};"]
