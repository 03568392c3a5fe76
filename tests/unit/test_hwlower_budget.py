"""The budget of a flat design counts what is made: what unrolling knows costs nothing."""
from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from kera_hw.driver.session import compile_text, load_program, optimise, single_export_graph
from kera_hw.graph import Export, Graph, Store
from kera_hw.graph.node import Node
from kera_hw.interp import run_region
from kera_hw.ops.registry import OPS
from kera_hw.rtl.lower import FlatDesign, flatten, flatten_export, storage
from kera_hw.rtl.lower.budget import NODE_BUDGET, STEP_BUDGET, Meter, weight
from kera_hw.support import Diagnostic, SourceFile
from kera_hw.types import IntType

PROGRAMS = sorted((Path(__file__).parents[1] / "programs").glob("*.kera"))
BITONIC = """
pub fn bitonic(x: [u16; 32]) -> [u16; 32] {
    let mut v = x;
    for a in 1..6 {
        for b in 0..a {
            let d = a - 1 - b;
            for i in 0..32 {
                let p = i ^ (1 << d);
                if p > i {
                    let up = ((i >> a) & 1) == 0;
                    let low = min(v[i], v[p]);
                    let high = max(v[i], v[p]);
                    v[i] = if up { low } else { high };
                    v[p] = if up { high } else { low };
                }
            }
        }
    }
    v
}
"""


def export_of(graph: Graph, name: str) -> Export:
    export = next(item for item in graph.exports if item.name == name)
    return optimise(single_export_graph(graph, export)).exports[0]


def compiled(source: str) -> Export:
    graph = compile_text(SourceFile("p.kera", source.encode()), Path("p.kera")).graph
    assert graph is not None
    return export_of(graph, graph.exports[0].name)


def test_a_sorting_network_counts_its_comparisons_alone() -> None:
    store = Store()
    flat = flatten_export(compiled(BITONIC), store)
    assert isinstance(flat, FlatDesign)
    nodes = flat.region.nodes()
    assert sum(map(weight, nodes)) == 480
    assert sum(node.opcode in ("integer.min", "integer.max") for node in nodes) == 480
    words = np.random.default_rng(3).integers(0, 1 << 16, (50, 32), dtype=np.uint16)
    columns = run_region(flat.region, [words[:, k] for k in range(32)], 50)
    assert np.array_equal(np.stack([np.asarray(c) for c in columns], axis=1), np.sort(words, axis=1))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_the_count_is_within_twice_what_is_there(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = load_program(path).graph
    assert graph is not None
    meters: list[Meter] = []

    def meter(name: str) -> Meter:
        meters.append(Meter(name))
        return meters[-1]

    monkeypatch.setattr(flatten, "Meter", meter)
    for export in graph.exports:
        flat = flatten_export(export_of(graph, export.name), Store())
        assert isinstance(flat, FlatDesign)
        there = sum(map(weight, flat.region.nodes()))
        assert there <= meters[-1].operations <= 2 * there + 10, export.name


def test_a_loop_that_comes_to_nothing_ends_as_well() -> None:
    export = compiled("""
pub fn f(x: [u8; 4]) -> [u8; 4] {
    let mut v = x;
    for i in 0..900000 { v = reverse(v); }
    v
}
""")
    found = flatten_export(export, Store())
    assert isinstance(found, Diagnostic) and found.code == "K0610"
    assert f"more steps than the {STEP_BUDGET:,}" in found.message


def test_calls_that_double_are_not_written_out() -> None:
    """What 2^60 calls would be is refused as soon as it is more than any circuit."""
    store, kind = Store(), IntType(8, False)
    param = store.param(0, kind)
    body = store.region([kind], [store.op("integer.mul", param, store.op("integer.add", param, param))])
    for _ in range(60):
        once = store.op("control.call", param, region=body)
        body = store.region([kind], [store.op("control.call", once, region=body)])
    start = time.process_time()
    found = flatten_export(Export("f", "fn", (("x", kind),), kind, body), Store())
    assert isinstance(found, Diagnostic) and found.code == "K0610"
    assert time.process_time() - start < 60


def test_what_counts() -> None:
    store = Store()
    flat = flatten_export(compiled("pub fn f(a: u12, b: u12) -> u12 { a / max(b, 1) + a / 5 }"), store)
    assert isinstance(flat, FlatDesign)
    weights: dict[str, list[int]] = {}
    nodes: list[Node] = flat.region.nodes()
    for node in nodes:
        weights.setdefault(node.opcode, []).append(weight(node))
    assert sorted(weights["integer.div"]) == [1, 12] and weights["core.param"] == [0, 0]
    assert set(weights) <= set(OPS) and NODE_BUDGET < STEP_BUDGET


@pytest.mark.parametrize("body", [
    "let mut v = x; for k in 0..64 { v[k, 63 - k] = x[63 - k, k]; } v",
    "let mut v = x; for k in 0..62 { v[k..k + 3, 5..8] = x[k..k + 3, k..k + 3]; } v",
])  # fmt: skip
def test_positions_that_unrolling_knows_cost_nothing(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    export = compiled(f"pub fn f(x: [u8; 64, 64]) -> [u8; 64, 64] {{ {body} }}")

    def refuse(*_: object) -> None:
        raise AssertionError("chooses among elements")

    monkeypatch.setattr(storage, "choice_of", refuse)
    flat = flatten_export(export, Store())
    assert isinstance(flat, FlatDesign)
    assert {node.opcode for node in flat.region.nodes()} == {"core.param"}
    image = np.arange(4096, dtype=np.uint8).reshape(1, 64, 64)
    (wanted,) = run_region(export.region, [image], 1)
    columns = run_region(flat.region, list(image.reshape(1, -1).T), 1)
    assert np.array_equal(np.stack(columns, axis=1).reshape(np.shape(wanted)), wanted)
