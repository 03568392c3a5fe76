"""Operators as Verilog text: the cell, and the registers behind it."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kera_hw.rtl.emit.cells import CellWriter, Site, Start, UnitWriter, registered
from kera_hw.rtl.emit.text import declared_range
from kera_hw.schedule.fpga.cells import Cell
from kera_hw.schedule.fpga.units import Operator


def operator_writer(cells: Mapping[type[Cell], CellWriter]) -> UnitWriter:
    """The rule of a style, by its rules for cells."""
    def write(unit: Operator, start: Start, site: Site) -> list[str]:
        cell = unit.on(start.arguments)
        if not unit.registers:
            return cells[type(cell)](cell, site)
        name = site.fresh(site.wire + "_d")
        lines = [f"wire {declared_range(cell.width)}{name};"]
        lines += cells[type(cell)](cell, replace(site, wire=name))
        return lines + registered(name, "_q", range(1, unit.registers + 1), cell.width, site)

    return write
