"""What is known at one point of a body: a range per variable leaf, facts on expressions, differences."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kera_hw.frontend.sema import hir
from kera_hw.frontend.sema.ranges_keys import Key, key_vars
from kera_hw.ops.intervals import Interval, MaybeInterval

Ranges = list[MaybeInterval]

# How many differences are followed in a row: i < j, j < k, k < n.
_CHAIN = 3


@dataclass(slots=True)
class State:
    """``differences[a, b] = c`` says a - b <= c. ``dead``: this point is never reached."""

    ranges: dict[hir.Var, tuple[MaybeInterval, ...]] = field(
        default_factory=dict[hir.Var, tuple[MaybeInterval, ...]]
    )
    facts: dict[Key, Interval] = field(default_factory=dict[Key, Interval])
    differences: dict[tuple[Key, Key], int] = field(default_factory=dict[tuple[Key, Key], int])
    dead: bool = False

    def copy(self) -> State:
        return State(dict(self.ranges), dict(self.facts), dict(self.differences), self.dead)

    def become(self, other: State) -> None:
        """Continue as ``other``."""
        self.ranges, self.facts = other.ranges, other.facts
        self.differences, self.dead = other.differences, other.dead

    def bind(self, var: hir.Var, ranges: Sequence[MaybeInterval]) -> None:
        """A new value for a whole variable: what was known about the old one goes."""
        self.forget(var)
        self.ranges[var] = tuple(ranges)

    def set_leaves(self, var: hir.Var, low: int, ranges: Sequence[MaybeInterval]) -> None:
        old = self.ranges[var]
        self.bind(var, (*old[:low], *ranges, *old[low + len(ranges) :]))

    def forget(self, var: hir.Var) -> None:
        """Drop facts that mention the variable."""
        for key in [key for key in self.facts if var in key_vars(key)]:
            del self.facts[key]
        for pair in [pair for pair in self.differences if var in key_vars(pair)]:
            del self.differences[pair]

    def learn(self, key: Key, interval: Interval) -> None:
        """A further bound on an expression; an impossible one means this point is never reached."""
        found = self.facts.get(key)
        merged = interval if found is None else found.meet(interval)
        self.facts[key] = merged
        self.dead = self.dead or merged.empty

    def known(self, var: hir.Var) -> Ranges:
        """A variable's ranges, with the facts about it."""
        ranges = list(self.ranges[var])
        if len(ranges) == 1 and ranges[0] is not None:
            ranges[0] = self.narrowed(("var", var), ranges[0])
        return ranges

    def narrowed(self, key: Key, interval: Interval, depth: int = _CHAIN) -> Interval:
        """The interval of an expression narrowed by facts about it and its differences from others.

        Facts that leave nothing mean a point never reached; the interval then stays as it is.
        """
        fact = self.facts.get(key)
        found = interval if fact is None else interval.meet(fact)
        if depth > 0:
            for (a, b), most in self.differences.items():
                if a == key and (other := self._of_key(b, depth)) is not None:
                    found = found.meet(Interval(found.low, other.high + most))
                elif b == key and (other := self._of_key(a, depth)) is not None:
                    found = found.meet(Interval(other.low - most, found.high))
        return interval if found.empty else found

    def _of_key(self, key: Key, depth: int) -> Interval | None:
        own = self.facts.get(key)
        if key[0] == "var" and len(held := self.ranges.get(key[1], ())) == 1:
            own = held[0] if own is None or held[0] is None else own.meet(held[0])
        return None if own is None else self.narrowed(key, own, depth - 1)

    def learn_difference(self, a: Key, b: Key, most: int) -> None:
        if a != b and "id" not in (a[0], b[0]):  # an identity names an expression only while it is looked at
            self.differences[a, b] = min(most, self.differences.get((a, b), most))


def join(first: State, second: State) -> State:
    """What holds whichever of the two was taken."""
    if first.dead:
        return second.copy()
    if second.dead:
        return first.copy()
    ranges = {
        var: tuple(hull_of(a, b) for a, b in zip(first.known(var), second.known(var)))
        for var in first.ranges if var in second.ranges
    }
    facts = {key: fact.hull(second.facts[key]) for key, fact in first.facts.items() if key in second.facts}
    differences = {
        pair: max(most, second.differences[pair])
        for pair, most in first.differences.items() if pair in second.differences
    }
    return State(ranges, facts, differences)


def hull_of(a: MaybeInterval, b: MaybeInterval) -> MaybeInterval:
    return None if a is None or b is None else a.hull(b)
