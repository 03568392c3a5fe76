"""Operators as Verilog text: the cell, and the registers before and behind it."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kera_hw.rtl.emit.cells import CellWriter, Site, Start, UnitWriter, registered
from kera_hw.rtl.emit.text import declared_range, part, vector
from kera_hw.schedule.fpga.bits import Segment, bits_width, cell_bits
from kera_hw.schedule.fpga.cells import Cell
from kera_hw.schedule.fpga.units import Operator


def operator_writer(cells: Mapping[type[Cell], CellWriter]) -> UnitWriter:
    """The rule of a style, by its rules for cells."""
    def write(unit: Operator, start: Start, site: Site) -> list[str]:
        held: list[str] = []
        if unit.held:
            start, site, held = _held(start, site)
        cell = unit.on(start.arguments)
        if not unit.registers:
            return held + cells[type(cell)](cell, site)
        name = site.fresh(site.wire + "_d")
        lines = [*held, f"wire {declared_range(cell.width)}{name};"]
        lines += cells[type(cell)](cell, replace(site, wire=name))
        return lines + registered(name, "_q", range(1, unit.registers + 1), cell.width, site)

    return write


def _held(start: Start, site: Site) -> tuple[Start, Site, list[str]]:
    """A call whose operands are those of the cycle before, and lines with the registers that keep them."""
    names: list[tuple[str, int]] = []
    lines: list[str] = []
    enabled = f"if ({site.enable}) " if site.enable else ""
    for position, bits in enumerate(start.arguments):
        name, width = site.fresh(f"{site.wire}_held{position}"), bits_width(bits)
        lines.append(f"reg {declared_range(width)}{name};")
        lines.append(f"always @(posedge clk) {enabled}{name} <= {vector(bits, site.read)};")
        names.append((name, width))

    def read(segment: Segment) -> list[str]:
        assert segment.cell is not None
        name, width = names[segment.cell]
        return [part(name, segment.low, segment.width, width)]

    arguments = tuple(cell_bits(k, width) for k, (_, width) in enumerate(names))
    return replace(start, arguments=arguments), replace(site, read=read), lines
