"""Floating-point operations on storage arrays, element by element: f16, bf16, f32 and f64.

Every result is correctly rounded to nearest even, subnormals included, and a NaN is the canonical one.
Arrays broadcast as in NumPy; none is written to.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from kera_hw.numerics import floatbits
from kera_hw.numerics.arrays import INT64, UINT64, Array
from kera_hw.numerics.host import ieee
from kera_hw.numerics.integers import multiply_128
from kera_hw.numerics.rounding import F64_FRACTION, assemble, is_small, narrow, widen
from kera_hw.numerics.units import unit_of
from kera_hw.types import F64, FloatType, numpy_dtype


@ieee
def add(a: Array, b: Array, kind: FloatType) -> Array:
    unit = unit_of(kind)
    return unit.store(unit.add(unit.load(a), unit.load(b)))


@ieee
def sub(a: Array, b: Array, kind: FloatType) -> Array:
    unit = unit_of(kind)
    return unit.store(unit.sub(unit.load(a), unit.load(b)))


@ieee
def mul(a: Array, b: Array, kind: FloatType) -> Array:
    unit = unit_of(kind)
    return unit.store(unit.mul(unit.load(a), unit.load(b)))


@ieee
def div(a: Array, b: Array, kind: FloatType) -> Array:
    unit = unit_of(kind)
    return unit.store(unit.div(unit.load(a), unit.load(b)))


@ieee
def fma(a: Array, b: Array, c: Array, kind: FloatType) -> Array:
    """a * b + c in one rounding."""
    unit = unit_of(kind)
    return unit.store(unit.fma(unit.load(a), unit.load(b), unit.load(c)))


@ieee
def sqrt(a: Array, kind: FloatType) -> Array:
    unit = unit_of(kind)
    return unit.store(unit.sqrt(unit.load(a)))


@ieee
def recip(a: Array, kind: FloatType) -> Array:
    """1 / x."""
    unit = unit_of(kind)
    loaded = unit.load(a)
    return unit.store(unit.div(np.ones_like(loaded), loaded))


@ieee
def rsqrt(a: Array, kind: FloatType) -> Array:
    """The real 1 / sqrt(x) rounded once; a zero gives the infinity of its sign, a negative number NaN.

    In f64 two roundings leave 1 / sqrt(x) within two places, and exact integers decide between neighbours.
    Below f64 that quotient is never so close to the middle between two results that its error matters: shown
    for f32 on every significand and parity of the exponent (tests/unit/test_numerics_floats.py), for f16
    and bf16 on every input.
    """
    unit_of(kind)
    wide = widen(a, kind)
    zero = np.copysign(np.inf, wide)
    if kind != F64:
        return narrow(np.where(wide == 0, zero, 1.0 / np.sqrt(wide)), kind)
    usual = (wide > 0) & (wide < np.inf)
    estimate = np.where(wide == 0, zero, 1.0 / np.sqrt(wide))
    if usual.any():
        estimate[usual] = _rsqrt_positive(wide[usual])
    return floatbits.canonical_nans(estimate, kind)


def _rsqrt_positive(values: Array) -> Array:
    """f64 1/sqrt(m * 4^e), with m in [1, 4) of 54 bits M = m * 2^52, is y = Y * 2^-53 with Y of 53 bits.

    It lies above Y + 1/2 exactly where M * (2Y + 1)^2 < 2^160. Y is within 2 of the truth, so that both
    sides agree to 40 bits and the sign of their difference shows modulo 2^128; they are never equal.
    """
    mantissa, exponent = np.frexp(values)  # in [1/2, 1)
    half = (exponent.astype(INT64) - np.int64(1)) >> np.int64(1)
    scaled = np.ldexp(mantissa, (exponent - 2 * half).astype(np.int32))  # in [1, 4)
    significand = np.ldexp(scaled, F64_FRACTION).astype(UINT64)
    root = np.ldexp(1.0 / np.sqrt(scaled), F64_FRACTION + 1).astype(UINT64)
    for _ in range(2):
        root = root + _is_above(significand, root).astype(UINT64)
        root = root - (~_is_above(significand, root - np.uint64(1))).astype(UINT64)
    return np.ldexp(root.astype(np.float64), (-half - np.int64(F64_FRACTION + 1)).astype(np.int32))


def _is_above(significand: Array, root: Array) -> Array:
    """Whether 1/sqrt lies above the middle between root and root + 1."""
    odd = (root << np.uint64(1)) | np.uint64(1)
    high, low = multiply_128(odd, odd)
    carried, _ = multiply_128(low, significand)
    return ((high * significand + carried) >> np.uint64(63)) != 0


# ---------------------------------------------------------------- bits


def _sign_bit(bits: Array, kind: FloatType) -> Any:
    return bits.dtype.type(1 << (kind.width_bits - 1))


def _rebuilt(bits: Array, kind: FloatType) -> Array:
    return floatbits.from_bits(bits, kind)


def neg(a: Array, kind: FloatType) -> Array:
    bits = floatbits.to_bits(a)
    return _rebuilt(bits ^ _sign_bit(bits, kind), kind)


def absolute(a: Array, kind: FloatType) -> Array:
    bits = floatbits.to_bits(a)
    return _rebuilt(bits & ~_sign_bit(bits, kind), kind)


def copysign(a: Array, b: Array, kind: FloatType) -> Array:
    """The magnitude of ``a`` with the sign of ``b``; that of NaN is +."""
    magnitude, other = floatbits.to_bits(a), floatbits.to_bits(b)
    top = _sign_bit(magnitude, kind)
    from_b: Array = np.where(is_nan(b, kind), np.zeros_like(other), other & top)
    return _rebuilt((magnitude & ~top) | from_b, kind)


def is_nan(a: Array, kind: FloatType) -> Array:
    return _magnitude(a, kind) > _infinity(kind)


def is_finite(a: Array, kind: FloatType) -> Array:
    return _magnitude(a, kind) < _infinity(kind)


def _magnitude(a: Array, kind: FloatType) -> Array:
    bits = floatbits.to_bits(a)
    return bits & ~_sign_bit(bits, kind)


def _infinity(kind: FloatType) -> Any:
    word = np.dtype(f"u{numpy_dtype(kind).itemsize}").type
    return word(((1 << kind.exponent_bits) - 1) << kind.fraction_bits)


def sign(a: Array, kind: FloatType) -> Array:
    """-1, a zero as it is, 1, or NaN."""
    bits, magnitude = floatbits.to_bits(a), _magnitude(a, kind)
    one = bits.dtype.type(((1 << (kind.exponent_bits - 1)) - 1) << kind.fraction_bits)
    signed = (bits & _sign_bit(bits, kind)) | one
    keep = (magnitude == 0) | (magnitude > _infinity(kind))
    return _rebuilt(np.where(keep, bits, signed), kind)


def ordered(a: Array, kind: FloatType) -> Array:
    """Signed integers in the order of the values, -0 just below +0, the canonical NaN above all."""
    raw = floatbits.to_bits(a).view(np.dtype(f"i{a.dtype.itemsize}"))
    width_bits = kind.width_bits
    return raw ^ ((raw >> (width_bits - 1)) & raw.dtype.type((1 << (width_bits - 1)) - 1))


def from_ordered(keys: Array, kind: FloatType) -> Array:
    """The values of ``ordered`` keys; keys that no value has give NaN."""
    width_bits = kind.width_bits
    raw = keys ^ ((keys >> (width_bits - 1)) & keys.dtype.type((1 << (width_bits - 1)) - 1))
    return floatbits.from_bits(raw.view(np.dtype(f"u{keys.dtype.itemsize}")), kind)


def minimum(a: Array, b: Array, kind: FloatType) -> Array:
    """IEEE 754-2019 minimum: NaN if either is, and -0 is below +0."""
    nan = is_nan(a, kind) | is_nan(b, kind)
    lesser = np.where(ordered(a, kind) <= ordered(b, kind), floatbits.to_bits(a), floatbits.to_bits(b))
    return _rebuilt(np.where(nan, lesser.dtype.type(kind.canonical_nan), lesser), kind)


def maximum(a: Array, b: Array, kind: FloatType) -> Array:
    """IEEE 754-2019 maximum: NaN if either is, and +0 is above -0."""
    nan = is_nan(a, kind) | is_nan(b, kind)
    greater = np.where(ordered(a, kind) >= ordered(b, kind), floatbits.to_bits(a), floatbits.to_bits(b))
    return _rebuilt(np.where(nan, greater.dtype.type(kind.canonical_nan), greater), kind)


def relu(a: Array, kind: FloatType) -> Array:
    """The greater of x and +0."""
    return maximum(a, np.zeros((), numpy_dtype(kind)), kind)


def comparable(a: Array, kind: FloatType) -> Array:
    """The same values in a dtype whose NumPy comparisons are IEEE's."""
    return widen(a, kind) if is_small(kind) else a


