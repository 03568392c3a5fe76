"""Structured control: every kind of region against plain Python, lane by lane."""
from __future__ import annotations

import numpy as np
import pytest

from kera_hw.graph.node import Ref, Region
from kera_hw.graph.store import Store
from kera_hw.interp import run_region
from kera_hw.ops.spec import Array, TypeRuleError
from kera_hw.types import BOOL, U32, IntType, TensorType, Type

U8, U16, I16 = IntType(8, False), IntType(16, False), IntType(16, True)
WORDS = TensorType(U16, (5,))


def _one(store: Store, params: tuple[Type, ...], *results: Ref) -> Region:
    return store.region(params, results)


def _params(store: Store, *kinds: Type) -> list[Ref]:
    return [store.param(index, kind) for index, kind in enumerate(kinds)]


def test_loop_counts_down_and_carries_several_values() -> None:
    store = Store()
    i, x, y, k = _params(store, I16, U16, U16, U16)
    step = store.op("integer.add", store.op("integer.mul", x, k), store.op("convert.cast", i, type=U16))
    body = _one(store, (I16, U16, U16, U16), y, store.op("bits.xor", step, y))
    a, b, c = _params(store, U16, U16, U16)
    attrs = {"carried": 2, "count": 7, "index_type": I16, "region": body, "start": 9, "step": -3}
    node = store.node("control.loop", (a, b, c), attrs)
    region = _one(store, (U16, U16, U16), node.out(0), node.out(1))
    rng = np.random.default_rng(0)
    args = [rng.integers(0, 1 << 16, 50, dtype=np.uint16) for _ in range(3)]
    got = run_region(region, args, 50)
    for lane in range(50):
        p, q, f = (int(arg[lane]) for arg in args)
        for n in range(7):
            p, q = q, ((p * f + (9 - 3 * n)) & 0xFFFF) ^ q
        assert (int(got[0][lane]), int(got[1][lane])) == (p, q)


def test_loop_of_no_iterations_gives_what_it_was_given() -> None:
    store = Store()
    i, x = _params(store, U32, U16)
    body = _one(store, (U32, U16), store.op("integer.add", x, x))
    attrs = {"carried": 1, "count": 0, "index_type": U32, "region": body, "start": 0, "step": 1}
    region = _one(store, (U16,), store.op("control.loop", store.param(0, U16), **attrs))
    assert run_region(region, [np.array([3, 4], np.uint16)], 2)[0].tolist() == [3, 4]
    assert i.type == U32


def _gcd(store: Store, bound: int) -> Region:
    x, y = _params(store, U16, U16)
    cond = _one(store, (U16, U16), store.op("compare.ne", y, store.constant(U16, 0)))
    body = _one(store, (U16, U16), y, store.op("integer.rem", x, y))
    node = store.node("control.while", (x, y), {"body": body, "carried": 2, "cond": cond, "max": bound})
    return _one(store, (U16, U16), node.out(0), node.out(1))


@pytest.mark.parametrize("bound", [0, 1, 3, 24])
def test_while_stops_each_lane_on_its_own_and_all_at_the_bound(bound: int) -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.integers(0, 1 << 16, 200, dtype=np.uint16) for _ in range(2))
    b[:20] = 0
    got = run_region(_gcd(Store(), bound), [a, b], 200)
    for lane in range(200):
        x, y, left = int(a[lane]), int(b[lane]), bound
        while y and left:
            x, y, left = y, x % y, left - 1
        assert (int(got[0][lane]), int(got[1][lane])) == (x, y)


def test_branch_by_bool_and_by_number() -> None:
    store = Store()
    x, = _params(store, WORDS)
    regions = tuple(
        _one(store, (WORDS,), store.op("integer.add", x, store.constant(U16, 10 * k))) for k in range(3)
    )
    s, w = store.param(0, U8), store.param(1, WORDS)
    by_number = _one(store, (U8, WORDS), store.op("control.branch", s, w, regions=regions))
    selector = np.array([0, 1, 2, 3, 255, 1], np.uint8)
    words = np.arange(30, dtype=np.uint16).reshape(6, 5)
    got, = run_region(by_number, [selector, words], 6)
    offsets = np.array([0, 10, 20, 20, 20, 10], np.uint16)
    assert np.array_equal(got, words + offsets[:, None])
    c = store.param(0, BOOL)
    by_bool = _one(store, (BOOL, WORDS), store.op("control.branch", c, w, regions=regions[:2]))
    got, = run_region(by_bool, [np.array([False, True] * 3), words], 6)
    assert np.array_equal(got, words + np.array([0, 10] * 3, np.uint16)[:, None])
    got, = run_region(by_bool, [np.ones(6, np.bool_), words], 6)
    assert np.array_equal(got, words + np.uint16(10))


