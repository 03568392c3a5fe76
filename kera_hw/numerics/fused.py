"""Fused multiply-add in one rounding, for every format."""
from __future__ import annotations

import numpy as np

from kera_hw.numerics.arrays import INT64, UINT64, Array
from kera_hw.numerics.integers import multiply_128
from kera_hw.numerics.rounding import assemble, bit_lengths, fields, jam
from kera_hw.types import F64

_PIECE = 1 << 13  # elements whose intermediate values stay in the processor's cache
_FACTOR, _ADDEND = 2.0**400, 2.0**900  # within these, products and their errors stay normal
_SPLITTER = 2.0**27 + 1
_LEAD = 126  # where significands of two words are aligned: their sum stays below 2^128


def sum_to_odd(a: Array, b: Array) -> Array:
    """The f64 sum rounded to odd: inexact results have their last bit set.

    Rounding that once more to a format at least two bits shorter gives what rounding the exact sum gives
    (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008). The error of the sum comes
    from Knuth's TwoSum, exact where nothing overflows.
    """
    total, error = _two_sum(a, b)
    bits = total.view(INT64)
    inexact = (error != 0) & np.isfinite(error) & ((bits & np.int64(1)) == 0)
    outward = np.signbit(error) == np.signbit(total)
    step = np.where(inexact, np.where(outward, np.int64(1), np.int64(-1)), np.int64(0))
    return (bits + step).view(np.float64)


def fma64(a: Array, b: Array, c: Array) -> Array:
    """f64 a * b + c rounded once; NaNs need not be canonical.

    Error-free transforms where they are exact, 128-bit integers elsewhere; in pieces, since so many steps are
    bound by memory otherwise.
    """
    a, b, c = np.broadcast_arrays(a, b, c)
    shape = a.shape
    columns = [np.ascontiguousarray(item).reshape(-1) for item in (a, b, c)]
    size = columns[0].size
    if size <= _PIECE:
        return _fma_piece(*columns).reshape(shape)
    out: Array = np.empty(size, np.float64)
    for low in range(0, size, _PIECE):
        out[low : low + _PIECE] = _fma_piece(*(column[low : low + _PIECE] for column in columns))
    return out.reshape(shape)


def _fma_piece(a: Array, b: Array, c: Array) -> Array:
    usual = _is_usual(a, _FACTOR) & _is_usual(b, _FACTOR) & (_is_usual(c, _ADDEND) | (c == 0))
    if usual.all():
        return _fma_usual(a, b, c)
    found = _special(a, b, c, a * b + c)
    exact = np.isfinite(a) & np.isfinite(b) & np.isfinite(c) & (a != 0) & (b != 0) & ~usual
    for chosen, function in ((usual, _fma_usual), (exact, _fma_finite)):
        if chosen.any():
            found[chosen] = function(a[chosen], b[chosen], c[chosen])
    return found


def _is_usual(values: Array, greatest: float) -> Array:
    size = np.abs(values)
    return (size < greatest) & (size > 1 / greatest)


def _fma_usual(a: Array, b: Array, c: Array) -> Array:
    """Where no intermediate value can overflow or underflow (Boldo and Melquiond, as above, figure 4).

    The exact product is a pair (Dekker's product of Veltkamp's halves); the addend joins its lower part; what
    two exact sums leave over is rounded to odd, so that the last sum rounds the exact result.
    """
    high = a * b
    a_high, a_low = _halves(a)
    b_high, b_low = _halves(b)
    low = ((a_high * b_high - high) + a_high * b_low + a_low * b_high) + a_low * b_low
    middle, rest_1 = _two_sum(c, low)
    top, rest_2 = _two_sum(high, middle)
    found: Array = top + sum_to_odd(rest_1, rest_2)
    return found


def _halves(values: Array) -> tuple[Array, Array]:
    """Two numbers of at most 26 bits with the sum ``values``."""
    scaled = values * _SPLITTER
    high = scaled - (scaled - values)
    return high, values - high


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Knuth's: the rounded sum and its exact error."""
    total = a + b
    moved = total - a
    return total, (a - (total - moved)) + (b - moved)


