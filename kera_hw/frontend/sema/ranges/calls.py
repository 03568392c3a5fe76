"""Calls and lambdas. A small function is executed where it is called, with what is known of its arguments."""
from __future__ import annotations

from collections.abc import Sequence

from kera_hw.frontend.sema.ranges.core import Prover, Scope
from kera_hw.frontend.sema.ranges.expressions import read_place, visit_place, write_place
from kera_hw.frontend.sema.ranges.linear import known
from kera_hw.frontend.sema.ranges.loops import checked_round, solve
from kera_hw.frontend.sema.ranges.state import State
from kera_hw.frontend.sema.ranges.store import hull
from kera_hw.frontend.sema.ranges.symbol import Known, Symbol, Symbols
from kera_hw.frontend.sema.tree import hir
from kera_hw.frontend.sema.tree.walk import walk
from kera_hw.ops.intervals import type_interval
from kera_hw.types import TensorType, Type, leaf_types

# Parts of a function's tree, calls in it included, up to which it is executed at each call.
_INLINE_PARTS = 400


def call(prover: Prover, state: State, expr: hir.Call) -> Symbols:
    function = expr.function
    places: dict[int, tuple[hir.Place, Symbols | None]] = {}
    args: list[Symbols] = []
    for position, (arg, borrow) in enumerate(zip(expr.args, expr.borrows)):
        if borrow == "&mut" and isinstance(arg, hir.PlaceExpr):
            places[position] = arg.place, visit_place(prover, state, arg.place)
            args.append(read_place(prover, state, arg.place))
        else:
            args.append(prover.expr(state, arg))
    if function.body is not None and _parts(prover, function) <= _INLINE_PARTS:
        result, lent = _executed(prover, state, expr, args)
    else:
        result, lent = _summarised(prover, state, expr, args)
    for (place, entries), values in zip(places.values(), lent):
        write_place(prover, state, place, entries, values)
    return result


def _parts(prover: Prover, function: hir.Function) -> int:
    """The size of a function with the calls in it."""
    found = prover.sizes.get(function)
    if found is None:
        found = 0
        for part in walk(function.body):
            found += 1 + (_parts(prover, part.function) if isinstance(part, hir.Call) else 0)
        prover.sizes[function] = found
    return found


def _executed(
    prover: Prover, state: State, expr: hir.Call, args: list[Symbols]
) -> tuple[Symbols, list[Symbols]]:
    """The body, from the caller's facts. Its indices have been proved, whatever the arguments."""
    function = expr.function
    assert function.body is not None
    outside = state.values
    state.values = {**outside, **{param.var: symbols for param, symbols in zip(function.params, args)}}
    with prover.looking(), prover.scoped(Scope(function)), prover.within(prover.context.enter(expr)):
        result = prover.block(state, function.body)
    lent = [state.values[param.var] for param in function.params if param.borrow == "&mut"]
    state.values = {var: state.values[var] for var in outside}
    return result, lent


def _summarised(
    prover: Prover, state: State, expr: hir.Call, args: list[Symbols]
) -> tuple[Symbols, list[Symbols]]:
    """By what the function gives whatever it is given."""
    function = expr.function
    flat = [symbol for symbols in args for symbol in symbols]
    summary = prover.summaries.get(function)
    pure = not function.effects
    note = function if pure else None
    result = _given(prover, state, expr.type, summary and summary.result, flat, note)
    lent: list[Symbols] = []
    for position, param in enumerate(p for p in function.params if p.borrow == "&mut"):
        found = summary and summary.borrowed[position]
        note = (function, position) if pure else None
        lent.append(_given(prover, state, param.var.type, found, flat, note))
    return result, lent


def _given(
    prover: Prover, state: State, kind: Type, found: Sequence[Known] | None, args: Sequence[Symbol],
    note: object,
) -> Symbols:
    """Values made from arguments, equal ones if a note says by what; else their like is never seen again."""
    heads = frozenset(head for symbol in args for head in symbol.heads)
    out: list[Symbol] = []
    for position, leaf in enumerate(leaf_types(kind)):
        base = Known(type_interval(leaf)) if found is None else found[position]
        if note is None:
            out.append(prover.store.atom(leaf, base.interval, base.residue, heads))
        else:
            out.append(prover.make(state, "call", leaf, args, note=(note, position), base=base))
    return tuple(out)


# ---------------------------------------------------------------- streams


def stream_apply(prover: Prover, state: State, expr: hir.StreamApply) -> Symbols:
    return _item(prover, state, expr.stream, expr.type, expr.args)


def stream_step(prover: Prover, state: State, expr: hir.StreamStep) -> Symbols:
    return _item(prover, state, expr.stream, expr.type, expr.args)


def _item(
    prover: Prover, state: State, stream: hir.Function, kind: Type, args: Sequence[hir.Expr]
) -> Symbols:
    """Any item, or a tensor of them: each leaf has a range for all of its elements."""
    flat = [symbol for arg in args for symbol in prover.expr(state, arg)]
    summary = prover.summaries.get(stream)
    return _given(prover, state, kind, summary and summary.result, flat, None)


# ---------------------------------------------------------------- lambdas


def higher_order(prover: Prover, state: State, expr: hir.HigherOrder) -> Symbols:
    operands = [prover.expr(state, arg) for arg in expr.args]
    first = expr.args[0].type
    if isinstance(first, TensorType) and 0 in first.shape[: 1 if expr.name in ("reduce", "scan") else None]:
        # No element, so the lambda never runs.
        return operands[1] if expr.name == "reduce" else prover.store.of_type(expr.type)
    if expr.name in ("map", "zip"):
        inner = state.copy()
        for param, symbols in zip(expr.body.params, operands):
            inner.values[param] = _elements(prover, state, param.type, symbols)
        given = prover.expr(inner, expr.body.body)
        return _hulls(prover, expr.type, [(inner, given)])
    return _fold(prover, state, expr, operands[0], operands[1])


def _elements(prover: Prover, state: State, kind: Type, symbols: Symbols) -> Symbols:
    """Any element of tensors."""
    return _hulls(prover, kind, [(state, symbols)])


def _hulls(prover: Prover, kind: Type, columns: Sequence[tuple[State, Symbols]]) -> Symbols:
    """Unknowns that may be any of the given, leaf by leaf."""
    out: list[Symbol] = []
    for position, leaf in enumerate(leaf_types(kind)):
        found = hull([known(state, symbols[position]) for state, symbols in columns])
        heads = frozenset(head for _, symbols in columns for head in symbols[position].heads)
        out.append(prover.store.atom(leaf, found.interval, found.residue, heads))
    return tuple(out)


def _fold(prover: Prover, state: State, expr: hir.HigherOrder, items: Symbols, initial: Symbols) -> Symbols:
    """A loop over the elements, around the accumulator."""
    acc, item = expr.body.params
    entry = state.copy()
    entry.values[acc] = initial
    entry.values[item] = _elements(prover, state, item.type, items)

    def round_(head: State) -> None:
        head.values[acc] = prover.expr(head, expr.body.body)

    solved = solve(prover, entry, [(acc, leaf) for leaf in range(len(initial))], round_, expr)
    end = checked_round(prover, solved, round_)
    return _hulls(prover, expr.type, [(entry, initial), (end, end.values[acc])])
