"""What a condition teaches: bounds on the values in it, and differences between them."""
from __future__ import annotations

from kera_hw.frontend.sema.ranges.join import join_facts
from kera_hw.frontend.sema.ranges.linear import Linear, best_interval, exact_form, integer_value, known
from kera_hw.frontend.sema.ranges.state import UNEQUAL, State
from kera_hw.frontend.sema.ranges.store import PHI
from kera_hw.frontend.sema.ranges.symbol import Symbol
from kera_hw.ops.intervals import Interval, type_interval
from kera_hw.types import BoolType, FixType, IntType

_NEGATED = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq"}

# How many times a condition and what it is made of may be taken apart into two cases: in a branch, and where
# a leaf has a value at the end of a loop's round.
_SPLITS = 6
_CASE_SPLITS = 12
_CONCLUSIONS = 3  # rounds of them: one can lead to another
_LEAST, _MOST = -(1 << 64), 1 << 64


class _Splits:
    """What is left of them."""

    def __init__(self, left: int) -> None:
        self.left = left

    def take(self) -> bool:
        self.left -= 1
        return self.left >= 0


def refine(state: State, condition: Symbol, truth: bool) -> None:
    """Narrow the state to where the condition is ``truth``. Facts only ever get sharper."""
    _refine(state, condition, truth, _Splits(_SPLITS))
    _conclude(state)


def refine_equal(state: State, symbol: Symbol, value: int) -> None:
    """Narrow the state to where an integer or a bool has a value."""
    splits = _Splits(_CASE_SPLITS)
    if symbol.is_condition:
        _refine(state, symbol, bool(value), splits)
    else:
        _bound(state, symbol, Interval(value, value), splits)
    _conclude(state)


def _conclude(state: State) -> None:
    """What follows from values that are decided now: by cases, and in conditions that were left open."""
    if state.concluding or not (state.cases or state.open_cases):
        return
    state.concluding = True
    for _ in range(_CONCLUSIONS):
        before = state.memo
        for symbol, cases in state.cases.items():
            found = known(state, symbol).interval
            if found is not None and found.low == found.high and not state.dead:
                for other, interval in cases.get(found.low, ()):
                    if interval is None:
                        state.dead = True
                    else:
                        bound(state, other, interval)
        for symbol in state.open_cases:
            if not state.dead:
                _reconsider(state, symbol, bool(state.facts[symbol].low))
        if state.dead or state.memo is before:
            break
    state.concluding = False


def _reconsider(state: State, condition: Symbol, truth: bool) -> None:
    none = _Splits(0)
    parts = [known(state, arg).interval for arg in condition.args]
    if condition.name in UNEQUAL:
        a, b = parts
        if a is not None and b is not None and (a.low in b or a.high in b):
            _refine_compare(state, condition, truth, none)
        return
    decided = [bool(part.low) if part is not None and part.low == part.high else None for part in parts]
    if condition.name == PHI:
        which, yes, no = decided
        if which is not None:
            _refine(state, condition.args[1 if which else 2], truth, none)
        elif yes is not None and yes != truth:
            _refine(state, condition.args[0], False, none)
        elif no is not None and no != truth:
            _refine(state, condition.args[0], True, none)
        return
    neutral = condition.name == "bits.and"
    if truth == neutral:
        return  # both parts have that truth, and were told so
    for this, other in ((0, 1), (1, 0)):
        if decided[this] == neutral:
            _refine(state, condition.args[other], truth, none)


