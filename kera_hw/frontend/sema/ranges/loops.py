"""Loops, and streams as loops over items: what holds at the head of every round.

The body is run from an unknown for each leaf that it assigns, until the ranges they are given hold after the
round too. A range that keeps growing goes on to the next constant that its own values, or values that it is
made of, met in a comparison, a remainder or an index; past the last of them, to its type's. Then the body
narrows what was taken too wide. How a leaf grows depends on what flows into it and on nothing else.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kera_hw.frontend.sema.ranges.core import ProofContext, Prover
from kera_hw.frontend.sema.ranges.linear import known
from kera_hw.frontend.sema.ranges.refine import refine_equal
from kera_hw.frontend.sema.ranges.state import State
from kera_hw.frontend.sema.ranges.store import hull
from kera_hw.frontend.sema.ranges.symbol import Head, Known, Symbol
from kera_hw.frontend.sema.tree import hir
from kera_hw.frontend.sema.tree.walk import assigned_ranges, walk
from kera_hw.ops.intervals import Interval, type_interval
from kera_hw.types import Type, leaf_types

Leaf = tuple[hir.Var, int]
Case = tuple[Leaf, Leaf, int]  # the first while the second has the value
Ranges = dict[Leaf | Case, Known | None]  # None, of a case alone: it does not arise
Round = Callable[[State], None]

_EXACT_ROUNDS = 2  # growths that keep exact bounds
_NEAR_ROUNDS = 8  # growths to the nearest threshold; then half of those left are passed over each time
_NARROWING_ROUNDS = 4
_CASES = 8  # values that a leaf may have to tell cases by


def assigned(state: State, *roots: object) -> list[Leaf]:
    """Leaves of the state's variables that a body assigns."""
    found: dict[Leaf, None] = {}
    for root in roots:
        for part in walk(root, into_lambdas=False):
            for var, low, high in assigned_ranges(part):
                if var in state.values:
                    end = len(state.values[var]) if high is None else high
                    found.update(((var, leaf), None) for leaf in range(low, end))
    return list(found)


@dataclass(frozen=True, slots=True)
class Solved:
    """A state that holds at the head of every round, and one at the end of every round from there on."""

    head: State
    end: State


def solve(prover: Prover, entry: State, leaves: Sequence[Leaf], round_: Round, part: object) -> Solved:
    """What a loop, the first round of which starts from ``entry``, keeps; no index is checked."""
    solver = _Solver(prover, entry, leaves, round_, prover.context.enter(part))
    ranges, end = solver.run()
    return Solved(solver.head(ranges), end)


def checked_round(prover: Prover, solved: Solved, round_: Round) -> State:
    """The state at the end of any round; if this is no mere look, after checking the indices in it."""
    if prover.quiet:
        return solved.end
    end = solved.head.copy()
    with prover.within(ProofContext()):
        round_(end)
    return end


def after_rounds(prover: Prover, before: State, last: State, leaves: Sequence[Leaf]) -> State:
    """After at least one round: the end of any, as far as it speaks of outside variables."""
    after = before.copy()
    if not last.dead:
        for var, leaf in leaves:
            found = known(last, last.values[var][leaf])
            symbol = last.values[var][leaf]
            after.set_leaves(
                var, leaf, [prover.store.atom(symbol.kind, found.interval, found.residue, symbol.heads)]
            )
    return after


