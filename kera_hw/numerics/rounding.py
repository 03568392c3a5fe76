"""One rounding to nearest even into any format: from f64 values, and from integer significands.

f16 and bf16 compute in f64, on values of their own grid: ``widen`` brings them there, ``quantise`` rounds a
result back onto the grid, ``narrow`` does that and stores.
"""
from __future__ import annotations

import numpy as np

from kera_hw.numerics import floatbits
from kera_hw.numerics.arrays import ALL_ONES, INT64, UINT64, Array
from kera_hw.types import FloatType, numpy_dtype

F64_FRACTION = 52
F64_BIAS = 1023
_EXPONENT_FIELD = 0x7FF << F64_FRACTION


def is_small(kind: FloatType) -> bool:
    """Whether the format computes in f64 rather than in units of its own."""
    return kind.width_bits < 32


def bias_of(kind: FloatType) -> int:
    """The exponent bias: also the greatest exponent of a finite value."""
    return (1 << (kind.exponent_bits - 1)) - 1


def largest(kind: FloatType) -> float:
    """The greatest finite value."""
    return (2 - 2.0**-kind.fraction_bits) * 2.0 ** bias_of(kind)


def widen(values: Array, kind: FloatType) -> Array:
    """Values in storage form as f64, exactly."""
    if kind.name == "bf16":
        values = (floatbits.to_bits(values).astype(np.uint32) << np.uint32(16)).view(np.float32)
    return values.astype(np.float64, copy=False)


def quantise(values: Array, kind: FloatType) -> Array:
    """f64 values rounded once onto the grid of f16 or bf16, as f64; overflow gives an infinity.

    Adding and subtracting 1.5 * 2^k makes the host drop the bits below its last place: k is such that this
    is the last place of the result, and the 1.5 keeps the sum within one binade whatever the sign.
    """
    beyond = 2.0 ** (bias_of(kind) + 2)
    values = np.minimum(np.maximum(values, -beyond), beyond)
    exponent = values.view(INT64) & np.int64(_EXPONENT_FIELD)
    exponent = np.maximum(exponent, np.int64((F64_BIAS + 1 - bias_of(kind)) << F64_FRACTION))
    raised = np.int64((F64_FRACTION - kind.fraction_bits) << F64_FRACTION | 1 << (F64_FRACTION - 1))
    anchor = (exponent + raised).view(np.float64)
    rounded = (values + anchor) - anchor
    rounded = np.where(np.abs(rounded) > largest(kind), np.inf, rounded)
    return np.copysign(rounded, values)


def store(values: Array, kind: FloatType) -> Array:
    """f64 values that the format holds, in storage form, NaNs canonical."""
    if kind.name == "bf16":
        bits = values.astype(np.float32).view(np.uint32) >> np.uint32(16)
        return floatbits.from_bits(bits.astype(np.uint16), kind)
    return floatbits.canonical_nans(values.astype(numpy_dtype(kind), copy=False), kind)


def narrow(values: Array, kind: FloatType) -> Array:
    """f64 values rounded once into the format, in storage form, NaNs canonical."""
    return store(quantise(values, kind) if is_small(kind) else values, kind)


def bit_lengths(values: Array) -> Array:
    """How many bits each uint64 takes, as int64; 0 for 0."""
    # Without the bit below the highest one, the conversion cannot round up to the next power of two.
    lone = (values & ~(values >> np.uint64(1))).astype(np.float64)
    length = (lone.view(INT64) >> np.int64(F64_FRACTION)) - np.int64(F64_BIAS - 1)
    return np.maximum(length, np.int64(0))


def jam(values: Array, distance: Array) -> Array:
    """uint64 shifted right; the lowest bit tells whether any bit fell out (or was set)."""
    amount = np.minimum(distance, np.int64(63)).view(UINT64)
    kept = values >> amount
    lost = values & ~(ALL_ONES << amount)
    gone = distance > np.int64(63)
    kept = np.where(gone, np.uint64(0), kept)
    return kept | ((lost != 0) | (gone & (values != 0))).astype(UINT64)


def assemble(negative: Array, significand: Array, exponent: Array, kind: FloatType) -> Array:
    """(-1)^negative * significand * 2^exponent, rounded once to nearest even, in storage form.

    ``significand`` is uint64, ``exponent`` int64. Where bits below the significand are to be told from
    nothing, its lowest bit is sticky and it has at least two bits more than the format.
    """
    length = bit_lengths(significand)
    aligned = significand << np.minimum(np.int64(64) - length, np.int64(63)).view(UINT64)
    field = exponent + length + np.int64(bias_of(kind) - 1)  # biased exponent of the leading bit
    aligned = jam(aligned, np.maximum(np.int64(1) - field, np.int64(0)))
    field = np.minimum(np.maximum(field, np.int64(1)), np.int64((1 << kind.exponent_bits) - 1))
    dropped = 63 - kind.fraction_bits
    kept, rest = aligned >> np.uint64(dropped), aligned & np.uint64((1 << dropped) - 1)
    half = np.uint64(1 << (dropped - 1))
    up = (rest > half) | ((rest == half) & ((kept & np.uint64(1)) != 0))
    bits = ((field - np.int64(1)).view(UINT64) << np.uint64(kind.fraction_bits)) + kept + up.astype(UINT64)
    infinity = np.uint64(((1 << kind.exponent_bits) - 1) << kind.fraction_bits)
    bits = np.where(significand == 0, np.uint64(0), np.minimum(bits, infinity))
    bits = bits | (negative.astype(UINT64) << np.uint64(kind.width_bits - 1))
    dtype = numpy_dtype(kind)
    return bits.astype(np.dtype(f"u{dtype.itemsize}")).view(dtype)


def fields(values: Array) -> tuple[Array, Array, Array]:
    """Finite f64 values as (negative, significand, exponent): value = +-significand * 2^exponent."""
    bits = values.view(UINT64)
    biased = ((bits >> np.uint64(F64_FRACTION)) & np.uint64(0x7FF)).view(INT64)
    fraction = bits & np.uint64((1 << F64_FRACTION) - 1)
    significand = fraction | ((biased != 0).astype(UINT64) << np.uint64(F64_FRACTION))
    exponent = np.maximum(biased, np.int64(1)) - np.int64(F64_BIAS + F64_FRACTION)
    return (bits >> np.uint64(63)) != 0, significand, exponent
