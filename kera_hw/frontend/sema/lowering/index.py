"""Reading and writing parts of tensors: indices, slices, and places to assign to."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kera_hw.frontend.sema.lowering.core import Leaves, Lowering
from kera_hw.frontend.sema.lowering.frame import Frame
from kera_hw.frontend.sema.tree import hir
from kera_hw.frontend.sema.tree.walk import field_range, place_range
from kera_hw.graph.node import Ref
from kera_hw.types import BOOL, IntType, TensorType, Type, leaf_types, shape_of


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of an index. ``length`` None: an index, which drops the axis."""

    start: Ref
    length: int | None = None


@dataclass(frozen=True, slots=True)
class _Window:
    """Where a (partial) index falls in one leaf tensor."""

    starts: tuple[Ref, ...]
    sizes: tuple[int, ...]
    shape: tuple[int, ...]  # of what is selected: indexed axes gone

    def whole(self, extents: tuple[int, ...]) -> bool:
        return self.sizes == extents


def lower_entries(
    ctx: Lowering, frame: Frame, entries: Sequence[hir.Expr | hir.Slice]
) -> tuple[Entry, ...]:
    return tuple(
        Entry(
            ctx.index_constant(0) if entry.start is None else ctx.scalar(frame, entry.start), entry.length,
        )
        if isinstance(entry, hir.Slice)
        else Entry(ctx.scalar(frame, entry))
        for entry in entries
    )


def _is_scalar_index(base: Ref, entries: Sequence[Entry]) -> bool:
    return len(entries) == len(shape_of(base.type)) and all(entry.length is None for entry in entries)


def _window(ctx: Lowering, extents: tuple[int, ...], entries: Sequence[Entry]) -> _Window:
    zero = ctx.index_constant(0)
    starts: list[Ref] = []
    sizes: list[int] = []
    shape: list[int] = []
    for axis, extent in enumerate(extents):
        entry = entries[axis] if axis < len(entries) else Entry(zero, extent)
        starts.append(entry.start)
        sizes.append(1 if entry.length is None else entry.length)
        if entry.length is not None:
            shape.append(entry.length)
    return _Window(tuple(starts), tuple(sizes), tuple(shape))


def read_entries(ctx: Lowering, base: Ref, entries: Sequence[Entry]) -> Ref:
    """The part of one leaf tensor that the entries select; out of range clamps, as in the graph."""
    if _is_scalar_index(base, entries):
        return ctx.store.op("tensor.index", base, *(entry.start for entry in entries))
    assert isinstance(base.type, TensorType)
    extents = base.type.shape
    window = _window(ctx, extents, entries)
    if any(size > extent for size, extent in zip(window.sizes, extents)):
        # An index into an empty axis: no element exists, and the total operation gives zero.
        return ctx.zeros(TensorType(base.type.element, window.shape, base.type.space))
    part = base if window.whole(extents) else ctx.store.op(
        "tensor.slice", base, *window.starts, sizes=window.sizes
    )
    return reshaped(ctx, part, window.shape)


def write_entries(ctx: Lowering, base: Ref, entries: Sequence[Entry], value: Ref) -> Ref:
    """The leaf tensor with the selected part replaced."""
    if _is_scalar_index(base, entries):
        return ctx.store.op("tensor.update", base, value, *(entry.start for entry in entries))
    extents = shape_of(base.type)
    window = _window(ctx, extents, entries)
    if any(size > extent for size, extent in zip(window.sizes, extents)):
        return base
    patch = reshaped(ctx, value, window.sizes)
    if window.whole(extents):
        return patch
    return ctx.store.op("tensor.update_slice", base, patch, *window.starts)


def reshaped(ctx: Lowering, ref: Ref, shape: tuple[int, ...]) -> Ref:
    return ref if shape_of(ref.type) == shape else ctx.store.op("tensor.reshape", ref, shape=shape)


# ---------------------------------------------------------------- index expressions


def leaf_range(ctx: Lowering, frame: Frame, expr: hir.Expr, low: int, high: int) -> Leaves:
    """Leaves ``low..high`` of a value, capturing no more of a variable than that."""
    if isinstance(expr, hir.Local):
        return frame.leaves(expr.var, low, high)
    if isinstance(expr, hir.Project):
        offset, _ = field_range(expr.base.type, expr.index)
        return leaf_range(ctx, frame, expr.base, offset + low, offset + high)
    if isinstance(expr, hir.Index):
        return _index_leaves(ctx, frame, expr, low, high)
    return ctx.expr(frame, expr)[low:high]


