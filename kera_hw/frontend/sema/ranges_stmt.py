"""Statements, branches and loops: how what is known changes along a body.

A loop's body is run until what is known at its head holds after each round; what keeps growing is widened
to constants that the body mentions, then to its type's range, and narrowed once by what the body gives.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from kera_hw.frontend.sema import hir
from kera_hw.frontend.sema.lower_scan import assigned_ranges, field_range, item_types, walk
from kera_hw.frontend.sema.ranges_core import Prover, full_ranges
from kera_hw.frontend.sema.ranges_expr import visit_place, write_ranges
from kera_hw.frontend.sema.ranges_refine import refine, refine_bound
from kera_hw.frontend.sema.ranges_state import Ranges, State, hull_of, join
from kera_hw.ops.intervals import Interval, MaybeInterval, type_interval
from kera_hw.types import Type, leaf_types, shape_of

# Rounds that keep exact bounds, widen to constants of the body, and widen to the type's range. After
# these every assigned variable has its type's range: in one round a single one may have begun to grow.
_EXACT_ROUNDS = 2
_WIDENING_ROUNDS = 6
_FULL_ROUNDS = 4

# ---------------------------------------------------------------- statements


def let(prover: Prover, state: State, stmt: hir.Let) -> None:
    bind_pattern(state, stmt.pattern, stmt.value.type, prover.expr(state, stmt.value))
    prover.scope.definitions.record(stmt)


def bind_pattern(state: State, pattern: hir.Pattern, kind: Type, ranges: Ranges) -> None:
    if isinstance(pattern, hir.Binding):
        state.bind(pattern.var, ranges)
    elif isinstance(pattern, hir.TuplePattern):
        for position, (item, inner) in enumerate(zip(pattern.items, item_types(kind))):
            low, high = field_range(kind, position)
            bind_pattern(state, item, inner, ranges[low:high])


def assign(prover: Prover, state: State, stmt: hir.Assign) -> None:
    ranges = prover.expr(state, stmt.value)
    visit_place(prover, state, stmt.place)
    write_ranges(state, stmt.place, ranges)


def expr_stmt(prover: Prover, state: State, stmt: hir.ExprStmt) -> None:
    prover.expr(state, stmt.value)


def assert_eq(prover: Prover, state: State, stmt: hir.AssertEq) -> None:
    prover.expr(state, stmt.left)
    prover.expr(state, stmt.right)


def assert_true(prover: Prover, state: State, stmt: hir.Assert) -> None:
    prover.expr(state, stmt.cond)


# ---------------------------------------------------------------- branches


def block(prover: Prover, state: State, expr: hir.Block) -> Ranges:
    return prover.block(state, expr)


def branch(prover: Prover, state: State, expr: hir.If) -> Ranges:
    prover.expr(state, expr.cond)
    outcomes: list[tuple[State, Ranges]] = []
    for truth, body in ((True, expr.then), (False, expr.otherwise)):
        taken = state.copy()
        refine(prover, taken, expr.cond, truth)
        ranges: Ranges = []
        if body is not None:
            with prover.guarded(expr.cond, truth):
                ranges = prover.block(taken, body)
        outcomes.append((taken, ranges))
    return _merge(state, outcomes, expr.type)


def _merge(state: State, outcomes: Sequence[tuple[State, Ranges]], kind: Type) -> Ranges:
    """Continue with what holds after any of the arms; values of arms never taken don't count."""
    live = [outcome for outcome in outcomes if not outcome[0].dead]
    if not live:
        state.dead = True
        return full_ranges(kind)
    after, ranges = live[0]
    for other, values in live[1:]:
        after = join(after, other)
        ranges = [hull_of(a, b) for a, b in zip(ranges, values)]
    state.become(after)
    return ranges


