"""Poolings as reductions of windows: the elements under each gathered beside each other."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from kera_hw.numerics import floats
from kera_hw.numerics.arrays import Array
from kera_hw.ops.expansions.parts import bits_constant, integer
from kera_hw.ops.spec import Attrs, Expansion, Typed, V, Writer
from kera_hw.ops.unrolled import window_places
from kera_hw.types import U32, FloatType, TensorType, Type, numpy_dtype


def _image(x: Typed) -> TensorType:
    assert isinstance(x.type, TensorType)
    return x.type


def _places(image: TensorType, attrs: Attrs) -> Array:
    """``(OH, OW, size * size)``: the places in one channel that each window covers, -1 in the padding."""
    size = attrs["size"]
    found = window_places((1, *image.shape[1:]), (size, size), attrs["stride"], attrs["pad"])
    return found.reshape(*found.shape[:2], size * size)


def _gathered(to: Writer[V], pixels: V, places: Array) -> V:
    """``[C, OH, OW, size * size]`` of ``[places, C]``."""
    chosen = to.constant(TensorType(U32, places.shape, _image(pixels).space), places)
    return to.op("tensor.permute", to.op("tensor.gather", pixels, chosen), axes=(3, 0, 1, 2))


def _pixels(to: Writer[V], x: V) -> V:
    """Channels innermost, one row for each place."""
    channels, height, width = _image(x).shape
    turned = to.op("tensor.permute", x, axes=(1, 2, 0))
    return to.op("tensor.reshape", turned, shape=(height * width, channels))


def max_pool2d(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V]:
    """The maximum of each window, whose places in the padding repeat one inside it."""
    image = _image(args[0])
    size, stride, pad = (attrs[name] for name in ("size", "stride", "pad"))
    # A window reaches at least one real row and column: what lies beyond an edge is that edge once more.
    rows, columns = (_held(extent, size, stride, pad) for extent in image.shape[1:])
    places = rows[:, None, :, None] * image.shape[2] + columns[None, :, None, :]
    windows = _gathered(to, _pixels(to, args[0]), places.reshape(len(rows), len(columns), size * size))
    return (to.op("reduce.max", windows, axis=3),)


def _held(extent: int, size: int, stride: int, pad: int) -> Array:
    """``(outputs, size)``: where each place of each window lies on an axis, held within it."""
    starts = np.arange(0, extent + 2 * pad - size + 1, stride) - pad
    return np.clip(starts[:, None] + np.arange(size), 0, extent - 1)


def avg_pool2d(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V]:
    """The sum of each window, row-major, divided by how many places take part; padding adds nothing."""
    image = _image(args[0])
    kind, places, pixels = image.element, _places(image, attrs), _pixels(to, args[0])
    outside = image.shape[1] * image.shape[2]
    if attrs["pad"]:
        pixels = to.op("tensor.pad", pixels, _nothing(to, kind), high=(1, 0), low=(0, 0))
    windows = _gathered(to, pixels, np.where(places < 0, outside, places))
    is_float = isinstance(kind, FloatType)
    total = to.op("reduce.sum", windows, axis=3, order="sequential" if is_float else "")
    counts = _numbers(to, kind, (places >= 0).sum(axis=2), _image(total))
    return (to.op("floating.div" if is_float else "integer.div", total, counts),)


def _nothing(to: Writer[V], kind: Type) -> V:
    """What changes no sum: -0 of floats."""
    if isinstance(kind, FloatType):
        return bits_constant(to, kind, 1 << (kind.width_bits - 1))
    return integer(to, kind, 0)


def _numbers(to: Writer[V], kind: Type, counts: Array, like: TensorType) -> V:
    """Counts ``(OH, OW)`` in the element type, in every channel."""
    values = floats.from_integer(counts, kind) if isinstance(kind, FloatType) else counts
    if (counts == counts.flat[0]).all():
        return to.constant(kind, values.flat[0])
    plane = to.constant(TensorType(kind, counts.shape, like.space), values.astype(numpy_dtype(kind)))
    return to.op("tensor.broadcast", plane, shape=like.shape)


EXPANSIONS: Mapping[str, Expansion] = {
    "reduce.max_pool2d": max_pool2d,
    "reduce.avg_pool2d": avg_pool2d,
}
