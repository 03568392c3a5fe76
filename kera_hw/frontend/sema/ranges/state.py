"""What is known at one point of a body: the symbol each variable holds, facts on symbols, differences."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kera_hw.frontend.sema.ranges.residue import within_residue
from kera_hw.frontend.sema.ranges.store import PHI
from kera_hw.frontend.sema.ranges.symbol import Known, Symbol, Symbols
from kera_hw.frontend.sema.tree import hir
from kera_hw.ops.intervals import Interval

# How many differences are followed in a row: i < j, j < k, k < n.
_CHAIN = 3

# How many conditions are looked at again when something is learnt.
_OPEN = 32

_CONNECTIVES = frozenset(("bits.and", "bits.or", PHI))
UNEQUAL = {"compare.eq": Interval(0, 0), "compare.ne": Interval(1, 1)}

Cases = Mapping[int, tuple[tuple[Symbol, Interval | None], ...]]


@dataclass(slots=True)
class Linear:
    """``constant`` plus, for each symbol, its coefficient times its value."""

    constant: int = 0
    terms: dict[Symbol, int] = field(default_factory=dict[Symbol, int])

    def add(self, other: Linear, factor: int = 1) -> Linear:
        terms = dict(self.terms)
        for symbol, coefficient in other.terms.items():
            terms[symbol] = terms.get(symbol, 0) + factor * coefficient
        kept = {symbol: coefficient for symbol, coefficient in terms.items() if coefficient}
        return Linear(self.constant + factor * other.constant, kept)


@dataclass(slots=True)
class State:
    """``differences[a, b] = c`` says a - b <= c. ``cases[s] = {k: ((t, i), ..)}``: where s is k, each t lies
    in i (None: that is never so). ``open_cases`` are conditions with a known truth whose parts may still be
    undecided. What becomes known of ``watched`` symbols is kept when states are joined. ``dead``: this point
    is never reached.

    ``told`` has the bits of the symbols that facts and differences are about; ``memo`` and ``forms`` hold
    what was worked out from exactly these.
    """

    values: dict[hir.Var, Symbols] = field(default_factory=dict[hir.Var, Symbols])
    facts: dict[Symbol, Interval] = field(default_factory=dict[Symbol, Interval])
    differences: dict[tuple[Symbol, Symbol], int] = field(default_factory=dict[tuple[Symbol, Symbol], int])
    cases: Mapping[Symbol, Cases] = field(default_factory=dict[Symbol, Cases])
    open_cases: tuple[Symbol, ...] = ()
    watched: tuple[Symbol, ...] = ()
    dead: bool = False
    concluding: bool = False  # conclusions are being drawn from what it holds
    told: int = 0
    memo: dict[Symbol, Known] = field(default_factory=dict[Symbol, Known])
    forms: dict[Symbol, Linear] = field(default_factory=dict[Symbol, Linear])

    def copy(self) -> State:
        return State(
            dict(self.values), dict(self.facts), dict(self.differences), self.cases, self.open_cases,
            self.watched, self.dead, self.concluding, self.told, self.memo, self.forms,
        )

    def become(self, other: State) -> None:
        """Continue as ``other``."""
        self.values, self.facts = other.values, other.facts
        self.differences, self.cases, self.open_cases = other.differences, other.cases, other.open_cases
        self.dead, self.told, self.memo, self.forms = other.dead, other.told, other.memo, other.forms

    def set_leaves(self, var: hir.Var, low: int, symbols: Sequence[Symbol]) -> None:
        old = self.values[var]
        self.values[var] = (*old[:low], *symbols, *old[low + len(symbols) :])

    def learn(self, symbol: Symbol, interval: Interval) -> None:
        """A further bound on a value; an impossible one means this point is never reached."""
        found = self.facts.get(symbol)
        merged = interval if found is None else found.meet(interval)
        if merged != found:
            self.facts[symbol] = merged
            self.told |= symbol.own
            self._outdate(symbol.own)
            if found is None and symbol.is_condition and _stays_open(symbol, merged):
                self.open_cases = (*self.open_cases, symbol)[-_OPEN:]
        self.dead = self.dead or merged.empty

    def _outdate(self, own: int) -> None:
        """Forget what was worked out from a symbol; copies of this state may go on using it."""
        if self.differences:  # which tell of one symbol by another
            self.memo, self.forms = {}, {}
        else:
            self.memo = {symbol: found for symbol, found in self.memo.items() if not symbol.parts & own}
            self.forms = {symbol: form for symbol, form in self.forms.items() if not symbol.parts & own}

    def learn_difference(self, a: Symbol, b: Symbol, most: int) -> None:
        if a is not b and most < self.differences.get((a, b), most + 1):
            self.differences[a, b] = most
            self.told |= a.own | b.own
            self.memo, self.forms = {}, {}

    def narrowed(self, symbol: Symbol, interval: Interval, depth: int = _CHAIN) -> Interval:
        """The interval of a symbol narrowed by facts about it and its differences from others.

        Facts that leave nothing mean a point never reached; the interval then stays as it is.
        """
        fact = self.facts.get(symbol)
        found = interval if fact is None else interval.meet(fact)
        if depth > 0 and self.differences:
            for (a, b), most in self.differences.items():
                if a is symbol and (other := self._plain(b, depth)) is not None:
                    found = found.meet(Interval(found.low, other.high + most))
                elif b is symbol and (other := self._plain(a, depth)) is not None:
                    found = found.meet(Interval(other.low - most, found.high))
        found = within_residue(found, symbol.base.residue)
        return interval if found.empty else found

    def _plain(self, symbol: Symbol, depth: int) -> Interval | None:
        own = symbol.base.interval
        return None if own is None else self.narrowed(symbol, own, depth - 1)


def _stays_open(condition: Symbol, truth: Interval) -> bool:
    """Whether a condition may teach more once more is known: ``x != 9``, when 9 is an end of x's range."""
    return condition.name in _CONNECTIVES or UNEQUAL.get(condition.name) == truth
