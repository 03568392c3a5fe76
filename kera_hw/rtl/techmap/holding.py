"""Under which condition a vector is the same as another, or a constant; and what it is otherwise.

``if c { x } else { q }`` is ``q`` where ``c`` is not set; elsewhere nobody asks what stands in the place of
``q``, so that ``x`` will do. Selections of selections are followed through the gates and multiplexers that
mapping has made of them. A condition is one bit that decides for a whole run of bits.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kera_hw.rtl.techmap import truth
from kera_hw.rtl.techmap.items import Choice, Gate
from kera_hw.rtl.techmap.net import Net
from kera_hw.schedule.fpga.bits import Bits, Segment, bits_width, const_bits, slice_bits

ALWAYS, NEVER = const_bits(1, 1), const_bits(0, 1)
_MOST_RUNS = 300
"""Runs of bits that are looked at for one vector, nearest first; what lies beyond is not taken apart."""
_Place = tuple[Segment, int]  # a run of bits, and the bit of the goal that its first one is held against


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of ``width`` bits: the goal where ``when`` is set, else the same bits of ``rest``."""

    width: int
    when: Bits
    rest: Bits


class Search:
    """Finds a goal in vectors of a net: a vector of as many bits, or with one bit 0 or 1 that value."""

    def __init__(self, net: Net, goal: Bits) -> None:
        self.net = net
        self.goal = goal
        self.value = goal[0].low if goal[0].cell is None else None
        self._found: dict[_Place, list[Piece]] = {}

    def pieces(self, bits: Bits, place: int = 0) -> list[Piece]:
        """The vector, held against the goal from bit ``place`` on, run by run."""
        near = dict.fromkeys(self._places(bits, place))
        pending = list(near)
        for key in pending:  # grows while it is read
            for below in self._below(key):
                if below not in near and below not in self._found:
                    if len(near) < _MOST_RUNS:
                        near[below] = None
                        pending.append(below)
                    else:
                        self._found[below] = [Piece(below[0].width, NEVER, (below[0],))]
        while pending:
            key = pending[-1]
            missing = [] if key in self._found else [k for k in self._below(key) if k not in self._found]
            pending.extend(missing)
            if not missing:
                pending.pop()
                if key not in self._found:
                    self._found[key] = list(self._split(key))
        return self._joined(bits, place)

    def _places(self, bits: Bits, place: int) -> Iterator[_Place]:
        for segment in bits:
            yield segment, 0 if self.value is not None else place
            place += segment.width

    def _joined(self, bits: Bits, place: int) -> list[Piece]:
        return [piece for key in self._places(bits, place) for piece in self._found[key]]

    def _is_goal(self, segment: Segment, place: int) -> bool:
        return (segment,) == slice_bits(self.goal, place, segment.width)

    def _chooser(self, segment: Segment) -> Gate | Choice | None:
        """The gate or the multiplexer that a run comes from."""
        item = None if segment.cell is None else self.net.items[segment.cell]
        return item if isinstance(item, Gate | Choice) else None

    def _below(self, key: _Place) -> list[_Place]:
        """Runs that this one may be chosen from."""
        segment, place = key
        item = self._chooser(segment)
        if item is None or self._is_goal(segment, place):
            return []
        return [
            below for bits in _choices(item) if bits_width(bits) == item.width
            for below in self._places(slice_bits(bits, segment.low, segment.width), place)
        ]

    def _split(self, key: _Place) -> Iterator[Piece]:
        segment, place = key
        item = self._chooser(segment)
        if segment.cell is None and self.value is not None:
            for i in range(segment.width):
                bit = const_bits(segment.low >> i, 1)
                yield Piece(1, ALWAYS if bit == self.goal else NEVER, bit)
        elif self._is_goal(segment, place):
            yield Piece(segment.width, ALWAYS, (segment,))
        elif item is None:
            yield Piece(segment.width, NEVER, (segment,))
        else:
            yield from self._chosen(segment, place, item)

    def _chosen(self, segment: Segment, place: int, item: Gate | Choice) -> Iterator[Piece]:
        """The run cut where the pieces of any of its operands are, and each part by the item's rule."""
        assert segment.cell is not None
        self.net.origin = self.net.origins[segment.cell]
        operands: list[Bits] = []
        rows: list[list[Piece]] = []
        for bits in _choices(item):
            wide = bits_width(bits) == item.width
            seen = slice_bits(bits, segment.low, segment.width) if wide else bits
            operands.append(seen)
            rows.append(self._joined(seen, place) if wide else [Piece(segment.width, NEVER, bits)])
        single = [bits_width(bits) != item.width for bits in _choices(item)]
        for low, width in _cuts(rows):
            parts = [_part(row, low, width) for row in rows]
            seen = [bits if one else slice_bits(bits, low, width) for bits, one in zip(operands, single)]
            if all(part.when == NEVER for part in parts) and (self.value is None or isinstance(item, Choice)):
                yield Piece(width, NEVER, slice_bits((segment,), low, width))
            elif isinstance(item, Choice):
                yield self._selected(item.select, width, parts)
            else:
                yield self._gated(item, width, seen, parts)

    def _gated(self, item: Gate, width: int, operands: Sequence[Bits], parts: Sequence[Piece]) -> Piece:
        """A gate is the goal where it passes on an operand that is."""
        table = item.table
        gate = _Gate(table, [bits_width(bits) == 1 for bits in operands])
        carrying = gate.carriers([k for k, part in enumerate(parts) if part.when != NEVER])
        known = gate.gives(self.value, carrying) if self.value is not None and width > 1 else 0
        passes = {k: gate.passes(k, carrying) for k in carrying}
        idle, when, count = known, 0, len(operands)
        for k in carrying:
            idle |= passes[k] if parts[k].when == ALWAYS else 0
        for row in range(1 << count + len(carrying)):  # the operands, above them the carriers' conditions
            index = row & (1 << count) - 1
            hits = [passes[k] >> index & row >> count + place & 1 for place, k in enumerate(carrying)]
            when |= (known >> index & 1 | any(hits)) << row
        singles = [bits if bits_width(bits) == 1 else NEVER for bits in operands]
        found = self.net.logic(when, [*singles, *(parts[k].when for k in carrying)], 1)
        data = [parts[k].rest if k in carrying else operands[k] for k in range(count)]
        rest, kept = _without(table, idle, data, carrying)
        left = self.net.logic(rest, kept, width) if kept else const_bits(-(rest & 1), width)
        return Piece(width, found, left)

    def _selected(self, select: Bits, width: int, parts: Sequence[Piece]) -> Piece:
        """A multiplexer is the goal where the choice taken is."""
        asked = [part.rest for part in parts if part.when != ALWAYS]
        if not asked:
            return Piece(width, ALWAYS, parts[0].rest)
        choices = [asked[0] if part.when == ALWAYS else part.rest for part in parts]
        same = all(bits == asked[0] for bits in asked)
        rest = asked[0] if same else self.net.mux(select, choices, width)
        return Piece(width, self.net.mux(select, [part.when for part in parts], 1), rest)


