"""The report knows every kind of cell that a netlist may hold."""
from __future__ import annotations

from pathlib import Path

import pytest

from kera_hw.driver.build import build
from kera_hw.driver.hardware import design_hardware
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.session import compile_text
from kera_hw.schedule.fpga.cells import Lut, Moves, RegisterPin, Restart, StateNext
from kera_hw.support import SourceFile


@pytest.mark.parametrize("body", ["a < b", "a + b", "a * b"])
def test_a_build_reports_whatever_cells_floats_become(tmp_path: Path, body: str) -> None:
    result = "bool" if "<" in body else "f32"
    text = f"pub fn f(a: f32, b: f32) -> {result} {{ {body} }}\n"
    loaded = compile_text(SourceFile("f.kera", text.encode()), tmp_path)
    assert loaded.graph is not None
    graph = loaded.graph
    build(loaded, graph, graph.exports[0], TargetOptions(), tmp_path / "out", True, 1, lambda _: None)
    assert (tmp_path / "out" / "report.html").stat().st_size > 10_000


@pytest.mark.parametrize("emitter", ["text", "amaranth"])
def test_a_build_reports_states_with_controls_that_are_results(tmp_path: Path, emitter: str) -> None:
    text = """pub stream f(c: bool, x: u8) -> (u8, u12) {
        state s: u8 = 3;
        state n: u12 = 0;
        if c { s = x; }
        n = if x == 9 { 0 } else { n + 1 };
        (s, n)
    }"""
    loaded = compile_text(SourceFile("f.kera", text.encode()), tmp_path)
    assert loaded.graph is not None
    graph, options = loaded.graph, TargetOptions(emitter=emitter)
    design = design_hardware(graph, graph.exports[0], options)
    assert {StateNext, Moves, Restart, RegisterPin} <= {
        type(cell) for cell in design.netlist.cells
    }
    luts = [cell for cell in design.netlist.cells if isinstance(cell, Lut)]
    assert luts and all(cell.origin is not None for cell in luts)
    build(loaded, graph, graph.exports[0], options, tmp_path / "out", True, 1, lambda _: None)
    assert (tmp_path / "out" / "report.html").stat().st_size > 10_000
