"""`match` as one branch: a selector computed from the patterns, and one region per arm.

An unsigned scrutinee with a short table of literals selects directly; otherwise the selector is a chain of
tests in which the first arm that matches decides.
"""
from __future__ import annotations

from collections.abc import Sequence

from kera_hw.frontend.sema.lowering.control import Arms, bind_pattern
from kera_hw.frontend.sema.lowering.core import Leaves, Lowering
from kera_hw.frontend.sema.lowering.frame import Frame
from kera_hw.frontend.sema.tree import hir
from kera_hw.frontend.sema.tree.walk import field_range, item_types
from kera_hw.graph.node import Ref
from kera_hw.types import BoolType, FixType, IntType, Type

_TABLE_LIMIT = 16


def lower_match(ctx: Lowering, frame: Frame, expr: hir.Match) -> Leaves:
    scrutinee = ctx.expr(frame, expr.scrutinee)
    kind = expr.scrutinee.type
    arms = _reachable(expr.arms, kind)
    if len(arms) == 1:
        bind_pattern(ctx, frame, arms[0].patterns[0], kind, scrutinee)
        return ctx.block(frame, arms[0].body)
    table = _direct_table(arms, kind)
    if table is not None:
        selector = scrutinee[0]
    else:
        selector, table = _selector(ctx, arms, kind, scrutinee)
    lowered = Arms(ctx, frame)
    for arm in arms:
        pattern = arm.patterns[0]
        lowered.add(arm.body, (pattern, kind, scrutinee) if _binds(pattern) else None)
    return lowered.finish(selector, table)


def _binds(pattern: hir.Pattern) -> bool:
    if isinstance(pattern, hir.TuplePattern):
        return any(_binds(item) for item in pattern.items)
    return isinstance(pattern, hir.Binding)


def _reachable(arms: Sequence[hir.Arm], kind: Type) -> list[hir.Arm]:
    """Arms up to the first that always matches."""
    kept: list[hir.Arm] = []
    for arm in arms:
        kept.append(arm)
        if any(_irrefutable(pattern, kind) for pattern in arm.patterns):
            break
    return kept


def _bounds(kind: Type) -> tuple[int, int]:
    """Raw range of a scalar type that patterns can test."""
    if isinstance(kind, BoolType):
        return 0, 1
    raw = kind.raw if isinstance(kind, FixType) else kind
    assert isinstance(raw, IntType), f"patterns on {kind} are rejected by the checker"
    return raw.min, raw.max


def _irrefutable(pattern: hir.Pattern, kind: Type) -> bool:
    if isinstance(pattern, hir.IntRange):
        low, high = _bounds(kind)
        return pattern.low <= low and high <= pattern.high
    if isinstance(pattern, hir.TuplePattern):
        return all(_irrefutable(item, inner) for item, inner in zip(pattern.items, item_types(kind)))
    return True


def _direct_table(arms: Sequence[hir.Arm], kind: Type) -> list[int] | None:
    """Arm of each scrutinee value 0, 1, ... where the last entry also stands for all greater values."""
    if not isinstance(kind, IntType) or kind.signed:
        return None
    limit = min(kind.max, _TABLE_LIMIT)
    table: list[int] = []
    for value in range(limit + 1):
        index = _arm_of(arms, value)
        if index is None:
            return None
        table.append(index)
    if kind.max > limit:
        tested = [
            pattern for arm in arms for pattern in arm.patterns if isinstance(pattern, hir.IntRange)
        ]
        # Beyond the table every value must fall in the last entry's arm.
        if any(limit < pattern.high < kind.max or pattern.low > limit for pattern in tested):
            return None
        if _arm_of(arms, kind.max) != table[-1]:
            return None
    while len(table) > 2 and table[-1] == table[-2]:
        table.pop()
    return table


def _arm_of(arms: Sequence[hir.Arm], value: int) -> int | None:
    for index, arm in enumerate(arms):
        for pattern in arm.patterns:
            if not isinstance(pattern, hir.IntRange) or pattern.low <= value <= pattern.high:
                return index
    return None


def _selector(
    ctx: Lowering, arms: Sequence[hir.Arm], kind: Type, scrutinee: Leaves
) -> tuple[Ref, list[int]]:
    tests = [_arm_test(ctx, arm, kind, scrutinee) for arm in arms[:-1]]
    if len(arms) == 2:
        return tests[0], [1, 0]
    index_type = IntType((len(arms) - 1).bit_length(), False)
    chosen = ctx.store.constant(index_type, len(arms) - 1)
    for index in range(len(tests) - 1, -1, -1):
        chosen = ctx.store.op(
            "control.select", tests[index], ctx.store.constant(index_type, index), chosen
        )
    return chosen, list(range(len(arms)))


def _arm_test(ctx: Lowering, arm: hir.Arm, kind: Type, scrutinee: Leaves) -> Ref:
    tests = [_all(ctx, _tests(ctx, pattern, kind, scrutinee)) for pattern in arm.patterns]
    result = tests[0]
    for test in tests[1:]:
        result = ctx.store.op("bits.or", result, test)
    return result


def _all(ctx: Lowering, tests: Sequence[Ref]) -> Ref:
    result = tests[0]  # a pattern that tests nothing ends the arms, so it is never asked for
    for test in tests[1:]:
        result = ctx.store.op("bits.and", result, test)
    return result


def _tests(ctx: Lowering, pattern: hir.Pattern, kind: Type, leaves: Leaves) -> list[Ref]:
    """Conditions that must all hold for the pattern to match."""
    if isinstance(pattern, hir.TuplePattern):
        found: list[Ref] = []
        for index, (item, inner) in enumerate(zip(pattern.items, item_types(kind))):
            low, high = field_range(kind, index)
            found.extend(_tests(ctx, item, inner, leaves[low:high]))
        return found
    if not isinstance(pattern, hir.IntRange):
        return []
    return _range_tests(ctx, pattern, kind, leaves[0])


def _range_tests(ctx: Lowering, pattern: hir.IntRange, kind: Type, leaf: Ref) -> list[Ref]:
    low, high = _bounds(kind)
    if isinstance(kind, BoolType):
        if (pattern.low, pattern.high) == (0, 1):
            return []
        return [leaf if pattern.low == 1 else ctx.store.op("bits.not", leaf)]
    if pattern.low == pattern.high:
        return [ctx.store.op("compare.eq", leaf, ctx.store.constant(kind, pattern.low))]
    tests: list[Ref] = []
    if pattern.low > low:
        tests.append(ctx.store.op("compare.ge", leaf, ctx.store.constant(kind, pattern.low)))
    if pattern.high < high:
        tests.append(ctx.store.op("compare.le", leaf, ctx.store.constant(kind, pattern.high)))
    return tests
