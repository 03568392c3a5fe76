"""Values at the edge of the interpreter: structures, dtypes, ranges, batches, and what is told when they
do not fit."""
from __future__ import annotations

from collections import namedtuple
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from kera_hw.graph.node import Export
from kera_hw.graph.store import Store
from kera_hw.interp import flatten_value, run_export, unflatten_value
from kera_hw.support import KeraError
from kera_hw.types import (
    BF16,
    BOOL,
    F32,
    U32,
    FixType,
    IntType,
    StructType,
    TensorType,
    TupleType,
    Type,
    leaf_types,
)

I13, U5, I64, U64 = IntType(13, True), IntType(5, False), IntType(64, True), IntType(64, False)
POINT = StructType("m::Point", (("x", I13), ("flags", TupleType((BOOL, U5)))))


def _identity(kind: Type) -> Export:
    store = Store()
    kinds = leaf_types(kind)
    region = store.region(kinds, [store.param(index, leaf) for index, leaf in enumerate(kinds)])
    return Export("same", "fn", (("v", kind),), kind, region)


def _assert_equal(a: Any, b: Any) -> None:
    assert type(a) is type(b) or isinstance(a, np.ndarray | np.generic)
    if isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            _assert_equal(a[key], b[key])
    elif isinstance(a, tuple):
        for x, y in zip(a, b, strict=True):
            _assert_equal(x, y)
    else:
        assert np.array_equal(a, b)


SINGLE: list[tuple[Type, Any]] = [
    (I13, -4096), (U64, (1 << 64) - 1), (I64, -(1 << 63)), (BOOL, True), (FixType(16, 8, True), -300),
    (TensorType(U5, (2, 2)), [[0, 31], [1, 2]]), (TupleType(()), ()), (TensorType(U32, (0,)), []),
    (POINT, {"x": 5, "flags": (True, 31)}),
    (TensorType(POINT, (2,)), {"x": [1, -2], "flags": ([True, False], [3, 4])}),
    (TupleType((POINT, U32)), ({"x": 1, "flags": (False, 2)}, 7)),
    (F32, 1.5), (BF16, ml_dtypes.bfloat16(2.5)), (TensorType(F32, (2,)), [1, 2]),
]


@pytest.mark.parametrize(("kind", "value"), SINGLE, ids=lambda item: str(item)[:30])
def test_one_item_comes_back_as_it_went_in(kind: Type, value: Any) -> None:
    got = run_export(_identity(kind), {"v": value})
    leaves = flatten_value(kind, got)
    for leaf, wanted in zip(leaves, flatten_value(kind, value), strict=True):
        assert leaf.dtype == wanted.dtype and np.array_equal(leaf, wanted)
    _assert_equal(unflatten_value(kind, leaves, batch=False), got)


def test_scalars_come_back_in_their_dtype() -> None:
    assert isinstance(run_export(_identity(I13), {"v": 5}), np.int16)
    assert isinstance(run_export(_identity(BOOL), {"v": np.True_}), np.bool_)
    assert run_export(_identity(TensorType(U5, (3,))), {"v": [1, 2, 3]}).dtype == np.uint8


def test_batches_of_structures() -> None:
    kind = TensorType(POINT, (2,))
    value = {
        "x": np.arange(6).reshape(3, 2), "flags": (np.ones((3, 2), np.bool_), np.full((3, 2), 9, np.int64)),
    }
    got = run_export(_identity(kind), {"v": value}, batch=True)
    assert got["x"].dtype == np.int16 and got["x"].tolist() == value["x"].tolist()
    assert got["flags"][0].tolist() == value["flags"][0].tolist()
    assert got["flags"][1].dtype == np.uint8 and got["flags"][1].shape == (3, 2)


ITEMS = [{"x": k, "flags": (k > 1, k)} for k in range(5)]
ROWS = np.array([(k, (k > 1, k)) for k in range(5)], [("x", "i2"), ("flags", [("a", "?"), ("b", "u1")])])
Named = namedtuple("Named", ["flags", "x"])