class _Solver:
    """Ranges of the leaves at the head; and, of a leaf that is lost without, one for each value of a leaf of
    few values that decides how it goes on: where a counter is while it goes up, or in a machine's state."""

    def __init__(
        self, prover: Prover, entry: State, leaves: Sequence[Leaf], round_: Round, context: ProofContext
    ) -> None:
        self.prover = prover
        self.entry = entry
        self.leaves = leaves
        self.round = round_
        self.context = context
        self.kinds: dict[Leaf, Type] = {(var, leaf): leaf_types(var.type)[leaf] for var, leaf in leaves}
        self.flows: dict[Leaf, set[Head]] = {leaf: set() for leaf in leaves}
        self.growths: dict[Leaf | Case, int] = {}
        for leaf in leaves:
            context.heads.setdefault(leaf, Head(leaf[0].name))
        self.owners = {head: leaf for leaf, head in context.heads.items()}

    def run(self) -> tuple[Ranges, State]:
        """Ranges that hold at the head, and the end of a round from there."""
        context = self.context
        first = self._ranges(self.entry, context.cases)
        if context.found.keys() == first.keys():
            return self._narrowed(first, {part: _either(first[part], context.found[part]) for part in first})
        ranges, end = self._narrowed(first, first)
        context.cases = self._cases(ranges)
        if context.cases:
            context.inner.clear()
            self.growths.clear()
            first = self._ranges(self.entry, context.cases)
            ranges, end = self._narrowed(first, first)
        return ranges, end

    def _narrowed(self, first: Ranges, start: Ranges) -> tuple[Ranges, State]:
        """Up from ``start`` to what holds, then down as far as the body tells."""
        found = start
        while True:
            given, end = self._after(first, found)
            grown = {part: _either(found[part], given[part]) for part in found}
            if grown == found:
                break
            found = {part: self._widened(part, found[part], grown[part]) for part in found}
        for _ in range(_NARROWING_ROUNDS):
            if given == found:
                break
            found = given  # what a head that holds gives holds again, and is narrower
            self.context.inner.clear()
            given, end = self._after(first, found)
        self.context.found = found
        return found, end

    def head(self, ranges: Ranges) -> State:
        state = self.entry.copy()
        for leaf in self.leaves:
            found = ranges[leaf]
            assert found is not None
            head = frozenset((self.context.heads[leaf],))
            state.set_leaves(
                *leaf, [self.prover.store.atom(self.kinds[leaf], found.interval, found.residue, head)]
            )
        told: dict[Symbol, dict[int, tuple[tuple[Symbol, Interval | None], ...]]] = {}
        for leaf, control, value in self.context.cases:
            found = ranges[leaf, control, value]
            entry = self._symbol(state, leaf), None if found is None else found.interval
            by_value = told.setdefault(self._symbol(state, control), {})
            by_value[value] = (*by_value.get(value, ()), entry)
        if told:
            state.cases = {**state.cases, **told}
        return state

    @staticmethod
    def _symbol(state: State, leaf: Leaf) -> Symbol:
        return state.values[leaf[0]][leaf[1]]

    def _after(self, first: Ranges, ranges: Ranges) -> tuple[Ranges, State]:
        """Ranges at the head after a round, or before the first; and the end of that round."""
        trial = self.head(ranges)
        with self.prover.looking(), self.prover.within(self.context):
            self.round(trial)
        if trial.dead:
            return first, trial
        for leaf in self.leaves:
            self.flows[leaf].update(self._symbol(trial, leaf).heads)
        given = self._ranges(trial, self.context.cases)
        return {part: _either(first[part], given[part]) for part in first}, trial

    def _ranges(self, state: State, cases: Sequence[Case]) -> Ranges:
        out: Ranges = {leaf: known(state, self._symbol(state, leaf)) for leaf in self.leaves}
        taken: dict[tuple[Leaf, int], State] = {}
        for case in cases:
            leaf, control, value = case
            where = taken.get((control, value))
            if where is None:
                where = taken[control, value] = state.copy()
                where.watched = tuple(
                    self._symbol(where, other) for other, by, at in cases if (by, at) == (control, value)
                )
                refine_equal(where, self._symbol(where, control), value)
            out[case] = None if where.dead else known(where, self._symbol(where, leaf))
        return out

    def _widened(self, part: Leaf | Case, old: Known | None, new: Known | None) -> Known | None:
        if old is None or new is None or new == old:
            return new
        leaf = part[0] if len(part) == 3 else part
        full = type_interval(self.kinds[leaf])
        if old.interval is None or new.interval is None or full is None:
            return Known(full)
        growths = self.growths[part] = self.growths.get(part, 0) + 1
        if growths <= _EXACT_ROUNDS:
            return new
        low, high = new.interval
        ladder = self._ladder(leaf)
        far = growths > _EXACT_ROUNDS + _NEAR_ROUNDS
        if low < old.interval.low:
            steps = [t for t in reversed(ladder) if full.low <= t <= low]
            low = steps[len(steps) // 2 if far else 0] if steps else full.low
        if high > old.interval.high:
            steps = [t for t in ladder if high <= t <= full.high]
            high = steps[len(steps) // 2 if far else 0] if steps else full.high
        return Known(Interval(low, high), new.residue)

    def _ladder(self, leaf: Leaf) -> list[int]:
        """The thresholds of all that flows into a leaf, in order."""
        return sorted({t for part in self._sources(leaf) for t in self.context.heads[part].thresholds})

    def _sources(self, leaf: Leaf) -> list[Leaf]:
        """The leaf, and the leaves of the loop that flow into it."""
        found = {leaf: None}
        stack = [leaf]
        while stack:
            for head in self.flows[stack.pop()]:
                other = self.owners.get(head)
                if other is not None and other not in found:
                    found[other] = None
                    stack.append(other)
        return list(found)

    def _cases(self, ranges: Ranges) -> tuple[Case, ...]:
        """Leaves that are lost, by each value of what flows into them and has few values."""
        few = {leaf: found.interval for leaf in self.leaves if (found := ranges[leaf]) is not None
               and found.interval is not None and found.interval.high - found.interval.low < _CASES}
        return tuple(
            (leaf, control, value)
            for leaf in self._lost(ranges)
            for control in self._sources(leaf) if control != leaf and control in few
            for value in range(few[control].low, few[control].high + 1)
        )

    def _lost(self, ranges: Ranges) -> list[Leaf]:
        """Leaves that went past the end of an axis they index, and what flows into these, if that was
        compared with anything and yet may be all that its type holds."""
        found: dict[Leaf, None] = {}
        for leaf in self.leaves:
            held, limits = ranges[leaf], self.context.heads[leaf].limits
            if held is None or held.interval is None or not limits:
                continue
            if not held.interval.within(Interval(0, min(limits))):
                found[leaf] = None
                found.update((other, None) for other in self._sources(leaf) if self._unbound(other, ranges))
        return list(found)

    def _unbound(self, leaf: Leaf, ranges: Ranges) -> bool:
        found = ranges[leaf]
        thresholds = self.context.heads[leaf].thresholds
        return bool(thresholds) and found is not None and found.interval == type_interval(self.kinds[leaf])


def _either(a: Known | None, b: Known | None) -> Known | None:
    return b if a is None else a if b is None else hull((a, b))
