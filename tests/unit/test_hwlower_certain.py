"""What unrolling is sure to make is never more than it makes."""
from __future__ import annotations

from pathlib import Path

import pytest

from kera_hw.driver.session import compile_text, optimise
from kera_hw.graph import Store
from kera_hw.lower.export import lower_export
from kera_hw.rtl.lower import FlatDesign, flatten_export
from kera_hw.rtl.lower.certain import certain_operations
from kera_hw.support import SourceFile

PROGRAMS = {
    "a product of matrices": (
        "pub fn f(a: [i8; 4, 5], b: [i8; 5, 3]) -> [i8; 4, 3] { matmul(a, b) }", 60,
    ),
    "the same pair again": (
        "pub fn f(a: [u8; 6], b: [u8; 6]) -> u8 { let mut s: u8 = 0;"
        " for i in 0..6 { for j in 0..9 { s ^= a[i] * b[i]; } } s }", 0,
    ),
    "one parameter with itself": (
        "pub fn f(a: [u8; 6]) -> u8 { let mut s: u8 = 0;"
        " for i in 0..6 { for j in 0..6 { s ^= a[i] * a[j]; } } s }", 0,
    ),
    "every pair": (
        "pub fn f(a: [u8; 6], b: [u8; 7]) -> u8 { let mut s: u8 = 0;"
        " for i in 0..6 { for j in 0..7 { s ^= a[i] * b[j]; } } s }", 42,
    ),
    "in a branch": (
        "pub fn f(a: [u8; 6], b: [u8; 6], c: bool) -> u8 { let mut s: u8 = 0;"
        " for i in 0..6 { if c { s ^= a[i] * b[i]; } } s }", 0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_counted_is_made(name: str) -> None:
    source, least = PROGRAMS[name]
    graph = compile_text(SourceFile("a.kera", source.encode()), Path("a.kera")).graph
    assert graph is not None
    export = optimise(graph).exports[0]
    certain = certain_operations(lower_export(export))
    assert certain >= least if least else certain == 0
    flat = flatten_export(export, Store())
    assert isinstance(flat, FlatDesign)
    assert certain <= sum(node.opcode not in ("core.param", "core.constant") for node in flat.region.nodes())
