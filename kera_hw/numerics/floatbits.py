"""Floating-point values as bit patterns, with the one-NaN rule."""
from __future__ import annotations

from fractions import Fraction

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


def infinity(kind: FloatType, negative: bool = False) -> int:
    """The bit pattern of an infinity."""
    return negative << (kind.width_bits - 1) | ((1 << kind.exponent_bits) - 1) << kind.fraction_bits


def nearest(value: Fraction, kind: FloatType, negative_zero: bool = False) -> int:
    """Bit pattern of the number of the format nearest to a rational, ties to even; an infinity beyond."""
    negative = value < 0 or (value == 0 and negative_zero)
    sign = negative << (kind.width_bits - 1)
    magnitude = abs(value)
    if magnitude == 0:
        return sign
    bias = (1 << (kind.exponent_bits - 1)) - 1
    # floor(log2): exact from the lengths of numerator and denominator, off by at most one.
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if magnitude < _power(exponent):
        exponent -= 1
    if exponent > bias:
        return infinity(kind, negative)
    exponent = max(exponent, 1 - bias)
    significand = round(magnitude / _power(exponent - kind.fraction_bits))
    # A significand without its leading bit is subnormal, one that rounded up to the next binade carries.
    bits = ((exponent + bias - 1) << kind.fraction_bits) + significand
    return sign | min(bits, infinity(kind))


def _power(exponent: int) -> Fraction:
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)
