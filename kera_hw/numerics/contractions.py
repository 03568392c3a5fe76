"""Float contractions and pooling: one sequential chain for each output element.

A chain goes over the contraction index in ascending order (conv2d: input channel, kernel row, kernel column)
and starts at the first product; positions in the padding take no part, and where none does the result is +0.
"""
from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kera_hw.numerics import floats, orders, reductions
from kera_hw.numerics.arrays import Array
from kera_hw.numerics.host import ieee
from kera_hw.types import FloatType, numpy_dtype


@ieee
def matmul(a: Array, b: Array, mul: str, kind: FloatType) -> Array:
    """``(B, M, K) x (B, K, N)``; +0 where K is 0."""
    if a.shape[2] == 0:
        return np.zeros((a.shape[0], a.shape[1], b.shape[2]), numpy_dtype(kind))
    chain = orders.products(kind, mul)
    left, right = chain.load(a), chain.load(b)
    acc = chain.first(left[:, :, 0:1], right[:, 0:1, :])
    for k in range(1, a.shape[2]):
        acc = chain.step(acc, left[:, :, k : k + 1], right[:, k : k + 1, :])
    return chain.finish(acc)


Window = tuple[slice, slice]


def _inside(position: int, extent: int, out_extent: int, stride: int, pad: int) -> tuple[slice, slice]:
    """Output positions whose window has place ``position`` inside the axis, and where that is."""
    first = max(0, -((position - pad) // stride))
    last = min(out_extent - 1, (extent - 1 + pad - position) // stride)
    start = first * stride + position - pad
    count = max(0, last - first + 1)
    return slice(first, first + count), slice(start, start + count * stride, stride) if count else slice(0, 0)


def _places(
    x: Array, size: tuple[int, int], out: tuple[int, int], stride: int, pad: int
) -> Iterator[tuple[int, int, Window, Window]]:
    """For each place in the window, row-major: the output region that has it, and its input region."""
    for i in range(size[0]):
        out_rows, in_rows = _inside(i, x.shape[2], out[0], stride, pad)
        for j in range(size[1]):
            out_columns, in_columns = _inside(j, x.shape[3], out[1], stride, pad)
            yield i, j, (out_rows, out_columns), (in_rows, in_columns)


class _Accumulators:
    """One accumulator an output element, and which of them have started."""

    def __init__(self, chain: orders.Chain, shape: tuple[int, ...], kind: FloatType) -> None:
        self.chain = chain
        self.values = chain.load(np.zeros(shape, numpy_dtype(kind)))
        if not self.values.flags.writeable:
            self.values = self.values.copy()
        self.counts = np.zeros(shape[2:], np.int64)

    def add(self, window: Window, *terms: Array) -> None:
        """Adds a term at every output element of the window."""
        rows, columns = window
        before = self.values[:, :, rows, columns]
        if before.size == 0:
            return
        started = self.counts[window] > 0
        if started.all():
            after = self.chain.step(before, *terms)
        elif not started.any():
            after = self.chain.first(*terms)
        else:
            after = np.where(started, self.chain.step(before, *terms), self.chain.first(*terms))
        self.values[:, :, rows, columns] = after
        self.counts[window] += 1


def _out_extents(x: Array, size: tuple[int, int], stride: int, pad: int) -> tuple[int, int]:
    height, width = ((x.shape[k + 2] + 2 * pad - size[k]) // stride + 1 for k in range(2))
    return height, width


@ieee
def conv2d(x: Array, w: Array, stride: int, pad: int, mul: str, kind: FloatType) -> Array:
    """``(B, C, H, W)`` with ``(B, O, C, KH, KW)`` to ``(B, O, OH, OW)``."""
    size = (w.shape[3], w.shape[4])
    out = _out_extents(x, size, stride, pad)
    chain = orders.products(kind, mul)
    acc = _Accumulators(chain, (w.shape[0], w.shape[1], *out), kind)
    inputs, kernels = chain.load(x), chain.load(w)
    for channel in range(x.shape[1]):
        for i, j, target, (rows, columns) in _places(x, size, out, stride, pad):
            part = inputs[:, channel : channel + 1, rows, columns]
            acc.add(target, part, kernels[:, :, channel, i, j, np.newaxis, np.newaxis])
    return chain.finish(acc.values)


@ieee
def avg_pool2d(x: Array, size: int, stride: int, pad: int, kind: FloatType) -> Array:
    """Sums row-major, divided by how many positions take part, as numbers of the format."""
    out = _out_extents(x, (size, size), stride, pad)
    chain = orders.sums(kind)
    acc = _Accumulators(chain, (*x.shape[:2], *out), kind)
    inputs = chain.load(x)
    for _, _, target, (rows, columns) in _places(x, (size, size), out, stride, pad):
        acc.add(target, inputs[:, :, rows, columns])
    sums = chain.finish(acc.values)
    counts = floats.from_integer(acc.counts, kind)
    return floats.div(sums, np.broadcast_to(counts, sums.shape), kind)


def max_pool2d(x: Array, size: int, stride: int, pad: int, kind: FloatType) -> Array:
    """The greatest of each window; padding takes no part, and no window holds padding alone."""
    keys = floats.ordered(x, kind)
    padded = reductions.pad_edges(keys, pad, int(np.iinfo(keys.dtype).min))
    view = reductions.windows(padded, (size, size), stride)
    return floats.from_ordered(np.maximum.reduce(view, axis=(4, 5)), kind)