def match(prover: Prover, state: State, expr: hir.Match) -> Ranges:
    ranges = prover.expr(state, expr.scrutinee)
    kind = expr.scrutinee.type
    named = _is_named(prover, expr.scrutinee)
    rest = state.copy()  # what is known where no earlier arm has matched
    outcomes: list[tuple[State, Ranges]] = []
    for arm in expr.arms:
        taken = rest.copy()
        current = ranges
        if named:
            _refine_arm(prover, taken, expr.scrutinee, arm.patterns)
            current = ranges if taken.dead else prover.peek(taken, expr.scrutinee)
        for pattern in arm.patterns:
            bind_pattern(taken, pattern, kind, current)
        outcomes.append((taken, prover.block(taken, arm.body)))
        if named:
            _exclude(prover, rest, expr.scrutinee, arm.patterns)
    return _merge(state, outcomes, expr.type)


def _is_named(prover: Prover, scrutinee: hir.Expr) -> bool:
    """Whether facts about the scrutinee can be kept, and looking at it again is cheap."""
    if isinstance(scrutinee, hir.Aggregate):
        return any(_is_named(prover, item) for item in scrutinee.items)
    return prover.scope.definitions.key(scrutinee) is not None


def _refine_arm(prover: Prover, state: State, scrutinee: hir.Expr, patterns: Sequence[hir.Pattern]) -> None:
    states: list[State] = []
    for pattern in patterns:
        taken = state.copy()
        _refine_pattern(prover, taken, scrutinee, pattern)
        states.append(taken)
    merged = states[0]
    for other in states[1:]:
        merged = join(merged, other)
    state.become(merged)


def _refine_pattern(prover: Prover, state: State, scrutinee: hir.Expr, pattern: hir.Pattern) -> None:
    if isinstance(pattern, hir.IntRange):
        if pattern.low == pattern.high and str(scrutinee.type) == "bool":
            refine(prover, state, scrutinee, bool(pattern.low))
        refine_bound(prover, state, scrutinee, Interval(pattern.low, pattern.high))
    elif isinstance(pattern, hir.TuplePattern):
        for position, item in enumerate(pattern.items):
            _refine_pattern(prover, state, _item(scrutinee, position), item)


def _item(scrutinee: hir.Expr, position: int) -> hir.Expr:
    if isinstance(scrutinee, hir.Aggregate):
        return scrutinee.items[position]
    kind = item_types(scrutinee.type)[position]
    return hir.Project(kind, scrutinee.span, scrutinee, position)


def _exclude(prover: Prover, state: State, scrutinee: hir.Expr, patterns: Iterable[hir.Pattern]) -> None:
    """No pattern of this arm matched: ends of the scrutinee's range that they cover go."""
    for pattern in sorted(
        (p for p in patterns if isinstance(p, hir.IntRange)), key=lambda p: p.low
    ):
        found = prover.peek(state, scrutinee)
        if state.dead or not found or found[0] is None:
            return
        low, high = found[0]
        if pattern.low <= low <= pattern.high:
            low = pattern.high + 1
        elif pattern.low <= high <= pattern.high:
            high = pattern.low - 1
        refine_bound(prover, state, scrutinee, Interval(low, high))
        state.dead = state.dead or low > high


# ---------------------------------------------------------------- loops


def for_loop(prover: Prover, state: State, stmt: hir.For) -> None:
    if stmt.count == 0:
        return
    ends = (stmt.start, stmt.start + stmt.step * (stmt.count - 1))
    interval = Interval(min(ends), max(ends))

    def round_(head: State) -> None:
        head.bind(stmt.var, [interval])
        prover.scope.loops.append(stmt)
        prover.block(head, stmt.body)
        prover.scope.loops.pop()

    targets = _assigned(state, stmt.body)
    head = invariant(prover, state, targets, round_, stmt.body)
    round_(head)
    state.become(_after(state, head, targets))


def while_loop(prover: Prover, state: State, stmt: hir.While) -> None:
    if stmt.max_count == 0:
        return

    def round_(head: State) -> None:
        prover.expr(head, stmt.cond)
        refine(prover, head, stmt.cond, True)
        prover.block(head, stmt.body)

    targets = _assigned(state, stmt.cond, stmt.body)
    head = invariant(prover, state, targets, round_, stmt.cond, stmt.body)
    state.become(head.copy())
    round_(head)
    # The loop may end by its bound, so the negated condition need not hold after it.
    with prover.looking():
        prover.expr(state, stmt.cond)