def _choices(item: Gate | Choice) -> tuple[Bits, ...]:
    return item.choices if isinstance(item, Choice) else item.ins


def _cuts(rows: Sequence[Sequence[Piece]]) -> Iterator[tuple[int, int]]:
    """Runs (low, width) within which no row changes its piece."""
    ends: set[int] = set()
    for row in rows:
        end = 0
        for piece in row:
            end += piece.width
            ends.add(end)
    low = 0
    for end in sorted(ends):
        yield low, end - low
        low = end


def _part(row: Sequence[Piece], low: int, width: int) -> Piece:
    """Bits [low, low + width) of a row, which lie in one piece of it."""
    for piece in row:
        if low < piece.width:
            spread = bits_width(piece.rest) != piece.width  # a condition: one bit for all
            return Piece(width, piece.when, piece.rest if spread else slice_bits(piece.rest, low, width))
        low -= piece.width
    raise AssertionError("a part beyond its row")


class _Gate:
    """A table over operands, of which the ``single`` ones are one bit for the whole run."""

    def __init__(self, table: int, single: Sequence[bool]) -> None:
        self.table = table
        self.count = len(single)
        self.single = single

    def carriers(self, wanted: Sequence[int]) -> list[int]:
        """Those of ``wanted`` that the gate, by its other single operands, either passes on or ignores."""
        kept = list(wanted)
        while True:
            bad = [k for k in kept if self.passes(k, kept) | self._ignores(k, kept) != truth.mask(self.count)]
            if not bad:
                return kept
            kept.remove(bad[0])

    def _for_all(self, held: int, carrying: Sequence[int]) -> int:
        """Where a table is set whatever the wide operands and the carriers are."""
        for k in range(self.count):
            if not self.single[k] or k in carrying:
                low, high = (self._fixed(held, k, value) for value in (0, 1))
                held = low & high
        return held

    def _fixed(self, table: int, k: int, value: int) -> int:
        """The table with operand k fixed, over all operands still."""
        column = truth.variable(k, self.count)
        part = table & (column if value else ~column)
        return part | (part >> (1 << k) if value else part << (1 << k))

    def passes(self, k: int, carrying: Sequence[int]) -> int:
        """Where the gate shows operand ``k``, over the single operands that do not carry."""
        low, high = self._fixed(self.table, k, 0), self._fixed(self.table, k, 1)
        return self._for_all(high & ~low, carrying)

    def _ignores(self, k: int, carrying: Sequence[int]) -> int:
        low, high = self._fixed(self.table, k, 0), self._fixed(self.table, k, 1)
        return self._for_all(truth.mask(self.count) & ~(low ^ high), carrying)

    def gives(self, value: int, carrying: Sequence[int]) -> int:
        """Where the gate is ``value`` by its single operands alone."""
        return self._for_all(self.table if value else truth.mask(self.count) & ~self.table, carrying)


def _without(table: int, idle: int, operands: Sequence[Bits], first: Sequence[int]) -> tuple[int, list[Bits]]:
    """A table of fewer operands that agrees outside ``idle``, and those operands; ``first`` go first."""
    order = [*first, *(k for k in range(len(operands)) if k not in first)]
    kept = list(range(len(operands)))
    for k in reversed(range(len(operands))):  # the same bits twice are one operand
        twin = next((j for j in range(k) if operands[j] == operands[k]), None)
        if twin is not None:
            table, idle = (truth.merge(part, len(kept), k, twin) for part in (table, idle))
            kept.remove(k)
    on, off = table & ~idle, truth.mask(len(kept)) & ~table & ~idle
    for k in order:
        if k not in kept:
            continue
        at, count = kept.index(k), len(kept)
        ons = [truth.cofactor(on, count, at, value) for value in (0, 1)]
        offs = [truth.cofactor(off, count, at, value) for value in (0, 1)]
        if not (ons[0] | ons[1]) & (offs[0] | offs[1]):
            on, off = ons[0] | ons[1], offs[0] | offs[1]
            kept.remove(k)
    return on, [operands[k] for k in kept]
