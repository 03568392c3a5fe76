"""Data movement, lane by lane against plain loops; total indexing at and beyond every edge."""
from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from kera_hw.types import BF16, BOOL, F32, F64, FixType, IntType, TensorType, Type, numpy_dtype
from tests.unit.ops_oracle import Array, edge_values, run_op

I16, U8 = IntType(16, True), IntType(8, False)
BATCH = 4
rng = np.random.default_rng(11)


def _values(shape: tuple[int, ...], kind: Type = I16) -> Array:
    return rng.integers(0, 100, (BATCH, *shape)).astype(numpy_dtype(kind))


def _clamp(index: int, limit: int) -> int:
    return min(max(int(index), 0), limit)


def _index_columns(kinds: list[IntType]) -> list[Array]:
    """For each index type a batch of edge values, the first lanes the most extreme."""
    columns: list[Array] = []
    for seed, kind in enumerate(kinds):
        values = [kind.min, kind.max, *edge_values(kind, seed, 4)]
        columns.append(np.array(values[:BATCH], dtype=object).astype(numpy_dtype(kind)))
    return columns


INDEX_TYPES = [IntType(w, s) for w, s in product((2, 8, 16, 33, 64), (True, False))]


@pytest.mark.parametrize("kind", INDEX_TYPES, ids=str)
def test_index_and_update_clamp(kind: IntType) -> None:
    shape = (3, 5)
    tensor, element = _values(shape), _values(())
    columns = _index_columns([kind, IntType(8, True)])
    types = (TensorType(I16, shape), I16, kind, IntType(8, True))
    got, = run_op("tensor.index", [tensor, *columns], (types[0], *types[2:]))
    updated, = run_op("tensor.update", [tensor, element, *columns], types)
    for lane in range(BATCH):
        i, j = (_clamp(column[lane], extent - 1) for column, extent in zip(columns, shape))
        assert got[lane] == tensor[lane, i, j]
        wanted = tensor[lane].copy()
        wanted[i, j] = element[lane]
        assert np.array_equal(updated[lane], wanted)


@pytest.mark.parametrize("kind", INDEX_TYPES, ids=str)
@pytest.mark.parametrize("sizes", [(1, 1), (2, 5), (3, 2), (0, 1)])
def test_windows_clamp_so_that_they_fit(kind: IntType, sizes: tuple[int, int]) -> None:
    shape = (3, 5)
    tensor, patch = _values(shape), _values(sizes)
    columns = _index_columns([kind, IntType(4, True)])
    kinds = (kind, IntType(4, True))
    got, = run_op("tensor.slice", [tensor, *columns], (TensorType(I16, shape), *kinds), sizes=sizes)
    types = (TensorType(I16, shape), TensorType(I16, sizes), *kinds)
    updated, = run_op("tensor.update_slice", [tensor, patch, *columns], types)
    for lane in range(BATCH):
        i, j = (_clamp(c[lane], extent - size) for c, extent, size in zip(columns, shape, sizes))
        window = (slice(i, i + sizes[0]), slice(j, j + sizes[1]))
        assert np.array_equal(got[lane], tensor[lane][window])
        wanted = tensor[lane].copy()
        wanted[window] = patch[lane]
        assert np.array_equal(updated[lane], wanted)


def test_empty_tensors_have_a_meaning_too() -> None:
    empty = TensorType(I16, (0, 3))
    value, zeros = np.zeros((BATCH, 0, 3), np.int16), np.zeros(BATCH, np.uint8)
    got, = run_op("tensor.index", [value, zeros, zeros], (empty, U8, U8))
    assert got.tolist() == [0] * BATCH
    run_op("tensor.update", [value, np.ones(BATCH, np.int16), zeros, zeros], (empty, I16, U8, U8))
    indices = np.zeros((BATCH, 2), np.uint8)
    got, = run_op("tensor.gather", [value, indices], (empty, TensorType(U8, (2,))))
    assert got.tolist() == np.zeros((BATCH, 2, 3)).tolist()
    run_op("tensor.shift_in", [value, np.ones((BATCH, 3), np.int16)], (empty, TensorType(I16, (3,))))


@pytest.mark.parametrize("kind", INDEX_TYPES, ids=str)
def test_gather_clamps_each_index(kind: IntType) -> None:
    tensor = _values((5, 2))
    flat = [kind.min, kind.max, *edge_values(kind, 3, 8), 0, 1]
    rows = [[flat[(lane + k) % len(flat)] for k in range(6)] for lane in range(BATCH)]
    indices = np.array(rows, dtype=object).astype(numpy_dtype(kind)).reshape(BATCH, 2, 3)
    got, = run_op("tensor.gather", [tensor, indices], (TensorType(I16, (5, 2)), TensorType(kind, (2, 3))))
    for lane, i, j in product(range(BATCH), range(2), range(3)):
        assert np.array_equal(got[lane, i, j], tensor[lane, _clamp(indices[lane, i, j], 4)])