@pytest.mark.parametrize(
    "items",
    [ITEMS, [(k, (k > 1, k)) for k in range(5)], ROWS, list(ROWS), np.array(ITEMS, object),
     [Named((k > 1, k), k) for k in range(5)], [{"x": np.int16(k), "flags": [k > 1, k]} for k in range(5)]],
    ids=["dicts", "tuples", "structured", "records", "objects", "named tuples", "lists for tuples"],
)  # fmt: skip
def test_structs_may_come_as_a_list_of_items(items: Any) -> None:
    got = run_export(_identity(POINT), {"v": items}, batch=True)
    assert got["x"].tolist() == [0, 1, 2, 3, 4] and got["x"].dtype == np.int16
    assert got["flags"][0].tolist() == [False, False, True, True, True]
    assert got["flags"][1].tolist() == [0, 1, 2, 3, 4] and got["flags"][1].dtype == np.uint8
    whole = run_export(_identity(TensorType(POINT, (5,))), {"v": items})
    assert whole["x"].tolist() == [0, 1, 2, 3, 4]
    nested = run_export(_identity(TensorType(POINT, (5,))), {"v": [items, items]}, batch=True)
    assert nested["flags"][1].tolist() == [[0, 1, 2, 3, 4]] * 2


def test_tuples_may_come_as_a_list_of_tuples() -> None:
    pair = TupleType((I13, BOOL))
    got = run_export(_identity(pair), {"v": [(1, True), (-2, False), (3, True)]}, batch=True)
    assert got[0].tolist() == [1, -2, 3] and got[1].tolist() == [True, False, True]
    # An array for each position stays what it was, in a list too.
    for columns in (([1, 2], [True, False]), [[1, 2], [True, False]]):
        got = run_export(_identity(pair), {"v": columns}, batch=True)
        assert got[0].tolist() == [1, 2] and got[1].tolist() == [True, False]


def test_an_empty_list_of_structs_is_an_empty_batch() -> None:
    got = run_export(_identity(TensorType(POINT, (2,))), {"v": []}, batch=True)
    assert got["x"].shape == (0, 2) and got["flags"][1].dtype == np.uint8


def test_an_empty_batch_gives_an_empty_batch() -> None:
    got = run_export(_identity(TensorType(I13, (3,))), {"v": np.zeros((0, 3), np.int16)}, batch=True)
    assert got.shape == (0, 3) and got.dtype == np.int16


def test_nan_inputs_become_canonical() -> None:
    odd = np.array([0xFFC0_0001, 0x7F80_0001], np.uint32).view(np.float32)
    got = run_export(_identity(F32), {"v": odd}, batch=True)
    assert got.view(np.uint32).tolist() == [0x7FC0_0000] * 2


REJECTED: list[tuple[Type, Any, str, str]] = [
    (I13, 4096, "K0914", "`v` of type i13 holds -4096 to 4095, but got 4096."),
    (I13, np.array(5000, np.int16), "K0914", "but got 5000."),
    (U5, -1, "K0914", "holds 0 to 31, but got -1."),
    (U64, 1 << 64, "K0914", "but got 18446744073709551616."),
    (I64, np.uint64(1 << 63), "K0914", "but got 9223372036854775808."),
    (I13, 1.0, "K0913", "takes integers, but got float64 values."),
    (I13, True, "K0913", "takes integers, but got bool values."),
    (I13, "seven", "K0913", "takes integers, but got text."),
    (I13, None, "K0913", "takes integers, but got NoneType values."),
    (I13, {"a": 1}, "K0913", "takes integers"),
    (BOOL, 1, "K0913", "takes bool values"),
    (FixType(8, 4, True), 0.5, "K0913", "takes raw integers, values times 2^4, but got float"),
    (FixType(8, 0, True), 0.5, "K0913", "takes raw integers, but got float"),
    (F32, np.float64(0.5), "K0913", "but got float64 values; convert it with `.astype(np.float32)`."),
    (BF16, np.float32(0.5), "K0913", "convert it with `.astype(ml_dtypes.bfloat16)`."),
    (F32, np.int8(1), "K0913", "takes float32 values, but got int8 values; convert it with"),
    (TensorType(U5, (2,)), [1, 2, 3], "K0912", "takes an array of shape (2,), but got (3,)."),
    (TensorType(U5, (2,)), 1, "K0912", "takes an array of shape (2,), but got a single value."),
    (TensorType(U5, (2, 2)), [[1, 2], [3]], "K0912", "`v`"),
    (U5, [1], "K0912", "takes a single value, but got an array of shape (1,); several items are a batch ("),
    (POINT, {"x": 1}, "K0911", "give it as a dict with the fields x, flags."),
    (POINT, 3, "K0911", "`v` is a Point"),
    (POINT, {"x": 1, "flags": (True,)}, "K0911", "`v.flags` is a (bool, u5): give it as a tuple of"),
    (POINT, (1,), "K0911", "`v` is a Point"),
    (POINT, {"x": 1, "flags": (True, np.float64(1))}, "K0913", "`v.flags.1` of type u5 takes integers"),
    (TensorType(POINT, (2,)), [{"x": 1, "flags": (True, 3)}, {"x": 1}], "K0911", "`v[1]` is a Point"),
    (TensorType(POINT, (2,)), [{"x": 1, "flags": (True, 3)}], "K0912", "`v` takes 2 of Point, but got 1."),
    (TensorType(POINT, (2,)), 3, "K0911", "or as a list of such dicts."),
    (POINT, np.zeros((), [("x", "i2"), ("y", "i2")]), "K0911", "with the fields x, flags."),
    (POINT, {"x": 1, "flags": (True, 32)}, "K0914", "`v.flags.1` of type u5 holds 0 to 31, but got 32."),
]