def _special(a: Array, b: Array, c: Array, plain: Array) -> Array:
    """Results with an operand that is not finite, or a zero product: host arithmetic, but that an infinite
    addend decides where a finite product overflows."""
    return np.where(np.isinf(c) & np.isfinite(a) & np.isfinite(b), c, plain)


def _fma_finite(a: Array, b: Array, c: Array) -> Array:
    negative_a, significand_a, exponent_a = fields(a)
    negative_b, significand_b, exponent_b = fields(b)
    negative_c, significand_c, exponent_c = fields(c)
    negative = negative_a != negative_b
    high, low, exponent = _aligned(*multiply_128(significand_a, significand_b), exponent_a + exponent_b)
    zero = np.zeros_like(significand_c)
    high_c, low_c, exponent_c = _aligned(zero, significand_c, exponent_c)
    exponent_c = np.where(significand_c == 0, np.int64(-(1 << 20)), exponent_c)

    # The operand of the greater exponent stays; the other one moves down, its last bit sticky. A product has
    # 106 bits and an addend 53, so bits get lost only where at most one leading bit can cancel.
    distance = exponent - exponent_c
    big_is_c = distance < 0
    high_1, low_1 = np.where(big_is_c, high_c, high), np.where(big_is_c, low_c, low)
    high_2, low_2 = np.where(big_is_c, high, high_c), np.where(big_is_c, low, low_c)
    high_2, low_2 = _jam_128(high_2, low_2, np.abs(distance))
    subtract = negative != negative_c
    flip = np.where(subtract, np.uint64(0xFFFF_FFFF_FFFF_FFFF), np.uint64(0))
    total_low: Array = low_1 + (low_2 ^ flip) + subtract.astype(UINT64)
    carry = np.where(subtract, low_1 >= low_2, total_low < low_1).astype(UINT64)
    total_high = high_1 + (high_2 ^ flip) + carry
    below = subtract & (total_high >> np.uint64(63) != 0)  # the second was the greater after all
    total_low = np.where(below, ~total_low + np.uint64(1), total_low)
    total_high = np.where(below, ~total_high + (total_low == 0).astype(UINT64), total_high)
    sign = np.where(big_is_c, negative_c, negative) != below
    top, place = _leading_word(total_high, total_low)
    sign = sign & ((top != 0) | (negative & negative_c))  # an exact zero is +0
    return assemble(sign, top, np.where(big_is_c, exponent_c, exponent) + place, F64)


def _aligned(high: Array, low: Array, exponent: Array) -> tuple[Array, Array, Array]:
    """The 128-bit number with its leading bit at ``_LEAD - 1``, and its exponent then."""
    length = np.where(high != 0, bit_lengths(high) + np.int64(64), bit_lengths(low))
    left = np.int64(_LEAD) - length
    whole, part = left >= np.int64(64), (left & np.int64(63)).view(UINT64)
    high, low = np.where(whole, low, high), np.where(whole, np.uint64(0), low)
    carried = (low >> np.uint64(1)) >> (np.uint64(63) - part)
    return (high << part) | carried, low << part, exponent - left


def _jam_128(high: Array, low: Array, distance: Array) -> tuple[Array, Array]:
    """Shifted right by any distance, the lowest bit sticky."""
    far = distance >= np.int64(64)
    sticky = far & (low != 0)
    high, low = np.where(far, np.uint64(0), high), np.where(far, high, low)
    distance = np.where(far, distance - np.int64(64), distance)
    amount = np.minimum(distance, np.int64(63)).view(UINT64)
    moved = (high << np.uint64(1)) << (np.uint64(63) - amount)
    shifted = jam(low, distance) | np.where(distance > np.int64(63), np.uint64(0), moved)
    shifted = shifted | (sticky | ((distance > np.int64(63)) & (high != 0))).astype(UINT64)
    return np.where(distance > np.int64(63), np.uint64(0), high >> amount), shifted


def _leading_word(high: Array, low: Array) -> tuple[Array, Array]:
    """The highest 64 bits from the leading one on, the last sticky, and their exponent."""
    length = np.where(high != 0, bit_lengths(high) + np.int64(64), np.int64(64))
    drop = length - np.int64(64)
    high, low = _jam_128(high, low, drop)
    return low, drop
