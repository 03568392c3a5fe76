"""Exact sums, dot products and products of floats, rounded once.

A sum collects signed 32-bit digits in an int64 each, enough of them for every exponent (Kulisch's long
accumulator); carries move once at the end, so up to 2^31 terms are exact. A product multiplies the
significands as unbounded integers.

Kulisch, "Computer Arithmetic and Validity", 2nd edition, 2013, chapter 8.
"""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kera_hw.numerics import floatbits
from kera_hw.numerics.arrays import ALL_ONES, INT64, UINT64, Array
from kera_hw.numerics.integers import multiply_128
from kera_hw.numerics.rounding import assemble, bit_lengths, fields, narrow, widen
from kera_hw.types import F64, FloatType

DIGIT_BITS = 32
_MASK = np.uint64(0xFFFF_FFFF)
_LEAST = -1074  # exponent of the lowest bit of an f64
_SPAN_BITS = 2098  # from there to the highest bit of the greatest f64


def total(values: Array, kind: FloatType) -> Array:
    """The exact sum over the last axis, which is not empty; NaN for infinities of both signs.

    An exact zero is +0 unless every term is -0.
    """
    return _sum_wide(widen(values, kind), kind)


def dot(a: Array, b: Array, kind: FloatType) -> Array:
    """The exact sum of exact products over the last axis, which is not empty."""
    wide_a, wide_b = np.broadcast_arrays(widen(a, kind), widen(b, kind))
    products = wide_a * wide_b
    if kind != F64:
        return _sum_wide(products, kind)  # below f64 they are exact
    finite = np.isfinite(wide_a) & np.isfinite(wide_b)
    negative_a, significand_a, exponent_a = fields(np.where(finite, wide_a, 0.0))
    negative_b, significand_b, exponent_b = fields(np.where(finite, wide_b, 0.0))
    high, low = multiply_128(significand_a, significand_b)
    negative, position = negative_a != negative_b, exponent_a + exponent_b - np.int64(2 * _LEAST)
    digits = _collect(negative, (low, high), position, 2 * _SPAN_BITS)
    minus_zero = finite & ((wide_a == 0) | (wide_b == 0)) & negative
    return _finish(digits, 2 * _LEAST, np.where(finite, 0.0, products), minus_zero.all(axis=-1), kind)


def _sum_wide(values: Array, kind: FloatType) -> Array:
    """The exact sum of f64 numbers rounded into a format."""
    finite = np.isfinite(values)
    negative, significand, exponent = fields(np.where(finite, values, 0.0))
    digits = _collect(negative, (significand,), exponent - np.int64(_LEAST), _SPAN_BITS)
    minus_zero = ((values == 0) & np.signbit(values)).all(axis=-1)
    return _finish(digits, _LEAST, np.where(finite, 0.0, values), minus_zero, kind)


def _collect(negative: Array, words: Sequence[Array], position: Array, span_bits: int) -> Array:
    """(rows, digits) sums of (-1)^negative * words * 2^position over the last axis; least digit first."""
    count = position.shape[-1]
    height = position.size // count
    rows = np.arange(height * count, dtype=INT64) // np.int64(count)
    digits = np.zeros((height, span_bits // DIGIT_BITS + 4), INT64)
    flat, sign = position.reshape(-1), np.where(negative.reshape(-1), np.int64(-1), np.int64(1))
    first = flat >> np.int64(5)
    shift = (flat & np.int64(DIGIT_BITS - 1)).view(UINT64)
    for number, word in enumerate(words):
        for half in range(2):
            digit = (word.reshape(-1) >> np.uint64(DIGIT_BITS * half)) & _MASK
            moved = digit << shift
            place = first + np.int64(2 * number + half)
            for step, part in enumerate((moved & _MASK, moved >> np.uint64(DIGIT_BITS))):
                np.add.at(digits, (rows, place + np.int64(step)), part.view(INT64) * sign)
    return digits


def _carried(digits: Array) -> Array:
    """Every digit but the last in [0, 2^32); the last carries the sign."""
    out = digits.copy()
    for k in range(out.shape[1] - 1):
        out[:, k + 1] += out[:, k] >> np.int64(DIGIT_BITS)
        out[:, k] &= np.int64(0xFFFF_FFFF)
    return out


def _finish(digits: Array, least: int, special: Array, minus_zero: Array, kind: FloatType) -> Array:
    """Rounds the digits; ``special`` holds the terms that are not finite, else 0."""
    negative = _carried(digits)[:, -1] < 0
    magnitude = _carried(np.where(negative[:, np.newaxis], -digits, digits)).view(UINT64)
    top = np.maximum(magnitude.shape[1] - 1 - np.argmax(magnitude[:, ::-1] != 0, axis=1), 2)
    lanes: Array = np.arange(len(top))
    high, middle, low = (magnitude[lanes, top - k] for k in range(3))
    length = bit_lengths(high)  # 0 where the number ends below the third digit
    kept = length.view(UINT64)
    word = (high << np.minimum(np.uint64(64) - kept, np.uint64(63))) | (middle << (np.uint64(32) - kept))
    word = np.where(length == 0, middle << np.uint64(32), word) | (low >> kept)
    below = (np.cumsum(magnitude != 0, axis=1)[lanes, top] - (magnitude[lanes, top] != 0)
             - (middle != 0) - (low != 0)) != 0
    lost = below | ((low & ~(ALL_ONES << kept)) != 0)
    exponent = top * DIGIT_BITS + length - np.int64(64) + np.int64(least)
    sign = negative | ((word == 0) & minus_zero.reshape(-1))
    found = assemble(sign, word | lost.astype(UINT64), exponent, kind).reshape(special.shape[:-1])
    return _with_specials(found, special, kind)


def _with_specials(found: Array, special: Array, kind: FloatType) -> Array:
    """NaN and infinities among the terms decide."""
    if not special.any():
        return found
    rest = special.sum(axis=-1)  # of zeros, infinities and NaNs
    decided = floatbits.to_bits(narrow(rest, kind))
    return np.where(rest == 0, floatbits.to_bits(found), decided).view(found.dtype)


def product(values: Array, kind: FloatType) -> Array:
    """The exact product over the last axis, which is not empty; NaN for an infinity and a zero."""
    wide = widen(values, kind)
    finite = np.isfinite(wide)
    _, significand, exponent = fields(np.where(finite, wide, 1.0))
    integers = np.multiply.reduce(significand.astype(object), axis=-1).reshape(-1)
    powers = exponent.sum(axis=-1).reshape(-1)
    words, moved = np.empty(len(integers), np.uint64), np.empty(len(integers), np.int64)
    for k, number in enumerate(integers.tolist()):
        drop = max(number.bit_length() - 64, 0)
        words[k] = (number >> drop) | bool(number & ((1 << drop) - 1))
        moved[k] = drop
    sign = (np.count_nonzero(np.signbit(wide), axis=-1) % 2 == 1).reshape(-1)
    found = assemble(sign, words, powers + moved, kind).reshape(wide.shape[:-1])
    signed = np.where(sign, -1.0, 1.0).reshape(wide.shape[:-1])
    unbounded = np.where(np.isnan(wide) | np.isinf(wide), np.abs(wide), np.where(wide == 0, 0.0, 1.0))
    rest = np.multiply.reduce(unbounded, axis=-1) * signed  # +-1 where all are finite and none is zero
    plain = finite.all(axis=-1)
    decided = floatbits.to_bits(narrow(rest, kind))
    return np.where(plain, floatbits.to_bits(found), decided).view(found.dtype)
