"""Elementary functions against MPFR: every f16 and bf16 input, f32 edges and samples, f64 within 1 ulp."""
from __future__ import annotations

import math

import numpy as np
import pytest

from kera_hw.numerics.arrays import Array
from kera_hw.numerics.elementary import FUNCTIONS, evaluate
from kera_hw.numerics.elementary import coefficients as c
from kera_hw.numerics.floatbits import to_bits
from kera_hw.types import BF16, F16, F32, F64, FloatType, numpy_dtype
from tests.exhaustive import wide
from tests.exhaustive.oracle import correct

ODD = ("sin", "tanh", "erf")
KEEPS_ZERO = (*ODD, "gelu", "silu")
INF, NAN = math.inf, math.nan

# Value at -inf, -0, +0, +inf.
LIMITS = {
    "exp": (0.0, 1.0, 1.0, INF), "exp2": (0.0, 1.0, 1.0, INF),
    "log": (NAN, -INF, -INF, INF), "log2": (NAN, -INF, -INF, INF),
    "sin": (NAN, -0.0, 0.0, NAN), "cos": (NAN, 1.0, 1.0, NAN),
    "tanh": (-1.0, -0.0, 0.0, 1.0), "erf": (-1.0, -0.0, 0.0, 1.0), "sigmoid": (0.0, 0.5, 0.5, 1.0),
    "gelu": (-0.0, -0.0, 0.0, INF), "silu": (-0.0, -0.0, 0.0, INF),
}

# f32 inputs that other derivations were seen to misround, and the least and greatest of each kind.
HARD = (
    0x3B429D37, 0xBCF3A937, 0x65D890D3, 0x6F31A8EC, 0x3C413D3A, 0x41178FEB, 0x4C5D65A5, 0x34000000,
    0xB3800000, 0x33800000, 0x3F800000, 0x3F7FFFFF, 0x3F800001, 0x00000001, 0x80000001, 0x007FFFFF,
    0x00800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x42B17218, 0x42B17217, 0xC2CFF1B4, 0xC2CFF1B5, 0x43000000,
    0xC3150000, 0xC3160000, 0x41102CB4, 0x41102CB3, 0x407AD447, 0xC1672000,
)


def every(kind: FloatType) -> Array:
    return np.arange(1 << 16, dtype=np.uint16).view(numpy_dtype(kind))


def assert_correct(name: str, inputs: Array, kind: FloatType) -> None:
    got, wanted = to_bits(evaluate(name, inputs, kind)), to_bits(correct(name, inputs, kind))
    wrong = [
        f"{name} {int(x):#x}: {int(y):#x}, not {int(z):#x}"
        for x, y, z in zip(to_bits(inputs), got, wanted) if y != z
    ]
    assert not wrong, wrong[:10]


@pytest.mark.parametrize("kind", [F16, BF16], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_input_of_16_bits_is_correctly_rounded(name: str, kind: FloatType) -> None:
    assert_correct(name, every(kind), kind)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_f32_edges_and_samples_are_correctly_rounded(name: str) -> None:
    random = np.random.default_rng(FUNCTIONS.index(name))
    near_one = np.arange(0x3F800000 - 200, 0x3F800000 + 200, dtype=np.uint32)
    bits = np.concatenate([
        np.array(HARD, np.uint32), near_one, near_one ^ np.uint32(1 << 31),
        random.integers(0, 1 << 32, 1500, dtype=np.uint32),
        random.normal(0, 6, 1500).astype(np.float32).view(np.uint32),
        random.uniform(-110, 110, 1500).astype(np.float32).view(np.uint32),
        np.array([x for x, _ in c.PATCHES[name]], np.float32).view(np.uint32),
    ])
    assert_correct(name, bits.view(np.float32), F32)


@pytest.mark.parametrize("kind", [F16, BF16, F32, F64], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_limits_and_signed_zeros(name: str, kind: FloatType) -> None:
    dtype = numpy_dtype(kind)
    inputs = np.array([-INF, -0.0, 0.0, INF], dtype)
    got, wanted = evaluate(name, inputs, kind), np.array(LIMITS[name], dtype)
    for x, y in zip(got.astype(np.float64), wanted.astype(np.float64)):
        assert (math.isnan(x) and math.isnan(y)) or (x == y and math.copysign(1, x) == math.copysign(1, y))
    nans = to_bits(got)[np.isnan(got.astype(np.float64))]
    assert all(int(bits) == kind.canonical_nan for bits in nans)


@pytest.mark.parametrize("kind", [F16, BF16, F32, F64], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_nan_gives_the_canonical_one_and_shapes_stay(name: str, kind: FloatType) -> None:
    word = np.dtype(f"u{numpy_dtype(kind).itemsize}")
    top = 1 << (kind.width_bits - 1)
    infinity = ((1 << kind.exponent_bits) - 1) << kind.fraction_bits
    payloads = np.array([infinity + 1, infinity | top + 1, top - 1, 2 * top - 1], word).reshape(2, 1, 2)
    got = evaluate(name, payloads.view(numpy_dtype(kind)), kind)
    assert got.shape == (2, 1, 2) and got.dtype == numpy_dtype(kind)
    assert (to_bits(got) == kind.canonical_nan).all()
    assert evaluate(name, np.zeros((0, 3), numpy_dtype(kind)), kind).shape == (0, 3)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_f64_results_lie_within_one_unit_in_the_last_place(name: str) -> None:
    error, place = wide.worst(name, wide.samples(FUNCTIONS.index(name), 150))
    assert error < 0.8, (name, place.hex(), error)


@pytest.mark.parametrize("kind", [F16, BF16, F32, F64], ids=str)
@pytest.mark.parametrize("name", ODD)
def test_odd_functions_are_odd_to_the_bit(name: str, kind: FloatType) -> None:
    random = np.random.default_rng(5)
    values = random.normal(0, 3, 1000).astype(numpy_dtype(kind))
    assert np.array_equal(evaluate(name, -values, kind), -evaluate(name, values, kind))
