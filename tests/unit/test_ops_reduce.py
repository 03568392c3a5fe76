"""Reductions, contractions and pooling against plain loops over unbounded integers."""
from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from kera_hw.types import BOOL, FixType, IntType, TensorType
from tests.unit import ops_oracle as model

KINDS = [IntType(width, signed) for width in (1, 3, 8, 13, 32, 33, 53, 63, 64) for signed in (True, False)]
BATCH = 3


def _tensor(kind: IntType | FixType, shape: tuple[int, ...], seed: int) -> np.ndarray:
    raw = model.raw_type(kind)
    assert raw is not None
    values = model.edge_values(raw, seed, 2 * BATCH * math.prod(shape))
    count = BATCH * math.prod(shape)
    return model.array_of([values[k % len(values)] for k in range(count)], kind).reshape(BATCH, *shape)


def _objects(array: np.ndarray) -> np.ndarray:
    return array.astype(object)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("axis", [-1, 0, 1, 2])
def test_folds_along_each_axis(kind: IntType, axis: int) -> None:
    shape = (2, 3, 4)
    a = _tensor(kind, shape, 1)
    exact = _objects(a).reshape(BATCH, -1) if axis == -1 else _objects(a)
    array_axis = 1 if axis == -1 else axis + 1
    types = (TensorType(kind, shape),)

    def check(op: str, wanted: np.ndarray, **attrs: object) -> None:
        got, = model.run_op(op, [a], types, axis=axis, **attrs)
        assert _objects(got).tolist() == wanted.tolist(), op

    wrap = np.vectorize(lambda value: model.wrapped(int(value), kind), otypes=[object])
    check("reduce.sum", wrap(exact.sum(axis=array_axis)), order="")
    check("reduce.prod", wrap(exact.prod(axis=array_axis)), order="")
    check("reduce.min", exact.min(axis=array_axis))
    check("reduce.max", exact.max(axis=array_axis))

    def first(values: np.ndarray, best: int) -> int:
        return values.tolist().index(best)

    least = np.apply_along_axis(lambda row: first(row, min(row)), array_axis, exact)
    greatest = np.apply_along_axis(lambda row: first(row, max(row)), array_axis, exact)
    check("reduce.argmin", least)
    check("reduce.argmax", greatest)
    count = math.prod(shape) if axis == -1 else shape[axis]
    if count <= kind.max:
        quotient = np.vectorize(lambda total: model.BINARY["div"](total, count, kind), otypes=[object])
        check("reduce.mean", quotient(wrap(exact.sum(axis=array_axis))), order="")


def test_empty_sums_and_products() -> None:
    for kind in KINDS:
        types = (TensorType(kind, (0, 2)),)
        a = np.zeros((BATCH, 0, 2), model.array_of([0], kind).dtype)
        got, = model.run_op("reduce.sum", [a], types, axis=0, order="")
        assert got.tolist() == [[0, 0]] * BATCH
        got, = model.run_op("reduce.prod", [a], types, axis=-1, order="")
        assert got.tolist() == [model.wrapped(1, kind)] * BATCH


def test_fixed_point_sums_its_raw_integers() -> None:
    kind = FixType(13, 5, True)
    a = _tensor(kind, (7,), 2)
    got, = model.run_op("reduce.sum", [a], (TensorType(kind, (7,)),), axis=0, order="")
    raw = IntType(13, True)
    assert got.tolist() == [model.wrapped(sum(map(int, row)), raw) for row in a]


def test_any_and_all() -> None:
    rng = np.random.default_rng(3)
    a = rng.random((BATCH, 4, 5)) < 0.5
    kind = TensorType(BOOL, (4, 5))
    for axis in (-1, 0, 1):
        flat = a.reshape(BATCH, -1) if axis == -1 else a
        for op, fold in (("reduce.any", np.any), ("reduce.all", np.all)):
            got, = model.run_op(op, [a], (kind,), axis=axis)
            assert got.tolist() == fold(flat, axis=max(axis, 0) + 1).tolist()


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_contractions_wrap_in_the_element_type(kind: IntType) -> None:
    a, b = _tensor(kind, (4, 5), 4), _tensor(kind, (5, 3), 5)
    got, = model.run_op("reduce.matmul", [a, b], (TensorType(kind, (4, 5)), TensorType(kind, (5, 3))), mul="")
    for lane, i, j in product(range(BATCH), range(4), range(3)):
        exact = sum(int(a[lane, i, k]) * int(b[lane, k, j]) for k in range(5))
        assert int(got[lane, i, j]) == model.wrapped(exact, kind)
    x, y = a[:, 0], b[:, :, 0]
    vector = TensorType(kind, (5,))
    got, = model.run_op("reduce.dot", [x, y], (vector, vector), mul="", order="")
    for lane in range(BATCH):
        exact = sum(int(p) * int(q) for p, q in zip(x[lane], y[lane]))
        assert int(got[lane]) == model.wrapped(exact, kind)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.width_bits in (8, 13, 64)], ids=str)
@pytest.mark.parametrize(("stride", "pad"), [(1, 0), (1, 1), (2, 1), (3, 2)])
def test_conv2d(kind: IntType, stride: int, pad: int) -> None:
    x, w = _tensor(kind, (2, 5, 6), 6), _tensor(kind, (3, 2, 3, 2), 7)
    types = (TensorType(kind, (2, 5, 6)), TensorType(kind, (3, 2, 3, 2)))
    got, = model.run_op("reduce.conv2d", [x, w], types, mul="", pad=pad, stride=stride)

    def pixel(lane: int, c: int, i: int, j: int) -> int:
        return int(x[lane, c, i, j]) if 0 <= i < 5 and 0 <= j < 6 else 0

    for lane, o, i, j in np.ndindex(*got.shape):
        exact = sum(
            pixel(lane, c, i * stride + di - pad, j * stride + dj - pad) * int(w[lane, o, c, di, dj])
            for c, di, dj in product(range(2), range(3), range(2))
        )
        assert int(got[lane, o, i, j]) == model.wrapped(exact, kind)


@pytest.mark.parametrize("kind", [IntType(8, True), IntType(8, False), IntType(64, True)], ids=str)
@pytest.mark.parametrize(("size", "stride", "pad"), [(1, 1, 0), (2, 2, 0), (3, 2, 1), (3, 1, 2)])
def test_pooling_ignores_padding(kind: IntType, size: int, stride: int, pad: int) -> None:
    x = _tensor(kind, (2, 5, 4), 8)
    types = (TensorType(kind, (2, 5, 4)),)
    attrs = {"pad": pad, "size": size, "stride": stride}
    greatest, = model.run_op("reduce.max_pool2d", [x], types, **attrs)
    average, = model.run_op("reduce.avg_pool2d", [x], types, **attrs)
    for lane, c, i, j in np.ndindex(*greatest.shape):
        rows = [r for r in range(i * stride - pad, i * stride - pad + size) if 0 <= r < 5]
        columns = [q for q in range(j * stride - pad, j * stride - pad + size) if 0 <= q < 4]
        part = [int(x[lane, c, r, q]) for r in rows for q in columns]
        assert int(greatest[lane, c, i, j]) == max(part)
        total = model.wrapped(sum(part), kind)
        assert int(average[lane, c, i, j]) == model.wrapped(model.BINARY["div"](total, len(part), kind), kind)
