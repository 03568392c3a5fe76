"""The array layer under the operations: canonical width, 128-bit products, exact matrix products."""
from __future__ import annotations

import numpy as np
import pytest

from kera_hw.numerics import arrays, integers, reductions
from kera_hw.types import IntType, numpy_dtype
from tests.unit import ops_oracle as model

ALL_TYPES = [IntType(width, signed) for width in range(1, 65) for signed in (True, False)]


@pytest.mark.parametrize("kind", ALL_TYPES, ids=str)
def test_wrap_reduces_modulo_the_width(kind: IntType) -> None:
    values = model.edge_values(IntType(64, True), 1, 30)
    got = arrays.wrap(np.array(values, np.int64), kind)
    assert got.dtype == numpy_dtype(kind)
    assert got.tolist() == [kind.wrap(value) for value in values]
    assert arrays.is_canonical(got, kind)
    if kind.width_bits not in (8, 16, 32, 64):
        beyond = np.array([kind.max + 1], dtype=object).astype(numpy_dtype(kind))
        assert not arrays.is_canonical(beyond, kind)


def test_products_of_128_bits() -> None:
    a, b = model.pairs(IntType(64, False), 2, 20)
    high, low = integers.multiply_128(np.array(a, np.uint64), np.array(b, np.uint64))
    for x, y, top, bottom in zip(a, b, high, low):
        assert (int(top) << 64) + int(bottom) == x * y


@pytest.mark.parametrize(("low", "high"), [(-128, 127), (0, 1 << 64), (-(1 << 64), 0), (5, 9)])
def test_clip_takes_bounds_beyond_the_dtype(low: int, high: int) -> None:
    for dtype in (np.int64, np.uint64):
        values = np.array([np.iinfo(dtype).min, 0, 7, np.iinfo(dtype).max], dtype)
        assert arrays.clip(values, low, high).tolist() == [sorted((low, int(v), high))[1] for v in values]


def test_uniform_reads_off_layout_and_never_guesses() -> None:
    assert arrays.uniform(np.broadcast_to(np.uint8(7), (5,))) == 7
    assert arrays.uniform(np.array([3])) == 3
    assert arrays.uniform(np.array([3, 3])) is None
    assert arrays.uniform(np.zeros((1, 2), np.int8)) is None
    assert arrays.uniform(np.zeros(0, np.int8)) is None


@pytest.mark.parametrize("width", [20, 24, 25, 26, 27, 32])
def test_matrix_products_on_both_sides_of_the_exact_float_limit(width: int) -> None:
    """With 8 terms the float path ends where 2 * (width - 1) + 3 passes 53 bits: near 26."""
    for signed in (True, False):
        kind = IntType(2 * width, signed)
        bound = 1 << (width - 1)
        rng = np.random.default_rng(width)
        drawn = rng.integers(-bound if signed else 0, bound, (2, 2, 8, 8)).astype(numpy_dtype(kind))
        a, b = drawn[0], drawn[1]
        a[0], b[0] = bound, bound - 1
        wanted = np.matmul(a.astype(object), b.astype(object))
        got = reductions.matmul(a, b, kind)
        assert got.tolist() == np.vectorize(kind.wrap, otypes=[object])(wanted).tolist()


def test_empty_matrix_products_are_zero() -> None:
    kind = IntType(32, True)
    got = reductions.matmul(np.zeros((2, 3, 0), np.int32), np.zeros((2, 0, 4), np.int32), kind)
    assert got.shape == (2, 3, 4) and not got.any()