def test_shapes_move_elements_as_numpy_does_in_each_lane() -> None:
    shape = (2, 3, 4)
    tensor, kind = _values(shape), TensorType(I16, shape)
    other = _values((2, 1, 4))
    row, scalar = _values((3, 4)), _values(())
    cases = [
        ("tensor.reshape", [tensor], (kind,), {"shape": (4, 6)}, lambda k: tensor[k].reshape(4, 6)),
        ("tensor.permute", [tensor], (kind,), {"axes": (2, 0, 1)}, lambda k: tensor[k].transpose(2, 0, 1)),
        ("tensor.reverse", [tensor], (kind,), {"axis": 1}, lambda k: tensor[k][:, ::-1]),
        ("tensor.concat", [tensor, other], (kind, TensorType(I16, (2, 1, 4))), {"axis": 1},
         lambda k: np.concatenate([tensor[k], other[k]], 1)),
        ("tensor.broadcast", [row], (TensorType(I16, (3, 4)),), {"shape": (5, 3, 4)},
         lambda k: np.broadcast_to(row[k], (5, 3, 4))),
        ("tensor.broadcast", [other], (TensorType(I16, (2, 1, 4)),), {"shape": (3, 2, 7, 4)},
         lambda k: np.broadcast_to(other[k], (3, 2, 7, 4))),
        ("tensor.broadcast", [scalar], (I16,), {"shape": (2, 2)}, lambda k: np.full((2, 2), scalar[k])),
        ("tensor.pad", [row, scalar], (TensorType(I16, (3, 4)), I16), {"high": (2, 0), "low": (0, 1)},
         lambda k: np.pad(row[k], ((0, 2), (1, 0)), constant_values=scalar[k])),
        ("tensor.stack", [tensor, tensor + 1], (kind, kind), {},
         lambda k: np.stack([tensor[k], tensor[k] + 1])),
        ("tensor.stack", [scalar, scalar * 2], (I16, I16), {},
         lambda k: np.array([scalar[k], scalar[k] * 2])),
        ("tensor.shift_in", [tensor, row], (kind, TensorType(I16, (3, 4))), {},
         lambda k: np.concatenate([tensor[k][1:], row[k][None]])),
        ("memory.transfer", [tensor], (kind,), {"space": "device"}, lambda k: tensor[k]),
    ]
    for op, args, types, attrs, wanted in cases:
        got, = run_op(op, args, types, **attrs)
        for lane in range(BATCH):
            assert np.array_equal(got[lane], wanted(lane)), op


def test_iota_wraps_in_integers_and_formats() -> None:
    cases: list[tuple[Type, list[int]]] = [
        (IntType(2, False), [0, 1, 2, 3, 0, 1]), (IntType(2, True), [0, 1, -2, -1, 0, 1]),
        (FixType(4, 1, False), [0, 2, 4, 6, 8, 10]), (FixType(3, 3, True), [0] * 6),
    ]
    for kind, wanted in cases:
        got, = run_op("tensor.iota", [], (), size=6, type=kind)
        assert got[0].tolist() == wanted
    for kind in (F32, F64, BF16):
        got, = run_op("tensor.iota", [], (), size=6, type=kind)
        assert got[0].astype(float).tolist() == [0, 1, 2, 3, 4, 5]


def test_data_movement_keeps_float_bits() -> None:
    value = np.array([[1.5, -0.0, np.inf, np.nan]] * 2, np.float32)
    kind = TensorType(F32, (4,))
    got, = run_op("tensor.reverse", [value], (kind,), axis=0)
    assert got.tobytes() == value[:, ::-1].tobytes()
    chosen, = run_op("control.select", [np.array([True, False]), value, value * 2], (BOOL, kind, kind))
    assert chosen[0].tobytes() == value[0].tobytes() and chosen[1].tobytes() == (value * 2)[1].tobytes()


def test_bitcast_to_float_canonicalises_nan() -> None:
    u32 = IntType(32, False)
    bits = np.array([0x7FC00000, 0xFFC00000, 0x7F800001, 0x80000000, 0x7F800000, 0x3F800000], np.uint32)
    got, = run_op("convert.bitcast", [bits], (u32,), type=F32)
    wanted = [0x7FC00000, 0x7FC00000, 0x7FC00000, 0x80000000, 0x7F800000, 0x3F800000]
    assert got.view(np.uint32).tolist() == wanted
    back, = run_op("convert.bitcast", [got], (F32,), type=u32)
    assert back.tolist() == wanted
    i16 = IntType(16, True)
    got, = run_op("convert.bitcast", [np.array([-1, 0x3F80], np.int16)], (i16,), type=BF16)
    assert got.view(np.uint16).tolist() == [0x7FC0, 0x3F80]
