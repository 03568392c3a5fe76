"""Statements and branches: how what is known changes along a body."""
from __future__ import annotations

from collections.abc import Sequence

from kera_hw.frontend.sema.ranges.core import Prover
from kera_hw.frontend.sema.ranges.expressions import visit_place, write_place
from kera_hw.frontend.sema.ranges.join import join
from kera_hw.frontend.sema.ranges.loops import after_rounds, assigned, checked_round, solve
from kera_hw.frontend.sema.ranges.refine import refine
from kera_hw.frontend.sema.ranges.state import State
from kera_hw.frontend.sema.ranges.symbol import Symbol, Symbols
from kera_hw.frontend.sema.tree import hir
from kera_hw.frontend.sema.tree.walk import field_range, item_types
from kera_hw.ops.intervals import Interval
from kera_hw.types import BOOL, Type

# ---------------------------------------------------------------- statements


def let(prover: Prover, state: State, stmt: hir.Let) -> None:
    bind_pattern(state, stmt.pattern, stmt.value.type, prover.expr(state, stmt.value))
    prover.scope.record(stmt)


def bind_pattern(state: State, pattern: hir.Pattern, kind: Type, symbols: Symbols) -> None:
    if isinstance(pattern, hir.Binding):
        state.values[pattern.var] = symbols
    elif isinstance(pattern, hir.TuplePattern):
        for position, (item, inner) in enumerate(zip(pattern.items, item_types(kind))):
            low, high = field_range(kind, position)
            bind_pattern(state, item, inner, symbols[low:high])


def assign(prover: Prover, state: State, stmt: hir.Assign) -> None:
    symbols = prover.expr(state, stmt.value)
    write_place(prover, state, stmt.place, visit_place(prover, state, stmt.place), symbols)


def expr_stmt(prover: Prover, state: State, stmt: hir.ExprStmt) -> None:
    prover.expr(state, stmt.value)


def assert_eq(prover: Prover, state: State, stmt: hir.AssertEq) -> None:
    prover.expr(state, stmt.left)
    prover.expr(state, stmt.right)


def assert_true(prover: Prover, state: State, stmt: hir.Assert | hir.Observe) -> None:
    """Nothing follows from an assertion: it may fail, and the run goes on."""
    prover.expr(state, stmt.cond)


# ---------------------------------------------------------------- branches


def block(prover: Prover, state: State, expr: hir.Block) -> Symbols:
    return prover.block(state, expr)


def branch(prover: Prover, state: State, expr: hir.If) -> Symbols:
    condition = prover.scalar(state, expr.cond)
    outcomes: list[tuple[State, Symbols]] = []
    for truth, body in ((True, expr.then), (False, expr.otherwise)):
        taken = state.copy()
        refine(taken, condition, truth)
        symbols: Symbols = ()
        if body is not None and not taken.dead:
            with prover.guarded(expr.cond, truth):
                symbols = prover.block(taken, body)
        outcomes.append((taken, symbols))
    return _merge(prover, state, [condition], outcomes, expr.type)


def _merge(
    prover: Prover, state: State, conditions: Sequence[Symbol], outcomes: Sequence[tuple[State, Symbols]],
    kind: Type,
) -> Symbols:
    """Continue with what holds after any of the arms: the first whose condition holds, or the last."""
    after, symbols = outcomes[-1]
    for condition, (taken, values) in zip(reversed(conditions), reversed(outcomes[:-1])):
        if not taken.dead:
            after, symbols = join(prover.store, condition, taken, after, (values, symbols))
    if after.dead:
        state.dead = True
        return prover.store.of_type(kind)
    state.become(after)
    return symbols


def match(prover: Prover, state: State, expr: hir.Match) -> Symbols:
    symbols = prover.expr(state, expr.scrutinee)
    kind = expr.scrutinee.type
    rest = state.copy()  # what is known where no earlier arm has matched
    conditions: list[Symbol] = []
    outcomes: list[tuple[State, Symbols]] = []
    for arm in expr.arms:
        condition = _matches(prover, rest, arm.patterns, kind, symbols)
        taken = rest.copy()
        refine(taken, condition, True)
        values: Symbols = ()
        if not taken.dead:
            for pattern in arm.patterns:
                bind_pattern(taken, pattern, kind, symbols)
            values = prover.block(taken, arm.body)
        conditions.append(condition)
        outcomes.append((taken, values))
        refine(rest, condition, False)
        if rest.dead:
            break
    return _merge(prover, state, conditions[:-1], outcomes, expr.type)


def _matches(
    prover: Prover, state: State, patterns: Sequence[hir.Pattern], kind: Type, symbols: Symbols
) -> Symbol:
    """That any of the patterns matches."""
    made = [_fits(prover, state, pattern, kind, symbols) for pattern in patterns]
    found = made[0]
    for other in made[1:]:
        found = prover.store.either(found, other)
    return found


def _fits(prover: Prover, state: State, pattern: hir.Pattern, kind: Type, symbols: Symbols) -> Symbol:
    store = prover.store
    if isinstance(pattern, hir.IntRange):
        return _in_range(prover, state, pattern, symbols[0])
    found = store.truth(True)
    if isinstance(pattern, hir.TuplePattern):
        for position, (item, inner) in enumerate(zip(pattern.items, item_types(kind))):
            low, high = field_range(kind, position)
            found = store.both(found, _fits(prover, state, item, inner, symbols[low:high]))
    return found


def _in_range(prover: Prover, state: State, pattern: hir.IntRange, symbol: Symbol) -> Symbol:
    store = prover.store
    prover.compared(state, symbol, pattern.low)
    low, high = (store.number(symbol.kind, end) for end in (pattern.low, pattern.high))
    if pattern.low == pattern.high:
        return store.make("compare.eq", BOOL, (symbol, low))
    prover.compared(state, symbol, pattern.high)
    return store.both(
        store.make("compare.ge", BOOL, (symbol, low)), store.make("compare.le", BOOL, (symbol, high))
    )


# ---------------------------------------------------------------- loops


def for_loop(prover: Prover, state: State, stmt: hir.For) -> None:
    if stmt.count == 0:
        return
    ends = (stmt.start, stmt.start + stmt.step * (stmt.count - 1))
    counter = prover.store.atom(
        stmt.var.type, Interval(min(ends), max(ends)), (abs(stmt.step), stmt.start % abs(stmt.step or 1))
    )

    def round_(head: State) -> None:
        head.values[stmt.var] = (counter,)
        prover.scope.loops.append(stmt)
        prover.block(head, stmt.body)
        prover.scope.loops.pop()

    leaves = assigned(state, stmt.body)
    solved = solve(prover, state, leaves, round_, stmt)
    state.become(after_rounds(prover, state, checked_round(prover, solved, round_), leaves))


def while_loop(prover: Prover, state: State, stmt: hir.While) -> None:
    if stmt.max_count == 0:
        return

    def round_(head: State) -> None:
        condition = prover.scalar(head, stmt.cond)
        refine(head, condition, True)
        prover.block(head, stmt.body)

    solved = solve(prover, state, assigned(state, stmt.cond, stmt.body), round_, stmt)
    checked_round(prover, solved, round_)
    # The loop may end by its bound, so the negated condition need not hold after it.
    state.become(solved.head)
    with prover.looking():
        prover.expr(state, stmt.cond)
