"""What is known of a symbol in a state: by its parts, by its linear form, and by facts.

A linear form is a sum of multiples of symbols, equal to an integer expression modulo its type's 2^W. Where
the form's own range fits the type, no wrapping can show, so the expression *is* the form; that sees through
``(i - 1) + 1`` and cancels ``8 * i + j - 8 * i``.
"""
from __future__ import annotations

from kera_hw.frontend.sema.ranges.residue import ANY, Residue, within_residue
from kera_hw.frontend.sema.ranges.state import Linear, State
from kera_hw.frontend.sema.ranges.store import evaluate
from kera_hw.frontend.sema.ranges.symbol import Known, Symbol
from kera_hw.ops.intervals import Interval, type_interval
from kera_hw.types import IntType

_LINEAR_OPS = frozenset(("integer.add", "integer.sub", "integer.mul", "integer.neg", "bits.shl"))
_EXPANDED = _LINEAR_OPS | {"convert.cast"}
_MAX_TERMS = 8
_MAX_DEPTH = 12
_MAX_STEPS = 64


def known(state: State, symbol: Symbol) -> Known:
    """Range and residue of a symbol where the state holds."""
    if not symbol.parts & state.told:
        if symbol.bare is None:
            interval = symbol.base.interval
            symbol.bare = symbol.base if interval is None else _known(State(), symbol, interval)
        return symbol.bare
    found = state.memo.get(symbol)
    if found is None:
        found = symbol.base
        if found.interval is not None:
            found = _known(state, symbol, found.interval)
        state.memo[symbol] = found
    return found


def _known(state: State, symbol: Symbol, interval: Interval) -> Known:
    residue, args = symbol.base.residue, symbol.args
    if args:
        parts = [known(state, arg) for arg in args]
        if any(part is not arg.base for part, arg in zip(parts, args)):
            found = evaluate(symbol.name, symbol.kind, args, symbol.attrs, parts)
            if found.interval is not None:
                interval = _met(interval, found.interval)
                residue = _sharper(residue, found.residue)
        if symbol.name in _LINEAR_OPS and isinstance(symbol.kind, IntType):
            interval = _met(interval, _by_form(state, symbol, interval))
    if symbol.own & state.told:
        interval = state.narrowed(symbol, interval)
    if residue != ANY:
        interval = _met(interval, within_residue(interval, residue))
    base = symbol.base
    return base if interval == base.interval and residue == base.residue else Known(interval, residue)


def _met(interval: Interval, other: Interval) -> Interval:
    """Both; ranges that exclude each other mean a point never reached, where anything holds."""
    found = interval.meet(other)
    return interval if found.empty else found


def _sharper(a: Residue, b: Residue) -> Residue:
    return b if b[0] == 0 or (a[0] != 0 and b[0] > a[0]) else a


def _by_form(state: State, symbol: Symbol, interval: Interval) -> Interval:
    """Narrowed by the linear form, where wrapping or known differences make that worthwhile."""
    full = type_interval(symbol.kind)
    if full is None or (interval != full and not state.differences):
        return interval
    plain = symbol.args[0] is not symbol.args[-1] and all(arg.name not in _EXPANDED for arg in symbol.args)
    if plain and not state.differences:
        return interval  # the form has the operands themselves as its terms
    form = linear(state, symbol)
    whole = None if symbol in form.terms else form_interval(state, form)
    return whole if whole is not None and whole.within(full) else interval


def best_interval(state: State, symbol: Symbol) -> Interval | None:
    """The range of a symbol, by its linear form too wherever that is exact."""
    interval, full = known(state, symbol).interval, type_interval(symbol.kind)
    if interval is None or full is None or not isinstance(symbol.kind, IntType):
        return interval
    if symbol.name not in _EXPANDED:
        return interval
    whole = form_interval(state, linear(state, symbol))
    return _met(interval, whole) if whole is not None and whole.within(full) else interval


# ---------------------------------------------------------------- linear forms


def integer_value(symbol: Symbol) -> int | None:
    """The integer of a scalar constant."""
    return symbol.value if isinstance(symbol.value, int) else None


def linear(state: State, symbol: Symbol, depth: int = _MAX_DEPTH) -> Linear:
    """The symbol's form modulo 2^W; at worst the symbol as one term."""
    if depth == 0 or symbol.name not in _EXPANDED:
        value = integer_value(symbol)
        return Linear(0, {symbol: 1}) if value is None else Linear(value)
    found = state.forms.get(symbol)
    if found is None:
        found = state.forms[symbol] = _Expansion(state).form(symbol, depth)
    return found


