"""Composite neural operations: one node each, defined by its expansion."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from kera_hw.numerics import composites
from kera_hw.numerics.arrays import Array
from kera_hw.ops.rules import (
    FLOAT,
    Types,
    check_axis,
    check_count,
    check_kind,
    check_same,
    fail,
    float_kind,
    tensor_of,
    title,
)
from kera_hw.ops.spec import Attrs, EvalCall, OpSpec
from kera_hw.types import FloatType, TensorType


def _float_tensor(op: str, types: Types, position: int) -> TensorType:
    tensor = tensor_of(op, types[position])
    check_kind(op, tensor, FLOAT)
    return tensor


def _infer_softmax(types: Types, attrs: Attrs) -> Types:
    op = "neural.softmax"
    check_count(op, types, 1)
    tensor = _float_tensor(op, types, 0)
    _check_axis(op, tensor, attrs["axis"])
    return (tensor,)


def _check_axis(op: str, tensor: TensorType, axis: int) -> None:
    if axis != -1:
        check_axis(op, tensor, axis)
    if (tensor.size if axis == -1 else tensor.shape[axis]) == 0:
        fail(f"{title(op)} takes an axis that is not empty, but got {tensor}.")


def _along(call: EvalCall) -> tuple[Array, int]:
    """The operand and its array axis; all axes merge into one for axis -1."""
    values, axis = call.args[0], call.attrs["axis"]
    return (values.reshape(values.shape[0], -1), 1) if axis == -1 else (values, axis + 1)


def _softmax(call: EvalCall) -> Sequence[Array]:
    values, axis = _along(call)
    return (composites.softmax(values, axis, float_kind(call.arg_types[0])).reshape(call.args[0].shape),)


def _norm(verb: str, doc: str, function: Callable[[Array, Array, int, FloatType], Array]) -> OpSpec:
    op = f"neural.{verb}"

    def infer(types: Types, attrs: Attrs) -> Types:
        check_count(op, types, 2)
        tensor = _float_tensor(op, types, 0)
        check_same(op, tensor.element, types[1])
        _check_axis(op, tensor, attrs["axis"])
        return (tensor,)

    def evaluate(call: EvalCall) -> Sequence[Array]:
        values, axis = _along(call)
        kind = float_kind(call.arg_types[0])
        return (function(values, call.args[1], axis, kind).reshape(call.args[0].shape),)

    return OpSpec(op, doc, infer, evaluate, attrs=("axis",))


def _infer_attention(types: Types, attrs: Attrs) -> Types:
    op = "neural.attention"
    check_count(op, types, 3)
    q, k, v = (_float_tensor(op, types, position) for position in range(3))
    if not len(q.shape) == len(k.shape) == len(v.shape) == 2:
        fail(f"{title(op)} takes three matrices, but got {q}, {k} and {v}.")
    if not q.element == k.element == v.element or not q.space == k.space == v.space:
        fail(f"{title(op)} takes matrices of one element type in one space, but got {q}, {k} and {v}.")
    if q.shape[1] != k.shape[1] or k.shape[0] != v.shape[0]:
        fail(f"{title(op)} takes q [T, d], k [S, d] and v [S, e], but got {q}, {k} and {v}.")
    if not k.shape[0] or not k.shape[1]:
        fail(f"{title(op)} takes keys that are not empty, but got {k}.")
    return (TensorType(q.element, (q.shape[0], v.shape[1]), q.space),)


def _attention(call: EvalCall) -> Sequence[Array]:
    q, k, v = call.args
    return (composites.attention(q, k, v, float_kind(call.arg_types[0])),)


TABLE: tuple[OpSpec, ...] = (
    OpSpec(
        "neural.softmax", "Powers of e divided by their sum, along an axis (-1: all as one).",
        _infer_softmax, _softmax, attrs=("axis",),
    ),
    _norm("layer_norm", "The mean taken away, and scaled to a variance of 1, along an axis (-1: all as one).",
          composites.layer_norm),
    _norm("rms_norm", "Scaled to a mean square of 1, along an axis (-1: all as one).",
          composites.rms_norm),
    OpSpec(
        "neural.attention", "The rows of v weighed by how well those of k fit those of q.",
        _infer_attention, _attention,
    ),
)
