"""Ladders of selections on one value, as `match` and `if`/`else if` make them: one parallel case.

Each rung's condition says for which numbers of the value it takes its branch. Together they give every number
one branch, whatever the order they were asked in. Where most numbers are named the choice is a table: of the
results themselves where these are constants, else of which branch it is. Where few are named, at most one of
their conditions holds, and the results are joined by OR.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from kera_hw.graph.node import Node, Ref
from kera_hw.rtl.lower.builder import width_of
from kera_hw.rtl.techmap import scalar, truth, words
from kera_hw.rtl.techmap.net import Net
from kera_hw.rtl.techmap.source import Source
from kera_hw.rtl.techmap.words import Word
from kera_hw.schedule.fpga.bits import Bits, concat, const_bits
from kera_hw.types import BoolType, IntType, TensorType

_LEAST_RUNGS = 3
_MOST_BITS = 12
_TABLE_BITS = 10
_DENSE = 4
"""Numbers for each rung up to which a table is worth its rows; a LUT holds 16 of them anyway."""
_LUT_ROWS = 16

_FAR = 1 << 80
_BOUNDS: Mapping[str, Callable[[int], tuple[int, int]]] = {
    "compare.eq": lambda c: (c, c), "compare.ne": lambda c: (c, c),
    "compare.lt": lambda c: (-_FAR, c - 1), "compare.le": lambda c: (-_FAR, c),
    "compare.gt": lambda c: (c + 1, _FAR), "compare.ge": lambda c: (c, _FAR),
}
"""The least and the greatest integer for which a comparison with a constant holds (``ne``: fails)."""
_MIRRORED = {
    "compare.lt": "compare.gt", "compare.gt": "compare.lt",
    "compare.le": "compare.ge", "compare.ge": "compare.le",
}


@dataclass(frozen=True, slots=True)
class Case:
    """A ladder: the value, its branches with the numbers that lead there, its rungs and their questions.

    Sets of numbers are masks: bit n stands for the bit pattern n. ``conditions`` are those of the rungs, each
    with its branch; ``exact``: they are just what leads there.
    """

    value: Ref
    branches: dict[Ref, int]
    conditions: list[tuple[Ref, Ref]]
    rungs: list[Node]
    exact: bool

    @property
    def tabled(self) -> bool:
        """Whether a table is worth it."""
        rows = 1 << width_of(self.value.type)
        return rows <= _LUT_ROWS or rows <= min(1 << _TABLE_BITS, _DENSE * len(self.rungs))

    @property
    def usable(self) -> bool:
        return len(self.rungs) >= _LEAST_RUNGS and (self.tabled or self.exact)


def is_choice(node: Node) -> bool:
    """Whether a node chooses between scalars; between versions of a memory it is a conditional write."""
    return node.opcode == "control.select" and not isinstance(node.types[0], TensorType)


class Finder:
    """Finds ladders in a flat region."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.place = {node: k for k, node in enumerate(source.nodes)}
        self._masks: dict[tuple[Ref, Ref], int | None] = {}

    def cases(self, linear: Container[Node]) -> tuple[dict[Node, Case], set[Node]]:
        """Ladders by their last choice, and selections within that nothing else reads; none is ``linear``."""
        found: dict[Node, Case] = {}
        inner: set[Node] = set()
        for node in reversed(self.source.nodes):
            if not is_choice(node) or node in inner or node in linear:
                continue
            case = self.case(node, linear)
            if case is not None and case.usable:
                found[node] = case
                inner.update(rung for rung in case.rungs if rung is not node)
        return found, inner

    def case(self, node: Node, linear: Container[Node]) -> Case | None:
        """The ladder whose last choice is this selection, if it asks about a value of few bits."""
        value = self._value(node.inputs[0])
        if value is None:
            return None
        branches: dict[Ref, int] = {}
        conditions: list[tuple[Ref, Ref]] = []
        rungs: list[Node] = []
        readers: Counter[Ref] = Counter({Ref(node, 0): self.source.uses[Ref(node, 0)]})
        exact = True
        numbers = {Ref(node, 0): self._every(value)}
        pending = [-self.place[node]]
        by_place = {self.place[node]: Ref(node, 0)}
        while pending:  # the last node first: what reads a selection comes before it
            ref = by_place[-heappop(pending)]
            here, mask = numbers[ref], None
            is_rung = is_choice(ref.node) and ref.node not in linear
            if is_rung and readers[ref] == self.source.uses[ref]:
                mask = self._mask(ref.node.inputs[0], value)
            if mask is None:
                if here:
                    branches[ref] = here
                continue
            rungs.append(ref.node)
            condition, then, otherwise = ref.node.inputs
            conditions.append((condition, then))
            exact = exact and mask & ~here == 0
            for side, reached in ((then, here & mask), (otherwise, here & ~mask)):
                readers[side] += 1
                if side in numbers:
                    numbers[side] |= reached
                    continue
                numbers[side] = reached
                by_place[self.place[side.node]] = side
                heappush(pending, -self.place[side.node])
        inside = set(rungs)
        exact = exact and not any(then.node in inside for _, then in conditions)
        return Case(value, branches, conditions, rungs, exact)

    def _value(self, condition: Ref) -> Ref | None:
        """The value of few bits that a condition asks about."""
        node = condition.node
        while node.opcode == "bits.not" and isinstance(node.types[0], BoolType):
            node = node.inputs[0].node
        if node.opcode == "bits.test":
            found = node.inputs[0]
        elif node.opcode in _BOUNDS:
            known = [ref for ref in node.inputs if self.source.constant(ref) is None]
            if len(known) != 1:
                return None
            found = known[0]
        else:
            return None
        fits = isinstance(found.type, IntType) and 1 < width_of(found.type) <= _MOST_BITS
        return found if fits else None

    def _mask(self, condition: Ref, value: Ref) -> int | None:
        """The numbers of the value for which a condition holds; None where it asks about something else."""
        key = (condition, value)
        if key not in self._masks:
            found = self._numbers(condition.node, value)
            self._masks[key] = None if found is None else found & self._every(value)
        return self._masks[key]

    def _every(self, value: Ref) -> int:
        """All numbers that the value may be."""
        kind = value.type
        assert isinstance(kind, IntType)
        return _patterns(kind, *self.source.ranges[value])

    def _numbers(self, node: Node, value: Ref) -> int | None:
        width, kind = width_of(value.type), value.type
        assert isinstance(kind, IntType)
        every = (1 << (1 << width)) - 1
        if node.opcode == "bits.test" and node.inputs[0] == value:
            index = node.attr("index")
            assert isinstance(index, int)
            step = 1 << min(index, width - 1)
            return every // ((1 << 2 * step) - 1) * ((1 << step) - 1 << step)
        if node.opcode == "bits.not" and isinstance(node.types[0], BoolType):
            inner = self._mask(node.inputs[0], value)
            return None if inner is None else inner ^ every
        if node.opcode not in _BOUNDS or value not in node.inputs:
            return None
        place = node.inputs.index(value)
        other = self.source.constant(node.inputs[1 - place])
        if other is None:
            return None
        low, high = _BOUNDS[node.opcode if place == 0 else _MIRRORED.get(node.opcode, node.opcode)](other)
        found = _patterns(kind, max(low, kind.min), min(high, kind.max))
        return found ^ every if node.opcode == "compare.ne" else found


