"""Interval rules of operations that read or make tensors: one interval stands for all elements."""
from __future__ import annotations

from collections.abc import Sequence

from kera_hw.ops.core import decode_constant
from kera_hw.ops.intervals.interval import Interval, MaybeInterval, OpShape, fitted, type_interval
from kera_hw.ops.intervals.scalar import full_interval, mul, truncated
from kera_hw.types import TensorType, Type, shape_of

_MOST_FACTORS = 64
"""A product of more factors than this that are not all -1, 0 or 1 fits no type."""


def constant(_: Sequence[Interval], shape: OpShape) -> MaybeInterval:
    """From the least to the greatest element that the constant holds."""
    kind: Type = shape.result
    full = type_interval(kind)
    if full is None or 0 in shape_of(kind):
        return full
    values = decode_constant(kind, shape.attrs["value"])
    return Interval(int(values.min()), int(values.max()))


def keep(args: Sequence[Interval], _: OpShape) -> Interval:
    """Every element of the result is one of the first operand."""
    return args[0]


def element(args: Sequence[Interval], shape: OpShape) -> MaybeInterval:
    """An element of the first operand, or the zero that an empty tensor gives."""
    return None if 0 in shape_of(shape.arg_types[0]) else args[0]


def hull(args: Sequence[Interval], _: OpShape) -> MaybeInterval:
    """An element of any operand."""
    if not args:
        return None
    return Interval(min(a.low for a in args), max(a.high for a in args))


def replace(args: Sequence[Interval], _: OpShape) -> Interval:
    """An element of the first operand, or of what is put into it."""
    return args[0].hull(args[1])


def _extent(shape: OpShape) -> int:
    """How many elements a reduction takes together; axis -1 is all of them."""
    kind, axis = shape.arg_types[0], int(shape.attrs["axis"])
    assert isinstance(kind, TensorType)
    return kind.size if axis < 0 else kind.shape[axis]


def position(_: Sequence[Interval], shape: OpShape) -> Interval:
    return Interval(0, max(0, _extent(shape) - 1))


def every(args: Sequence[Interval], shape: OpShape) -> Interval:
    return Interval(args[0].low, args[0].high if _extent(shape) else 1)


def some(args: Sequence[Interval], shape: OpShape) -> Interval:
    return Interval(args[0].low if _extent(shape) else 0, args[0].high)


def total(args: Sequence[Interval], shape: OpShape) -> Interval:
    count = _extent(shape)
    return Interval(args[0].low * count, args[0].high * count)


def product(args: Sequence[Interval], shape: OpShape) -> MaybeInterval:
    (a,), count, found = args, _extent(shape), Interval(1, 1)
    if a.within(Interval(-1, 1)):
        count = min(count, 2 + count % 2)  # powers of -1 repeat
    if count > _MOST_FACTORS:
        return None
    for _ in range(count):
        values = [x * y for x in a for y in found]
        found = Interval(min(values), max(values))
    return found


def mean(args: Sequence[Interval], shape: OpShape) -> MaybeInterval:
    """The sum, wrapped, divided by the count, truncated."""
    count, sums = _extent(shape), fitted(total(args, shape), shape.result)
    if count == 0 or sums is None:
        return None
    return Interval(truncated(sums.low, count), truncated(sums.high, count))


def _accumulated(args: Sequence[Interval], shape: OpShape, count: int) -> Interval:
    found = mul(args, shape)
    assert found is not None
    return Interval(found.low * count, found.high * count)


def dot(args: Sequence[Interval], shape: OpShape) -> Interval:
    return _accumulated(args, shape, shape_of(shape.arg_types[0])[0])


def matmul(args: Sequence[Interval], shape: OpShape) -> Interval:
    return _accumulated(args, shape, shape_of(shape.arg_types[0])[1])


def conv2d(args: Sequence[Interval], shape: OpShape) -> Interval:
    """Zeros stand around the image."""
    channels, height, width = shape_of(shape.arg_types[1])[1:]
    image = args[0].hull(Interval(0, 0)) if shape.attrs["pad"] else args[0]
    return _accumulated((image, args[1]), shape, channels * height * width)


def average(args: Sequence[Interval], shape: OpShape) -> MaybeInterval:
    """A truncated mean lies between the least and the greatest element, if no window's sum wraps."""
    count, full = shape.attrs["size"] ** 2, full_interval(shape.result)
    fits = all(full.low <= x * count <= full.high for x in args[0])
    return args[0] if fits else None
