"""Order-free reductions and integer contractions, modulo 2^W in the element type."""
from __future__ import annotations

import numpy as np

from kera_hw.numerics.arrays import Array, canonical
from kera_hw.types import IntType

EXACT_FLOAT_LIMIT = 1 << 53


def total(a: Array, axis: int | tuple[int, ...], kind: IntType) -> Array:
    """Sum along array axes, in the storage dtype."""
    return canonical(np.add.reduce(a, axis=axis, dtype=a.dtype), kind)


def product(a: Array, axis: int, kind: IntType) -> Array:
    """Product along an array axis; 1 modulo 2^W where it is empty."""
    return canonical(np.multiply.reduce(a, axis=axis, dtype=a.dtype), kind)


def matmul(a: Array, b: Array, kind: IntType) -> Array:
    """``[..., M, K] x [..., K, N]`` modulo 2^W, in the storage dtype.

    Where every partial sum stays below 2^53 it runs in float64, exactly and therefore in any order.
    """
    if a.size and b.size and a.shape[-1] * _largest(a) * _largest(b) < EXACT_FLOAT_LIMIT:
        exact = np.matmul(a.astype(np.float64), b.astype(np.float64))
        work = np.int64 if a.dtype.kind == "i" else np.uint64
        return canonical(exact.astype(work).astype(a.dtype), kind)
    return canonical(np.matmul(a, b), kind)


def _largest(a: Array) -> int:
    return max(abs(int(a.min())), abs(int(a.max())))


def dot(a: Array, b: Array, kind: IntType) -> Array:
    """Inner product of ``(B, K)`` arrays."""
    return total(a * b, 1, kind)


def windows(x: Array, size: tuple[int, int], stride: int) -> Array:
    """View ``(B, C, OH, OW, KH, KW)`` of the windows of ``(B, C, H, W)``."""
    view = np.lib.stride_tricks.sliding_window_view(x, size, axis=(2, 3))
    return view[:, :, ::stride, ::stride]


def pad_edges(x: Array, count: int, value: int) -> Array:
    """``value`` placed ``count`` wide around the last two axes."""
    if not count:
        return x
    widths = [(0, 0)] * (x.ndim - 2) + [(count, count)] * 2
    return np.pad(x, widths, constant_values=value)


def conv2d(x: Array, w: Array, stride: int, pad: int, kind: IntType) -> Array:
    """``(B, C, H, W)`` with ``(B, O, C, KH, KW)`` to ``(B, O, OH, OW)``, padded with zeros."""
    batch, channels, rows, columns = w.shape[0], w.shape[2], w.shape[3], w.shape[4]
    view = windows(pad_edges(x, pad, 0), (rows, columns), stride)
    height, width = view.shape[2], view.shape[3]
    patches = view.transpose(0, 1, 4, 5, 2, 3).reshape(batch, channels * rows * columns, height * width)
    kernels = w.reshape(batch, w.shape[1], channels * rows * columns)
    return matmul(kernels, patches, kind).reshape(batch, w.shape[1], height, width)
