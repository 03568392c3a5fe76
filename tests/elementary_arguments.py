"""Arguments at which a second form of an elementary function is held against the first."""
from __future__ import annotations

import numpy as np

from kera_hw.numerics import floatbits
from kera_hw.numerics.arrays import Array
from kera_hw.numerics.elementary import coefficients
from kera_hw.types import FloatType

# Results nearest to half-way points of f32, or exactly there (exp2 of -150).
HARD_F32 = (
    0x3B429D37, 0xBCF3A937, 0xC3160000, 0xC3150000, 0x65D890D3, 0x6F31A8EC, 0x33800000, 0xB3800000,
    0x33000000, 0xB2FFFFFF, 0x3F7FFFFF, 0x3F800001, 0x42B17217, 0x42B17218, 0xC2CFF1B4, 0xC2CFF1B5,
    0xC2AEAC50, 0x41102CB0,
)
# Where programs change their way, and multiples of pi/2 that come nearest to an f64.
TURNS = (
    0.5, 1.0, 1.5707963267948966, 5.9375, 9.125, 15.0, 22.0, 36.0, 39.0, 90.0, 110.0, 120.0, 130.0, 160.0,
    709.782712893384, 710.0, 745.1332191019412, 746.0, 750.0, 755.0, 760.0, 1024.0, 1025.0, 1074.0, 1076.0,
    2.0**-30, 2.0**-40, 2.0**-900, 5.319372648326541416707296656673541083813475031793921822105998164685e255,
    6381956970095103.0 * 2.0**797, 1e22, 2.0**1023,
)


def arguments(kind: FloatType, count: int) -> Array:
    """All of a 16-bit format; else corners of every exponent, hard ones and ``count`` random ones."""
    width = kind.width_bits
    word = np.dtype(f"u{width // 8}")
    if width == 16:
        return floatbits.from_bits(np.arange(1 << 16).astype(word), kind)
    rng = np.random.default_rng(7)
    fraction, bias = kind.fraction_bits, (1 << (kind.exponent_bits - 1)) - 1
    exponents = np.arange(1 << kind.exponent_bits, dtype=word) << word.type(fraction)
    half = 1 << (fraction - 1)
    ends = np.array([0, 1, 2, half - 1, half, half + 1, 2 * half - 2, 2 * half - 1], word)
    near = rng.integers((bias - 40) << fraction, (bias + 12) << fraction, count, dtype=word)
    far = rng.integers(0, 1 << (width - 1), count // 4, dtype=word)
    words = [(exponents[:, None] + ends).reshape(-1), near, far, _turns(kind, word)]
    if width == 32:
        patches = [place for places in coefficients.PATCHES.values() for place, _ in places]
        words += [np.array(HARD_F32, word), np.array(patches, np.float32).view(word)]
    positive = np.concatenate(words)
    return floatbits.from_bits(np.concatenate([positive, positive ^ word.type(1 << (width - 1))]), kind)


def _turns(kind: FloatType, word: np.dtype[np.unsignedinteger]) -> Array:
    """The places of ``TURNS`` and the two neighbours on each side."""
    host = np.float32 if word.itemsize == 4 else np.float64
    with np.errstate(over="ignore"):
        places = np.array(TURNS, np.float64).astype(host).view(word)
    return np.concatenate([places + np.array(step).astype(word) for step in range(-2, 3)])
