"""The LUTs of a netlist as gates, and what stands around them.

Adders, products, memories and loops stay as they are: their outputs are leaves of the graph, their operands
its outputs, beside the design's results and next states.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kera_hw.rtl.techmap import runs
from kera_hw.rtl.techmap.bitwise.aig import FALSE, Aig
from kera_hw.schedule.fpga.bits import Bits, Segment, bits_width
from kera_hw.schedule.fpga.cells import Add, Cell, Lut, Mux, Rom
from kera_hw.schedule.fpga.expressions import truth_table
from kera_hw.schedule.fpga.netlist import Netlist

Place = tuple[int, int]
"""A cell and one of its bits."""
_ROM_BITS = 8
"""Address bits up to which a table is taken for logic."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What is taken apart beside LUTs: multiplexers or not, and adders up to a width."""

    muxes: bool
    adder_bits: int


@dataclass(frozen=True, slots=True)
class Extract:
    """``literals``: of every bit of the cells taken apart. ``leaves``: where each leaf comes from."""

    aig: Aig
    leaves: list[Place]
    literals: dict[Place, int]
    inside: frozenset[int]

    def bit(self, bit: Segment) -> int:
        """The literal of a bit of a cell taken apart, or of a constant."""
        return bit.low if bit.cell is None else self.literals[bit.cell, bit.low]


def sinks(netlist: Netlist, inside: frozenset[int]) -> Iterator[Bits]:
    """Vectors that are read from outside the cells taken apart."""
    for index, cell in enumerate(netlist.cells):
        if index not in inside:
            yield from cell.operands()
    for state in netlist.states:
        yield state.next
    for output in netlist.outputs:
        yield output.bits


def extract(netlist: Netlist, choice: Choice) -> Extract:
    """Take apart what the choice allows."""
    inside = frozenset(
        k for k, cell in enumerate(netlist.cells)
        if type(cell) in _RULES and _RULES[type(cell)].opens(cell, choice)
    )
    aig = Aig()
    leaves: dict[Place, int] = {}

    def read(vectors: Sequence[Bits]) -> None:
        for segment in (s for vector in vectors for s in vector):
            if segment.cell is not None and segment.cell not in inside:
                for k in range(segment.low, segment.low + segment.width):
                    if (segment.cell, k) not in leaves:
                        leaves[segment.cell, k] = aig.leaf()

    for index in inside:
        read(netlist.cells[index].operands())
    made = Extract(aig, list(leaves), dict(leaves), inside)
    for index in sorted(inside):
        for k, literal in enumerate(_Gates(made, netlist.cells[index]).bits()):
            made.literals[index, k] = literal
    return made


class _Gates:
    """One cell's bits as gates."""

    def __init__(self, made: Extract, cell: Cell) -> None:
        self.made = made
        self.aig = made.aig
        self.cell = cell

    def bits(self) -> list[int]:
        return _RULES[type(self.cell)].gates(self, self.cell)

    def lut(self, cell: Lut) -> list[int]:
        return self._logic(cell.inputs, cell.width, table_of(cell))

    def _row(self, bits: Bits, width: int) -> list[int]:
        row = [self.made.bit(bit) for bit in runs.bits(bits)]
        return row * width if len(row) == 1 else row

    def _logic(self, operands: Sequence[Bits], width: int, table: int) -> list[int]:
        rows = [self._row(bits, width) for bits in operands]
        return [self.aig.function(table, column) for column in zip(*rows)] if rows else [table & 1] * width

    def mux(self, cell: Mux) -> list[int]:
        select = self._row(cell.select, 0 if not cell.select else 1)
        rows = [self._row(bits, cell.width) for bits in cell.choices]
        return [self._select(select, [row[k] for row in rows]) for k in range(cell.width)]

    def _select(self, select: Sequence[int], choices: Sequence[int]) -> int:
        """``choices[select]``; the last where there are no more."""
        if len(choices) == 1 or not select:
            return choices[0]
        *low, top = select
        half = 1 << len(low)
        zero = self._select(low, choices[:half])
        return self.aig.choose(top, self._select(low, choices[half:] or choices[-1:]), zero)

    def rom(self, cell: Rom) -> list[int]:
        address = [self.made.bit(bit) for bit in runs.bits(cell.address)]
        size = 1 << len(address)
        words = [*cell.contents, *[0] * size][:size]
        return [self._table([word >> k & 1 for word in words], address) for k in range(cell.width)]

    def _table(self, values: Sequence[int], address: Sequence[int]) -> int:
        if len(address) <= 4:
            return self.aig.function(sum(v << k for k, v in enumerate(values)), address)
        half = len(values) // 2
        low, high = (self._table(part, address[:-1]) for part in (values[:half], values[half:]))
        return self.aig.choose(address[-1], high, low)

    def add(self, cell: Add) -> list[int]:
        width = cell.sum_width
        operand = self._logic(cell.inputs, width, truth_table(cell.expr, len(cell.inputs)))
        carry = self.made.bit(next(runs.bits(cell.carry_in))) if cell.carry_in else FALSE
        found: list[int] = []
        for a, b in zip(self._row(cell.a, width), operand):
            half = self.aig.differ(a, b)
            found.append(self.aig.differ(half, carry))
            carry = self.aig.either(self.aig.both(a, b), self.aig.both(half, carry))
        return [*found, carry] if cell.carry_out else found


def table_of(cell: Lut) -> int:
    """A LUT's table over its operands."""
    return truth_table(cell.expr, len(cell.inputs))


@dataclass(frozen=True, slots=True)
class _Rule:
    """Whether a cell of a class is taken apart, and its bits as gates."""

    opens: Callable[[Any, Choice], bool]
    gates: Callable[[_Gates, Any], list[int]]


_RULES: Mapping[type[Cell], _Rule] = {
    Lut: _Rule(lambda cell, _: len(cell.inputs) <= 6, _Gates.lut),
    Rom: _Rule(lambda cell, _: bits_width(cell.address) <= _ROM_BITS, _Gates.rom),
    Mux: _Rule(lambda _, choice: choice.muxes, _Gates.mux),
    Add: _Rule(lambda cell, choice: cell.width <= choice.adder_bits, _Gates.add),
}
"""Cells of other classes stay as they are."""