def test_a_region_that_no_lane_takes_is_not_run() -> None:
    """Seen through its cost: the other region counts to a number that nobody could wait for."""
    store = Store()
    i, n = _params(store, IntType(48, False), U16)
    body = _one(store, (i.type, U16), store.op("integer.add", n, n))
    endless = {"carried": 1, "count": 1 << 40, "index_type": i.type, "region": body, "start": 0, "step": 1}
    p = store.param(0, U16)
    slow = _one(store, (U16,), store.op("control.loop", p, **endless))
    fast = _one(store, (U16,), p)
    c, x = _params(store, BOOL, U16)
    region = _one(store, (BOOL, U16), store.op("control.branch", c, x, regions=(fast, slow)))
    assert run_region(region, [np.zeros(2, np.bool_), np.array([5, 6], np.uint16)], 2)[0].tolist() == [5, 6]


@pytest.mark.parametrize("batch", [1, 3])
def test_map_with_captures_and_tensor_results(batch: int) -> None:
    store = Store()
    a, b, table = _params(store, U16, U8, WORDS)
    picked = store.op("tensor.index", table, b)
    body = _one(
        store, (U16, U8, WORDS), store.op("integer.add", a, picked), store.op("tensor.stack", a, picked)
    )
    grid, small = TensorType(U16, (2, 3)), TensorType(U8, (2, 3))
    p, q, r = _params(store, grid, small, WORDS)
    node = store.node("control.map", (p, q, r), {"arity": 2, "region": body})
    assert node.types == (grid, TensorType(U16, (2, 3, 2)))
    region = _one(store, (grid, small, WORDS), node.out(0), node.out(1))
    rng = np.random.default_rng(2)
    x = rng.integers(0, 1 << 16, (batch, 2, 3), dtype=np.uint16)
    y = rng.integers(0, 8, (batch, 2, 3), dtype=np.uint8)
    t = rng.integers(0, 1 << 16, (batch, 5), dtype=np.uint16)
    got = run_region(region, [x, y, t], batch)
    for lane, i, j in np.ndindex(batch, 2, 3):
        picked_value = t[lane, min(int(y[lane, i, j]), 4)]
        assert got[0][lane, i, j] == (int(x[lane, i, j]) + int(picked_value)) & 0xFFFF
        assert got[1][lane, i, j].tolist() == [x[lane, i, j], picked_value]


def test_map_over_an_empty_tensor() -> None:
    store = Store()
    a, = _params(store, U16)
    body = _one(store, (U16,), store.op("tensor.stack", a, a))
    empty = TensorType(U16, (0, 3))
    region = _one(store, (empty,), store.op("control.map", store.param(0, empty), arity=1, region=body))
    assert run_region(region, [np.zeros((2, 0, 3), np.uint16)], 2)[0].shape == (2, 0, 3, 2)


def test_scan_folds_rows_and_stacks_outputs() -> None:
    store = Store()
    total, row, scale = _params(store, U16, WORDS, U16)
    added = store.op("integer.add", total, store.op("reduce.sum", row, axis=-1, order=""))
    body = _one(store, (U16, WORDS, U16), added, store.op("integer.mul", row, scale))
    rows = TensorType(U16, (4, 5))
    p, q, r = _params(store, U16, rows, U16)
    attrs = {"carried": 1, "items": 1, "length": 4, "region": body}
    node = store.node("control.scan", (p, q, r), attrs)
    region = _one(store, (U16, rows, U16), node.out(0), node.out(1))
    rng = np.random.default_rng(3)
    start, scales = (rng.integers(0, 1 << 16, 6, dtype=np.uint16) for _ in range(2))
    items = rng.integers(0, 1 << 16, (6, 4, 5), dtype=np.uint16)
    got = run_region(region, [start, items, scales], 6)
    sums = (items.astype(int).sum((1, 2)) + start).astype(np.uint16)
    assert np.array_equal(got[0], sums)
    assert np.array_equal(got[1], items * scales[:, None, None])


