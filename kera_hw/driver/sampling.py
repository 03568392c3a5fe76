"""Items to try a function on, uniform and cornered, and values as raw bits and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from kera_hw.driver.values import Array, count_items, read_inputs
from kera_hw.graph import Export
from kera_hw.interp import flatten_value
from kera_hw.types import (
    BoolType,
    FixType,
    FloatType,
    IntType,
    StructType,
    TensorType,
    TupleType,
    Type,
    numpy_dtype,
)


def draw_items(export: Export, vectors: int, seed: int, given: Sequence[str]) -> tuple[dict[str, Any], int]:
    """The user's items, if any, then ``vectors`` random ones; and how many there are in all."""
    rng = np.random.default_rng(seed)
    inputs: dict[str, Any] = {name: random_value(kind, vectors, rng) for name, kind in export.params}
    return _append(export, inputs, read_inputs(export, given), vectors) if given else (inputs, vectors)


def _append(
    export: Export, random: dict[str, Any], own: Mapping[str, Any], vectors: int
) -> tuple[dict[str, Any], int]:
    """The user's items first, then the random ones."""
    count = count_items(export, own)
    joined: dict[str, Any] = {}
    for name, kind in export.params:
        rows = iter(flatten_value(kind, own[name], count, name))
        joined[name] = map_leaves(random[name], lambda tail, rows=rows: np.concatenate([next(rows), tail]))
    return joined, count + vectors


def map_leaves(value: Any, change: Callable[[Array], Array]) -> Any:
    """The same structure with every array changed."""
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value).items()
        return {name: map_leaves(item, change) for name, item in items}
    if isinstance(value, tuple):
        return tuple(map_leaves(item, change) for item in cast("tuple[Any, ...]", value))
    return change(np.asarray(value))


def random_value(kind: Type, count: int, rng: np.random.Generator) -> Any:
    """``count`` items of a type: a mix of uniform, corner, small and sparse bit patterns in every leaf."""
    return _by_leaves(kind, lambda scalar, shape: _random_scalars(scalar, shape, rng), (count,))


def ordinary_value(kind: Type, count: int, rng: np.random.Generator) -> Any:
    """``count`` items of a type as they mostly are: integers of any size, normal numbers around 0."""

    def leaf(scalar: Type, shape: tuple[int, ...]) -> Array:
        if isinstance(scalar, FloatType):
            return rng.standard_normal(shape, np.float32).astype(numpy_dtype(scalar))
        width = scalar.width_bits if isinstance(scalar, (IntType, FixType)) else 1
        bits = rng.integers(0, 1 << 64, shape, dtype=np.uint64)
        return from_bits(scalar, bits & np.uint64((1 << width) - 1))

    return _by_leaves(kind, leaf, (count,))


def edge_value(kind: Type, count: int) -> Any:
    """``count`` items of a type of which the k-th holds the k-th corner in every leaf."""

    def leaf(scalar: Type, shape: tuple[int, ...]) -> Array:
        width = scalar.width_bits if isinstance(scalar, (IntType, FixType, FloatType)) else 1
        corners = _float_corners(scalar) if isinstance(scalar, FloatType) else _corners(width)
        picked = np.resize(corners, count).reshape(-1, *([1] * (len(shape) - 1)))
        return from_bits(scalar, np.broadcast_to(picked, shape).copy())

    return _by_leaves(kind, leaf, (count,))


def _by_leaves(kind: Type, leaf: Callable[[Type, tuple[int, ...]], Array], shape: tuple[int, ...]) -> Any:
    """Items of a type, each leaf by the type of its elements and its shape, the items' axis first."""
    if isinstance(kind, StructType):
        return {name: _by_leaves(item, leaf, shape) for name, item in kind.fields}
    if isinstance(kind, TupleType):
        return tuple(_by_leaves(item, leaf, shape) for item in kind.items)
    if isinstance(kind, TensorType):
        return _by_leaves(kind.element, leaf, shape + kind.shape)
    return leaf(kind, shape)