def _patterns(kind: IntType, low: int, high: int) -> int:
    """The bit patterns of all integers from ``low`` to ``high``."""
    if low > high:
        return 0
    if low < 0:
        negative = ((1 << min(high, -1) - low + 1) - 1) << (low + (1 << kind.width_bits))
        return negative | _patterns(kind, 0, high)
    return (1 << high + 1) - (1 << low)


def realise(net: Net, source: Source, case: Case, word: Callable[[Ref], Word], wanted: int) -> Word:
    """The word of a usable ladder."""
    if len(case.branches) == 1:
        (only,) = case.branches
        return scalar.limit(word(only), wanted)
    if case.tabled:
        return _table(net, source, case, word, wanted)
    return _joined(net, case, word, wanted)


def _rows(mask: int) -> list[int]:
    return [k for k in range(mask.bit_length()) if mask >> k & 1]


def _table(net: Net, source: Source, case: Case, word: Callable[[Ref], Word], wanted: int) -> Word:
    """Results from a table, or a table of which branch it is."""
    address = word(case.value).extend(width_of(case.value.type))
    size = 1 << width_of(case.value.type)
    slots: list[Word] = []
    places = [0] * size
    contents = [0] * size
    moving = [ref for ref in case.branches if source.constant(ref) is None]
    fixed = [ref for ref in case.branches if source.constant(ref) is not None]
    for slot, ref in enumerate(moving):
        slots.append(scalar.limit(word(ref), wanted))
        for row in _rows(case.branches[ref]):
            places[row] = slot
    if fixed:
        values = {ref: source.constant(ref) or 0 for ref in fixed}
        width, signed = words.range_width((min(values.values()), max(values.values())))
        free = values[max(fixed, key=lambda ref: case.branches[ref].bit_count())]
        contents = [free & (1 << width) - 1] * size  # rows of other branches take what is there most often
        for ref, value in values.items():
            for row in _rows(case.branches[ref]):
                places[row] = len(moving)
                contents[row] = value & (1 << width) - 1
        bits = net.rom(address, contents, width) if width else ()
        slots.append(scalar.limit(words.trimmed(bits, signed), wanted))
    if len(slots) == 1:
        return slots[0]
    select = net.rom(address, places, (len(slots) - 1).bit_length())
    full = words.joint_width(slots)
    chosen = net.mux(select, [slot.extend(full) for slot in slots], full)
    return scalar.limit(words.trimmed(chosen, any(slot.signed for slot in slots)), wanted)


def _joined(net: Net, case: Case, word: Callable[[Ref], Word], wanted: int) -> Word:
    """The OR of all branches, each masked by its condition; what is left over is taken where none holds."""
    asked: dict[Ref, list[Bits]] = {}
    for condition, branch in case.conditions:
        asked.setdefault(branch, []).append(word(condition).bit(0))
    rest = [ref for ref in case.branches if ref not in asked]
    every = [bit for bits in asked.values() for bit in bits]
    for ref in rest:
        asked[ref] = [net.invert(net.reduce("or", every))]
    when = {ref: net.reduce("or", bits) for ref, bits in asked.items() if ref in case.branches}
    shown = {ref: scalar.limit(word(ref), wanted) for ref in when}
    full = words.joint_width(list(shown.values()))
    columns: list[Sequence[Bits]] = []
    for ref, condition in when.items():
        spread = net.logic(truth.AND, (shown[ref].extend(full), condition), full) if full else ()
        columns.append(net.bits_of(spread))
    joined = [net.reduce("or", [bit for bit in bits if bit != const_bits(0, 1)]) for bits in zip(*columns)]
    signed = any(one.signed for one in shown.values())
    return scalar.limit(words.trimmed(concat(joined), signed), wanted)
