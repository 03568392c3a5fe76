"""Values as bits: leaves packed into one number and back, raw storage for comparing bit for bit."""
from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from kera_hw.numerics import floatbits
from kera_hw.numerics.arrays import Array, canonical, unsigned_bits
from kera_hw.types import (
    BoolType,
    FixType,
    FloatType,
    IntType,
    Type,
    bit_width,
    element_type,
    numpy_dtype,
    shape_of,
)


def storage(values: Array) -> Array:
    """The stored words as unsigned integers: what equality bit for bit and exclusive or work on."""
    return np.ascontiguousarray(values).view(np.dtype(f"u{values.dtype.itemsize}"))


def same_rows(a: Array, b: Array) -> Array:
    """Which items are equal bit for bit."""
    return (storage(a) == storage(b)).all(axis=tuple(range(1, a.ndim)))


def from_words(words: Array, kind: Type) -> Array:
    """Values of any unsigned words of the storage's size: spare bits and odd NaN made canonical."""
    element = element_type(kind)
    if isinstance(element, BoolType):
        return (words & words.dtype.type(1)).view(np.bool_)
    if isinstance(element, FloatType):
        return floatbits.from_bits(words, element)
    raw = element.raw if isinstance(element, FixType) else element
    assert isinstance(raw, IntType)
    return canonical(words.view(numpy_dtype(raw)), raw)


def pack(leaves: Sequence[Array], kinds: Sequence[Type], items: int) -> Array:
    """One number an item, the first leaf in the lowest bits; 64 bits together at most."""
    codes = np.zeros(items, np.uint64)
    low = 0
    for leaf, kind in zip(leaves, kinds, strict=True):
        width = bit_width(element_type(kind))
        words = storage(leaf) if leaf.dtype.kind in "bfV" else unsigned_bits(leaf, width)
        for column in words.reshape(items, prod(words.shape[1:])).T:
            codes |= column.astype(np.uint64) << np.uint64(low)
            low += width
    assert low <= 64
    return codes


def unpack(codes: Array, kinds: Sequence[Type]) -> list[Array]:
    """The leaves of packed numbers; the inverse of ``pack``."""
    leaves: list[Array] = []
    low = 0
    for kind in kinds:
        element = element_type(kind)
        width, dtype = bit_width(element), np.dtype(f"u{numpy_dtype(element).itemsize}")
        columns: list[Array] = []
        for _ in range(int(np.prod(shape_of(kind), dtype=np.int64))):
            bits = (codes >> np.uint64(low)) & np.uint64((1 << width) - 1)
            columns.append(from_words(bits.astype(dtype), element))
            low += width
        if not shape_of(kind):
            leaves.append(columns[0])
        else:
            stacked = np.stack(columns, axis=1) if columns else np.zeros((len(codes), 0), numpy_dtype(kind))
            leaves.append(stacked.reshape(len(codes), *shape_of(kind)))
    return leaves
