"""Indices made of loop variables, constants and immutable locals computed from these: evaluated outright.

Such an index is known in each iteration. It is lowered like any expression, as a function of the loop
variables in it, and run by the reference evaluator for all iterations at once; guards of the same kind
that dominate it select the iterations that count.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kera_hw.frontend.sema.constants.cost import RegionCost
from kera_hw.frontend.sema.lowering.core import FailedCallee, LowerError
from kera_hw.frontend.sema.lowering.frame import Frame
from kera_hw.frontend.sema.lowering.whole import new_lowering
from kera_hw.frontend.sema.ranges.core import Guard, Scope
from kera_hw.frontend.sema.tree import hir
from kera_hw.frontend.sema.tree.walk import bound_vars, walk
from kera_hw.graph.node import Region
from kera_hw.interp import run_region
from kera_hw.ops.intervals import Interval
from kera_hw.ops.spec import Array
from kera_hw.support import SourceFile
from kera_hw.types import IntType, numpy_dtype

MAX_POINTS = 1 << 22
MAX_KNOWN = 1 << 20  # iterations in which the bounds of a loop are worked out
_MAX_WORK = 1 << 28  # elements computed over all iterations
_CHUNK_ELEMENTS = 1 << 18  # elements of the largest value, over the iterations evaluated at once


@dataclass(frozen=True, slots=True)
class Points:
    """Range of the index over all iterations that reach it (None: none does), and an iteration outside
    the allowed range: the index there, and the loop variables' values."""

    interval: Interval | None
    bad: tuple[int, tuple[tuple[str, int], ...]] | None


@dataclass(frozen=True, slots=True)
class _Closure:
    """What an expression is computed from."""

    loops: frozenset[int]  # positions in the scope's loops
    lets: tuple[hir.Let, ...]  # in dependency order


def free_vars(root: Any) -> Iterator[hir.Var]:
    """Variables that an expression uses and does not itself bind."""
    used: dict[hir.Var, None] = {}
    bound: set[hir.Var] = set()
    for part in walk(root):
        if isinstance(part, hir.Local):
            used[part.var] = None
        elif isinstance(part, hir.PlaceExpr | hir.Assign):
            used[part.place.root] = None
        elif isinstance(part, hir.StreamStep):
            used[part.instance] = None
        elif isinstance(part, hir.Let):
            bound.update(bound_vars(part.pattern))
        elif isinstance(part, hir.For):
            bound.add(part.var)
        elif isinstance(part, hir.HigherOrder):
            bound.update(part.body.params)
        elif isinstance(part, hir.Match):
            for arm in part.arms:
                for pattern in arm.patterns:
                    bound.update(bound_vars(pattern))
    yield from (var for var in used if var not in bound)


def _closure(scope: Scope, expr: hir.Expr) -> _Closure | None:
    """None where the expression depends on anything not known in each iteration."""
    loop_of = {stmt.var: position for position, stmt in enumerate(scope.loops)}
    loops: set[int] = set()
    lets: dict[int, hir.Let] = {}

    def visit(part: hir.Expr) -> bool:
        for var in free_vars(part):
            if var in loop_of:
                loops.add(loop_of[var])
                continue
            stmt = scope.lets.get(var)
            if stmt is None:
                return False
            if id(stmt) not in lets:
                if not visit(stmt.value):
                    return False
                lets[id(stmt)] = stmt
        return True

    return _Closure(frozenset(loops), tuple(lets.values())) if visit(expr) else None