def test_call_and_select() -> None:
    store = Store()
    c, x, y = _params(store, TensorType(BOOL, (5,)), WORDS, U16)
    callee = _one(store, (TensorType(BOOL, (5,)), WORDS, U16), store.op("control.select", c, x, y))
    region = _one(store, callee.params, store.op("control.call", c, x, y, region=callee))
    mask = np.array([[True, False, True, False, False], [False] * 5])
    words = np.arange(10, dtype=np.uint16).reshape(2, 5)
    got, = run_region(region, [mask, words, np.array([100, 200], np.uint16)], 2)
    assert got.tolist() == [[0, 100, 2, 100, 100], [200] * 5]


def test_equal_lanes_are_computed_once_and_mean_the_same() -> None:
    """Constants and loop variables take the path of a batch of one; results fit the others."""
    store = Store()
    table = store.constant(TensorType(U16, (8,)), np.arange(8, dtype=np.uint16) * 3)
    i, acc = _params(store, U32, U16)
    five, eight = store.constant(U32, 5), store.constant(U32, 8)
    twisted = store.op("integer.rem", store.op("integer.mul", i, five), eight)
    body = _one(store, (U32, U16), store.op("integer.add", acc, store.op("tensor.index", table, twisted)))
    attrs = {"carried": 1, "count": 8, "index_type": U32, "region": body, "start": 0, "step": 1}
    region = _one(store, (U16,), store.op("control.loop", store.param(0, U16), **attrs))
    for batch in (1, 4):
        got, = run_region(region, [np.arange(batch, dtype=np.uint16)], batch)
        assert got.tolist() == [k + sum(3 * n for n in range(8)) for k in range(batch)]


BAD_LOOPS: list[tuple[dict[str, object], str]] = [
    ({"count": 300}, "cannot take the value 299"),
    ({"start": -1}, "cannot take the value -1"),
    ({"count": -1}, "runs 0 times or more"),
    ({"carried": 3}, "carries 3 operands, but has only 1"),
    ({"index_type": BOOL}, "counts in an integer type"),
]


@pytest.mark.parametrize(("change", "message"), BAD_LOOPS)
def test_loops_that_make_no_sense_are_type_errors(change: dict[str, object], message: str) -> None:
    store = Store()
    i, x = _params(store, U8, U16)
    body = _one(store, (U8, U16), x)
    attrs: dict[str, object] = {
        "carried": 1, "count": 4, "index_type": U8, "region": body, "start": 0, "step": 1, **change,
    }
    with pytest.raises(TypeRuleError, match=message):
        store.node("control.loop", (store.param(0, U16),), attrs)  # type: ignore[arg-type]
    assert i.type == U8


def test_bodies_must_fit_what_they_are_given() -> None:
    store = Store()
    x, = _params(store, U16)
    body = _one(store, (U16,), x)
    tensor = store.param(0, TensorType(U8, (2,)))
    with pytest.raises(TypeRuleError, match="The body of `map` takes"):
        store.op("control.map", tensor, arity=1, region=body)
    with pytest.raises(TypeRuleError, match="The callee of `call` takes"):
        store.op("control.call", tensor, region=body)
    with pytest.raises(TypeRuleError, match="selects by a bool or an unsigned integer"):
        store.op("control.branch", store.param(0, I16), x, regions=(body,))
    with pytest.raises(TypeRuleError, match="does not fit 1 regions"):
        store.op("control.branch", store.param(0, BOOL), x, regions=(body,))


def test_no_operand_is_written_to() -> None:
    store = Store()
    w, v = store.param(0, WORDS), store.param(1, U16)
    region = _one(
        store, (WORDS, U16), store.op("tensor.update", w, v, store.constant(U8, 2)), w
    )
    words: Array = np.arange(10, dtype=np.uint16).reshape(2, 5)
    words.flags.writeable = False
    got = run_region(region, [words, np.array([7, 8], np.uint16)], 2)
    assert got[0].tolist() == [[0, 1, 7, 3, 4], [5, 6, 8, 8, 9]]
    assert got[1].tolist() == words.tolist()
