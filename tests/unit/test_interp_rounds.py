"""The interpreter evaluates rounds that only write as lanes: the same bits as round by round."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kera_hw.driver.sampling import random_value
from kera_hw.driver.session import compile_text
from kera_hw.graph import Export
from kera_hw.interp import evaluator
from kera_hw.interp.exports import flatten_inputs, run_leaves
from kera_hw.interp.rounds import taken_apart
from kera_hw.support import SourceFile

PROGRAMS = {
    "picture": """pub fn f(x: [u8; 12, 16]) -> [u8; 12, 16] {
    let mut out = [7u8; 12, 16];
    for y in 1..11 { for i in 1..15 {
        let q = x[y - 1..y + 2, i - 1..i + 2] as u16;
        out[y, i] = (sum(q) / 9) as u8;
    } }
    out
}""",
    "over each other": """pub fn f(x: [i16; 20]) -> [i16; 21] {
    let mut out = [0i16; 21];
    for i in 0..20 { out[i] = x[i]; out[i + 1] = x[i] + 1; out[20 - i] = x[i] - 1; }
    out
}""",
    "places that data name": """pub fn f(x: [u3; 40], y: [f32; 40]) -> ([f32; 8], [bool; 8]) {
    let mut out = [0.5f32; 8];
    let mut seen = [false; 8];
    for i in 0..40 { out[x[i]] = y[i]; seen[x[39 - i]] = y[i] > 0.0; }
    (out, seen)
}""",
    "windows and a sum within": """pub fn f(x: [u8; 10, 6]) -> [u16; 10, 6] {
    let mut out = [0u16; 10, 6];
    for i in 0..8 {
        let mut total = 0u16;
        for k in 0..6 { total = total + x[i, k] as u16; }
        out[i..i + 3, 1..3] = [total; 3, 2];
        for k in 0..6 { out[9 - i, k] = total + k as u16; }
    }
    out
}""",
}
LOOKS = """pub fn f(x: [u8; 20]) -> [u8; 20] {
    let mut out = x;
    for i in 1..20 { out[i] = out[i] + out[i - 1]; }
    out
}"""


def export_of(source: str) -> Export:
    graph = compile_text(SourceFile("f.kera", source.encode()), Path("f.kera")).graph
    assert graph is not None
    return graph.exports[0]


def run(source: str, items: int) -> list[np.ndarray]:
    export = export_of(source)
    rng = np.random.default_rng(3)
    inputs = {name: random_value(kind, items, rng) for name, kind in export.params}
    return run_leaves(export, flatten_inputs(export, inputs, items), items)


def loops(source: str) -> list[bool]:
    nodes = export_of(source).region.nodes()
    return [taken_apart(node) is not None for node in nodes if node.opcode == "control.loop"]


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("most", [1 << 20, 64])
def test_all_rounds_at_once(name: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert loops(PROGRAMS[name]) == [True]
    monkeypatch.setattr(evaluator, "MOST_ELEMENTS", most)
    found = run(PROGRAMS[name], 2)
    monkeypatch.setattr(evaluator, "_LEAST_ROUNDS_AN_ITEM", 1 << 30)
    wanted = run(PROGRAMS[name], 2)
    assert all(a.dtype == b.dtype and a.tobytes() == b.tobytes() for a, b in zip(found, wanted, strict=True))


def test_rounds_that_look_at_what_they_carry_come_in_turn() -> None:
    assert loops(LOOKS) == [False]


def test_a_whole_picture_is_blurred() -> None:
    """Round by round this takes half a minute."""
    source = PROGRAMS["picture"]
    for small, large in (("12, 16", "240, 320"), ("1..11", "1..239"), ("1..15", "1..319")):
        source = source.replace(small, large)
    picture = np.random.default_rng(1).integers(0, 256, (240, 320), dtype=np.uint8)
    wanted = np.full_like(picture, 7)
    windows = np.lib.stride_tricks.sliding_window_view(picture, (3, 3))
    wanted[1:-1, 1:-1] = windows.sum(axis=(2, 3), dtype=np.uint16) // 9
    (found,) = run_leaves(export_of(source), [picture[None]], 1)
    assert np.array_equal(found[0], wanted)
