"""Which values states ever hold: intervals that hold at reset, and again after every item.

A timer of 16 bits that starts at 7 and counts down to 0 takes three flip-flops. That follows from when it
counts, so both branches of a selection are looked at under what its condition says there, as are selections
within them. Bounds that keep growing jump to the next constant that the program mentions, then to those of
their type.
"""
from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kera_hw.graph.node import Node, Ref
from kera_hw.ops.core import decode_constant
from kera_hw.ops.intervals import Interval, OpShape, apply_rule, type_interval
from kera_hw.rtl.lower.design import FlatDesign, FlatState
from kera_hw.rtl.techmap.scalar import is_signed
from kera_hw.rtl.techmap.words import range_width
from kera_hw.support import toposort
from kera_hw.types import BoolType, FixType, IntType, is_wide

_MOST_NODES = 4000
"""Operations behind the next states up to which they are looked at."""
_BUDGET = 40_000
"""Intervals worked out for one design; where they do not suffice, states may hold anything."""
_DEPTH = 100
"""Operations, one inside another, beyond which a value may be anything."""
_EXACT_ROUNDS, _ROUNDS = 3, 12
"""Rounds until bounds jump to constants, and until they jump to those of their type."""
_NARROWINGS = 2
"""Rounds in which bounds may come back from where they jumped to."""
Facts = dict[Ref, Interval]


def state_intervals(flat: FlatDesign) -> list[Interval | None]:
    """For every state an interval that it never leaves; None for any value."""
    nexts = flat.region.results[len(flat.outputs) :][: len(flat.states)]
    nodes = toposort([ref.node for ref in nexts], lambda node: (ref.node for ref in node.inputs))
    if len(nodes) > _MOST_NODES or not any(map(_may_shrink, flat.states)):
        return [None] * len(flat.states)
    whole = [type_interval(state.type) for state in flat.states]
    found = [None if kind is None else _initial(state) for state, kind in zip(flat.states, whole)]
    try:
        found = _Search(nodes, _read_states(flat, nodes)).run(found, nexts, whole)
    except _SpentError:
        return [None] * len(flat.states)
    return [None if one == kind else one for one, kind in zip(found, whole)]


def narrowed(state: FlatState, interval: Interval | None) -> FlatState:
    """The state in as many bits as an interval takes, which are the low ones of its value."""
    if interval is None or not _may_shrink(state):
        return state
    width = max(1, range_width(interval)[0])
    return replace(state, width_bits=width, initial=state.initial & ((1 << width) - 1))


def _may_shrink(state: FlatState) -> bool:
    return isinstance(state.type, IntType | FixType) and not is_wide(state.type) and state.width_bits > 1


def _initial(state: FlatState) -> Interval:
    negative = is_signed(state.type) and state.initial >> (state.width_bits - 1) & 1
    value = state.initial - (negative << state.width_bits)
    return Interval(value, value)


def _read_states(flat: FlatDesign, nodes: Sequence[Node]) -> dict[Ref, int]:
    """The states' present values among the nodes, each with the state's number."""
    found: dict[Ref, int] = {}
    for node in nodes:
        index = node.attr("index") if node.opcode == "core.param" else None
        if isinstance(index, int) and 0 <= index - len(flat.inputs) < len(flat.states):
            found[Ref(node, 0)] = index - len(flat.inputs)
    return found


def _within(some: Sequence[Interval | None], others: Sequence[Interval | None]) -> bool:
    pairs = [(a, b) for a, b in zip(some, others) if a is not None and b is not None]
    return all(a.within(b) for a, b in pairs)


class _SpentError(Exception):
    """More was to be worked out than is worth it."""


@dataclass(eq=False)
class _Place:
    """A branch: what its conditions say, which values depend on that, and the intervals found there."""

    facts: Facts
    affected: set[Node] | None  # None: all
    outer: _Place | None = None
    known: dict[Ref, Interval | None] = field(default_factory=dict[Ref, "Interval | None"])