def _after(before: State, last: State, targets: Sequence[hir.Var]) -> State:
    """After at least one round: the state at the end of a round, as far as it speaks of outside variables."""
    if last.dead:
        return before.copy()
    after = before.copy()
    for var in targets:
        after.bind(var, last.known(var))
    return after


def _assigned(state: State, *roots: object) -> list[hir.Var]:
    found: dict[hir.Var, None] = {}
    for root in roots:
        for part in walk(root, into_lambdas=False):
            found.update((var, None) for var, _, _ in assigned_ranges(part) if var in state.ranges)
    return list(found)


def invariant(
    prover: Prover, entry: State, targets: Sequence[hir.Var], round_: Callable[[State], None], *body: object
) -> State:
    """A state that holds at the head of every round."""
    head = entry.copy()
    first = {var: entry.known(var) for var in targets}
    for var in targets:
        # What was known about it on entry, beyond its range, may not outlive the first round.
        head.bind(var, full_ranges(var.type) if prover.hasty else first[var])
    if not targets or prover.hasty:
        return head
    thresholds = _thresholds(body)
    by_type = _EXACT_ROUNDS + _WIDENING_ROUNDS - 1
    for attempt in range(by_type + _FULL_ROUNDS):
        grown = _grown(first, _looked(prover, head, targets, round_))
        old = {var: head.ranges[var] for var in targets}
        settled = all(_covers(old[var], grown[var]) for var in targets)
        for var in targets:
            merged = [hull_of(a, b) for a, b in zip(old[var], grown[var])]
            if settled:
                merged = grown[var]  # what the widened head gives is sound again, and narrower
            elif attempt >= _EXACT_ROUNDS:
                merged = [
                    _widened(a, b, kind, () if attempt >= by_type else thresholds)
                    for a, b, kind in zip(old[var], merged, leaf_types(var.type))
                ]
            head.bind(var, merged)
        if settled:
            return head
    for var in targets:
        head.bind(var, full_ranges(var.type))
    return head


def _looked(
    prover: Prover, head: State, targets: Sequence[hir.Var], round_: Callable[[State], None]
) -> dict[hir.Var, tuple[MaybeInterval, ...]]:
    """Ranges of the assigned variables after one round from ``head``; nothing where none ends."""
    trial = head.copy()
    with prover.looking():
        round_(trial)
    return {} if trial.dead else {var: tuple(trial.known(var)) for var in targets}


def _grown(
    first: dict[hir.Var, Ranges], after: dict[hir.Var, tuple[MaybeInterval, ...]]
) -> dict[hir.Var, Ranges]:
    """Ranges at the head: those on entry or those after a round."""
    return {
        var: [hull_of(a, b) for a, b in zip(ranges, after.get(var, ranges))] for var, ranges in first.items()
    }


def _covers(outer: Sequence[MaybeInterval], inner: Sequence[MaybeInterval]) -> bool:
    return all(a is None or b is None or b.within(a) for a, b in zip(outer, inner))


def _widened(
    old: MaybeInterval, new: MaybeInterval, kind: Type, thresholds: Sequence[int]
) -> MaybeInterval:
    """Bounds that moved go on to the next threshold, or to the type's."""
    full = type_interval(kind)
    if old is None or new is None or full is None:
        return full
    low, high = new
    if low < old.low:
        low = max((t for t in thresholds if full.low <= t <= low), default=full.low)
    if high > old.high:
        high = min((t for t in thresholds if high <= t <= full.high), default=full.high)
    return Interval(low, high)


def _thresholds(roots: Iterable[object]) -> list[int]:
    """Scalar constants in the body, and their neighbours: where guards and wraps are likely to hold."""
    found: set[int] = set()
    for root in roots:
        for part in walk(root):
            if isinstance(part, hir.Const) and not isinstance(part.value, tuple) and not shape_of(part.type):
                array = np.asarray(part.value)
                if array.dtype.kind in "iu":
                    value = int(array.item())
                    found.update((value - 1, value, value + 1))
    return sorted(found)
