"""Contractions and pooling: rows of the reduce family that take more than one axis."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kera_hw.numerics import contractions, integers, orders, reductions
from kera_hw.numerics.arrays import Array
from kera_hw.ops.rules import (
    NUMBER,
    Kinds,
    Types,
    check_count,
    check_kind,
    check_order,
    check_same,
    fail,
    raw_int,
    tensor_of,
    title,
)
from kera_hw.ops.spec import Attrs, EvalCall, OpSpec
from kera_hw.types import F32, FloatType, IntType, TensorType, Type, element_type

MULS = ("fused", "unfused", "wide")


def _operands(op: str, types: Types, ranks: tuple[int, int]) -> tuple[TensorType, TensorType]:
    check_count(op, types, 2)
    a, b = (tensor_of(op, kind) for kind in types)
    for tensor, rank in zip((a, b), ranks):
        if len(tensor.shape) != rank:
            fail(f"{title(op)} takes a tensor of {rank} axes here, but got {tensor}.")
    element = check_kind(op, a, (IntType, FloatType))
    check_same(op, element, b.element)
    if a.space != b.space:
        fail(f"{title(op)} takes tensors in one memory space, but got {a} and {b}.")
    return a, b


def _check_mul(op: str, element: Type, attrs: Attrs) -> None:
    mul = attrs["mul"]
    if not isinstance(element, FloatType):
        if mul != "":
            fail(f"{title(op)} on {element} is exact modulo 2^W, so it takes no `mul`.")
    elif mul not in MULS:
        fail(f"{title(op)} knows the products {', '.join(MULS)}, and `{mul}` is none of them.")
    elif mul == "wide" and element != F32:
        fail(f"{title(op)} has the `wide` product on f32 only, but got {element}.")


def _infer_dot(types: Types, attrs: Attrs) -> Types:
    op = "reduce.dot"
    a, b = _operands(op, types, (1, 1))
    if a.shape != b.shape:
        fail(f"{title(op)} takes vectors of one length, but got {a} and {b}.")
    _check_mul(op, a.element, attrs)
    check_order(op, a.element, attrs)
    return (a.element,)


def _dot(call: EvalCall) -> Sequence[Array]:
    (a, b), kind = call.args, element_type(call.arg_types[0])
    if isinstance(kind, FloatType):
        return (orders.dot(a, b, call.attrs["mul"], call.attrs["order"], kind),)
    return (reductions.dot(a, b, raw_int(kind)),)


def _infer_matmul(types: Types, attrs: Attrs) -> Types:
    op = "reduce.matmul"
    a, b = _operands(op, types, (2, 2))
    if a.shape[1] != b.shape[0]:
        fail(f"{title(op)} takes [M, K] and [K, N], but got {a} and {b}.")
    _check_mul(op, a.element, attrs)
    return (TensorType(a.element, (a.shape[0], b.shape[1]), a.space),)


def _matmul(call: EvalCall) -> Sequence[Array]:
    (a, b), kind = call.args, element_type(call.arg_types[0])
    if isinstance(kind, FloatType):
        return (contractions.matmul(a, b, call.attrs["mul"], kind),)
    return (reductions.matmul(a, b, raw_int(kind)),)


def _out_extent(op: str, extent: int, size: int, stride: int, pad: int) -> int:
    if extent + 2 * pad < size:
        fail(f"The window of {title(op)} spans {size}, but the padded axis has only {extent + 2 * pad}.")
    return (extent + 2 * pad - size) // stride + 1


def _check_steps(op: str, attrs: Attrs) -> tuple[int, int]:
    stride, pad = attrs["stride"], attrs["pad"]
    if stride < 1 or pad < 0:
        fail(f"{title(op)} takes a stride of at least 1 and a padding of at least 0, not {stride} and {pad}.")
    return stride, pad


def _infer_conv2d(types: Types, attrs: Attrs) -> Types:
    op = "reduce.conv2d"
    x, w = _operands(op, types, (3, 4))
    stride, pad = _check_steps(op, attrs)
    if w.shape[1] != x.shape[0]:
        fail(f"{title(op)} takes [C, H, W] and [O, C, KH, KW], but got {x} and {w}.")
    if 0 in w.shape[2:]:
        fail(f"{title(op)} takes a kernel that is not empty, but got {w}.")
    _check_mul(op, x.element, attrs)
    height, width = (_out_extent(op, x.shape[k + 1], w.shape[k + 2], stride, pad) for k in range(2))
    return (TensorType(x.element, (w.shape[0], height, width), x.space),)


def _conv2d(call: EvalCall) -> Sequence[Array]:
    (x, w), kind = call.args, element_type(call.arg_types[0])
    stride, pad = call.attrs["stride"], call.attrs["pad"]
    if isinstance(kind, FloatType):
        return (contractions.conv2d(x, w, stride, pad, call.attrs["mul"], kind),)
    return (reductions.conv2d(x, w, stride, pad, raw_int(kind)),)


def _infer_pool(op: str, types: Types, attrs: Attrs, kinds: Kinds) -> Types:
    check_count(op, types, 1)
    x = tensor_of(op, types[0])
    check_kind(op, x, kinds)
    stride, pad = _check_steps(op, attrs)
    size = attrs["size"]
    if len(x.shape) != 3 or 0 in x.shape[1:]:
        fail(f"{title(op)} takes a tensor [C, H, W] that is not empty, but got {x}.")
    if size < 1 or pad >= size:
        fail(f"{title(op)} takes a window larger than its padding, but got {size} and {pad}.")
    height, width = (_out_extent(op, extent, size, stride, pad) for extent in x.shape[1:])
    return (TensorType(x.element, (x.shape[0], height, width), x.space),)


def _infer_max_pool(types: Types, attrs: Attrs) -> Types:
    return _infer_pool("reduce.max_pool2d", types, attrs, NUMBER)


def _infer_avg_pool(types: Types, attrs: Attrs) -> Types:
    op = "reduce.avg_pool2d"
    result = _infer_pool(op, types, attrs, (IntType, FloatType))
    element = element_type(types[0])
    if isinstance(element, IntType) and attrs["size"] ** 2 > element.max:
        fail(f"{title(op)} divides by {attrs['size'] ** 2}, which {element} does not hold; widen it first.")
    return result


def _pool_windows(call: EvalCall, filler: int) -> Array:
    size = call.attrs["size"]
    padded = reductions.pad_edges(call.args[0], call.attrs["pad"], filler)
    return reductions.windows(padded, (size, size), call.attrs["stride"])


def _max_pool2d(call: EvalCall) -> Sequence[Array]:
    kind, attrs = element_type(call.arg_types[0]), call.attrs
    if isinstance(kind, FloatType):
        return (contractions.max_pool2d(call.args[0], attrs["size"], attrs["stride"], attrs["pad"], kind),)
    # Padding by the least value takes no part: every window holds at least one real position.
    view = _pool_windows(call, raw_int(call.arg_types[0]).min)
    return (np.maximum.reduce(view, axis=(4, 5)),)


def _avg_pool2d(call: EvalCall) -> Sequence[Array]:
    element, size, attrs = element_type(call.arg_types[0]), call.attrs["size"], call.attrs
    if isinstance(element, FloatType):
        return (contractions.avg_pool2d(call.args[0], size, attrs["stride"], attrs["pad"], element),)
    kind = raw_int(element)
    view = _pool_windows(call, 0)
    sums = reductions.total(view, (4, 5), kind)
    ones = np.ones((1, 1, *call.args[0].shape[2:]), np.int64)
    present = reductions.windows(reductions.pad_edges(ones, attrs["pad"], 0), (size, size), attrs["stride"])
    counts = present.sum(axis=(4, 5)).astype(sums.dtype)
    return (integers.div(sums, np.broadcast_to(counts, sums.shape), kind),)


TABLE: tuple[OpSpec, ...] = (
    OpSpec(
        "reduce.dot", "Inner product of two vectors, modulo 2^W on integers, +0 where empty.",
        _infer_dot, _dot, attrs=("mul", "order"),
    ),
    OpSpec(
        "reduce.matmul", "Product of [M, K] and [K, N], modulo 2^W on integers.",
        _infer_matmul, _matmul, attrs=("mul",),
    ),
    OpSpec(
        "reduce.conv2d", "Correlation of [C, H, W] with kernels [O, C, KH, KW], zeros around.",
        _infer_conv2d, _conv2d, attrs=("mul", "pad", "stride"),
    ),
    OpSpec(
        "reduce.max_pool2d", "The greatest element of each window of [C, H, W]; padding takes no part.",
        _infer_max_pool, _max_pool2d, attrs=("pad", "size", "stride"),
    ),
    OpSpec(
        "reduce.avg_pool2d", "The mean of each window of [C, H, W] over the positions that take part.",
        _infer_avg_pool, _avg_pool2d, attrs=("pad", "size", "stride"),
    ),
)