def lower_local(ctx: Lowering, frame: Frame, expr: hir.Local) -> Leaves:
    return frame.leaves(expr.var)


def lower_project(ctx: Lowering, frame: Frame, expr: hir.Project) -> Leaves:
    low, high = field_range(expr.base.type, expr.index)
    return leaf_range(ctx, frame, expr.base, low, high)


def lower_index(ctx: Lowering, frame: Frame, expr: hir.Index) -> Leaves:
    return _index_leaves(ctx, frame, expr, 0, len(leaf_types(expr.type)))


def _index_leaves(ctx: Lowering, frame: Frame, expr: hir.Index, low: int, high: int) -> Leaves:
    base, entries = expr.base, expr.entries
    # a[i][j] is a[i, j]: one operation, one identity.
    while (
        expr.mode != "at" and isinstance(base, hir.Index) and base.mode == expr.mode
        and not any(isinstance(entry, hir.Slice) for entry in base.entries)
    ):
        base, entries = base.base, (*base.entries, *entries)
    lowered_base = leaf_range(ctx, frame, base, low, high)
    lowered = lower_entries(ctx, frame, entries)
    found = [read_entries(ctx, leaf, lowered) for leaf in lowered_base]
    if expr.mode != "at":
        return found
    assert expr.otherwise is not None
    inside = _in_range(ctx, base.type, lowered)
    return [
        ctx.store.op("control.select", inside, value, other)
        for value, other in zip(found, leaf_range(ctx, frame, expr.otherwise, low, high))
    ]


def _in_range(ctx: Lowering, kind: Type, entries: Sequence[Entry]) -> Ref:
    """Whether every entry lies within its axis."""
    tests: list[Ref] = []
    for entry, extent in zip(entries, shape_of(kind)):
        index_type = entry.start.type
        assert isinstance(index_type, IntType)
        last = extent - (1 if entry.length is None else entry.length)
        if last < 0:
            return ctx.store.constant(BOOL, False)
        if index_type.min < 0:
            tests.append(
                ctx.store.op("compare.ge", entry.start, ctx.store.constant(index_type, 0))
            )
        if index_type.max > last:
            tests.append(
                ctx.store.op("compare.le", entry.start, ctx.store.constant(index_type, last))
            )
    if not tests:
        return ctx.store.constant(BOOL, True)
    inside = tests[0]
    for test in tests[1:]:
        inside = ctx.store.op("bits.and", inside, test)
    return inside


# ---------------------------------------------------------------- places


@dataclass(frozen=True, slots=True)
class ResolvedPlace:
    """A place whose index expressions have been evaluated, once."""

    root: hir.Var
    low: int
    high: int
    steps: tuple[tuple[Entry, ...], ...]
    type: Type


def resolve_place(ctx: Lowering, frame: Frame, place: hir.Place) -> ResolvedPlace:
    low, high = place_range(place)
    steps: list[tuple[Entry, ...]] = []
    for step in place.path:
        if isinstance(step, hir.IndexStep):
            entries = lower_entries(ctx, frame, step.entries)
            # Consecutive plain indices (also across a field) address the same leaf tensor: one update.
            if steps and all(entry.length is None for entry in steps[-1]):
                steps[-1] = (*steps[-1], *entries)
            else:
                steps.append(entries)
    return ResolvedPlace(place.root, low, high, tuple(steps), place.type)


def read_place(ctx: Lowering, frame: Frame, place: ResolvedPlace) -> Leaves:
    leaves = frame.leaves(place.root, place.low, place.high)
    for step in place.steps:
        leaves = [read_entries(ctx, leaf, step) for leaf in leaves]
    return leaves


def write_place(ctx: Lowering, frame: Frame, place: ResolvedPlace, value: Leaves) -> None:
    """Assign: read-modify-write from the innermost step outwards."""
    updated = value
    if place.steps:
        old_leaves = frame.leaves(place.root, place.low, place.high)
        updated = [_written(ctx, old, place.steps, new) for old, new in zip(old_leaves, value)]
    else:
        ctx.name(place.type, place.root.name, value)
    frame.assign(place.root, place.low, updated)


def _written(ctx: Lowering, old: Ref, steps: Sequence[tuple[Entry, ...]], new: Ref) -> Ref:
    if not steps:
        return new
    inner = _written(ctx, read_entries(ctx, old, steps[0]), steps[1:], new) if len(steps) > 1 else new
    return write_entries(ctx, old, steps[0], inner)


def lower_place_expr(ctx: Lowering, frame: Frame, expr: hir.PlaceExpr) -> Leaves:
    return read_place(ctx, frame, resolve_place(ctx, frame, expr.place))
