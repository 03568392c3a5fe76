"""Data movement on batch arrays: clamped indexing, slicing and updating; works for every dtype.

Indices are scalar batches ``(B,)`` of any integer dtype, one per axis. Where the layout shows that every
lane has the same index, a view replaces a gather.
"""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kera_hw.numerics.arrays import Array, uniform

Position = int | Array


def clamped(index: Array, limit: int) -> Position:
    """An index clamped to ``[0, limit]``: one int where all lanes agree, else an intp array."""
    single = uniform(index)
    if single is not None:
        return min(max(single, 0), limit)
    return clamped_array(index, limit)


def clamped_array(index: Array, limit: int) -> Array:
    """Indices of any integer dtype and shape clamped to ``[0, limit]``, as intp."""
    if limit < np.iinfo(index.dtype).max:
        index = np.minimum(index, index.dtype.type(limit))
    if index.dtype.kind == "i":
        index = np.maximum(index, index.dtype.type(0))
    return index.astype(np.intp)


def _lanes(batch: int, rank: int) -> Array:
    return np.arange(batch).reshape(batch, *(1,) * rank)


def index(a: Array, indices: Sequence[Array]) -> Array:
    """One element a lane; zero where an axis is empty."""
    if 0 in a.shape[1:]:
        return np.zeros(a.shape[0], a.dtype)
    places = [clamped(i, extent - 1) for i, extent in zip(indices, a.shape[1:])]
    if all(isinstance(place, int) for place in places):
        return a[(slice(None), *places)]
    return a[(_lanes(a.shape[0], 0), *places)]


def update(a: Array, value: Array, indices: Sequence[Array], in_place: bool = False) -> Array:
    """A copy (or the array itself) with one element a lane replaced; an empty tensor stays as it is."""
    if 0 in a.shape[1:]:
        return a
    out = a if in_place else a.copy()
    places = [clamped(i, extent - 1) for i, extent in zip(indices, a.shape[1:])]
    if all(isinstance(place, int) for place in places):
        out[(slice(None), *places)] = value
    else:
        out[(_lanes(a.shape[0], 0), *places)] = value
    return out


def _window(a: Array, sizes: Sequence[int], starts: Sequence[Array]) -> tuple[slice | Array, ...]:
    """What selects a window of ``sizes`` in each lane: slices, or index arrays that broadcast."""
    rank = len(sizes)
    places = [clamped(start, extent - size) for start, extent, size in zip(starts, a.shape[1:], sizes)]
    if all(isinstance(place, int) for place in places):
        return (slice(None), *(slice(p, p + size) for p, size in zip(places, sizes)))
    found: list[slice | Array] = [_lanes(a.shape[0], rank)]
    for axis, (place, size) in enumerate(zip(places, sizes)):
        steps = np.arange(size).reshape(1, *(size if k == axis else 1 for k in range(rank)))
        first = place if isinstance(place, int) else place.reshape(-1, *(1,) * rank)
        found.append(first + steps)
    return tuple(found)


def slice_window(a: Array, sizes: Sequence[int], starts: Sequence[Array]) -> Array:
    """A window of static sizes whose start is clamped so that it fits."""
    return a[_window(a, sizes, starts)]


def update_window(a: Array, patch: Array, starts: Sequence[Array], in_place: bool = False) -> Array:
    """A copy (or the array itself) with a window replaced by ``patch``."""
    out = a if in_place else a.copy()
    out[_window(a, patch.shape[1:], starts)] = patch
    return out


def gather(a: Array, indices: Array) -> Array:
    """Rows of axis 0 by clamped indices; zeros where that axis is empty."""
    if a.shape[1] == 0:
        return np.zeros((*indices.shape, *a.shape[2:]), a.dtype)
    places = clamped_array(indices, a.shape[1] - 1)
    return a[_lanes(a.shape[0], indices.ndim - 1), places]


def pad(a: Array, value: Array, low: Sequence[int], high: Sequence[int]) -> Array:
    """``a`` with ``low`` and ``high`` positions of ``value`` around it, axis by axis."""
    extents = [lo + extent + hi for lo, extent, hi in zip(low, a.shape[1:], high)]
    out = np.empty((a.shape[0], *extents), a.dtype)
    out[...] = value.reshape(-1, *(1,) * len(extents))
    out[(slice(None), *(slice(lo, lo + extent) for lo, extent in zip(low, a.shape[1:])))] = a
    return out


def broadcast(a: Array, shape: Sequence[int]) -> Array:
    """The trailing axes aligned and stretched to ``shape``."""
    missing = len(shape) - (a.ndim - 1)
    aligned = a.reshape(a.shape[0], *(1,) * missing, *a.shape[1:])
    return np.broadcast_to(aligned, (a.shape[0], *shape))


def shift_in(a: Array, last: Array) -> Array:
    """Axis 0 moved down by one, ``last`` appended; an empty axis stays empty."""
    if a.shape[1] == 0:
        return a
    out = np.empty(a.shape, a.dtype)
    out[:, :-1] = a[:, 1:]
    out[:, -1] = last
    return out