@pytest.mark.parametrize(("kind", "value", "code", "message"), REJECTED, ids=lambda item: str(item)[:30])
def test_values_that_do_not_fit_are_told(kind: Type, value: Any, code: str, message: str) -> None:
    with pytest.raises(KeraError) as caught:
        run_export(_identity(kind), {"v": value})
    diagnostic, = caught.value.diagnostics
    assert diagnostic.code == code and message in diagnostic.message and diagnostic.message.endswith(".")


def _adder() -> Export:
    store = Store()
    total = store.op("integer.add", store.param(0, U32), store.param(1, U32))
    return Export("plus", "fn", (("a", U32), ("b", U32)), U32, store.region((U32, U32), (total,)))


@pytest.mark.parametrize(
    ("inputs", "batch", "code", "message"),
    [
        ({"a": 1}, False, "K0911", "`plus` takes `b` of type u32, which is missing."),
        ({"a": 1, "b": 2, "c": 3}, False, "K0911", "has no parameter `c`; it has `a`, `b`."),
        ({"a": [1, 2], "b": [1, 2, 3]}, True, "K0915", "`b` holds 3 items, but another input 2."),
        ({"a": 1, "b": 2}, True, "K0915", "do not show how many items to run."),
        ({"a": [1, 2], "b": [3, 4]}, 3, "K0912", "takes an array of shape (3,), but got (2,)."),
        ({"a": 1, "b": 2}, 1, "K0912", "takes an array of shape (1,), but got a single value."),
        ({"a": [1, 2], "b": 2}, True, "K0912", "an array of shape (2,), but got a single value."),
    ],
)
def test_missing_unknown_and_uneven_inputs(
    inputs: dict[str, Any], batch: int | bool, code: str, message: str
) -> None:
    with pytest.raises(KeraError) as caught:
        run_export(_adder(), inputs, batch)
    diagnostic, = caught.value.diagnostics
    assert diagnostic.code == code and message in diagnostic.message


def test_a_function_without_parameters_is_told_how_many_items() -> None:
    store = Store()
    export = Export("seven", "fn", (), U32, store.region((), (store.constant(U32, 7),)))
    assert run_export(export, {}) == 7
    assert run_export(export, {}, batch=3).tolist() == [7, 7, 7]


def test_nesting_beyond_the_evaluators_reach_is_told() -> None:
    store = Store()
    x = store.param(0, U32)
    region = store.region((U32,), (x,))
    for depth in range(2, 1000):
        region = store.region((U32,), (store.op("control.call", x, region=region),))
        if depth == 200:
            assert run_export(Export("deep", "fn", (("x", U32),), U32, region), {"x": 5}) == 5
    with pytest.raises(KeraError, match="deeper than 200 levels"):
        run_export(Export("deep", "fn", (("x", U32),), U32, region), {"x": 5})


def test_floats_run_with_one_nan_and_python_numbers_round_once() -> None:
    store = Store()
    x = store.param(0, F32)
    region = store.region((F32,), (store.op("floating.add", x, x),))
    export = Export("double", "fn", (("x", F32),), F32, region)
    assert run_export(export, {"x": 1.5}) == np.float32(3.0)
    nans = np.array([0x7F800001, 0xFFC01234], np.uint32).view(np.float32)
    assert run_export(export, {"x": nans}, batch=True).view(np.uint32).tolist() == [0x7FC00000] * 2
