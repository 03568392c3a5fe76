"""Tables of constants in ECP5's LUTs: functions of seven address bits, and multiplexers that choose one.

Synthesis makes up to twice as many LUTs of a table of more than 128 entries: its mapper does not see that the
multiplexers beside the LUTs are free.
"""
from __future__ import annotations

from dataclasses import replace

from kera_hw.rtl.emit.cells import PLAIN_CELLS, Site
from kera_hw.rtl.emit.ecp5_lut import LutRun, write_run
from kera_hw.rtl.emit.ecp5_mux import write_mux
from kera_hw.rtl.emit.text import constant, declared_range, part, vector
from kera_hw.schedule.fpga.bits import Bits, Segment, bits_width, cell_bits, slice_bits
from kera_hw.schedule.fpga.cells import Mux, Rom
from kera_hw.schedule.fpga.cells.rom import LEAF_BITS, Leaf


def write_rom(cell: Rom, site: Site) -> list[str]:
    """Leaves for large tables; plain ones are synthesised as they should be."""
    if len(cell.contents) <= 1 << LEAF_BITS:
        return PLAIN_CELLS[Rom](cell, site)
    return _Leaves(cell, site).write()


class _Leaves:
    """Lines of one table; of what is read inside, number 0 is the address and others are leaves."""

    def __init__(self, cell: Rom, site: Site) -> None:
        self._cell, self._outer = cell, site
        self._bits = bits_width(cell.address)
        address = site.fresh(f"{site.wire}_addr")
        self._names = [(address, self._bits)]
        self._known: dict[Leaf, Bits] = {}
        self._site = replace(site, read=self._read)
        self._lines = [f"wire {declared_range(self._bits)}{address} = {vector(cell.address, site.read)};"]

    def _read(self, segment: Segment) -> list[str]:
        assert segment.cell is not None
        name, whole = self._names[segment.cell]
        return [part(name, segment.low, segment.width, whole)]

    def write(self) -> list[str]:
        """All of them."""
        cell, wide = self._cell, (len(self._cell.contents) - 1).bit_length()
        whole = cell_bits(0, self._bits)
        inside = self._past_the_end(wide)
        for bit in range(cell.width):
            choices = [self._leaf(leaf) for leaf in cell.leaves(bit)]
            name = self._outer.fresh(f"{self._outer.wire}_bit{bit}")
            self._lines.append(f"wire {name};")
            if len(set(choices)) == 1:
                self._lines.append(f"assign {name} = {vector(choices[0], self._read)};")
            else:
                select = slice_bits(whole, LEAF_BITS, wide - LEAF_BITS)
                mux = Mux(width=1, select=select, choices=tuple(choices))
                self._lines += write_mux(mux, replace(self._site, wire=name))
            self._lines.append(f"assign {part(self._outer.wire, bit, 1, cell.width)} = {inside}{name};")
        return self._lines

    def _past_the_end(self, wide: int) -> str:
        """What keeps words beyond the table 0, where the address has bits above those that it needs."""
        if self._bits <= wide:
            return ""
        above = vector(slice_bits(cell_bits(0, self._bits), wide, self._bits - wide), self._read)
        return f"~|{above} & "

    def _leaf(self, leaf: Leaf) -> Bits:
        found = self._known.get(leaf)
        if found is None:
            name = self._outer.fresh(f"{self._outer.wire}_leaf")
            self._lines += [f"wire {name};", *self._made(leaf, name)]
            self._names.append((name, 1))
            found = self._known[leaf] = cell_bits(len(self._names) - 1, 1)
        return found

    def _made(self, leaf: Leaf, name: str) -> list[str]:
        operands = tuple(cell_bits(0, 1, pin) for pin in leaf.pins)
        if len(operands) == LEAF_BITS:
            module = self._outer.fresh(f"{name}_table")
            init, pins = f"128'h{leaf.table:032x}", vector(cell_bits(0, LEAF_BITS), self._read)
            return [f"kera_ecp5_table #(.INIT({init})) {module} (.x({pins}), .z({name}));"]
        if not operands:
            return [f"assign {name} = {constant(leaf.table & 1, 1)};"]
        if len(operands) == 1:
            sign = "" if leaf.table == 0b10 else "~"
            return [f"assign {name} = {sign}{vector(operands[0], self._read)};"]
        return write_run(replace(self._site, wire=name), name, LutRun(0, 1, operands, leaf.table))