class _Expansion:
    """Works a form out within a bounded number of steps."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.steps = _MAX_STEPS

    def form(self, symbol: Symbol, depth: int) -> Linear:
        value = integer_value(symbol)
        if value is not None:
            return Linear(value)
        self.steps -= 1
        if depth > 0 and self.steps > 0 and symbol.args and isinstance(symbol.kind, IntType):
            found = self._of_op(symbol, depth - 1)
            if found is not None and len(found.terms) <= _MAX_TERMS:
                return found
        return Linear(0, {symbol: 1})

    def _of_op(self, symbol: Symbol, depth: int) -> Linear | None:
        args, name = symbol.args, symbol.name
        if name in ("integer.add", "integer.sub"):
            left, right = (self.form(arg, depth) for arg in args)
            return left.add(right, 1 if name == "integer.add" else -1)
        if name == "integer.neg":
            return Linear().add(self.form(args[0], depth), -1)
        if name == "integer.mul":
            for factor, other in ((args[0], args[1]), (args[1], args[0])):
                value = integer_value(factor)
                if value is not None:
                    return Linear().add(self.form(other, depth), value)
        if name == "bits.shl":
            amount = integer_value(args[1])
            if amount is not None and amount < 64:
                return Linear().add(self.form(args[0], depth), 1 << amount)
        if name == "convert.cast":
            return self._of_cast(symbol, depth)
        return None

    def _of_cast(self, symbol: Symbol, depth: int) -> Linear | None:
        source, target = symbol.args[0].kind, symbol.kind
        if not isinstance(source, IntType) or not isinstance(target, IntType):
            return None
        form = self.form(symbol.args[0], depth)
        if target.width_bits <= source.width_bits:
            return form  # truncation keeps equality modulo the smaller power
        return form if is_exact(self.state, form, source) else None


def exact_form(state: State, symbol: Symbol) -> Linear:
    """A form equal to the symbol as an integer; where its linear form may wrap, the symbol alone."""
    if symbol.name in _EXPANDED and isinstance(symbol.kind, IntType):
        form = linear(state, symbol)
        if is_exact(state, form, symbol.kind):
            return form
    return linear(state, symbol, 0)


def is_exact(state: State, form: Linear, kind: IntType) -> bool:
    """Whether the expression of this type equals its form as an integer, not only modulo 2^W."""
    interval, full = form_interval(state, form), type_interval(kind)
    return interval is not None and full is not None and interval.within(full)


def form_interval(state: State, form: Linear) -> Interval | None:
    """The range of a form as an unbounded integer, using known differences between its symbols.

    None where a symbol has no range.
    """
    negative = Linear().add(form, -1)
    high, low = _highest(state, form), _highest(state, negative)
    if high is None or low is None:
        return None
    if len(form.terms) == 1:
        return Interval(-low, high)
    for divided in (symbol for symbol in form.terms if symbol.name in ("integer.div", "bits.shr")):
        for sign, side in ((1, form), (-1, negative)):
            whole = _undivided(state, side, divided)
            most = None if whole is None else _highest(state, whole[0])
            if whole is not None and most is not None:
                most //= whole[1]
                high, low = (min(high, most), low) if sign > 0 else (high, min(low, most))
    return Interval(-low, high)


def _undivided(state: State, form: Linear, symbol: Symbol) -> tuple[Linear, int] | None:
    """A form no less than a positive multiple of ``form``, and the multiple: of ``lo + (hi - lo) / 2`` it is
    ``lo + hi``, which may say more."""
    value = integer_value(symbol.args[1])
    if value is None or not isinstance(symbol.kind, IntType) or symbol.args[0].kind != symbol.kind:
        return None
    by = 1 << value if symbol.name == "bits.shr" and 0 <= value < 64 else value
    dividend = known(state, symbol.args[0]).interval
    if by <= 0 or (symbol.name == "bits.shr" and value > 63) or dividend is None or dividend.low < 0:
        return None
    coefficient = form.terms[symbol]
    others = Linear(form.constant, {term: c for term, c in form.terms.items() if term is not symbol})
    scaled = Linear().add(others, by).add(exact_form(state, symbol.args[0]), coefficient)
    # The quotient is less than the fraction by at most (by - 1) / by.
    return Linear(scaled.constant + max(0, -coefficient) * (by - 1), scaled.terms), by


def _highest(state: State, form: Linear) -> int | None:
    ranges: dict[Symbol, Interval] = {}
    for symbol in form.terms:
        interval = known(state, symbol).interval
        if interval is None:
            return None
        ranges[symbol] = interval
    return form.constant + _upper(state, form.terms, ranges)


def _upper(state: State, terms: dict[Symbol, int], ranges: dict[Symbol, Interval]) -> int:
    """The most that the sum of the terms can be."""
    left = dict(terms)
    total = 0
    for (a, b), most in state.differences.items():
        shared = min(left.get(a, 0), -left.get(b, 0))
        if shared > 0:
            total += shared * min(most, ranges[a].high - ranges[b].low)
            left[a] -= shared
            left[b] += shared
    for symbol, coefficient in left.items():
        total += coefficient * (ranges[symbol].high if coefficient > 0 else ranges[symbol].low)
    return total
