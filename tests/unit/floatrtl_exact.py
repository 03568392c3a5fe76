"""Exact rationals as the oracle of comparisons and conversions: integers decide, no float arithmetic."""
from __future__ import annotations

from fractions import Fraction
from math import inf, nan

from kera_hw.types import FloatType

Number = Fraction | float
"""A finite value exactly; infinities and NaN as the host's."""


def value_of(kind: FloatType, word: int) -> Number:
    """What a pattern stands for; both zeros are 0."""
    fraction, top = kind.fraction_bits, (1 << kind.exponent_bits) - 1
    field, bits = word >> fraction & top, word & ((1 << fraction) - 1)
    sign = -1 if word >> (kind.width_bits - 1) else 1
    if field == top:
        return nan if bits else sign * inf
    significand = bits | (1 << fraction if field else 0)
    return sign * significand * Fraction(2) ** ((field or 1) - (top >> 1) - fraction)


def nearest(value: Fraction) -> int:
    """The nearest integer, ties to even."""
    return round(value)


def word_of(kind: FloatType, value: Number, negative: bool = False) -> int:
    """The pattern nearest a value, ties to even; ``negative`` is the sign of a zero."""
    fraction, top = kind.fraction_bits, (1 << kind.exponent_bits) - 1
    bias, infinity = top >> 1, top << fraction
    if value != value:
        return kind.canonical_nan
    sign = int(value < 0 or (value == 0 and negative)) << (kind.width_bits - 1)
    if isinstance(value, float):
        return sign | infinity
    size = abs(value)
    if size == 0:
        return sign
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < Fraction(2) ** exponent
    exponent = max(exponent, 1 - bias)
    significand = nearest(size / Fraction(2) ** (exponent - fraction))
    return sign | min(infinity, ((exponent + bias - 1) << fraction) + significand)


def is_negative(kind: FloatType, word: int) -> bool:
    """Whether the sign bit is set."""
    return bool(word >> (kind.width_bits - 1))
