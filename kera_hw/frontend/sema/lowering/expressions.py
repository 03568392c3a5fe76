"""Expressions without control: constants, operations, construction, and data movement leaf by leaf."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kera_hw.frontend.sema.lowering.core import Leaves, Lowering, constant_array, constant_leaves
from kera_hw.frontend.sema.lowering.frame import Frame, is_constant
from kera_hw.frontend.sema.lowering.index import reshaped
from kera_hw.frontend.sema.lowering.observe import lower_print
from kera_hw.frontend.sema.tree import hir
from kera_hw.graph.node import Ref
from kera_hw.types import TensorType, Type, leaf_types, shape_of

# A larger tensor filled with one value stays an operation: its size is no reason for a large program.
_CONSTANT_ELEMENTS = 4096


def lower_const(ctx: Lowering, frame: Frame, expr: hir.Const) -> Leaves:
    values = constant_leaves(expr.value)
    return [ctx.store.constant(kind, value) for kind, value in zip(leaf_types(expr.type), values)]


def lower_op(ctx: Lowering, frame: Frame, expr: hir.Op) -> Leaves:
    if expr.name == "effect.print":
        return lower_print(ctx, frame, expr)
    if expr.name.startswith("effect."):
        verb = expr.name.removeprefix("effect.")
        raise ctx.error("K0502", f"The effect `{verb}` can't be turned into a graph yet.", expr.span)
    if expr.name == "memory.transfer":
        return [
            ctx.store.op("memory.transfer", leaf, **expr.attrs) for leaf in ctx.expr(frame, expr.args[0])
        ]
    args = [ctx.scalar(frame, arg) for arg in expr.args]
    node = ctx.store.node(expr.name, args, expr.attrs)
    return [node.out(index) for index in range(len(node.types))]


def lower_aggregate(ctx: Lowering, frame: Frame, expr: hir.Aggregate) -> Leaves:
    return [leaf for item in expr.items for leaf in ctx.expr(frame, item)]


def lower_logical(ctx: Lowering, frame: Frame, expr: hir.Logical) -> Leaves:
    """Both sides: neither has effects, and every operation is total."""
    lhs, rhs = ctx.scalar(frame, expr.lhs), ctx.scalar(frame, expr.rhs)
    return [ctx.store.op(f"bits.{expr.op}", lhs, rhs)]


def lower_tensor_lit(ctx: Lowering, frame: Frame, expr: hir.TensorLit) -> Leaves:
    rows = [ctx.expr(frame, item) for item in expr.items]
    return [_stacked(ctx, kind, column) for kind, column in zip(leaf_types(expr.type), _columns(expr, rows))]


def _columns(expr: hir.TensorLit, rows: list[Leaves]) -> list[Leaves]:
    return [[row[index] for row in rows] for index in range(len(leaf_types(expr.type)))]


def _stacked(ctx: Lowering, kind: Type, items: Leaves) -> Ref:
    """The items as the outermost axis; constants join into one constant."""
    if all(is_constant(item) for item in items):
        if not items:
            return ctx.zeros(kind)
        return ctx.store.constant(kind, np.stack([constant_array(item) for item in items]))
    return ctx.store.op("tensor.stack", *items)


def lower_tensor_fill(ctx: Lowering, frame: Frame, expr: hir.TensorFill) -> Leaves:
    values = ctx.expr(frame, expr.value)
    return [_filled(ctx, kind, value) for kind, value in zip(leaf_types(expr.type), values)]


def _filled(ctx: Lowering, kind: Type, value: Ref) -> Ref:
    if is_constant(value) and isinstance(kind, TensorType) and kind.size <= _CONSTANT_ELEMENTS:
        return ctx.store.constant(kind, constant_array(value))
    return _broadcast(ctx, value, shape_of(kind))


def _broadcast(ctx: Lowering, value: Ref, shape: tuple[int, ...]) -> Ref:
    return value if shape_of(value.type) == shape else ctx.store.op("tensor.broadcast", value, shape=shape)


# ---------------------------------------------------------------- structural built-ins


def lower_structural(ctx: Lowering, frame: Frame, expr: hir.Structural) -> Leaves:
    """One operation per leaf. A leaf that is itself a tensor has its axes after the value's own."""
    name = expr.name.rsplit(".", 1)[-1]
    operands = [ctx.expr(frame, arg) for arg in expr.args]
    if name == "clone":
        return operands[0]
    found: Leaves = []
    for index, kind in enumerate(leaf_types(expr.type)):
        args = [leaves[index] if split else leaves[0] for leaves, split in zip(operands, expr.per_leaf)]
        inner = shape_of(kind)[len(shape_of(expr.type)):]
        found.append(_structural_leaf(ctx, name, args, expr.attrs, shape_of(kind), inner))
    return found


def _structural_leaf(
    ctx: Lowering, name: str, args: Sequence[Ref], attrs: Any, shape: tuple[int, ...], inner: tuple[int, ...]
) -> Ref:
    extra = len(inner)
    if name == "select":
        return _select(ctx, args, shape)
    if name in ("reshape", "broadcast"):
        return ctx.store.op(f"tensor.{name}", *args, shape=(*attrs["shape"], *inner))
    if name == "permute":
        axes = tuple(attrs["axes"])
        tail = tuple(range(len(axes), len(axes) + extra))
        return ctx.store.op("tensor.permute", *args, axes=axes + tail)
    if name == "pad":
        low, high = (tuple(attrs[key]) + (0,) * extra for key in ("low", "high"))
        return _pad(ctx, args[0], args[1], low, high)
    if name == "transfer":
        return ctx.store.op("memory.transfer", *args, **attrs)
    return ctx.store.op(f"tensor.{name}", *args, **attrs)


def _select(ctx: Lowering, args: Sequence[Ref], shape: tuple[int, ...]) -> Ref:
    """A condition per element reaches every part of its element; a single value stands for every element."""
    cond = args[0]
    own = shape_of(cond.type)
    if own and own != shape:
        cond = reshaped(ctx, cond, own + (1,) * (len(shape) - len(own)))
        cond = _broadcast(ctx, cond, shape)
    values = (_broadcast(ctx, value, shape) if shape_of(value.type) else value for value in args[1:])
    return ctx.store.op("control.select", cond, *values)


def _pad(ctx: Lowering, base: Ref, value: Ref, low: tuple[int, ...], high: tuple[int, ...]) -> Ref:
    if not shape_of(value.type):
        return ctx.store.op("tensor.pad", base, value, low=low, high=high)
    assert isinstance(base.type, TensorType)
    shape = tuple(extent + a + b for extent, a, b in zip(base.type.shape, low, high))
    starts = [ctx.index_constant(start) for start in low]
    return ctx.store.op("tensor.update_slice", _broadcast(ctx, value, shape), base, *starts)
