"""Number literals: from an exact fraction to a value of the type inference found.

Conversion happens once, to the nearest value, ties to even; integers must fit, and fixed point and
floats must not overflow.
"""
from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from kera_hw.numerics import floatbits
from kera_hw.types import BoolType, FixType, FloatType, IntType, Type, numpy_dtype


def nearest_even(value: Fraction) -> int:
    """The integer nearest to a fraction, ties to even."""
    return round(value)


def literal_value(value: Fraction, negative: bool, kind: Type) -> Any | None:
    """The NumPy scalar of a literal of that type in its storage dtype; None when it does not fit.

    ``negative`` says that a `-` was written, which matters for -0.0.
    """
    dtype = numpy_dtype(kind)
    if isinstance(kind, IntType):
        if value.denominator != 1 or not kind.min <= value.numerator <= kind.max:
            return None
        return dtype.type(value.numerator)
    if isinstance(kind, FixType):
        raw = nearest_even(value * (1 << kind.fraction_bits))
        return dtype.type(raw) if kind.raw.min <= raw <= kind.raw.max else None
    assert isinstance(kind, FloatType)
    bits = floatbits.nearest(value, kind, negative)
    if bits == floatbits.infinity(kind) or bits == floatbits.infinity(kind, negative=True):
        return None
    return np.array(bits, dtype=f"u{kind.width_bits // 8}").view(dtype)[()]


def range_text(kind: Type) -> str:
    """The values a number type holds, for messages."""
    if isinstance(kind, IntType):
        return f"{kind.min} to {kind.max}"
    if isinstance(kind, FixType):
        scale = 1 << kind.fraction_bits
        return f"{kind.raw.min / scale:.10g} to {kind.raw.max / scale:.10g}"
    assert isinstance(kind, FloatType)
    bias = (1 << (kind.exponent_bits - 1)) - 1
    largest = (2 - Fraction(1, 1 << kind.fraction_bits)) * (1 << bias)
    return f"up to {float(largest):.6g} in magnitude"


def scalar_constant(value: int, kind: Type) -> Any:
    """An integer or bool as a NumPy scalar of the type (which must hold it)."""
    if isinstance(kind, BoolType):
        return np.bool_(value)
    return numpy_dtype(kind).type(value)
