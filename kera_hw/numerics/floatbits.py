"""Floating-point values as bit patterns, with the one-NaN rule."""
from __future__ import annotations

import numpy as np

from kera_hw.numerics.arrays import Array
from kera_hw.types import FloatType, numpy_dtype


def to_bits(values: Array) -> Array:
    """Bit patterns in the unsigned dtype of the same size."""
    return values.view(np.dtype(f"u{values.dtype.itemsize}"))


def from_bits(bits: Array, kind: FloatType) -> Array:
    """Values of bit patterns (unsigned, of the format's size); every NaN becomes the canonical one."""
    to = bits.dtype.type
    magnitude = bits & to((1 << (kind.width_bits - 1)) - 1)
    infinity = to(((1 << kind.exponent_bits) - 1) << kind.fraction_bits)
    return np.where(magnitude > infinity, to(kind.canonical_nan), bits).view(numpy_dtype(kind))


def canonical_nans(values: Array, kind: FloatType) -> Array:
    """The same values with every NaN the canonical one."""
    return from_bits(to_bits(values), kind)
