"""Data movement: indexing, slicing, reshaping and building tensors of any scalar type."""
from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from kera_hw.numerics import floats, tensors
from kera_hw.numerics.arrays import Array, wrap
from kera_hw.ops import shaping
from kera_hw.ops.rules import Types, check_count, check_format, check_kind, fail, title
from kera_hw.ops.spec import Attrs, EvalCall, InferRule, OpSpec, Trait
from kera_hw.types import FixType, FloatType, IntType, TensorType, Type


def _infer_iota(types: Types, attrs: Attrs) -> Types:
    op = "tensor.iota"
    check_count(op, types, 0)
    element = check_kind(op, attrs["type"], (IntType, FixType, FloatType))
    if element != attrs["type"]:
        fail(f"{title(op)} counts in a scalar type, but got {attrs['type']}.")
    check_format(op, element)
    if attrs["size"] < 0:
        fail(f"{title(op)} takes a size of at least 0, but got {attrs['size']}.")
    return (TensorType(element, (attrs["size"],)),)


def _iota(call: EvalCall) -> Sequence[Array]:
    kind: Type = call.attrs["type"]
    counts: Array = np.arange(call.attrs["size"], dtype=np.uint64)
    if isinstance(kind, FloatType):
        values = floats.from_integer(counts, kind)
    elif isinstance(kind, FixType):
        values = wrap(counts << np.uint64(kind.fraction_bits), kind.raw)
    else:
        assert isinstance(kind, IntType)
        values = wrap(counts, kind)
    return (np.broadcast_to(values, (call.context.batch, *values.shape)),)


def _reshape(call: EvalCall) -> Sequence[Array]:
    return (call.args[0].reshape(call.args[0].shape[0], *call.attrs["shape"]),)


def _permute(call: EvalCall) -> Sequence[Array]:
    return (call.args[0].transpose(0, *(axis + 1 for axis in call.attrs["axes"])),)


def _broadcast(call: EvalCall) -> Sequence[Array]:
    return (tensors.broadcast(call.args[0], call.attrs["shape"]),)


def _concat(call: EvalCall) -> Sequence[Array]:
    return (np.concatenate(call.args, axis=call.attrs["axis"] + 1),)


def _reverse(call: EvalCall) -> Sequence[Array]:
    return (np.flip(call.args[0], call.attrs["axis"] + 1),)


def _stack(call: EvalCall) -> Sequence[Array]:
    return (np.stack(call.args, axis=1),)


def _index(call: EvalCall) -> Sequence[Array]:
    return (tensors.index(call.args[0], call.args[1:]),)


def _slice(call: EvalCall) -> Sequence[Array]:
    return (tensors.slice_window(call.args[0], call.attrs["sizes"], call.args[1:]),)


def _update(call: EvalCall) -> Sequence[Array]:
    return (tensors.update(call.args[0], call.args[1], call.args[2:], call.reusable),)


def _update_slice(call: EvalCall) -> Sequence[Array]:
    return (tensors.update_window(call.args[0], call.args[1], call.args[2:], call.reusable),)


def _gather(call: EvalCall) -> Sequence[Array]:
    return (tensors.gather(call.args[0], call.args[1]),)


def _pad(call: EvalCall) -> Sequence[Array]:
    return (tensors.pad(call.args[0], call.args[1], call.attrs["low"], call.attrs["high"]),)


def _shift_in(call: EvalCall) -> Sequence[Array]:
    return (tensors.shift_in(call.args[0], call.args[1]),)


_S = frozenset({Trait.STRUCTURAL})


def _row(
    verb: str, doc: str, infer: InferRule, evaluate: Callable[[EvalCall], Sequence[Array]], *attrs: str
) -> OpSpec:
    return OpSpec(f"tensor.{verb}", doc, infer, evaluate, _S, attrs=attrs)


TABLE: tuple[OpSpec, ...] = (
    _row(
        "index", "One element; each index clamps to its axis, and an empty tensor gives zero.",
        shaping.infer_index, _index,
    ),
    _row(
        "slice", "A window of static sizes; each start clamps so that the window fits.",
        shaping.infer_slice, _slice, "sizes",
    ),
    _row(
        "update", "The tensor with one element replaced; each index clamps to its axis.",
        shaping.infer_update, _update,
    ),
    _row(
        "update_slice", "The tensor with a window replaced; each start clamps so that the window fits.",
        shaping.infer_update_slice, _update_slice,
    ),
    _row("reshape", "The same elements, row-major, in another shape.",
         shaping.infer_reshape, _reshape, "shape"),
    _row("permute", "Axis k of the result is axis axes[k] of the operand.",
         shaping.infer_permute, _permute, "axes"),
    _row(
        "broadcast", "A scalar or tensor stretched to a shape, trailing axes aligned.",
        shaping.infer_broadcast, _broadcast, "shape",
    ),
    _row("concat", "Tensors joined along an axis.", shaping.infer_concat, _concat, "axis"),
    _row("pad", "A value placed around the tensor, so many before and after on each axis.",
         shaping.infer_pad, _pad, "high", "low"),
    OpSpec(
        "tensor.reverse", "The elements in the opposite order along an axis.",
        shaping.infer_reverse, _reverse, _S | {Trait.INVOLUTION}, attrs=("axis",),
    ),
    _row("gather", "Rows of axis 0 by a tensor of indices, each clamped.", shaping.infer_gather, _gather),
    OpSpec(
        "tensor.iota", "0, 1, 2, ... as values of the type; integers and formats wrap, floats round.",
        _infer_iota, _iota, _S, attrs=("size", "type"),
    ),
    _row("stack", "Values of one type along a new outer axis.", shaping.infer_stack, _stack),
    _row("shift_in", "Axis 0 without its first element, with a new last one.",
         shaping.infer_shift_in, _shift_in),
)
