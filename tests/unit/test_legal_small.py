"""f16 and bf16 by way of f32: the argument in numbers, everything of one operand, and hard pairs of two.

``tests/exhaustive/test_exhaustive_pairs.py`` has all pairs.
"""
from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from kera_hw.legal.native import F16_CONVERSIONS, NOTHING_MORE, Native
from kera_hw.numerics import floatbits
from kera_hw.numerics.arrays import Array
from kera_hw.ops.registry import OPS
from kera_hw.types import BF16, F16, F32, F64, FixType, FloatType, IntType, Type
from tests.legal_cases import case, edges, operands, takes, wrong_lanes

SMALL = (F16, BF16)
UNARY = sorted(name for name in OPS if name.startswith("floating.") and takes(name, (F16,)))
MACHINES: dict[str, Native] = {"native": NOTHING_MORE, "with conversions": F16_CONVERSIONS}


def every(kind: FloatType) -> Array:
    """All values of a 16-bit format, all NaNs among them as the canonical one."""
    return floatbits.from_bits(np.arange(1 << 16, dtype=np.uint16), kind)


# The argument


def _digits(kind: FloatType) -> int:
    return kind.fraction_bits + 1


def _least(kind: FloatType) -> int:
    """The exponent of the least number."""
    return 2 - (1 << (kind.exponent_bits - 1)) - kind.fraction_bits


@pytest.mark.parametrize("kind", SMALL, ids=str)
def test_f32_has_twice_the_digits_and_two(kind: FloatType) -> None:
    """Figueroa's condition for sums, products, quotients and roots in the normal range."""
    assert _digits(F32) >= 2 * _digits(kind) + 2
    assert _digits(F32) >= _digits(kind) + 2 and _least(F32) <= _least(kind) - 2  # rounding to odd


def test_products_are_exact_where_it_matters() -> None:
    assert 2 * _digits(F16) <= _digits(F32) and 2 * _least(F16) >= _least(F32)
    # A bf16 product of 16 digits whose last one is below 2^-149 is below 2^-134, half the least number.
    assert _least(F32) + 2 * _digits(BF16) - 1 == _least(BF16) - 1


def test_quotients_of_f16_keep_their_distance() -> None:
    """Half-way numbers below the normal range, of at most 11 digits, and any other quotient beside them."""
    distance, error = Fraction(1, 2 ** (2 * _digits(F16))), Fraction(1, 2 ** _digits(F32))
    assert distance > error
    # f32 has all its digits at quotients of f16, the least of which is 2^-24 / 65504.
    assert Fraction(2) ** _least(F16) / 65504 > Fraction(2) ** -126


def test_quotients_of_bf16_keep_their_distance() -> None:
    """All significands A, B and half-way M 2^-134: A 2^-t / B is 2^-143 from M or more, unless it is M."""
    digits = _digits(BF16)
    a, m = np.meshgrid(np.arange(1, 1 << digits), np.arange(1, 1 << digits, 2), indexing="ij")
    for b in range(1, 1 << digits):
        for t in range(digits + 1):
            apart = np.abs(a * 2.0**-t / b - m)  # in units of 2^-134: exact where it is 0
            near = apart[(a * 2.0**-t != b * m.astype(np.float64)) & (apart < m)]
            assert not near.size or near.min() > 2.0**-9
    assert _least(F32) - 1 < _least(BF16) - 1 - 9  # f32 errs by half its least number


def test_rsqrt_in_f32_is_right_for_every_input() -> None:
    """Two roundings in f32, then one more: no theorem, so all of them."""
    for kind in SMALL:
        assert not wrong_lanes(case("floating.rsqrt", (kind,)), [every(kind)])


# All of one operand


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("kind", SMALL, ids=str)
@pytest.mark.parametrize("opcode", UNARY)
def test_every_operand(opcode: str, kind: FloatType, machine: str) -> None:
    assert not wrong_lanes(case(opcode, (kind,)), [every(kind)], MACHINES[machine])


