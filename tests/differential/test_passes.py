"""Passes keep the meaning: random graphs over every operation, evaluated before and after."""
from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kera_hw.driver.sampling import random_value, to_bits
from kera_hw.driver.values import flatten_named
from kera_hw.graph import Graph, Region, Store, read_keg, verify_graph, write_keg
from kera_hw.graph.generate import GraphGenerator, generatable_ops
from kera_hw.graph.keg_write import collect_regions
from kera_hw.interp import run_export
from kera_hw.passes import PASSES, PassError, pipeline, run_pipeline
from kera_hw.types import element_type, leaf_types

ITEMS = 24


def outputs(graph: Graph, seed: int) -> list[np.ndarray]:
    export = graph.exports[0]
    rng = np.random.default_rng(seed)
    inputs = {name: random_value(kind, ITEMS, rng) for name, kind in export.params}
    value = run_export(export, inputs, ITEMS)
    kinds = leaf_types(export.result)
    return [to_bits(element_type(k), a) for k, (_, a) in zip(kinds, flatten_named(value), strict=True)]


def assert_same(before: Graph, after: Graph, seed: int) -> None:
    for a, b in zip(outputs(before, seed), outputs(after, seed), strict=True):
        assert np.array_equal(a, b)


def check(graph: Graph, seed: int) -> None:
    assert not verify_graph(graph)
    for name, run in PASSES.items():
        after = run(Store(), graph)
        assert not verify_graph(after), name
        assert_same(graph, after, seed)
    assert_same(graph, run_pipeline(graph, pipeline("standard")), seed)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_random_graphs_keep_their_meaning(data: st.DataObject) -> None:
    below = lambda n: data.draw(st.integers(0, n - 1))  # noqa: E731
    floats = data.draw(st.booleans())
    check(GraphGenerator(below, floats=floats).graph(data.draw(st.integers(1, 14))), 3)


@pytest.mark.parametrize("op", generatable_ops())
def test_every_operation_is_reached(op: str) -> None:
    """Each operation stands in a graph that passes verification and the file format; it keeps its meaning."""
    rng = random.Random(len(op))
    for trial in range(6):
        generator = GraphGenerator(rng.randrange, floats=trial % 3 == 2)
        graph = generator.graph(4, op)
        assert any(node.opcode == op for r in collect_regions(graph) for node in r.nodes())
        again, faults = read_keg(write_keg(graph))
        assert not faults and again is not None and again.fingerprint == graph.fingerprint
        check(graph, trial)


def test_a_lying_pass_is_caught() -> None:
    """The manager trusts hashes, not claims, and verifies after each change."""
    rng = random.Random(1)
    graph = GraphGenerator(rng.randrange, ["integer.add"]).graph(3)

    def breaks(store: Store, given: Graph) -> Graph:
        export = given.exports[0]
        from dataclasses import replace

        return Graph([replace(export, region=Region(export.region.params[:-1], export.region.results))])

    if graph.exports[0].region.params:
        with pytest.raises(PassError, match="breaks"):
            run_pipeline(graph, [("breaks", breaks)])


def test_a_pass_that_changes_meaning_is_seen() -> None:
    """The differential check itself can fail: swapping the operands of a subtraction is noticed."""
    from kera_hw.passes.rewrite import Rewriter

    rng = random.Random(7)
    graph = GraphGenerator(rng.randrange, ["integer.sub"]).graph(1, "integer.sub")

    def swap(node):
        if node.opcode == "integer.sub":
            return [node.store.op("integer.sub", node.inputs[1], node.inputs[0])]
        return None

    with pytest.raises(AssertionError):
        assert_same(graph, Rewriter(Store(), swap).graph(graph), 1)