def _refine(state: State, condition: Symbol, truth: bool, splits: _Splits) -> None:
    if state.dead or not isinstance(condition.kind, BoolType):
        return
    found = known(state, condition).interval
    if found is not None and found.low == found.high:
        state.dead = bool(found.low) != truth
        return
    if condition.name in ("bits.and", "bits.or"):
        _refine_pair(state, condition, condition.name == "bits.and", truth, splits)
    elif condition.name == "bits.not":
        _refine(state, condition.args[0], not truth, splits)
    elif condition.name == PHI:
        _refine_phi(state, condition, truth, splits)
    elif condition.name.startswith("compare."):
        _refine_compare(state, condition, truth, splits)
    found = known(state, condition).interval
    if found is None or found.low != found.high:
        state.learn(condition, Interval(int(truth), int(truth)))
    elif bool(found.low) != truth:
        state.dead = True


def _refine_pair(state: State, condition: Symbol, both: bool, truth: bool, splits: _Splits) -> None:
    """``both``: a conjunction, else a disjunction."""
    lhs, rhs = condition.args
    if both == truth:
        _refine(state, lhs, truth, splits)
        _refine(state, rhs, truth, splits)
        return
    first, second = state.copy(), state.copy()
    _refine(first, lhs, truth, splits)
    _refine(second, lhs, not truth, splits)
    _conclude(second)
    _refine(second, rhs, truth, splits)
    _either(state, first, second)


def _refine_phi(state: State, condition: Symbol, truth: bool, splits: _Splits) -> None:
    """A bool that was chosen: either way, with what chose it."""
    if not splits.take():
        return
    which, yes, no = condition.args
    first, second = state.copy(), state.copy()
    for taken, value, held in ((first, yes, True), (second, no, False)):
        _refine(taken, which, held, splits)
        _conclude(taken)
        _refine(taken, value, truth, splits)
    _either(state, first, second)


def _either(state: State, first: State, second: State) -> None:
    _conclude(first)
    _conclude(second)
    never = first.dead and second.dead
    state.become(join_facts(first, second))
    state.dead = never


def _refine_compare(state: State, condition: Symbol, truth: bool, splits: _Splits) -> None:
    a, b = condition.args
    verb = condition.name.split(".", 1)[1]
    verb = verb if truth else _NEGATED[verb]
    if isinstance(a.kind, IntType | FixType):
        _compare(state, verb, a, b)
        if verb == "eq":
            for fixed, other in ((a, b), (b, a)):
                found = known(state, fixed).interval
                if other.name == PHI and found is not None and found.low == found.high:
                    _split_phi(state, other, found, splits)
    elif isinstance(a.kind, BoolType) and verb in ("eq", "ne"):
        for fixed, other in ((a, b), (b, a)):
            found = known(state, fixed).interval
            if found is not None and found.low == found.high:
                _refine(state, other, bool(found.low) == (verb == "eq"), splits)


def _compare(state: State, verb: str, a: Symbol, b: Symbol) -> None:
    if verb in ("lt", "le"):
        _at_most(state, a, b, -1 if verb == "lt" else 0)
    elif verb in ("gt", "ge"):
        _at_most(state, b, a, -1 if verb == "gt" else 0)
    elif verb == "eq":
        _at_most(state, a, b, 0)
        _at_most(state, b, a, 0)
    else:
        for fixed, other in ((a, b), (b, a)):
            value = known(state, fixed).interval
            if value is not None and value.low == value.high:
                _differs(state, other, value.low)


