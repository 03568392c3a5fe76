"""Integer arithmetic: wrapping, saturating, widening, and division that never traps.

``kind`` is the type of the operands (and of the result unless said otherwise). Arrays broadcast as in
NumPy. Division truncates toward zero; x / 0 has all bits set, x % 0 is x, MIN / -1 is MIN.
"""
from __future__ import annotations

import numpy as np

from kera_hw.numerics.arrays import UINT64, Array, canonical, clip, unsigned_bits, wide, wrap
from kera_hw.types import IntType, numpy_dtype


def add(a: Array, b: Array, kind: IntType) -> Array:
    return canonical(a + b, kind)


def sub(a: Array, b: Array, kind: IntType) -> Array:
    return canonical(a - b, kind)


def mul(a: Array, b: Array, kind: IntType) -> Array:
    return canonical(a * b, kind)


def neg(a: Array, kind: IntType) -> Array:
    return canonical(np.negative(a), kind)


def absolute(a: Array, kind: IntType) -> Array:
    """|a|; the smallest signed value gives itself."""
    return canonical(np.abs(a), kind) if kind.signed else a


def sign(a: Array, kind: IntType) -> Array:
    """-1, 0 or 1 (an i1 holds -1 and 0 alone)."""
    return np.sign(a) if kind.signed else (a != 0).astype(a.dtype)


def _magnitude(a: Array, kind: IntType) -> Array:
    return np.abs(a).view(np.dtype(f"u{a.dtype.itemsize}")) if kind.signed else a


def div(a: Array, b: Array, kind: IntType) -> Array:
    """Quotient toward zero; all bits set where b is 0."""
    zero = b == 0
    top, bottom = _magnitude(a, kind), _magnitude(np.where(zero, b.dtype.type(1), b), kind)
    quotient = top // bottom
    if kind.signed:
        quotient = quotient.view(a.dtype)
        quotient = np.where((a < 0) != (b < 0), np.negative(quotient), quotient)
    all_ones = a.dtype.type(-1 if kind.signed else kind.max)
    return canonical(np.where(zero, all_ones, quotient), kind)


def rem(a: Array, b: Array, kind: IntType) -> Array:
    """Remainder with the dividend's sign; the dividend where b is 0."""
    zero = b == 0
    top, bottom = _magnitude(a, kind), _magnitude(np.where(zero, b.dtype.type(1), b), kind)
    remainder = top % bottom
    if kind.signed:
        remainder = remainder.view(a.dtype)
        remainder = np.where(a < 0, np.negative(remainder), remainder)
    return canonical(np.where(zero, a, remainder), kind)


def minimum(a: Array, b: Array, kind: IntType) -> Array:
    return np.minimum(a, b)


def maximum(a: Array, b: Array, kind: IntType) -> Array:
    return np.maximum(a, b)


def saturating_add(a: Array, b: Array, kind: IntType) -> Array:
    x, y = wide(a), wide(b)
    total = x + y
    if kind.width_bits < 64:
        return wrap(clip(total, kind.min, kind.max), kind)
    if not kind.signed:
        return np.where(total < x, np.uint64(kind.max), total)
    overflow = ((x ^ total) & (y ^ total)) < 0
    return np.where(overflow, np.where(x < 0, np.int64(kind.min), np.int64(kind.max)), total)


def saturating_sub(a: Array, b: Array, kind: IntType) -> Array:
    if not kind.signed:
        return np.where(a < b, a.dtype.type(0), a - b)
    x, y = wide(a), wide(b)
    total = x - y
    if kind.width_bits < 64:
        return wrap(clip(total, kind.min, kind.max), kind)
    overflow = ((x ^ y) & (x ^ total)) < 0
    return np.where(overflow, np.where(x < 0, np.int64(kind.min), np.int64(kind.max)), total)


def saturating_mul(a: Array, b: Array, kind: IntType) -> Array:
    if kind.width_bits <= 32:
        return wrap(clip(wide(a) * wide(b), kind.min, kind.max), kind)
    x, y = _magnitude(wide(a), kind), _magnitude(wide(b), kind)
    high, low = multiply_128(x, y)
    if not kind.signed:
        over = (high != 0) | (low > np.uint64(kind.max))
        return np.where(over, np.uint64(kind.max), low)
    negative = (a < 0) != (b < 0)
    limit = np.where(negative, np.uint64(-kind.min), np.uint64(kind.max))
    magnitude = np.where((high != 0) | (low > limit), limit, low).view(np.int64)
    return np.where(negative, np.negative(magnitude), magnitude)


def multiply_128(a: Array, b: Array) -> tuple[Array, Array]:
    """The upper and lower 64 bits of uint64 products."""
    mask, half = np.uint64(0xFFFF_FFFF), np.uint64(32)
    a_low, a_high, b_low, b_high = a & mask, a >> half, b & mask, b >> half
    low, mid_0, mid_1 = a_low * b_low, a_high * b_low, a_low * b_high
    carry = ((low >> half) + (mid_0 & mask) + (mid_1 & mask)) >> half
    return a_high * b_high + (mid_0 >> half) + (mid_1 >> half) + carry, a * b


def add_carry(a: Array, b: Array, carry: Array, kind: IntType) -> tuple[Array, Array]:
    """Sum of the W-bit patterns and a carry bit, and the carry out of the top bit (also for signed)."""
    x = unsigned_bits(a, kind.width_bits).astype(UINT64)
    y = unsigned_bits(b, kind.width_bits).astype(UINT64)
    c = carry.astype(UINT64)
    total = x + y + c
    if kind.width_bits < 64:
        out = (total >> np.uint64(kind.width_bits)) != 0
    else:  # the sum passed 2^64: it came out smaller, or equal with a carry in
        out = (total < x) | ((total == x) & (c != 0) & (y != 0))
    return wrap(total, kind), out


def mul_wide(a: Array, b: Array, result: IntType) -> Array:
    """The exact product in a type as wide as both operands together."""
    dtype = numpy_dtype(result)
    x: Array = a.astype(dtype)
    return canonical(x * b.astype(dtype), result)
