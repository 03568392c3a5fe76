"""Carry chains whose cells hold the logic behind both of an adder's operands, bit by bit its own.

A carry cell of four pins forms p from all of them and, where p is not set, passes on g from two pins alone:
what its table gives with the other two at 0. An addition of two functions of the pins, s and t, fits where
p = s ^ t and, wherever that is not set, g = s. With at most three pins in use the fourth is tied to 1, which
leaves the rows for g free.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise, permutations

from kera_hw.rtl.techmap import truth
from kera_hw.schedule.fpga.bits import Bits, bits_width, concat, const_bits

PINS = 4
Function = tuple[tuple[Bits, ...], int]
"""Leaves, and a table over them."""


@dataclass(frozen=True, slots=True)
class PinRun:
    """A run of ``width`` bits of one table: leaves in the order of the pins; pins beyond are constants."""

    width: int
    leaves: tuple[Bits, ...]
    table: int

    def pin(self, index: int) -> Bits:
        """What a pin shows over the run. The last one is tied high where no leaf is on it."""
        if index >= len(self.leaves):
            return const_bits(-(index == PINS - 1), self.width)
        leaf = self.leaves[index]
        return leaf if bits_width(leaf) == self.width else leaf * self.width


@dataclass(frozen=True, slots=True)
class Chained:
    """An adder as a chain: its parts, the lowest first."""

    parts: tuple[PinRun, ...]

    @property
    def pins(self) -> tuple[Bits, ...]:
        """The vector on each pin."""
        return tuple(concat(part.pin(index) for part in self.parts) for index in range(PINS))

    def tables_of(self, low: int, count: int) -> tuple[tuple[int, int], ...]:
        """Runs of (bits, table) of bits [low, low + count)."""
        found: list[tuple[int, int]] = []
        position = 0
        for part in self.parts:
            inside = min(low + count, position + part.width) - max(low, position)
            if inside > 0:
                if found and found[-1][1] == part.table:
                    found[-1] = (found[-1][0] + inside, part.table)
                else:
                    found.append((inside, part.table))
            position += part.width
        return tuple(found)


def widest_runs(vectors: Sequence[Bits]) -> Iterator[tuple[int, int]]:
    """(lowest bit, width) of runs in which each vector is of one segment or one constant throughout."""
    edges: set[int] = {0}
    for bits in vectors:
        position = 0
        for segment in bits:
            if segment.cell is None:
                digits = [segment.low >> k & 1 for k in range(segment.width)]
                edges |= {position + k for k in range(1, segment.width) if digits[k] != digits[k - 1]}
            position += segment.width
            edges.add(position)
    ordered = sorted(edges)
    for low, high in pairwise(ordered):
        yield low, high - low


def joined(width: int, one: Function, other: Function, ends: bool) -> PinRun | None:
    """The run that adds two functions, if there is one.

    ``ends``: the run is the sum's highest bit, whose carry nobody reads.
    """
    leaves = tuple(dict.fromkeys((*one[0], *other[0])))
    if len(leaves) > PINS:
        return None
    count = len(leaves)
    addends = [
        truth.compose(table, tuple((0b10, (leaves.index(leaf),)) for leaf in own), count)
        for own, table in (one, other)
    ]
    found = _fit(addends[0], addends[1], count, ends)
    return None if found is None else PinRun(width, tuple(leaves[k] for k in found[0]), found[1])


@cache
def _fit(one: int, other: int, count: int, ends: bool) -> tuple[tuple[int, ...], int] | None:
    """An order of the leaves on the pins, and the cell's table."""
    propagates = one ^ other
    for order in permutations(range(count)):
        table = _table(one, propagates, count, order, ends)
        if table is not None:
            return order, table
    return None


def _table(one: int, propagates: int, count: int, order: tuple[int, ...], ends: bool) -> int | None:
    """The table with leaf ``order[k]`` on pin k, where the cell can pass on the right carries."""
    table = 0
    passed: dict[int, int] = {}  # by the first two pins: the carry where p is not set
    for row in range(1 << count):
        index = sum((row >> k & 1) << leaf for k, leaf in enumerate(order))
        if propagates >> index & 1:
            table |= 1 << row
        elif not ends and passed.setdefault(row & 3, one >> index & 1) != one >> index & 1:
            return None
    if count < PINS:
        table <<= 8  # the last pin is tied high; unused pins between are 0, and their rows as well
        return table | sum(value << pair for pair, value in passed.items())
    if any(table >> pair & 1 != value for pair, value in passed.items()):
        return None
    return table
