"""Edge-heavy bit patterns: exponents at the ends and near each other, significands of few ones or zeros."""

from __future__ import annotations

from typing import Any

import numpy as np

from kera_hw.types import FloatType, IntType, numpy_dtype

Bits = np.ndarray[Any, np.dtype[Any]]


def bits_dtype(kind: FloatType) -> np.dtype[Any]:
    return np.dtype(f"u{kind.width_bits // 8}")


def special_bits(kind: FloatType) -> list[int]:
    """Zeros, the least and greatest of each class, ones and their neighbours, infinities, NaN; both signs."""
    top, fraction = (1 << kind.exponent_bits) - 1, kind.fraction_bits
    one = (top >> 1) << fraction
    infinity = top << fraction
    positive = [
        0, 1, 2, (1 << fraction) - 1, 1 << fraction, (1 << fraction) + 1, one - 1, one, one + 1,
        one + (1 << fraction), one + (3 << (fraction - 1)), infinity - 1, infinity - 2, infinity,
    ]
    sign = 1 << (kind.width_bits - 1)
    return [*positive, *(bits | sign for bits in positive), kind.canonical_nan]


def draw(kind: FloatType, count: int, rng: np.random.Generator) -> Bits:
    """``count`` bit patterns (one NaN) of mixed moods."""
    exponent_bits, fraction = kind.exponent_bits, kind.fraction_bits
    top = (1 << exponent_bits) - 1
    bias = top >> 1
    exponent = _choose(rng, count, [
        rng.integers(0, top + 1, count),
        rng.integers(max(0, bias - fraction - 3), min(top, bias + fraction + 4), count),
        rng.integers(0, min(top, fraction + 9), count),
        rng.integers(max(0, top - fraction - 5), top + 1, count),
        rng.choice([0, 1, bias - 1, bias, top - 1, top], count),
    ])
    ones = np.int64(1) << rng.integers(0, fraction, count)
    significand = _choose(rng, count, [
        rng.integers(0, 1 << fraction, count), np.zeros(count, np.int64), ones, (1 << fraction) - ones,
        ones | (np.int64(1) << rng.integers(0, fraction, count)),
    ])
    sign = rng.integers(0, 2, count).astype(np.uint64) << np.uint64(kind.width_bits - 1)
    bits = sign | (exponent.astype(np.uint64) << np.uint64(fraction)) | significand.astype(np.uint64)
    picked = np.array(special_bits(kind), np.uint64)[rng.integers(0, len(special_bits(kind)), count)]
    return one_nan(np.where(rng.integers(0, 16, count) == 0, picked, bits).astype(bits_dtype(kind)), kind)


def draw_near(kind: FloatType, other: Bits, rng: np.random.Generator) -> Bits:
    """Patterns a few places from ``other``, of either sign: what cancels."""
    step = rng.integers(-3, 4, len(other)).astype(np.int64)
    scaled = step << rng.choice([0, 0, kind.fraction_bits], len(other))
    near = (other.astype(np.uint64) + scaled.view(np.uint64)) & np.uint64((1 << kind.width_bits) - 1)
    flipped = near ^ (rng.integers(0, 2, len(other)).astype(np.uint64) << np.uint64(kind.width_bits - 1))
    return one_nan(flipped.astype(bits_dtype(kind)), kind)


def _choose(rng: np.random.Generator, count: int, moods: list[Bits]) -> Bits:
    return np.choose(rng.integers(0, len(moods), count), [mood.astype(np.int64) for mood in moods])


def one_nan(bits: Bits, kind: FloatType) -> Bits:
    """The same with every NaN the canonical one."""
    word = bits.dtype.type
    magnitude = bits & word((1 << (kind.width_bits - 1)) - 1)
    infinity = word(((1 << kind.exponent_bits) - 1) << kind.fraction_bits)
    return np.where(magnitude > infinity, word(kind.canonical_nan), bits)


def every(kind: FloatType) -> Bits:
    """All patterns of a 16-bit format."""
    return one_nan(np.arange(1 << 16, dtype=np.uint16), kind)


def values_of(bits: Bits, kind: FloatType) -> Bits:
    return np.ascontiguousarray(bits).view(numpy_dtype(kind))


def draw_integers(kind: IntType, count: int, rng: np.random.Generator) -> Bits:
    """Edges, runs of ones, and anything; all of a type that has fewer values than ``count``."""
    if 1 << kind.width_bits <= count:
        return np.arange(kind.min, kind.max + 1).astype(numpy_dtype(kind))
    shift = rng.integers(0, kind.width_bits, count).astype(np.uint64)
    bits = rng.integers(0, 1 << 64, count, dtype=np.uint64) >> shift
    runs = np.uint64(0) - (np.uint64(1) << shift)
    near = (np.uint64(1) << shift) + rng.integers(-2, 3, count).view(np.uint64)
    picked = np.choose(rng.integers(0, 3, count), [bits, runs, near])
    left = np.uint64(64 - kind.width_bits)
    aligned = picked << left
    return (aligned.view(np.int64) >> left.view(np.int64) if kind.signed else aligned >> left).astype(
        numpy_dtype(kind)
    )
