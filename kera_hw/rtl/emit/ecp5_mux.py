"""ECP5's wide multiplexers: a 4:1 takes two LUT4s and a PFUMX a bit; Yosys's mapper takes four LUT4s."""
from __future__ import annotations

from dataclasses import dataclass

from kera_hw.rtl.emit.cells import Site
from kera_hw.rtl.emit.cells import write_mux as write_plain
from kera_hw.rtl.emit.text import declared_range, vector
from kera_hw.schedule.fpga.bits import Bits, bits_width, concat, const_bits
from kera_hw.schedule.fpga.cells import Mux

_GROUP_LEVELS = 4  # 16:1 is as wide as one chain of PFUMX and L6MUX21 goes


@dataclass(frozen=True, slots=True)
class MuxTree:
    """A ``kera_ecp5_mux`` of 2^``levels`` choices, given end to end in ``choices``."""

    levels: int
    choices: Bits


def mux_tree(cell: Mux) -> MuxTree | None:
    """The tree for three choices and more, none of them constant in any bit; else None."""
    levels = (len(cell.choices) - 1).bit_length()
    constant = any(segment.cell is None for choice in cell.choices for segment in choice)
    if levels < 2 or levels > _GROUP_LEVELS or constant or bits_width(cell.select) < levels:
        return None
    repeated = [cell.choices[-1]] * ((1 << levels) - len(cell.choices))
    return MuxTree(levels, concat([*cell.choices, *repeated]))


def write_mux(cell: Mux, site: Site) -> list[str]:
    """The tree where there is one, else plain operators."""
    tree = mux_tree(cell)
    if tree is None:
        return write_plain(cell, site)
    name, select = site.fresh(site.wire + "_mux"), site.fresh(site.wire + "_sel")
    return [
        *_select(cell, tree.levels, select, site),
        f"kera_ecp5_mux #(.WIDTH({cell.width}), .LEVELS({tree.levels})) {name} "
        f"(.choices({vector(tree.choices, site.read)}), .select({select}), .z({site.wire}));",
    ]


def _select(cell: Mux, levels: int, name: str, site: Site) -> list[str]:
    """The select bits in use; bits above them, when set, take the last choice."""
    width = bits_width(cell.select)
    if width == levels:
        return [f"wire {declared_range(levels)}{name} = {vector(cell.select, site.read)};"]
    whole = site.fresh(name + "_all")
    ones = vector(const_bits((1 << levels) - 1, levels), site.read)
    return [
        f"wire {declared_range(width)}{whole} = {vector(cell.select, site.read)};",
        f"wire {declared_range(levels)}{name} = |{whole}[{width - 1}:{levels}] ? {ones} : "
        f"{whole}[{levels - 1}:0];",
    ]
