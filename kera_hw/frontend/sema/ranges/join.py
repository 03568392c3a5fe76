"""Where two ways meet: what holds whichever was taken."""
from __future__ import annotations

from kera_hw.frontend.sema.ranges.linear import known
from kera_hw.frontend.sema.ranges.residue import hull_residue
from kera_hw.frontend.sema.ranges.state import State
from kera_hw.frontend.sema.ranges.store import MAX_DEPTH, SymbolStore
from kera_hw.frontend.sema.ranges.symbol import Symbol, Symbols
from kera_hw.ops.intervals import Interval

_NONE = Interval(0, -1)


def join(
    store: SymbolStore, condition: Symbol, first: State, second: State,
    values: tuple[Symbols, Symbols] = ((), ()),
) -> tuple[State, Symbols]:
    """The state after either, ``first`` where the condition holds, and what they gave as one value."""
    if first.dead:
        return second.copy(), values[1]
    if second.dead:
        return first.copy(), values[0]
    out = _common(first, second)

    def one(a: Symbol, b: Symbol) -> Symbol:
        return a if a is b else _either(store, condition, (first, a), (second, b), out)

    for var, old in first.values.items():
        other = second.values.get(var)
        if other is old:
            out.values[var] = old
        elif other is not None:
            out.values[var] = tuple(one(a, b) for a, b in zip(old, other))
    result = tuple(one(a, b) for a, b in zip(*values))
    return out, result


def join_facts(first: State, second: State) -> State:
    """As ``join``, of two cases of one state; what either says of values made from others goes, unless the
    other case says so too."""
    if first.dead:
        return second.copy()
    if second.dead:
        return first.copy()
    out = _common(first, second, made=False)
    out.values = dict(first.values)
    return out


def _common(first: State, second: State, made: bool = True) -> State:
    """What the two have in common, but for values."""
    cases = first.cases
    if first.cases is not second.cases:
        cases = {symbol: case for symbol, case in cases.items() if second.cases.get(symbol) is case}
    out = State(cases=cases, watched=first.watched if first.watched is second.watched else ())
    for symbol, fact in first.facts.items():
        other = second.facts.get(symbol)
        if other == fact:
            out.learn(symbol, fact)
        elif made or other is not None or not symbol.args:
            _keep_either(out, symbol, first, second)
    for symbol in second.facts:
        if symbol not in first.facts and (made or not symbol.args):
            _keep_either(out, symbol, first, second)
    for symbol in out.watched:
        _keep_either(out, symbol, first, second)
    for pair, most in first.differences.items():
        if pair in second.differences:
            out.learn_difference(*pair, max(most, second.differences[pair]))
    out.open_cases = tuple(
        symbol for symbol in first.open_cases if first.facts.get(symbol) == second.facts.get(symbol, _NONE)
    )
    return out


def _either(
    store: SymbolStore, condition: Symbol, first: tuple[State, Symbol], second: tuple[State, Symbol],
    out: State,
) -> Symbol:
    """A value from one of two states; its range, which their facts may sharpen, is a fact after."""
    a, b = known(*first), known(*second)
    whole = None if a.interval is None or b.interval is None else a.interval.hull(b.interval)
    symbol = store.phi(condition, first[1], second[1])
    if symbol.depth > MAX_DEPTH:
        return store.atom(symbol.kind, whole, hull_residue(a.residue, b.residue), symbol.heads)
    if whole is not None:
        _keep(out, symbol, whole)
    return symbol


def _keep(state: State, symbol: Symbol, interval: Interval) -> None:
    base = symbol.base.interval
    if base is None or not base.within(interval):
        state.learn(symbol, interval)


def _keep_either(state: State, symbol: Symbol, first: State, second: State) -> None:
    a, b = known(first, symbol).interval, known(second, symbol).interval
    if a is not None and b is not None:
        _keep(state, symbol, a.hull(b))
