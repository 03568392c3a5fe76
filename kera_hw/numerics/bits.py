"""Bit operations on integers of any width: shifts, rotations, reversal, counting, fields."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kera_hw.numerics.arrays import UINT64, Array, canonical, uniform, unsigned_bits, wrap
from kera_hw.types import IntType, numpy_dtype

_SWAPS = (
    (1, 0x5555_5555_5555_5555), (2, 0x3333_3333_3333_3333), (4, 0x0F0F_0F0F_0F0F_0F0F),
    (8, 0x00FF_00FF_00FF_00FF), (16, 0x0000_FFFF_0000_FFFF), (32, 0x0000_0000_FFFF_FFFF),
)


def _amount(amount: Array, dtype: np.dtype[np.generic]) -> Array | int:
    """Shift amounts in the shifted dtype; NumPy itself gives 0 or the sign fill from its width on."""
    bits = 8 * dtype.itemsize
    single = uniform(amount)
    if single is not None:
        return min(single, bits)
    return np.minimum(amount, amount.dtype.type(bits)).astype(dtype)


def shl(a: Array, amount: Array, kind: IntType) -> Array:
    """Left shift; 0 from an amount of W on."""
    return canonical(a << _amount(amount, a.dtype), kind)


def shr(a: Array, amount: Array, kind: IntType) -> Array:
    """Right shift, arithmetic on signed types; 0 or the sign fill from an amount of W on."""
    return a >> _amount(amount, a.dtype)


def rotate_left(a: Array, amount: Array, kind: IntType) -> Array:
    """Rotation within W bits; the amount counts modulo W."""
    return _rotate(a, amount, kind, left=True)


def rotate_right(a: Array, amount: Array, kind: IntType) -> Array:
    return _rotate(a, amount, kind, left=False)


def _rotate(a: Array, amount: Array, kind: IntType, left: bool) -> Array:
    width = kind.width_bits
    bits = unsigned_bits(a, width)
    single = uniform(amount)
    if single is not None:
        up: Array | int = single % width if left else -single % width
        down: Array | int = width - up
    else:
        turn = (amount.astype(UINT64) % np.uint64(width)).astype(bits.dtype)
        rest = (bits.dtype.type(width) - turn).astype(bits.dtype)
        up, down = (turn, rest) if left else (rest, turn)
    turned = (bits << up) | (bits >> down)
    return canonical(turned.view(a.dtype), kind)


def reverse_bits(a: Array, kind: IntType) -> Array:
    return _reversed(a, kind, _SWAPS)


def reverse_bytes(a: Array, kind: IntType) -> Array:
    """Byte order reversed; the width is a multiple of 8."""
    return _reversed(a, kind, _SWAPS[3:])


def _reversed(a: Array, kind: IntType, swaps: tuple[tuple[int, int], ...]) -> Array:
    x = unsigned_bits(a, kind.width_bits).astype(UINT64)
    for distance, mask in swaps:
        step, keep = np.uint64(distance), np.uint64(mask)
        x = ((x >> step) & keep) | ((x & keep) << step)
    return wrap(x >> np.uint64(64 - kind.width_bits), kind)


def _popcount64(x: Array) -> Array:
    x = x - ((x >> np.uint64(1)) & np.uint64(_SWAPS[0][1]))
    x = (x & np.uint64(_SWAPS[1][1])) + ((x >> np.uint64(2)) & np.uint64(_SWAPS[1][1]))
    x = (x + (x >> np.uint64(4))) & np.uint64(_SWAPS[2][1])
    return ((x * np.uint64(0x0101_0101_0101_0101)) >> np.uint64(56)).astype(np.uint32)


def popcount(a: Array, kind: IntType) -> Array:
    """Number of set bits, as u32."""
    return _popcount64(unsigned_bits(a, kind.width_bits).astype(UINT64))


def count_leading_zeros(a: Array, kind: IntType) -> Array:
    """Zeros above the highest set bit, as u32; W for 0."""
    x = unsigned_bits(a, kind.width_bits).astype(UINT64)
    for distance in (1, 2, 4, 8, 16, 32):
        x = x | (x >> np.uint64(distance))
    return np.uint32(kind.width_bits) - _popcount64(x)


def count_trailing_zeros(a: Array, kind: IntType) -> Array:
    """Zeros below the lowest set bit, as u32; W for 0."""
    x = unsigned_bits(a, kind.width_bits).astype(UINT64)
    return np.minimum(_popcount64(~x & (x - np.uint64(1))), np.uint32(kind.width_bits))


def carryless_mul(a: Array, b: Array, result: IntType) -> Array:
    """Product of polynomials over GF(2) whose coefficients are the operands' bits, the low bits of it."""
    x, y = a.astype(UINT64), b.astype(UINT64)
    total: Array = np.zeros(np.broadcast_shapes(x.shape, y.shape), UINT64)
    for place in range(8 * b.dtype.itemsize):
        chosen = np.uint64(0) - (y >> np.uint64(place) & np.uint64(1))  # all ones where the bit is set
        total ^= x << np.uint64(place) & chosen
    return wrap(total, result)


def extract(a: Array, source: IntType, low: int, result: IntType) -> Array:
    """The field of ``result`` bits that starts at bit ``low``."""
    return wrap(unsigned_bits(a, source.width_bits) >> low, result)


def test(a: Array, index: int) -> Array:
    """Bit ``index`` of each value, as bool."""
    return (a & a.dtype.type(1 << index if a.dtype.kind == "u" else _signed_bit(index, a))) != 0


def _signed_bit(index: int, a: Array) -> int:
    top = 8 * a.dtype.itemsize - 1
    return -(1 << top) if index == top else 1 << index


def cat(parts: Sequence[Array], widths_bits: Sequence[int], result: IntType) -> Array:
    """Bit patterns joined, the first the most significant."""
    total: Array = np.zeros(1, UINT64)
    for part, width in zip(parts, widths_bits):
        total = (total << np.uint64(width)) | unsigned_bits(part, width).astype(UINT64)
    return total.astype(numpy_dtype(result))
