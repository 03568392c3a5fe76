"""Loops that join terms in any order: a tree of what is there first, whoever wrote the loop."""
from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from kera_hw.driver.session import compile_text, optimise
from kera_hw.graph import Store
from kera_hw.graph.node import Node, Region
from kera_hw.interp import run_region
from kera_hw.rtl.lower import FlatDesign, flatten_export
from kera_hw.support import SourceFile

SUM = "pub fn f(x: [u16; 8]) -> u16 { let mut s: u16 = 0; for k in 0..8 { s += x[k]; } s }"
XOR = "pub fn f(x: [u16; 7]) -> u16 { let mut s = x[0]; for k in 1..7 { s = x[k] ^ s; } s }"
BUILTIN = "pub fn f(x: [u16; 8]) -> u16 { sum(x) }"
STAGGERED = """
pub fn f(x: [u16; 8]) -> u16 {
    let mut t = x;
    for k in 1..8 { t[k] = (t[k - 1] + 3) * x[k]; }
    let mut s: u16 = 0;
    for k in 0..8 { s += t[k]; }
    s
}
"""
STATE = "pub stream f(x: [u16; 6]) -> u16 { state s: u16 = 7; for k in 0..6 { s += x[k]; } s }"
MINUS = "pub fn f(x: [i16; 5]) -> i16 { let mut s: i16 = 0; for k in 0..5 { s -= x[k]; } s }"
USED = """
pub fn f(x: [u16; 5]) -> [u16; 5] {
    let mut s: u16 = 0;
    let mut o = x;
    for k in 0..5 { s += x[k]; o[k] = s; }
    o
}
"""
REPEATED = "pub fn f(x: [u16; 2]) -> u16 { let mut s = x[0]; for k in 0..9 { s = max(s, x[k % 2]); } s }"


def region_of(source: str) -> Region:
    graph = compile_text(SourceFile("p.kera", source.encode()), Path("p.kera")).graph
    assert graph is not None
    flat = flatten_export(optimise(graph).exports[0], Store())
    assert isinstance(flat, FlatDesign)
    return flat.region


def levels(region: Region, opcode: str, starts: int | None = None) -> int:
    """The most operations of a kind on a way to the last result, from one parameter or any."""
    found: dict[Node, int] = {}
    for node in region.nodes():
        before = [found[ref.node] for ref in node.inputs if ref.node in found]
        if node.opcode == "core.param" and starts in (None, node.attr("index")):
            found[node] = 0
        elif before:
            found[node] = max(before) + (node.opcode == opcode)
    return found[region.results[-1].node]


@pytest.mark.parametrize(("source", "opcode", "count", "deep"), [
    (SUM, "integer.add", 7, 3), (BUILTIN, "integer.add", 7, 3), (XOR, "bits.xor", 6, 3),
    (STAGGERED, "integer.add", 14, 8), (MINUS, "integer.sub", 5, 5), (USED, "integer.add", 4, 4),
    (REPEATED, "integer.max", 1, 1),
])  # fmt: skip
def test_how_deep_a_loop_becomes(source: str, opcode: str, count: int, deep: int) -> None:
    """What is joined is a tree, late terms come last, and nothing else is taken for joining."""
    region = region_of(source)
    assert Counter(node.opcode for node in region.nodes())[opcode] == count
    assert levels(region, opcode) == deep


def test_a_state_that_accumulates_is_joined_last() -> None:
    region = region_of(STATE)
    assert levels(region, "integer.add", starts=6) == 1 and levels(region, "integer.add") == 4
    items = np.random.default_rng(1).integers(0, 1 << 16, (40, 7)).astype(np.uint16)
    total, _ = run_region(region, list(items.T), 40)
    assert np.array_equal(total, items.sum(axis=1, dtype=np.uint16))


def test_both_ways_of_writing_a_sum_are_one_circuit() -> None:
    assert region_of(SUM).hash == region_of(BUILTIN).hash
