"""Fixed point: conversions between integers and formats, exact at every width.

A fixed-point number is its raw integer; an integer is a format without fraction bits. Wrapping
conversions work modulo 2^64, which every format's raw modulus divides.
"""
from __future__ import annotations

import numpy as np

from kera_hw.numerics.arrays import ALL_ONES, Array, clip, pattern, wide, wrap
from kera_hw.types import FixType, IntType


def rescale(raw: Array, shift_bits: int, result: IntType) -> Array:
    """raw * 2^shift, floored, then wrapped into the result's raw type."""
    if shift_bits >= 0:
        return wrap(pattern(raw) << np.uint64(shift_bits), result)
    return wrap(wide(raw) >> -shift_bits, result)


def sign(raw: Array, kind: FixType) -> Array:
    """-1, 0 or 1 as a value of the format; where the format can't hold it, the nearest value it has."""
    one = min(1 << kind.fraction_bits, kind.raw.max)
    minus_one = max(-(1 << kind.fraction_bits), kind.raw.min)
    values: Array = np.array([minus_one if kind.signed else 0, 0, one], raw.dtype)
    return values[np.sign(raw).astype(np.intp) + 1]


def round_to(raw: Array, fraction_bits: int, result: FixType, mode: str, overflow: str) -> Array:
    """Values ``raw * 2^-fraction_bits`` rounded into ``result``, then wrapped or saturated."""
    dropped_bits = fraction_bits - result.fraction_bits
    if dropped_bits > 0:
        rounded = _round_off(wide(raw), dropped_bits, mode)
        if overflow == "saturate":
            rounded = clip(rounded, result.raw.min, result.raw.max)
        return wrap(rounded, result.raw)
    if overflow == "saturate":
        return _saturating_shift(wide(raw), -dropped_bits, result.raw)
    return rescale(raw, -dropped_bits, result.raw)


def _round_off(values: Array, dropped_bits: int, mode: str) -> Array:
    """Values / 2^dropped_bits as integers; at least one bit is dropped, so adding one can't overflow."""
    floor = values >> dropped_bits
    if mode == "floor":
        return floor
    rest = pattern(values) & (ALL_ONES >> np.uint64(64 - dropped_bits))
    half = np.uint64(1 << (dropped_bits - 1))
    if mode == "trunc":
        up = (rest != 0) & (values < 0)
    elif mode == "half_up":
        up = rest >= half
    else:
        assert mode == "half_even", mode
        up = (rest > half) | ((rest == half) & ((floor & floor.dtype.type(1)) != 0))
    return floor + up.astype(floor.dtype)


def _saturating_shift(values: Array, shift_bits: int, result: IntType) -> Array:
    high, low = result.max >> shift_bits, -(-result.min >> shift_bits)
    info = np.iinfo(values.dtype)
    shifted = rescale(values, shift_bits, result)
    if high < info.max:
        shifted = np.where(values > values.dtype.type(high), shifted.dtype.type(result.max), shifted)
    if low > info.min:
        shifted = np.where(values < values.dtype.type(low), shifted.dtype.type(result.min), shifted)
    return shifted
