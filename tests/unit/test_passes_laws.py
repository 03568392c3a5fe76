"""Laws that passes apply hold for the whole operation, its attributes included."""
from __future__ import annotations

import itertools

import numpy as np
import pytest

from kera_hw.graph import Export, Graph, Ref, Region, Store, verify_graph
from kera_hw.interp import run_region
from kera_hw.ops.registry import OPS
from kera_hw.ops.spec import Trait
from kera_hw.passes import PASSES, pipeline, run_pipeline
from kera_hw.types import IntType, TensorType

CUBE = TensorType(IntType(8, False), (2, 3, 4))


def _reversed_twice(store: Store, first: int, second: int) -> Region:
    once = store.op("tensor.reverse", store.param(0, CUBE), axis=first)
    return store.region([CUBE], [store.op("tensor.reverse", once, axis=second)])


def _result(region: Region) -> np.ndarray:
    return run_region(region, [np.arange(24, dtype=np.uint8).reshape(1, 2, 3, 4)], 1)[0]


@pytest.mark.parametrize(("first", "second"), list(itertools.product(range(3), range(3))))
def test_reversing_twice_cancels_only_along_one_axis(first: int, second: int) -> None:
    region = _reversed_twice(Store(), first, second)
    graph = Graph([Export("f", "fn", (("x", CUBE),), CUBE, region)])
    after = run_pipeline(graph, pipeline("standard")).exports[0].region
    assert np.array_equal(_result(after), _result(region))
    assert len(after.nodes()) == (1 if first == second else 3)


def test_only_reverse_is_an_involution_with_attributes() -> None:
    """A new one needs a case of its own above."""
    found = [name for name, spec in OPS.items() if Trait.INVOLUTION in spec.traits and spec.attrs]
    assert found == ["tensor.reverse"]


def _optimised(region: Region, kind: IntType) -> Region:
    names = tuple((f"x{k}", given) for k, given in enumerate(region.params))
    graph = Graph([Export("f", "fn", names, kind, region)])
    return run_pipeline(graph, pipeline("standard")).exports[0].region


def test_an_element_of_an_empty_tensor_stays_zero() -> None:
    """Neither the value spread over no elements nor the range of the tensor cut to nothing says anything."""
    store, kind = Store(), IntType(8, False)
    nothing = store.op("tensor.broadcast", store.param(0, kind), shape=(0,))
    sevens = store.constant(TensorType(kind, (3,)), 7)
    cut = store.op("tensor.slice", sevens, store.param(0, kind), sizes=(0,))
    for empty in (nothing, cut):
        element = store.op("tensor.index", empty, store.param(0, kind))
        small = store.op("compare.lt", element, store.constant(kind, 5))
        for result in (element, small):
            region = store.region([kind], [result])
            items = [np.array([9, 200], np.uint8)]
            after = _optimised(region, kind)
            assert np.array_equal(run_region(after, items, 2)[0], run_region(region, items, 2)[0])


@pytest.mark.parametrize(("count", "folded"), [(1000, True), (1_000_000_000, False)])
def test_a_constant_loop_is_folded_only_while_it_is_cheap(count: int, folded: bool) -> None:
    store, kind, index = Store(), IntType(32, False), IntType(32, False)
    body = store.region([index, kind], [store.op("integer.mul", store.param(1, kind), store.param(0, index))])
    loop = store.op(
        "control.loop", store.constant(kind, 3), region=body, carried=1, count=count, index_type=index,
        start=1, step=1,
    )
    after = _optimised(store.region([], [loop]), kind)
    assert (after.results[0].node.opcode == "core.constant") == folded


@pytest.mark.parametrize("name", list(PASSES))
def test_a_pass_of_long_chains_needs_no_stack(name: str) -> None:
    """Twenty thousand dependent operations: passes walk in topological order, never down the chain."""
    store = Store()
    kind = IntType(16, False)
    value: Ref = store.param(0, kind)
    for _ in range(20_000 // 2):
        total = store.op("integer.add", value, store.param(1, kind))
        value = store.op("bits.xor", total, store.param(0, kind))
    region = store.region([kind, kind], [value])
    graph = Graph([Export("f", "fn", (("x", kind), ("y", kind)), kind, region)])
    after = PASSES[name](Store(), graph)
    assert after.hash == graph.hash


@pytest.mark.parametrize("name", list(PASSES))
def test_calls_nested_deeper_than_the_stack(name: str) -> None:
    """A function that calls one that calls one, two thousand deep: hashes and passes do not recurse."""
    store, kind = Store(), IntType(16, False)
    region = store.region([kind], [store.param(0, kind)])
    for number in range(1, 2001):
        called = store.op("control.call", store.param(0, kind), region=region)
        region = store.region([kind], [store.op("bits.xor", called, store.constant(kind, number))])
    graph = Graph([Export("f", "fn", (("x", kind),), kind, region)])
    assert len(graph.hash) == 32
    after = PASSES[name](Store(), graph)
    assert verify_graph(after) == []
    assert (after.hash == graph.hash) == (name != "inline_calls")
