"""f32 and f64 where native forms are long: fused multiply-add, reciprocal roots, great integers."""
from __future__ import annotations

import numpy as np
import pytest

from kera_hw.numerics.arrays import Array
from kera_hw.numerics.elementary import FUNCTIONS
from kera_hw.types import BF16, F16, F32, F64, FixType, FloatType, IntType, Type, numpy_dtype
from tests.elementary_arguments import arguments
from tests.legal_cases import case, edges, operands, wrong_lanes

_COUNT = 30_000


def _floats(kind: FloatType, rng: np.random.Generator, low: int, high: int, count: int = _COUNT) -> Array:
    """Random numbers with exponents from ``low`` to ``high``, many with few digits."""
    fraction, bias = kind.fraction_bits, (1 << (kind.exponent_bits - 1)) - 1
    word = np.dtype(f"u{kind.width_bits // 8}")
    exponents = rng.integers(low + bias, high + bias + 1, count, dtype=np.uint64)
    digits = rng.integers(0, 1 << fraction, count, dtype=np.uint64)
    kept = rng.integers(0, fraction + 1, count, dtype=np.uint64)
    bits = (exponents << np.uint64(fraction)) | (digits >> kept << kept)
    bits |= rng.integers(0, 2, count, dtype=np.uint64) << np.uint64(kind.width_bits - 1)
    return bits.astype(word).view(numpy_dtype(kind))


def _span(kind: FloatType) -> int:
    return (1 << (kind.exponent_bits - 1)) - 2


@pytest.mark.parametrize("kind", [F32, F64], ids=str)
def test_fma_where_the_addend_cancels(kind: FloatType) -> None:
    """The addend is the negative product rounded, or lies beside it: the product's error is left."""
    rng = np.random.default_rng(1)
    third = _span(kind) // 3
    for low, high in ((-10, 10), (-third, third), (third, third + 20), (-third - 40, -third)):
        a, b = (_floats(kind, rng, low, high) for _ in range(2))
        c = -(a * b)
        word = c.view(f"u{c.itemsize}")
        beside = (word + rng.integers(0, 3, _COUNT, dtype=word.dtype)).view(c.dtype)
        finite = np.isfinite(beside)
        args = [a[finite], b[finite], beside[finite]]
        assert not wrong_lanes(case("floating.fma", (kind,) * 3), args)


@pytest.mark.parametrize("exponent", [0, 300, 450, -300, -450])
def test_fma_that_cancels_wholly_is_positive_zero(exponent: int) -> None:
    """Factors of few digits have exact products; the addend is their negative, or an infinity's."""
    rng = np.random.default_rng(9)
    sign = np.where(rng.integers(0, 2, _COUNT) == 1, 1.0, -1.0)
    a, b = (np.ldexp(rng.integers(1, 1 << 26, _COUNT).astype(np.float64), exponent) for _ in range(2))
    product = a * sign * b
    for addend in (-product, np.nextafter(-product, 0), product, -np.inf * sign):
        assert not wrong_lanes(case("floating.fma", (F64,) * 3), [a * sign, b, addend])


@pytest.mark.parametrize("kind", [F32, F64], ids=str)
@pytest.mark.parametrize("product", ["small", "great", "any"])
def test_fma_at_all_distances(kind: FloatType, product: str) -> None:
    """Addends far above and below the product; results below the normal range and beyond it."""
    rng, half = np.random.default_rng(2), _span(kind) // 2
    near = {
        "small": (-half - 30, -half + 4), "great": (half - 30, half + 2), "any": (-_span(kind), _span(kind)),
    }
    a, b = (_floats(kind, rng, *near[product]) for _ in range(2))
    with np.errstate(all="ignore"):
        sizes = np.abs((a * b).astype(np.float64))
    exponents = np.where((sizes > 0) & np.isfinite(sizes), np.frexp(sizes)[1], 0)
    shift = rng.integers(-130, 131, _COUNT)
    with np.errstate(all="ignore"):
        c = np.ldexp(_floats(kind, rng, 0, 0), exponents + shift).astype(numpy_dtype(kind))
    zero: Array = np.zeros_like(c)
    for addend in (c, _floats(kind, rng, -_span(kind), _span(kind)), zero, np.negative(zero)):
        assert not wrong_lanes(case("floating.fma", (kind,) * 3), [a, b, addend])