def _differs(state: State, symbol: Symbol, value: int) -> None:
    """``symbol != value``: an end of its range that equals the value goes."""
    form = exact_form(state, symbol)
    if len(form.terms) == 1:
        ((inner, coefficient),) = form.terms.items()
        if inner is not symbol:
            if (value - form.constant) % coefficient == 0:
                _differs(state, inner, (value - form.constant) // coefficient)
            return
    interval = known(state, symbol).interval
    if interval is None:
        return
    if interval.low == interval.high == value:
        state.dead = True
    elif interval.low == value:
        bound(state, symbol, Interval(value + 1, interval.high))
    elif interval.high == value:
        bound(state, symbol, Interval(interval.low, value - 1))


def _at_most(state: State, a: Symbol, b: Symbol, most: int) -> None:
    """``a - b <= most``, as integers."""
    first, second = best_interval(state, a), best_interval(state, b)
    if first is None or second is None:
        return
    bound(state, a, Interval(first.low, second.high + most))
    bound(state, b, Interval(first.low - most, second.high))
    if not state.dead:
        _learn_form(state, exact_form(state, a).add(exact_form(state, b), -1), most)


def _learn_form(state: State, form: Linear, most: int) -> None:
    """``form <= most``: a bound on each of its symbols, given the least of the others; and differences."""
    ranges: dict[Symbol, Interval] = {}
    for symbol in form.terms:
        interval = known(state, symbol).interval
        if interval is None:
            return
        ranges[symbol] = interval
    least = {term: c * (ranges[term].low if c > 0 else ranges[term].high) for term, c in form.terms.items()}
    total = sum(least.values())
    for symbol, coefficient in form.terms.items():
        room = most - form.constant - (total - least[symbol])  # coefficient * symbol <= room
        interval = ranges[symbol]
        if coefficient > 0:
            narrowed = Interval(interval.low, min(interval.high, room // coefficient))
        else:
            narrowed = Interval(max(interval.low, -(room // -coefficient)), interval.high)
        bound(state, symbol, narrowed)
    if sorted(form.terms.values()) == [-1, 1]:
        plus = next(symbol for symbol, c in form.terms.items() if c == 1)
        minus = next(symbol for symbol, c in form.terms.items() if c == -1)
        state.learn_difference(plus, minus, most - form.constant)


def bound(state: State, symbol: Symbol, interval: Interval) -> None:
    """The value lies in ``interval``: learn it for the symbol, and for what it is made of."""
    _bound(state, symbol, interval, _Splits(0))


def _bound(state: State, symbol: Symbol, interval: Interval, splits: _Splits) -> None:
    current = known(state, symbol).interval
    if state.dead or (current is not None and current.within(interval)):
        return
    if current is not None and current.meet(interval).empty:
        state.dead = True
        return
    state.learn(symbol, interval)
    args = symbol.args
    if symbol.name == "convert.cast":
        inner, full = known(state, args[0]).interval, type_interval(symbol.kind)
        whole = isinstance(symbol.kind, IntType) and isinstance(args[0].kind, IntType)
        if whole and inner is not None and full is not None and inner.within(full):
            _bound(state, args[0], interval, splits)
    elif symbol.name == "bits.shr":
        amount = integer_value(args[1])
        if amount is not None and amount < 64 and isinstance(symbol.kind, IntType):
            low, high = interval.low << amount, (interval.high << amount) + (1 << amount) - 1
            _bound(state, args[0], Interval(low, high), splits)
    elif symbol.name == "integer.max":
        for arg in args:
            _bound(state, arg, Interval(_LEAST, interval.high), splits)
    elif symbol.name == "integer.min":
        for arg in args:
            _bound(state, arg, Interval(interval.low, _MOST), splits)
    elif symbol.name == PHI:
        _split_phi(state, symbol, interval, splits)


def _split_phi(state: State, symbol: Symbol, interval: Interval, splits: _Splits) -> None:
    """A value that was chosen lies in the interval: either way, with what chose it. An arm that the
    interval excludes was not taken."""
    which, yes, no = symbol.args
    ranges = [known(state, arm).interval for arm in (yes, no)]
    possible = [found is None or not found.meet(interval).empty for found in ranges]
    if possible == [False, False]:
        state.dead = True
    elif not all(possible):
        _refine(state, which, possible[0], splits)
        _conclude(state)
        _bound(state, yes if possible[0] else no, interval, splits)
    elif splits.take():
        first, second = state.copy(), state.copy()
        for taken, arm, held in ((first, yes, True), (second, no, False)):
            _refine(taken, which, held, splits)
            _conclude(taken)
            _bound(taken, arm, interval, splits)
        _either(state, first, second)