TARGETS: tuple[Type, ...] = (
    F16, BF16, F32, F64,
    *(IntType(width, signed) for width in (1, 8, 13, 32, 33, 64) for signed in (True, False)),
    FixType(16, 8, True), FixType(64, 64, False), FixType(64, 20, True), FixType(5, 5, False),
)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("target", TARGETS, ids=str)
@pytest.mark.parametrize("kind", SMALL, ids=str)
def test_every_conversion(kind: FloatType, target: Type, machine: str) -> None:
    extra = MACHINES[machine]
    assert not wrong_lanes(case("convert.cast", (kind,), {"type": target}), [every(kind)], extra)


@pytest.mark.parametrize("kind", SMALL, ids=str)
def test_every_bit_pattern(kind: FloatType) -> None:
    word = IntType(16, False)
    patterns = np.arange(1 << 16, dtype=np.uint16)
    assert not wrong_lanes(case("convert.bitcast", (word,), {"type": kind}), [patterns])
    assert not wrong_lanes(case("convert.bitcast", (kind,), {"type": word}), [every(kind)])


@pytest.mark.parametrize("kind", SMALL, ids=str)
@pytest.mark.parametrize("source", [F32, F64], ids=str)
def test_numbers_beside_half_way(source: FloatType, kind: FloatType) -> None:
    """Every number of the format, the middles between them, and the nearest wider numbers to all of those."""
    size = every(kind)[: 1 << 15].astype(np.float64)
    size = size[np.isfinite(size)]
    middles = (size[1:] + size[:-1]) / 2
    word = np.dtype(f"u{source.width_bits // 8}")
    exact = np.concatenate([size, middles]).astype(f"f{source.width_bits // 8}").view(word)
    bits = np.concatenate([exact, exact + word.type(1), np.maximum(exact, 1) - word.type(1)])
    values = np.concatenate([bits, bits | word.type(1 << (source.width_bits - 1))]).view(f"f{word.itemsize}")
    assert not wrong_lanes(case("convert.cast", (source,), {"type": kind}), [values])


# Pairs


def _specials(kind: FloatType) -> tuple[Array, Array]:
    """All pairs of edges."""
    a, b = np.meshgrid(edges(kind), edges(kind))
    return a.reshape(-1), b.reshape(-1)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("kind", SMALL, ids=str)
@pytest.mark.parametrize("verb", ["add", "sub", "mul", "div", "min", "max", "copysign"])
def test_pairs(verb: str, kind: FloatType, machine: str) -> None:
    """All pairs of edges, and 100,000 others; half of them with exponents that meet."""
    item, extra = case(f"floating.{verb}", (kind, kind)), MACHINES[machine]
    assert not wrong_lanes(item, _specials(kind), extra)
    for args in _random(kind, 2, verb):
        assert not wrong_lanes(item, args, extra)


@pytest.mark.parametrize("kind", SMALL, ids=str)
def test_triples(kind: FloatType) -> None:
    item = case("floating.fma", (kind,) * 3)
    assert not wrong_lanes(item, operands(item.kinds, 100_000, 1))
    for args in _random(kind, 3, "fma"):
        assert not wrong_lanes(item, args)


def _random(kind: FloatType, count: int, seed: str) -> list[list[Array]]:
    """Anything, and numbers near one another."""
    rng = np.random.default_rng(list(seed.encode()))
    anything = [rng.integers(0, 1 << 16, 50_000, dtype=np.uint16) for _ in range(count)]
    one = ((1 << (kind.exponent_bits - 1)) - 1) << kind.fraction_bits
    span = 3 << kind.fraction_bits
    near = [
        (rng.integers(one - span, one + span, 50_000) | rng.integers(0, 2, 50_000) << 15).astype(np.uint16)
        for _ in range(count)
    ]
    return [[floatbits.from_bits(bits, kind) for bits in columns] for columns in (anything, near)]
