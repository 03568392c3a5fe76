"""Neural composites on storage arrays, each the documented expansion into rounded steps.

Sums are in the default order, `lanes`; an axis is an array axis.
"""
from __future__ import annotations

from math import isqrt

import numpy as np

from kera_hw.numerics import contractions, floats, orders
from kera_hw.numerics.arrays import INT64, Array
from kera_hw.numerics.elementary import evaluate
from kera_hw.numerics.rounding import assemble
from kera_hw.types import FloatType


def _kept(reduced: Array, axis: int) -> Array:
    return np.expand_dims(reduced, axis)


def softmax(x: Array, axis: int, kind: FloatType) -> Array:
    """e = exp(x - max x), then e / sum e."""
    peak = _kept(orders.greatest(x, axis, kind), axis)
    powers = evaluate("exp", floats.sub(x, peak, kind), kind)
    return floats.div(powers, _kept(orders.total(powers, axis, "lanes", kind), axis), kind)


def layer_norm(x: Array, eps: Array, axis: int, kind: FloatType) -> Array:
    """d = x - sum x / n, then d * rsqrt(sum(d * d) / n + eps)."""
    centred = floats.sub(x, _kept(orders.mean(x, axis, "lanes", kind), axis), kind)
    return floats.mul(centred, _scale(centred, eps, axis, kind), kind)


def rms_norm(x: Array, eps: Array, axis: int, kind: FloatType) -> Array:
    """x * rsqrt(sum(x * x) / n + eps)."""
    return floats.mul(x, _scale(x, eps, axis, kind), kind)


def _scale(x: Array, eps: Array, axis: int, kind: FloatType) -> Array:
    """rsqrt(mean(x * x) + eps), to go with x."""
    square = _kept(orders.mean(floats.mul(x, x, kind), axis, "lanes", kind), axis)
    return floats.rsqrt(floats.add(square, eps.reshape(-1, *(1,) * (x.ndim - 1)), kind), kind)


def attention(q: Array, k: Array, v: Array, kind: FloatType) -> Array:
    """softmax((q kT) * s, axis 1) v on ``(B, T, d), (B, S, d), (B, S, e)``, s = 1 / sqrt(d)."""
    scores = contractions.matmul(q, k.transpose(0, 2, 1), "fused", kind)
    weights = softmax(floats.mul(scores, inverse_root(q.shape[2], kind), kind), 2, kind)
    return contractions.matmul(weights, v, "fused", kind)


def inverse_root(count: int, kind: FloatType) -> Array:
    """The real 1 / sqrt(count) of a positive integer, rounded once, as an array of one value."""
    places = 64 + count.bit_length()
    root = isqrt((1 << (2 * places)) // count)  # of at least 64 bits
    drop = root.bit_length() - 63
    sticky = int(root * root * count != 1 << (2 * places) or root & ((1 << drop) - 1) != 0)
    word = np.array([root >> drop << 1 | sticky], np.uint64)
    return assemble(np.zeros(1, np.bool_), word, np.array([drop - 1 - places], INT64), kind)