def _random_scalars(kind: Type, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    if isinstance(kind, BoolType):
        return rng.integers(0, 2, shape).astype(np.bool_)
    width = kind.width_bits if isinstance(kind, (IntType, FixType, FloatType)) else 1
    bits = rng.integers(0, 1 << 64, shape, dtype=np.uint64)
    corners = _float_corners(kind) if isinstance(kind, FloatType) else _corners(width)
    # An item is of one mood throughout, so that whole tensors of corners occur.
    mood = rng.integers(0, 8, shape[:1]).reshape(-1, *([1] * (len(shape) - 1)))
    small = bits % np.uint64(16)
    sparse = np.uint64(1) << (bits % np.uint64(width))
    picked = corners[(bits % np.uint64(len(corners))).astype(np.intp)]
    if isinstance(kind, FloatType):  # numbers of one size meet, where anything at all rarely does
        bits = np.where(mood >= 5, _near_one(kind, bits), bits)
    bits = np.where(mood == 0, picked, np.where(mood == 1, small, np.where(mood == 2, sparse, bits)))
    return from_bits(kind, bits & np.uint64((1 << width) - 1))


def _corners(width: int) -> Array:
    """Bit patterns next to 0, to the greatest and to the least number, signed or not."""
    size = 1 << width
    half = size >> 1
    near = {0, 1, 2, 3, size - 1, size - 2, half, half - 1, half + 1, 0x5555555555555555}
    return np.array(sorted({value % size for value in near}), np.uint64)


def _float_corners(kind: FloatType) -> Array:
    """The ends of each class of numbers, one and its neighbours, infinities and NaN, of either sign."""
    least, infinity = 1 << kind.fraction_bits, ((1 << kind.exponent_bits) - 1) << kind.fraction_bits
    one, sign = ((1 << (kind.exponent_bits - 1)) - 1) << kind.fraction_bits, 1 << (kind.width_bits - 1)
    found = [0, 1, least - 1, least, one - 1, one, one + 1, one + least, infinity - 1, infinity]
    return np.array([*found, *(bits | sign for bits in found), kind.canonical_nan], np.uint64)


def _near_one(kind: FloatType, bits: Array) -> Array:
    """The bits with their exponent replaced by one of 16 around that of 1."""
    bias = (1 << (kind.exponent_bits - 1)) - 1
    exponent = (bits >> np.uint64(60)) + np.uint64(bias - 8)
    field = np.uint64(((1 << kind.exponent_bits) - 1) << kind.fraction_bits)
    return (bits & ~field) | (exponent << np.uint64(kind.fraction_bits))


def from_bits(kind: Type, bits: Array) -> Array:
    """Raw bit patterns (uint64, below 2^W) as values of a scalar type in its storage dtype."""
    dtype = numpy_dtype(kind)
    if isinstance(kind, BoolType):
        return bits.astype(np.bool_)
    if isinstance(kind, FloatType):
        raw = bits.astype(f"u{dtype.itemsize}")
        exponent = ((1 << kind.exponent_bits) - 1) << kind.fraction_bits
        magnitude = raw & raw.dtype.type((1 << (kind.width_bits - 1)) - 1)
        return np.where(magnitude > exponent, raw.dtype.type(kind.canonical_nan), raw).view(dtype)
    raw_kind = kind.raw if isinstance(kind, FixType) else kind
    assert isinstance(raw_kind, IntType)
    if not raw_kind.signed:
        return bits.astype(dtype)
    shift = np.uint64(64 - raw_kind.width_bits)
    return ((bits << shift).view(np.int64) >> np.int64(int(shift))).astype(dtype)


def to_bits(kind: Type, values: Array) -> Array:
    """The raw bit patterns (uint64) of values in storage form; the inverse of ``from_bits``."""
    if isinstance(kind, FloatType):
        return values.view(f"u{values.dtype.itemsize}").astype(np.uint64)
    width = kind.width_bits if isinstance(kind, (IntType, FixType)) else 1
    return values.astype(np.int64 if values.dtype.kind == "i" else np.uint64).view(np.uint64) & np.uint64(
        (1 << width) - 1
    )
