"""Laws that passes apply hold for the whole operation, its attributes included."""
from __future__ import annotations

import itertools

import numpy as np
import pytest

from kera_hw.graph import Export, Graph, Ref, Region, Store
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
    after = run_pipeline(graph, pipeline("standard")).graph.exports[0].region
    assert np.array_equal(_result(after), _result(region))
    assert len(after.nodes()) == (1 if first == second else 3)


def test_only_reverse_is_an_involution_with_attributes() -> None:
    """A new one needs a case of its own above."""
    found = [name for name, spec in OPS.items() if Trait.INVOLUTION in spec.traits and spec.attrs]
    assert found == ["tensor.reverse"]


@pytest.mark.parametrize("name", list(PASSES))
def test_a_pass_of_long_chains_needs_no_stack(name: str) -> None:
    """Twenty thousand dependent operations: passes walk in topological order, never down the chain."""
    store = Store()
    kind = IntType(16, False)
    value: Ref = store.param(0, kind)
    for _ in range(20_000 // 2):
        value = store.op("bits.xor", store.op("integer.add", value, store.param(1, kind)), store.param(0, kind))
    region = store.region([kind, kind], [value])
    graph = Graph([Export("f", "fn", (("x", kind), ("y", kind)), kind, region)])
    after = PASSES[name](Store(), graph)
    assert after.hash == graph.hash