class _Search:
    def __init__(self, nodes: Sequence[Node], states: Mapping[Ref, int]) -> None:
        self.nodes, self.states = nodes, states
        self.spent = 0
        self._readers: dict[Node, list[Node]] = {node: [] for node in nodes}
        for node in nodes:
            for source in dict.fromkeys(ref.node for ref in node.inputs):
                self._readers[source].append(node)
        self._cones: dict[Node, set[Node]] = {}
        self.marks = sorted({mark + step for mark in _constants(nodes) for step in (-1, 0, 1)})

    def run(
        self, found: list[Interval | None], nexts: Sequence[Ref], whole: Sequence[Interval | None]
    ) -> list[Interval | None]:
        """Intervals of all states, grown from the initial values until no item leads out of them."""
        initial, count = found, 0
        while True:
            left = self._step(found, nexts, whole)
            if _within(left, found):
                break
            grown = [a if a is None or b is None else a.hull(b) for a, b in zip(found, left)]
            found = [self._widened(*one, count) for one in zip(found, grown, whole)]
            count += 1
        for _ in range(_NARROWINGS):  # where a jump went too far
            less = [a if a is None or b is None else a.hull(b) for a, b in zip(initial, left)]
            left = self._step(less, nexts, whole)
            if not _within(left, less):
                break
            found = less
        return found

    def _step(
        self, found: Sequence[Interval | None], nexts: Sequence[Ref], whole: Sequence[Interval | None]
    ) -> list[Interval | None]:
        """What an item leaves in the states, given what it meets there."""
        facts = {ref: one for ref, k in self.states.items() if (one := found[k]) is not None}
        place = _Place(facts, None)
        for node in self.nodes:  # so that only branches are nested
            for index in range(len(node.types)):
                self._of(Ref(node, index), place, 0)
        return [limit and (place.known[ref] or limit) for ref, limit in zip(nexts, whole)]

    def _widened(
        self, old: Interval | None, new: Interval | None, limit: Interval | None, count: int
    ) -> Interval | None:
        if old is None or new is None or limit is None or count < _EXACT_ROUNDS:
            return new
        low, high = new
        if high > old.high:
            k = bisect_left(self.marks, high)
            high = self.marks[k] if k < len(self.marks) and count < _ROUNDS else limit.high
        if low < old.low:
            k = bisect_right(self.marks, low) - 1
            low = self.marks[k] if k >= 0 and count < _ROUNDS else limit.low
        return Interval(low, high).meet(limit)

    # Intervals under what is known in a place

    def _of(self, ref: Ref, place: _Place, depth: int) -> Interval | None:
        while place.affected is not None and ref.node not in place.affected:
            assert place.outer is not None
            place = place.outer
        if ref not in place.known:
            value = self._transfer(ref, place, depth)
            fact = place.facts.get(ref)
            place.known[ref] = value if fact is None or value is None else value.meet(fact)
        return place.known[ref]

    def _transfer(self, ref: Ref, place: _Place, depth: int) -> Interval | None:
        node, kind = ref.node, ref.type
        self.spent += 1
        if self.spent > _BUDGET:
            raise _SpentError
        if len(node.types) > 1 or node.opcode == "core.param" or depth > _DEPTH:
            return type_interval(kind)
        if node.opcode == "control.select":
            return self._selected(node, place, depth + 1)
        shape = OpShape(tuple(arg.type for arg in node.inputs), kind, dict(node.attrs))
        return apply_rule(node.opcode, [self._of(arg, place, depth + 1) for arg in node.inputs], shape)

    def _selected(self, node: Node, place: _Place, depth: int) -> Interval | None:
        """The branches' hull, of each what holds where it is taken; empty where neither can be."""
        condition, *branches = node.inputs
        found: list[Interval] = []
        for branch, value in zip(branches, (1, 0)):
            inner = self._assumed(condition, value, place, depth)
            if inner is None:
                continue
            interval = self._of(branch, inner, depth)
            if interval is None:
                return None
            if not interval.empty:
                found.append(interval)
        if not found:
            return Interval(1, 0)
        return found[0] if len(found) == 1 else found[0].hull(found[1])

    def _assumed(self, condition: Ref, value: int, place: _Place, depth: int) -> _Place | None:
        """The place where a condition has a value; None where it cannot have it."""
        facts: Facts = {}
        for ref, interval in self._said(condition, value, place, depth):
            now = facts.get(ref) or self._of(ref, place, depth)
            if now is None:
                continue
            met = now.meet(interval)
            if met.empty:
                return None
            if met != now:
                facts[ref] = met
        if not facts:
            return place
        affected: set[Node] = set()
        for ref in facts:
            affected |= self._cone(ref.node)
        return _Place(facts, affected, place)

    def _cone(self, node: Node) -> set[Node]:
        """The node and all that depend on it."""
        found = self._cones.get(node)
        if found is None:
            found, pending = {node}, [node]
            while pending:
                for reader in self._readers[pending.pop()]:
                    if reader not in found:
                        found.add(reader)
                        pending.append(reader)
            self._cones[node] = found
        return found

    def _said(
        self, condition: Ref, value: int, place: _Place, depth: int
    ) -> Iterator[tuple[Ref, Interval]]:
        """What a condition's value says of it and of the values that it is made of."""
        pending = [(condition, value)]
        while pending:
            ref, value = pending.pop()
            yield ref, Interval(value, value)
            node = ref.node
            if node.opcode == "bits.not" and isinstance(ref.type, BoolType):
                pending.append((node.inputs[0], 1 - value))
            elif (node.opcode, value) in (("bits.and", 1), ("bits.or", 0)):
                pending += [(arg, value) for arg in node.inputs]
            elif node.opcode in _COMPARISONS:
                a, b = (self._of(arg, place, depth) for arg in node.inputs)
                if a is None or b is None or a.empty or b.empty:
                    continue
                relation = _COMPARISONS[node.opcode] if value else _OPPOSITE[_COMPARISONS[node.opcode]]
                for arg, interval in zip(node.inputs, _related(relation, a, b)):
                    yield from _through_casts(arg, interval)