def test_fma_of_halves_and_their_neighbours() -> None:
    """Sums half-way between two f64, with something far below that decides."""
    rng = np.random.default_rng(3)
    one = 1.0 + rng.integers(0, 1 << 52, _COUNT) * 2.0**-52
    tiny = np.ldexp(np.where(rng.integers(0, 2, _COUNT) == 1, 1.0, -1.0), rng.integers(-140, -54, _COUNT))
    half = np.full(_COUNT, 2.0**-53)
    item = case("floating.fma", (F64,) * 3)
    for scale in (1.0, 2.0**-1000, 2.0**900):
        assert not wrong_lanes(item, [half * scale, np.ones(_COUNT), one * scale])
        factor = (1.0 + tiny * 2.0**40) * scale
        assert not wrong_lanes(item, [factor, half, one * scale])


@pytest.mark.parametrize("kind", [F32, F64], ids=str)
def test_reciprocal_roots(kind: FloatType) -> None:
    rng = np.random.default_rng(4)
    item = case("floating.rsqrt", (kind,))
    assert not wrong_lanes(item, [edges(kind)])
    assert not wrong_lanes(item, [np.abs(_floats(kind, rng, -_span(kind), _span(kind)))])
    least = np.arange(1, 1000, dtype=f"u{kind.width_bits // 8}")
    assert not wrong_lanes(item, [least.view(numpy_dtype(kind))])
    powers = np.ldexp(np.ones(2 * _span(kind)), np.arange(-_span(kind), _span(kind)))
    assert not wrong_lanes(item, [np.nextafter(powers, 0).astype(numpy_dtype(kind))])


INTEGERS: tuple[Type, ...] = (
    *(IntType(width, True) for width in (25, 33, 54, 64)), *(IntType(width, False) for width in (32, 63, 64)),
    FixType(64, 64, False), FixType(64, 60, True), FixType(40, 3, True), FixType(12, 12, False),
)


@pytest.mark.parametrize("target", [F16, BF16, F32, F64], ids=str)
@pytest.mark.parametrize("source", INTEGERS, ids=str)
def test_great_integers_round_once(source: Type, target: FloatType) -> None:
    item = case("convert.cast", (source,), {"type": target})
    assert not wrong_lanes(item, operands(item.kinds, 4000, 5))
    assert not wrong_lanes(item, [_beside_middles(source, target)])


def _beside_middles(source: Type, target: FloatType) -> Array:
    """Integers half-way between two numbers of the format, and those next to them."""
    raw = source.raw if isinstance(source, FixType) else source
    assert isinstance(raw, IntType)
    rng = np.random.default_rng(6)
    found: list[int] = []
    digits = target.fraction_bits + 1
    for top in range(digits + 1, raw.width_bits):
        for _ in range(20):
            middle = ((1 << digits | int(rng.integers(0, 1 << digits))) << 1 | 1) << (top - digits) >> 2
            found += [middle - 1, middle, middle + 1]
    values = [raw.wrap(sign * value) for value in (*found, 0, 1) for sign in (1, -1)]
    return np.array(values, object).astype(numpy_dtype(source))


@pytest.mark.parametrize("source", [F32, F64], ids=str)
@pytest.mark.parametrize("target", INTEGERS, ids=str)
def test_floats_that_do_not_fit_saturate(source: FloatType, target: Type) -> None:
    rng = np.random.default_rng(7)
    item = case("convert.cast", (source,), {"type": target})
    for values in (edges(source), _floats(source, rng, -70, 70), _floats(source, rng, -3, 3)):
        assert not wrong_lanes(item, [values])


@pytest.mark.parametrize("kind", [F32, F64], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_elementary_functions_whatever_nan_comes_out_on_the_way(name: str, kind: FloatType) -> None:
    """`exp` computes with the bits of what may be a NaN; f16 and bf16 are tried whole elsewhere."""
    assert not wrong_lanes(case(f"floating.{name}", (kind,)), [arguments(kind, 4000)])


def test_f64_to_narrower_formats() -> None:
    rng = np.random.default_rng(8)
    for target in (F16, BF16, F32):
        item = case("convert.cast", (F64,), {"type": target})
        for values in (_floats(F64, rng, -160, 140), _floats(F64, rng, -30, 20), edges(F64)):
            assert not wrong_lanes(item, [values])
