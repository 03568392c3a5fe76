"""Conditions that matter late made again from few signals, given which values states hold.

Whether an arbiter grants anything depends on its requests alone, as long as it remembers some place to begin
at; written down, the answer comes behind the grant. A condition is looked at as a function of parameters and
states, of no account for values that these never hold, and made again where that is sooner.
"""
from __future__ import annotations

from collections.abc import Sequence

from kera_hw.ops.intervals import Interval
from kera_hw.rtl.techmap import truth
from kera_hw.rtl.techmap.bdd import FALSE, TRUE, Diagrams, TooLargeError
from kera_hw.rtl.techmap.items import Choice, Gate, Item, Present, Sum
from kera_hw.rtl.techmap.net import Net
from kera_hw.schedule.fpga.bits import Bits, Segment, bits_width, cell_bits, const_bits, slice_bits

_LATE = 2 * Gate.delay
"""Level up to which a condition is soon enough."""
_MOST_ITEMS, _MOST_SIGNALS, _MOST_NODES, _MOST_MADE = 200, 40, 4000, 24
"""Items and signals behind a condition, and nodes of its function, before and after."""
_FEWER, _SMALL = 0.67, 8
"""Share of a condition's signals that it may still need, and nodes up to which it may need all."""
Place = tuple[int, int]
"""An item, and one of its bits."""


class Conditions:
    """Single bits of a net, each made again once; ``held``: what each state holds, if that is known."""

    def __init__(self, net: Net, held: Sequence[Interval | None]) -> None:
        self.net, self.held = net, held
        self._known: dict[Bits, Bits] = {}

    def sooner(self, bit: Bits) -> Bits:
        """A bit that is there sooner and, for values that states hold, the same; or the bit itself."""
        if bit not in self._known:
            self._known[bit] = self._again(bit)
        return self._known[bit]

    def _again(self, bit: Bits) -> Bits:
        (segment,) = bit
        level = self.net.level(bit)
        if segment.cell is None or level <= _LATE or not any(self.held):
            return bit
        try:
            made = _Function(self.net, self.held, (segment.cell, segment.low)).made()
        except TooLargeError:
            return bit
        return bit if made is None or self.net.level(made) >= level else made