_COMPARISONS = {
    "compare.eq": "=", "compare.ne": "≠", "compare.lt": "<", "compare.le": "≤", "compare.gt": ">",
    "compare.ge": "≥",
}
_OPPOSITE = {"=": "≠", "≠": "=", "<": "≥", "≥": "<", ">": "≤", "≤": ">"}


def _related(relation: str, a: Interval, b: Interval) -> tuple[Interval, Interval]:
    """Where two values must lie that are in a relation."""
    match relation:
        case "=":
            return b, a
        case "≠":
            return _other(a, b), _other(b, a)
        case "<":
            return Interval(a.low, b.high - 1), Interval(a.low + 1, b.high)
        case "≤":
            return Interval(a.low, b.high), Interval(a.low, b.high)
        case ">":
            return Interval(b.low + 1, a.high), Interval(b.low, a.high - 1)
        case _:
            return Interval(b.low, a.high), Interval(b.low, a.high)


def _other(one: Interval, than: Interval) -> Interval:
    """Where a value lies that is another: an end falls away where the other one is just that."""
    if than.low != than.high:
        return one
    return Interval(one.low + (one.low == than.low), one.high - (one.high == than.low))


def _through_casts(ref: Ref, interval: Interval) -> Iterator[tuple[Ref, Interval]]:
    """A value's interval, and that of the value it was cast from if that is the same integer."""
    yield ref, interval
    while ref.node.opcode == "convert.cast":
        (source,) = ref.node.inputs
        inner, outer = type_interval(source.type), type_interval(ref.type)
        if inner is None or outer is None or not inner.within(outer) or not _is_integer(ref, source):
            return
        ref = source
        yield ref, interval


def _is_integer(*refs: Ref) -> bool:
    return all(isinstance(ref.type, IntType | BoolType) for ref in refs)


def _constants(nodes: Sequence[Node]) -> Iterator[int]:
    """The integers that the program mentions."""
    for node in nodes:
        if node.opcode == "core.constant" and isinstance(node.types[0], IntType):
            data = node.attr("value")
            assert isinstance(data, bytes)
            yield int(decode_constant(node.types[0], data))