# ---------------------------------------------------------------- integral values


@ieee
def floor(a: Array, kind: FloatType) -> Array:
    unit = unit_of(kind)
    return unit.store(np.floor(unit.load(a)))


@ieee
def ceil(a: Array, kind: FloatType) -> Array:
    unit = unit_of(kind)
    return unit.store(np.ceil(unit.load(a)))


@ieee
def trunc(a: Array, kind: FloatType) -> Array:
    unit = unit_of(kind)
    return unit.store(np.trunc(unit.load(a)))


@ieee
def round_even(a: Array, kind: FloatType) -> Array:
    """The nearest integer, ties to even; a zero keeps the operand's sign."""
    unit = unit_of(kind)
    return unit.store(np.rint(unit.load(a)))


# ---------------------------------------------------------------- conversions


@ieee
def convert(a: Array, source: FloatType, target: FloatType) -> Array:
    """From format to format, rounded once."""
    unit_of(target)
    return narrow(widen(a, source), target)


@ieee
def from_integer(a: Array, target: FloatType, fraction_bits: int = 0) -> Array:
    """Integers of any dtype times 2^-fraction_bits, rounded once."""
    unit_of(target)
    if fraction_bits == 0 and a.dtype.itemsize <= 4:
        return narrow(a.astype(np.float64), target)
    negative = a < 0
    bits = a.astype(INT64).view(UINT64) if a.dtype.kind == "i" else a.astype(UINT64)
    magnitude = np.where(negative, np.uint64(0) - bits, bits)
    return assemble(negative, magnitude, np.int64(-fraction_bits) + np.zeros(a.shape, INT64), target)


@ieee
def to_integer(a: Array, source: FloatType, low: int, high: int) -> Array:
    """Values toward zero as 64-bit integers in ``[low, high]``, saturating, NaN as 0.

    The bounds are those of an integer type; the result is signed where ``low`` is negative.
    """
    return _saturated(np.trunc(widen(a, source)), low, high)


@ieee
def to_fixed(a: Array, source: FloatType, low: int, high: int, fraction_bits: int) -> Array:
    """Values times 2^fraction_bits, to nearest even, as ``to_integer``."""
    return _saturated(np.rint(np.ldexp(widen(a, source), fraction_bits)), low, high)


def _saturated(whole: Array, low: int, high: int) -> Array:
    above, below = whole >= float(high + 1), whole <= float(low)
    dtype, limit = (np.int64, np.int64(high)) if low < 0 else (np.uint64, np.uint64(high))
    inside = np.where(above | below | np.isnan(whole), 0.0, whole).astype(dtype)
    return np.where(above, limit, np.where(below, dtype(low), inside))
