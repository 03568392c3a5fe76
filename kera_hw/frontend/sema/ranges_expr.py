"""Ranges of expressions."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kera_hw.frontend.sema import hir
from kera_hw.frontend.sema.lower_core import constant_leaves
from kera_hw.frontend.sema.lower_scan import field_range, place_range, step_into
from kera_hw.frontend.sema.ranges_check import check_entries, check_gather, evaluate_entries
from kera_hw.frontend.sema.ranges_core import Prover, full_ranges
from kera_hw.frontend.sema.ranges_float import converted
from kera_hw.frontend.sema.ranges_linear import form_interval, linear
from kera_hw.frontend.sema.ranges_refine import refine
from kera_hw.frontend.sema.ranges_state import Ranges, State, hull_of
from kera_hw.ops.intervals import (
    TRUTH,
    Interval,
    MaybeInterval,
    OpShape,
    apply_rule,
    type_interval,
)
from kera_hw.types import FloatType, IntType, TensorType, TupleType, shape_of

_LINEAR_OPS = frozenset(("integer.add", "integer.sub", "integer.mul", "integer.neg", "bits.shl"))


def known(prover: Prover, state: State, expr: hir.Expr, interval: MaybeInterval) -> MaybeInterval:
    """The interval narrowed by what is known about this very expression."""
    if interval is None or not (state.facts or state.differences):
        return interval
    key = prover.scope.definitions.key(expr)
    return interval if key is None else state.narrowed(key, interval)


def const(prover: Prover, state: State, expr: hir.Const) -> Ranges:
    return [array_interval(value) for value in constant_leaves(expr.value)]


def array_interval(value: Any) -> MaybeInterval:
    array = np.asarray(value)
    if array.dtype.kind not in "iub":
        return None
    return Interval(int(array.min()), int(array.max())) if array.size else Interval(0, 0)


def local(prover: Prover, state: State, expr: hir.Local) -> Ranges:
    ranges = list(state.ranges[expr.var])
    if len(ranges) == 1:
        ranges[0] = known(prover, state, expr, ranges[0])
    return ranges


def project(prover: Prover, state: State, expr: hir.Project) -> Ranges:
    low, high = field_range(expr.base.type, expr.index)
    ranges = prover.expr(state, expr.base)[low:high]
    if len(ranges) == 1:
        ranges[0] = known(prover, state, expr, ranges[0])
    return ranges


# ---------------------------------------------------------------- operations


def op(prover: Prover, state: State, expr: hir.Op) -> Ranges:
    if expr.name == "control.select":
        return [_selected(prover, state, expr.args)[0]]
    args: list[MaybeInterval] = []
    for arg in expr.args:
        found = prover.expr(state, arg)
        args.append(found[0] if found else None)
    if expr.name == "tensor.gather":
        check_gather(prover, state, expr.args[1], args[1], shape_of(expr.args[0].type)[0])
    if isinstance(expr.type, TupleType):
        return full_ranges(expr.type)
    shape = OpShape(tuple(arg.type for arg in expr.args), expr.type, expr.attrs)
    interval = apply_rule(expr.name, args, shape)
    if expr.name == "convert.cast" and isinstance(expr.args[0].type, FloatType):
        interval = converted(expr.args[0], expr.type, prover.scope.definitions.lets) or interval
    if expr.name in _LINEAR_OPS and isinstance(expr.type, IntType):
        interval = _by_form(prover, state, expr, interval)
    return [known(prover, state, expr, interval)]


def _by_form(prover: Prover, state: State, expr: hir.Op, interval: MaybeInterval) -> MaybeInterval:
    """Narrowed by the linear form, where wrapping or known differences make that worthwhile."""
    full = type_interval(expr.type)
    if interval is None or full is None or (interval != full and not state.differences):
        return interval
    if prover.in_form:
        return interval  # forms of atoms of forms would cost a power of the depth
    whole = form_interval(prover, state, linear(prover, state, expr))
    return interval.meet(whole) if whole is not None and whole.within(full) else interval


def _selected(prover: Prover, state: State, args: Sequence[hir.Expr]) -> Ranges:
    """Of `select`: both sides are evaluated, so their indices are proved without the condition, but the
    value comes from the side that the condition picks."""
    cond, yes, no = args
    prover.expr(state, cond)
    sides: list[Ranges] = []
    for side, truth in ((yes, True), (no, False)):
        ranges = prover.expr(state, side)
        taken = state.copy()
        if not shape_of(cond.type):
            refine(prover, taken, cond, truth)
        if not taken.dead:
            sides.append(prover.peek(taken, side) if _shallow(side) else ranges)
    if not sides:
        return full_ranges(yes.type)
    return sides[0] if len(sides) == 1 else _hulls(sides)


def _shallow(expr: hir.Expr) -> bool:
    """Worth a second look under a condition, and cheap enough for one."""
    simple = hir.Local | hir.Const | hir.Project
    return isinstance(expr, simple) or (
        isinstance(expr, hir.Op) and all(isinstance(arg, simple) for arg in expr.args)
    )


def structural(prover: Prover, state: State, expr: hir.Structural) -> Ranges:
    name = expr.name.rsplit(".", 1)[-1]
    if name == "select":
        return _selected(prover, state, expr.args)
    operands = [prover.expr(state, arg) for arg in expr.args]
    if name == "gather":
        indices = operands[1][0] if operands[1] else None
        check_gather(prover, state, expr.args[1], indices, shape_of(expr.args[0].type)[0])
    split = [ranges for ranges, per_leaf in zip(operands, expr.per_leaf) if per_leaf]
    return _hulls(split) if split else full_ranges(expr.type)


def _hulls(columns: Sequence[Ranges]) -> Ranges:
    """Leaf by leaf, the hull over all operands."""
    merged = list(columns[0])
    for ranges in columns[1:]:
        merged = [hull_of(a, b) for a, b in zip(merged, ranges)]
    return merged


# ---------------------------------------------------------------- construction


def aggregate(prover: Prover, state: State, expr: hir.Aggregate) -> Ranges:
    return [interval for item in expr.items for interval in prover.expr(state, item)]


def tensor_lit(prover: Prover, state: State, expr: hir.TensorLit) -> Ranges:
    rows = [prover.expr(state, item) for item in expr.items]
    return _hulls(rows) if rows else full_ranges(expr.type)


def tensor_fill(prover: Prover, state: State, expr: hir.TensorFill) -> Ranges:
    return prover.expr(state, expr.value)


def logical(prover: Prover, state: State, expr: hir.Logical) -> Ranges:
    """The right side is proved where the left one decides nothing."""
    prover.expr(state, expr.lhs)
    right = state.copy()
    refine(prover, right, expr.lhs, expr.op == "and")
    with prover.guarded(expr.lhs, expr.op == "and"):
        prover.expr(right, expr.rhs)
    return [known(prover, state, expr, TRUTH)]


def index(prover: Prover, state: State, expr: hir.Index) -> Ranges:
    ranges = prover.expr(state, expr.base)
    if expr.mode == "proved":
        check_entries(prover, state, expr.base.type, expr.entries, expr)
    else:
        evaluate_entries(prover, state, expr.entries)
    if expr.otherwise is not None:
        ranges = [hull_of(a, b) for a, b in zip(ranges, prover.expr(state, expr.otherwise))]
    if len(ranges) == 1:
        return [known(prover, state, expr, ranges[0])]
    return list(ranges)


# ---------------------------------------------------------------- calls and lambdas


def place_expr(prover: Prover, state: State, expr: hir.PlaceExpr) -> Ranges:
    visit_place(prover, state, expr.place)
    low, high = place_range(expr.place)
    return list(state.ranges[expr.place.root][low:high])


def visit_place(prover: Prover, state: State, place: hir.Place) -> None:
    """Evaluate and prove the indices of a place."""
    kind = place.root.type
    for step in place.path:
        if isinstance(step, hir.IndexStep):
            check_entries(prover, state, kind, step.entries, None)
        kind = step_into(kind, step)


def write_ranges(state: State, place: hir.Place, ranges: Sequence[MaybeInterval]) -> None:
    """An assignment: of whole leaves it replaces what was known, of parts of tensors it joins."""
    low, high = place_range(place)
    partial = any(isinstance(step, hir.IndexStep) for step in place.path)
    old = state.ranges[place.root][low:high]
    state.set_leaves(place.root, low, [hull_of(a, b) for a, b in zip(old, ranges)] if partial else ranges)


def call(prover: Prover, state: State, expr: hir.Call) -> Ranges:
    for arg in expr.args:
        prover.expr(state, arg)
    summary = prover.summaries.get(expr.function)
    lent = [
        arg.place for arg, borrow in zip(expr.args, expr.borrows)
        if borrow == "&mut" and isinstance(arg, hir.PlaceExpr)
    ]
    for position, place in enumerate(lent):
        ranges = full_ranges(place.type) if summary is None else list(summary.borrowed[position])
        write_ranges(state, place, ranges)
    return full_ranges(expr.type) if summary is None else list(summary.result)


def stream_apply(prover: Prover, state: State, expr: hir.StreamApply) -> Ranges:
    for arg in expr.args:
        prover.expr(state, arg)
    summary = prover.summaries.get(expr.stream)
    return full_ranges(expr.type) if summary is None else list(summary.result)


def stream_step(prover: Prover, state: State, expr: hir.StreamStep) -> Ranges:
    for arg in expr.args:
        prover.expr(state, arg)
    summary = prover.summaries.get(expr.stream)
    return full_ranges(expr.type) if summary is None else list(summary.result)


def higher_order(prover: Prover, state: State, expr: hir.HigherOrder) -> Ranges:
    operands = [prover.expr(state, arg) for arg in expr.args]
    inner = state.copy()
    first = expr.args[0].type
    if isinstance(first, TensorType) and 0 in first.shape[: 1 if expr.name in ("reduce", "scan") else None]:
        inner.dead = True  # no element, so the lambda never runs
    if expr.name in ("map", "zip"):
        for param, ranges in zip(expr.body.params, operands):
            inner.bind(param, ranges)
        return prover.expr(inner, expr.body.body)
    return _fold(prover, inner, expr, operands[0], operands[1])


def _fold(prover: Prover, state: State, expr: hir.HigherOrder, items: Ranges, initial: Ranges) -> Ranges:
    """The accumulator: any value of its type, narrowed to what the body can give."""
    acc, item = expr.body.params
    state.bind(item, items)
    state.bind(acc, full_ranges(acc.type))
    if not prover.quiet:
        given = prover.peek(state, expr.body.body)
        state.bind(acc, [hull_of(a, b) for a, b in zip(initial, given)])
    again = prover.expr(state, expr.body.body)
    return [hull_of(a, b) for a, b in zip(initial, again)]