class _Function:
    """A bit as a function of what its logic reads, and logic of it again."""

    def __init__(self, net: Net, held: Sequence[Interval | None], root: Place) -> None:
        self.net, self.root, self.held = net, root, held
        self.diagrams = Diagrams(_MOST_NODES)
        needed = self._needed()
        self.signals = sorted(
            (place for place in needed if not self._opens(place[0])), key=lambda place: (place[1], place[0])
        )
        if len(self.signals) > _MOST_SIGNALS:
            raise TooLargeError
        self.values = {
            place: self.diagrams.node(number, FALSE, TRUE) for number, place in enumerate(self.signals)
        }
        for place in sorted(needed):  # an item's operands have smaller numbers, a sum's lower bits come first
            if place not in self.values:
                self.values[place] = self._value(place)

    def _opens(self, cell: int) -> bool:
        return isinstance(self.net.items[cell], Gate | Sum | Choice)

    def _needed(self) -> set[Place]:
        found: set[Place] = set()
        pending = [self.root]
        while pending:
            place = pending.pop()
            if place in found:
                continue
            found.add(place)
            if self._opens(place[0]):
                pending += [(s.cell, s.low) for s in self._read(place) if s.cell is not None]
            if len(found) > _MOST_ITEMS:
                raise TooLargeError
        return found

    def _read(self, place: Place) -> list[Segment]:
        """The bits that a bit is made of directly; of a sum those of the lower bits as well."""
        cell, bit = place
        item = self.net.items[cell]
        if isinstance(item, Choice):
            select = [slice_bits(item.select, k, 1)[0] for k in range(bits_width(item.select))]
            return [*select, *(_at(bits, item, bit) for bits in item.choices)]
        found = [_at(bits, item, bit) for bits in item.ins if bits]
        return [*found, Segment(cell, bit - 1, 1)] if isinstance(item, Sum) and bit else found

    def _of(self, segment: Segment) -> int:
        return segment.low & 1 if segment.cell is None else self.values[segment.cell, segment.low]

    def _value(self, place: Place) -> int:
        cell, bit = place
        item, diagrams = self.net.items[cell], self.diagrams
        if isinstance(item, Gate):
            return diagrams.apply(item.table, [self._of(_at(bits, item, bit)) for bits in item.ins])
        if isinstance(item, Choice):
            select = [self._of(slice_bits(item.select, k, 1)[0]) for k in range(bits_width(item.select))]
            choices = [self._of(_at(bits, item, bit)) for bits in item.choices]
            return self._chosen(select, choices)
        assert isinstance(item, Sum)
        a, b = self._summands(item, bit)
        return diagrams.differ(diagrams.differ(a, b), self._carry(cell, item, bit))

    def _chosen(self, select: Sequence[int], choices: Sequence[int]) -> int:
        """``choices[select]``; the last where there are no more."""
        if len(choices) == 1 or not select:
            return choices[0]
        *low, top = select
        half = 1 << len(low)
        zero = self._chosen(low, choices[:half])
        return self.diagrams.choose(top, self._chosen(low, choices[half:] or choices[-1:]), zero)

    def _summands(self, item: Sum, bit: int) -> tuple[int, int]:
        operands = [self._of(_at(bits, item, bit)) for bits in item.operands]
        return self._of(_at(item.a, item, bit)), self.diagrams.apply(item.table, operands)

    def _carry(self, cell: int, item: Sum, bit: int) -> int:
        """The carry into a bit: where the bit below came out as another than its carry made it."""
        if bit == 0:
            return self._of(item.carry[0]) if item.carry else FALSE
        a, b = self._summands(item, bit - 1)
        half = self.diagrams.differ(a, b)
        below = self.diagrams.differ(half, self.values[cell, bit - 1])
        return self.diagrams.choose(half, below, a)

    def _care(self) -> int:
        """Where all states hold what they do."""
        care, diagrams = TRUE, self.diagrams
        read = {cell for cell, _ in self.signals}
        for cell in sorted(read):
            item = self.net.items[cell]
            interval = self.held[item.state] if isinstance(item, Present) else None
            if interval is None or interval.low < 0:
                continue
            places = [(cell, k) for k in range(item.width)]
            if all(place in self.values for place in places):
                bits = [self.values[place] for place in places]
                care = diagrams.both(care, diagrams.within(bits, interval.low, interval.high))
        return care

    def made(self) -> Bits | None:
        """Logic for the function where it counts; None where that would be much."""
        diagrams = self.diagrams
        function = diagrams.restricted(self.values[self.root], self._care())
        nodes = diagrams.below(function)
        few = len({diagrams.variable[node] for node in nodes}) <= _FEWER * len(self.signals)
        if len(nodes) > (_MOST_MADE if few else _SMALL):
            return None  # or it would not be worth logic that it now shares with others
        made: dict[int, Bits] = {FALSE: const_bits(0, 1), TRUE: const_bits(1, 1)}
        for node in sorted(nodes, key=lambda n: -diagrams.variable[n]):
            made[node] = self._gate(node, made)
        return made[function]

    def _gate(self, node: int, made: dict[int, Bits]) -> Bits:
        """A node's logic; of several ANDs or ORs in a row one tree."""
        for end, kind in ((TRUE, "or"), (FALSE, "and")):
            found: list[Bits] = []
            rest = node
            while rest > TRUE and end in (self.diagrams.low[rest], self.diagrams.high[rest]):
                on_high = self.diagrams.high[rest] == end
                bit = self._signal(rest)
                found.append(bit if on_high == (end == TRUE) else self.net.invert(bit))
                rest = self.diagrams.low[rest] if on_high else self.diagrams.high[rest]
            if found:
                return self.net.reduce(kind, [*found, *([] if rest == 1 - end else [made[rest]])])
        low, high = made[self.diagrams.low[node]], made[self.diagrams.high[node]]
        return self.net.logic(truth.MUX, (low, high, self._signal(node)), 1)

    def _signal(self, node: int) -> Bits:
        cell, bit = self.signals[self.diagrams.variable[node]]
        return cell_bits(cell, 1, bit)


def _at(bits: Bits, item: Item, bit: int) -> Segment:
    """The bit of an operand that a bit of an item reads: a single one is for all."""
    one = bits if bits_width(bits) == 1 else slice_bits(bits, bit, 1)
    assert bits_width(bits) in (1, item.width)
    return one[0]
