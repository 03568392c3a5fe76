"""Composites of floats as steps that round on their own; sums are in the default order."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from kera_hw.numerics import composites, floats
from kera_hw.ops.spec import Attrs, Expansion, Typed, V, Writer
from kera_hw.types import FloatType, TensorType, element_type


def _tensor(value: Typed) -> TensorType:
    assert isinstance(value.type, TensorType)
    return value.type


def _float(value: Typed) -> FloatType:
    kind = element_type(value.type)
    assert isinstance(kind, FloatType)
    return kind


def _flat(to: Writer[V], x: V, axis: int) -> tuple[V, int]:
    """All axes as one where the axis is -1."""
    if axis >= 0:
        return x, axis
    return to.op("tensor.reshape", x, shape=(_tensor(x).size,)), 0


def _along(to: Writer[V], reduced: V, like: V, axis: int) -> V:
    """A reduction's result beside every element that it was made from; a scalar goes with all as it is."""
    if not isinstance(reduced.type, TensorType):
        return reduced
    shape = _tensor(like).shape
    kept = (*shape[:axis], 1, *shape[axis + 1 :])
    return to.op("tensor.broadcast", to.op("tensor.reshape", reduced, shape=kept), shape=shape)


def _shaped(to: Writer[V], result: V, like: V) -> V:
    if _tensor(result).shape == _tensor(like).shape:
        return result
    return to.op("tensor.reshape", result, shape=_tensor(like).shape)


def softmax(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V]:
    """e = exp(x - max x), then e / sum e."""
    x, axis = _flat(to, args[0], attrs["axis"])
    peak = _along(to, to.op("reduce.max", x, axis=axis), x, axis)
    powers = to.op("floating.exp", to.op("floating.sub", x, peak))
    total = to.op("reduce.sum", powers, axis=axis, order="lanes")
    return (_shaped(to, to.op("floating.div", powers, _along(to, total, x, axis)), args[0]),)


def _scale(to: Writer[V], x: V, eps: V, axis: int) -> V:
    """rsqrt(mean(x * x) + eps), beside every element of x."""
    square = to.op("reduce.mean", to.op("floating.mul", x, x), axis=axis, order="lanes")
    return _along(to, to.op("floating.rsqrt", to.op("floating.add", square, eps)), x, axis)


def layer_norm(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V]:
    """d = x - mean x, then d * rsqrt(mean(d * d) + eps)."""
    x, axis = _flat(to, args[0], attrs["axis"])
    mean = to.op("reduce.mean", x, axis=axis, order="lanes")
    centred = to.op("floating.sub", x, _along(to, mean, x, axis))
    scaled = to.op("floating.mul", centred, _scale(to, centred, args[1], axis))
    return (_shaped(to, scaled, args[0]),)


def rms_norm(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V]:
    """x * rsqrt(mean(x * x) + eps)."""
    x, axis = _flat(to, args[0], attrs["axis"])
    return (_shaped(to, to.op("floating.mul", x, _scale(to, x, args[1], axis)), args[0]),)


def attention(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V]:
    """softmax((q kT) * s, axis 1) v with s the correctly rounded 1 / sqrt(d)."""
    q, k, v = args
    kind = _float(q)
    root = to.constant(kind, composites.inverse_root(_tensor(q).shape[1], kind)[0])
    turned = to.op("tensor.permute", k, axes=(1, 0))
    scores = to.op("floating.mul", to.op("reduce.matmul", q, turned, mul="fused"), root)
    return (to.op("reduce.matmul", to.op("neural.softmax", scores, axis=1), v, mul="fused"),)


def mean(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V]:
    """The sum divided by the count, which is first converted to the element type."""
    x, axis = args[0], int(attrs["axis"])
    count = _tensor(x).size if axis == -1 else _tensor(x).shape[axis]
    kind = element_type(x.type)
    total = to.op("reduce.sum", x, axis=axis, order=attrs["order"])
    if isinstance(kind, FloatType):
        number = to.constant(kind, floats.from_integer(np.array([count]), kind)[0])
        return (to.op("floating.div", total, number),)
    return (to.op("integer.div", total, to.constant(kind, count)),)


EXPANSIONS: Mapping[str, Expansion] = {
    "neural.softmax": softmax,
    "neural.layer_norm": layer_norm,
    "neural.rms_norm": rms_norm,
    "neural.attention": attention,
    "reduce.mean": mean,
}
