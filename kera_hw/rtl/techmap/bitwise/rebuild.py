"""A netlist with its logic exchanged: the kept cells, and LUTs in place of those taken apart."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from kera_hw.graph.node import Origin
from kera_hw.rtl.techmap import truth
from kera_hw.rtl.techmap.bitwise.extract import Extract, Place
from kera_hw.rtl.techmap.bitwise.lutmap import Lut as Table
from kera_hw.schedule.accesses import memories
from kera_hw.schedule.fpga import cells as out
from kera_hw.schedule.fpga.bits import Bits, Segment, concat
from kera_hw.schedule.fpga.netlist import Netlist, Output, StateReg

Row = tuple[int, tuple[Place, ...], int, bool]
"""A LUT to write: table, where its operands are, the node, and whether its complement is meant."""
_TOGETHER = 64
"""Bits of one LUT cell at most."""


class Rebuild:
    """Writes ``luts`` (by node) for the sinks' ``literals``, as vectors where tables and operands line up."""

    def __init__(
        self, old: Netlist, made: Extract, luts: Mapping[int, Table], literals: Mapping[Place, int]
    ) -> None:
        self.old = old
        self.made = made
        self.luts = luts
        self.literals = literals
        self.cells: list[out.Cell] = []
        self.moved: dict[int, int] = {}  # kept cells
        self.placed: dict[tuple[int, bool], Place] = {}  # nodes, and their complements
        self.origins = self._origins()

    def _origins(self) -> dict[int, tuple[Origin | None, str | None]]:
        """For every LUT the place in the source it comes from: that of a sink behind it."""
        found: dict[int, tuple[Origin | None, str | None]] = {}
        for (cell, _), literal in self.literals.items():
            pending = [literal >> 1]
            while pending:
                node = pending.pop()
                if node in self.luts and node not in found:
                    found[node] = (self.old.cells[cell].origin, self.old.cells[cell].name)
                    pending.extend(self.luts[node].leaves)
        return found

    def run(self) -> Netlist:
        levels = self._levels()
        kept = [k for k in range(len(self.old.cells)) if k not in self.made.inside]
        by_level: dict[int, tuple[list[int], list[tuple[int, bool]]]] = {}
        for k in kept:
            by_level.setdefault(levels["cell", k], ([], []))[0].append(k)
        for node, inverted in self._wanted():
            by_level.setdefault(levels["node", node], ([], []))[1].append((node, inverted))
        for level in sorted(by_level):
            cells, nodes = by_level[level]
            for k in cells:
                self._keep(k)
            self._write(nodes)
        states = tuple(self._state(state) for state in self.old.states)
        outputs = tuple(Output(output.bus, self._vector(output.bits)) for output in self.old.outputs)
        return replace(self.old, cells=tuple(self.cells), outputs=outputs, states=states)

    def _state(self, state: StateReg) -> StateReg:
        controls = tuple(
            replace(one, enable=self._moved(one.enable), reset=self._moved(one.reset))
            for one in state.controls
        )
        following = self._vector(state.next)
        return replace(state, out=self.moved[state.out], next=following, controls=controls)

    def _moved(self, pin: int | None) -> int | None:
        return None if pin is None else self.moved[pin]

    def _wanted(self) -> list[tuple[int, bool]]:
        """LUTs to write: every node in the sign it is needed in; leaves in their complement alone."""
        signs: dict[int, set[int]] = {}
        for literal in self.literals.values():
            signs.setdefault(literal >> 1, set()).add(literal & 1)
        found: list[tuple[int, bool]] = []
        for node in self.luts:
            own = signs.get(node, set())
            if own == {1}:  # readers inside invert their input for nothing
                found.append((node, True))
                continue
            found.append((node, False))
            if 1 in own:
                found.append((node, True))
        leaves = {node for node in signs if node not in self.luts and node != 0 and 1 in signs[node]}
        return [*found, *((node, True) for node in sorted(leaves))]

    # Order

    def _levels(self) -> dict[tuple[str, int], int]:
        """How many cells stand before each kept cell and each LUT; accesses to a memory keep their order."""
        before = {
            other.cell: one.cell for _, accesses in memories(self.old) for one, other in pairwise(accesses)
        }
        found: dict[tuple[str, int], int] = {}
        leaf_place = {k + 1: place for k, place in enumerate(self.made.leaves)}

        def needs(key: tuple[str, int]) -> Iterator[tuple[str, int]]:
            kind, index = key
            if kind == "cell":
                if index in before:
                    yield "cell", before[index]
                for bit in (s for bits in self.old.cells[index].operands() for s in bits):
                    if bit.cell is None:
                        continue
                    if bit.cell not in self.made.inside:
                        yield "cell", bit.cell
                        continue
                    for k in range(bit.low, bit.low + bit.width):
                        node = self.literals[bit.cell, k] >> 1
                        if node:
                            yield "node", node
            elif index in leaf_place:
                yield "cell", leaf_place[index][0]
            else:
                for leaf in self.luts[index].leaves:
                    yield "node", leaf

        roots = [("cell", k) for k in range(len(self.old.cells)) if k not in self.made.inside]
        roots += [("node", literal >> 1) for literal in self.literals.values() if literal > 1]
        for root in roots:
            pending = [root]
            while pending:
                key = pending[-1]
                if key in found:
                    pending.pop()
                    continue
                below = list(needs(key))
                missing = [item for item in below if item not in found]
                if missing:
                    pending.extend(missing)
                    continue
                found[key] = 1 + max((found[item] for item in below), default=0)
                pending.pop()
        return found

    # Writing

    def _keep(self, index: int) -> None:
        self.moved[index] = len(self.cells)
        self.cells.append(self.old.cells[index].with_operands(self._vector))

    def _vector(self, bits: Bits) -> Bits:
        parts: list[Bits] = []
        for segment in bits:
            if segment.cell is None:
                parts.append((segment,))
            elif segment.cell not in self.made.inside:
                parts.append((Segment(self.moved[segment.cell], segment.low, segment.width),))
            else:
                parts += [
                    (self._bit(self.literals[segment.cell, k]),)
                    for k in range(segment.low, segment.low + segment.width)
                ]
        return concat(parts)

    def _bit(self, literal: int) -> Segment:
        if literal <= 1:
            return Segment(None, literal, 1)
        cell, low = self._place(literal >> 1, literal & 1 == 1)
        return Segment(cell, low, 1)

    def _place(self, node: int, inverted: bool) -> Place:
        found = self.placed.get((node, inverted))
        if found is None:
            assert not inverted and node <= len(self.made.leaves)
            cell, low = self.made.leaves[node - 1]
            found = (self.moved[cell], low)
        return found

    def _operand(self, node: int) -> tuple[Place, bool]:
        """Where a LUT reads a node, and whether it reads the complement there."""
        if node in self.luts and (node, False) not in self.placed:
            return self.placed[node, True], True
        return self._place(node, False), False

    def _table(self, node: int, inverted: bool) -> tuple[int, tuple[Place, ...]]:
        if node not in self.luts:
            return truth.NOT, (self._place(node, False),)
        lut = self.luts[node]
        table, count = lut.table, len(lut.leaves)
        places: list[Place] = []
        for k, leaf in enumerate(lut.leaves):
            place, complement = self._operand(leaf)
            places.append(place)
            if complement:
                table = truth.flip(table, count, k)
        return table ^ (truth.mask(count) if inverted else 0), tuple(places)

    def _write(self, nodes: Sequence[tuple[int, bool]]) -> None:
        """One level's LUTs, neighbours with one table and operands side by side as one cell."""
        rows = sorted(
            ((*self._table(node, inverted), node, inverted) for node, inverted in nodes),
            key=lambda row: (len(row[1]), row[0], [c for c, _ in row[1]], [low for _, low in row[1]], row[2]),
        )
        start = 0
        while start < len(rows):
            end = start + 1
            steps: tuple[int, ...] | None = None
            while end < len(rows) and end - start < _TOGETHER:
                found = _step(rows[end - 1], rows[end])
                if found is None or (steps is not None and found != steps):
                    break
                steps, end = found, end + 1
            self._lut(rows[start:end], steps)
            start = end

    def _lut(self, rows: Sequence[Row], steps: tuple[int, ...] | None) -> None:
        table, places, first, _ = rows[0]
        width = len(rows)
        steps = steps or (1,) * len(places)
        inputs = tuple(
            (Segment(cell, low, width if step else 1),) for (cell, low), step in zip(places, steps)
        )
        origin, name = self.origins.get(first, (None, None))
        cell = out.Lut(
            width=width, origin=origin, name=name, inputs=inputs, expr=truth.expression(table, len(places))
        )
        for k, (_, _, node, inverted) in enumerate(rows):
            self.placed[node, inverted] = (len(self.cells), k)
        self.cells.append(cell)


def _step(one: Row, other: Row) -> tuple[int, ...] | None:
    """By how much each operand moves from one LUT to the next, if they can be one vector: 0 or 1."""
    if (one[0], len(one[1])) != (other[0], len(other[1])):  # NOR tables of any inputs are all 1
        return None
    steps: list[int] = []
    for (cell, low), (next_cell, next_low) in zip(one[1], other[1]):
        if cell != next_cell or next_low - low not in (0, 1):
            return None
        steps.append(next_low - low)
    return tuple(steps) if any(steps) else None