def evaluate_points(scope: Scope, index: hir.Expr, allowed: Interval) -> Points | None:
    """The index in every iteration of the loops it depends on; None where it is not so computed, where
    there are more than ``MAX_POINTS`` iterations, or where it needs what can't be evaluated yet."""
    own = _closure(scope, index)
    if own is None:
        return None
    guards = [(guard, found) for guard in scope.guards if (found := _closure(scope, guard.cond)) is not None]
    everything = own.loops.union(*(found.loops for _, found in guards))
    if _count(scope, everything) > MAX_POINTS:
        guards = [(guard, found) for guard, found in guards if found.loops <= own.loops]
        everything = own.loops
        if _count(scope, everything) > MAX_POINTS:
            return None
    loops = [scope.loops[position] for position in sorted(everything)]
    lets = {id(let): let for closure in (own, *(found for _, found in guards)) for let in closure.lets}
    file = scope.function.file if scope.function is not None else None
    exprs = (index, *(guard.cond for guard, _ in guards))
    region = _region(file, loops, list(lets.values()), exprs)
    if region is None:
        return None
    cost = RegionCost()
    if cost.work(region) * _count(scope, everything) > _MAX_WORK or cost.largest(region) > _CHUNK_ELEMENTS:
        return None
    chunk = max(1, _CHUNK_ELEMENTS // cost.largest(region))
    return _run(region, loops, [guard for guard, _ in guards], allowed, chunk)


def known_values(scope: Scope, exprs: Sequence[hir.Expr], file: SourceFile) -> list[list[int]] | None:
    """The values of integer expressions in every iteration of the loops that any of them depends on, one
    column each, less those that a guard rules out; None where an expression is not so computed, or where
    that would take too long."""
    closures: list[_Closure] = []
    for expr in exprs:
        found = _closure(scope, expr)
        if found is None:
            return None
        closures.append(found)
    positions = frozenset[int]().union(*(found.loops for found in closures))
    guards = [(guard, found) for guard in scope.guards if (found := _closure(scope, guard.cond)) is not None]
    guards = [(guard, found) for guard, found in guards if found.loops <= positions]
    closures.extend(found for _, found in guards)
    count = _count(scope, positions)
    loops = [scope.loops[position] for position in sorted(positions)]
    lets = {id(let): let for found in closures for let in found.lets}
    region = _region(file, loops, list(lets.values()), [*exprs, *(guard.cond for guard, _ in guards)])
    if region is None or count == 0:
        return None if count else [[] for _ in exprs]
    cost = RegionCost()
    if count > MAX_KNOWN or cost.work(region) * count > _MAX_WORK or cost.largest(region) * count > _MAX_WORK:
        return None
    columns = run_region(region, _loop_values(loops, np.arange(count)), count)
    reached = np.ones(count, np.bool_)
    for (guard, _), held in zip(guards, columns[len(exprs):]):
        reached &= np.asarray(held) == guard.truth
    return [[int(value) for value in np.asarray(column)[reached]] for column in columns[:len(exprs)]]


def unknown_var(scope: Scope, expr: hir.Expr) -> hir.Var | None:
    """A variable that keeps an expression from being known in each iteration."""
    loops = {stmt.var for stmt in scope.loops}
    seen: set[hir.Var] = set()
    stack = [expr]
    while stack:
        for var in free_vars(stack.pop()):
            if var in loops or var in seen:
                continue
            seen.add(var)
            stmt = scope.lets.get(var)
            if stmt is None:
                return var
            stack.append(stmt.value)
    return None


def _count(scope: Scope, positions: frozenset[int]) -> int:
    count = 1
    for position in positions:
        count *= scope.loops[position].count
    return count


def _region(
    file: SourceFile | None, loops: Sequence[hir.For], lets: Sequence[hir.Let], exprs: Sequence[hir.Expr]
) -> Region | None:
    """(loop variables) -> (values of the expressions)."""
    ctx = new_lowering()
    if file is not None:
        ctx.file = file
    frame = Frame(ctx.store, [stmt.var.type for stmt in loops])
    for position, stmt in enumerate(loops):
        frame.bind(stmt.var, [ctx.store.param(position, stmt.var.type)])
    try:
        for let in lets:
            ctx.stmt(frame, let)
        results = [ctx.scalar(frame, expr) for expr in exprs]
    except (LowerError, FailedCallee):
        return None
    region = frame.region(results)
    return region


def _run(
    region: Region, loops: Sequence[hir.For], guards: Sequence[Guard], allowed: Interval, chunk: int
) -> Points:
    total = int(np.prod([stmt.count for stmt in loops], dtype=np.int64))
    found: Interval | None = None
    for first in range(0, total, chunk):
        numbers = np.arange(first, min(first + chunk, total))
        values = _loop_values(loops, numbers)
        index, *conds = run_region(region, values, len(numbers))
        reached = np.ones(len(numbers), np.bool_)
        for guard, cond in zip(guards, conds):
            reached &= np.asarray(cond) == guard.truth
        hit = np.asarray(index)[reached]
        if hit.size == 0:
            continue
        interval = Interval(int(hit.min()), int(hit.max()))
        found = interval if found is None else found.hull(interval)
        if not interval.within(allowed):
            return Points(found, _first_bad(loops, values, reached, np.asarray(index), allowed))
    return Points(found, None)


def _loop_values(loops: Sequence[hir.For], numbers: Array) -> list[Array]:
    """The loop variables in the iterations of the given numbers, the innermost loop running fastest."""
    values: list[Array] = []
    rest = numbers
    for stmt in reversed(loops):
        assert isinstance(stmt.var.type, IntType)
        position, rest = rest % stmt.count, rest // stmt.count
        # Python integers where 64 bits of either sign might not hold the values on the way.
        exact = stmt.start + position.astype(object) * stmt.step
        values.append(exact.astype(numpy_dtype(stmt.var.type)))
    return values[::-1]


def _first_bad(
    loops: Sequence[hir.For], values: Sequence[Array], reached: Array, index: Array, allowed: Interval
) -> tuple[int, tuple[tuple[str, int], ...]]:
    flat = index.reshape(len(index), -1)
    outside = (flat < allowed.low) | (flat > allowed.high)
    lane = int(np.argmax(outside.any(axis=1) & reached))
    value = int(flat[lane][np.argmax(outside[lane])])
    return value, tuple((stmt.var.name, int(column[lane])) for stmt, column in zip(loops, values))
