"""The host's modes, and corners of float arithmetic that random vectors seldom meet."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Iterator

import numpy as np
import pytest

from kera_hw.numerics import composites, exact, floats, fused, host, orders, rounding
from kera_hw.support import KeraError
from kera_hw.types import BF16, F16, F32, F64, FloatType
from tests.conformance import oracle
from tests.conformance.vectors import bits_dtype, draw, special_bits, values_of

FORMATS = (F16, BF16, F32, F64)
UPWARD = 0x800  # FE_UPWARD of x86


@pytest.fixture
def fresh_probe() -> Iterator[None]:
    host.check_host.cache_clear()
    yield
    host.check_host.cache_clear()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the constants of fesetround are x86's")
def test_another_rounding_mode_is_noticed(fresh_probe: None) -> None:
    library = ctypes.CDLL("libm.so.6")
    try:
        assert library.fesetround(UPWARD) == 0
        with pytest.raises(KeraError) as caught:
            host.check_host()
    finally:
        library.fesetround(0)
    assert [item.code for item in caught.value.diagnostics] == ["K0703"]
    host.check_host()


def test_flushed_subnormals_are_noticed(fresh_probe: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The probe's sums and products of subnormals differ from zero in every lane, so a flush cannot pass."""
    real = np.ldexp

    def flushed(significand: float, exponent: int) -> np.ndarray:
        value = real(significand, exponent)
        return np.where(np.abs(value) < 2.0**-126, 0.0, value)

    monkeypatch.setattr(host.np, "ldexp", flushed)
    with pytest.raises(KeraError):
        host.check_host()


@pytest.mark.parametrize("kind", FORMATS, ids=str)
def test_operands_spread_and_stay_as_they_were(kind: FloatType) -> None:
    rng = np.random.default_rng(1)
    column, row = (values_of(draw(kind, n, rng), kind) for n in (7, 5))
    before = column.tobytes()
    for result in (
        floats.add(column[:, np.newaxis], row, kind), floats.fma(column[:, np.newaxis], row, row, kind),
        floats.minimum(column[:, np.newaxis], row, kind),
    ):
        assert result.shape == (7, 5) and result.dtype == column.dtype
    shared = np.broadcast_to(column[:1], 9)
    assert floats.sqrt(shared, kind).tobytes() == np.repeat(floats.sqrt(column[:1], kind), 9).tobytes()
    assert column.tobytes() == before


def test_both_ways_of_fusing_f64_agree() -> None:
    """Error-free transforms and integers, where both are defined: cancellation, ties, far apart."""
    rng = np.random.default_rng(2)
    count = 40_000
    a = rng.standard_normal(count) * 2.0 ** rng.integers(-30, 30, count)
    b = rng.standard_normal(count) * 2.0 ** rng.integers(-30, 30, count)
    a[::2] = (a[::2].view(np.int64) & np.int64(-(1 << 40))).view(np.float64)  # few bits: ties
    product = a * b
    near = (product.view(np.int64) + rng.integers(-2, 3, count)).view(np.float64)
    for c in (-product, -near, np.ldexp(product, rng.integers(50, 56, count)),
              np.ldexp(-product, rng.integers(-108, -50, count)), rng.standard_normal(count)):
        with np.errstate(all="ignore"):
            usual, whole = fused._fma_usual(a, b, c), fused._fma_finite(a, b, c)
        assert np.array_equal(usual.view(np.int64), whole.view(np.int64))


def test_an_infinite_addend_decides_where_the_product_overflows() -> None:
    big, infinity = np.array([1e300]), np.array([np.inf])
    assert floats.fma(big, big, -infinity, F64) == -np.inf
    assert floats.fma(big, big, -big, F64) == np.inf
    assert np.isnan(floats.fma(infinity, big * 0, big, F64))


@pytest.mark.parametrize("kind", FORMATS, ids=str)
def test_keys_order_as_values_do(kind: FloatType) -> None:
    bits = np.array(special_bits(kind), bits_dtype(kind))
    keys = floats.ordered(values_of(bits, kind), kind)
    assert floats.from_ordered(keys, kind).tobytes() == bits.tobytes()
    ranked = oracle.as_doubles(bits[np.argsort(keys)], kind)
    assert np.isnan(ranked[-1]) and np.all(np.diff(ranked[1:-2]) >= 0)


@pytest.mark.parametrize("kind", FORMATS, ids=str)
def test_an_inverse_root_of_a_count_rounds_once(kind: FloatType) -> None:
    mpfr = oracle.mpfr(kind)
    counts = [*range(1, 300), 1000, 4096, 65_535, 65_537, 10**6 + 3]
    exactly = oracle.mpfr(F64).bits_in(np.array(counts, np.float64).view(np.uint64))
    want = mpfr.bits_out([mpfr.rsqrt(count) for count in exactly])
    got = np.concatenate([composites.inverse_root(count, kind) for count in counts])
    assert got.tobytes() == want.tobytes()


def test_significands_of_any_length_round_once() -> None:
    ends, ties = [0, 1, 3, (1 << 64) - 1, 1 << 63], [(1 << 53) + 1, (1 << 54) + 2, (1 << 54) + 6]
    significand = np.array(ends + ties, np.uint64)
    zero = np.zeros(len(significand), np.int64)
    got = rounding.assemble(zero != 0, significand, zero, F64)
    assert got.tolist() == [float(int(number)) for number in significand]
    tiny = rounding.assemble(zero != 0, significand, zero - 1200, F64)
    assert tiny.tolist() == [0.0] * len(significand)
    few, exponent = np.array([1, 3, 2], np.uint64), np.full(3, -1075)
    edge = rounding.assemble(np.ones(3, np.bool_), few, exponent, F64)
    assert edge.tolist() == [-0.0, -1e-323, -5e-324] and np.signbit(edge).all()
    assert rounding.assemble(zero != 0, significand | np.uint64(1), zero + 5000, F32).tolist() == [np.inf] * 8


def test_sums_in_each_order_differ_as_they_should() -> None:
    values = np.array([[1e8, 1, -1e8, 1, 1, 1]], np.float32)
    kinds = ("sequential", "tree", "exact")
    found = {order: float(orders.total(values, 1, order, F32)[0]) for order in kinds}
    assert found == {"sequential": 3.0, "tree": 2.0, "exact": 4.0}
    many = np.full((1, 100_000), np.float32(0.1))
    assert exact.total(many, F32)[0] == np.float32(10000.0 + 100_000 * (float(np.float32(0.1)) - 0.1))


def test_rsqrt_of_every_f32_significand_is_the_nearest() -> None:
    """For x = M / 2^23 in [1, 4) and y = Y / 2^24: the real root lies within half a place of Y.

    (2Y - 1)^2 * M < 2^73 < (2Y + 1)^2 * M, in integers modulo 2^64: the sides differ by less than 2^62.
    """
    for low in range(1 << 23, 1 << 25, 1 << 22):
        step = 1 if low < 1 << 24 else 2
        m = np.arange(low, low + (1 << 22), step, dtype=np.uint64)
        x = (m.astype(np.float64) * 2.0**-23).astype(np.float32)
        y = (floats.rsqrt(x, F32).astype(np.float64) * 2.0**24).astype(np.uint64)
        above = ((2 * y + np.uint64(1)) ** np.uint64(2) * m).view(np.int64)
        below = ((2 * y - np.uint64(1)) ** np.uint64(2) * m).view(np.int64)
        assert np.all(above > 0) and np.all(below < 0), low
        assert np.abs(above).max() < 1 << 62 and np.abs(below).max() < 1 << 62
