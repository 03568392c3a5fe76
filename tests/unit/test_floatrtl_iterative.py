"""Folded division and square root: the graph, the netlist, and plans that leave them time."""
from __future__ import annotations

from pathlib import Path

import pytest

from kera_hw.driver.hardware import HardwareDesign, design_hardware
from kera_hw.driver.session import load_program
from kera_hw.driver.targets import TargetOptions
from kera_hw.rtl.lower.floats import iterative
from kera_hw.rtl.toolchain.verilator import lint
from kera_hw.schedule.fpga.simulate import simulate_netlist
from kera_hw.schedule.fpga.units import IterativeUnit
from kera_hw.types import FloatType
from tests.netlist_reference import evaluate

from .floatrtl_support import ARITY, FORMATS, Lowering, check, foreign, operands

KINDS = {kind.name: kind for kind in FORMATS}


@pytest.mark.parametrize("kind", FORMATS, ids=str)
@pytest.mark.parametrize("op,lowering", [("div", iterative.lower_div), ("sqrt", iterative.lower_sqrt)])
def test_graph(op: str, lowering: Lowering, kind: FloatType) -> None:
    check(lowering, op, kind, 3000)


def _sites(design: HardwareDesign) -> int:
    """What a circuit costs: a site has a LUT and a flip-flop."""
    return max(design.plan.estimate.lut, design.plan.estimate.ff)


@pytest.mark.parametrize("op,text,interval", [
    ("div", "pub fn f(a: f16, b: f16) -> f16 { a / b }", iterative.initiation_interval_of_div(KINDS["f16"])),
    ("sqrt", "pub fn f(a: bf16) -> bf16 { sqrt(a) }", iterative.initiation_interval_of_sqrt(KINDS["bf16"])),
])
def test_netlist_and_plan(op: str, text: str, interval: int, tmp_path: Path) -> None:
    source = tmp_path / "f.kera"
    source.write_text(text)
    loaded = load_program(source)
    assert loaded.graph is not None
    export = loaded.graph.exports[0]
    kind = export.params[0][1]
    assert isinstance(kind, FloatType)
    folded = design_hardware(loaded.graph, export, TargetOptions(interval=interval))
    assert [type(unit) for unit in folded.netlist.units()] == [IterativeUnit, IterativeUnit]
    assert folded.plan.initiation_interval == interval
    sooner = design_hardware(loaded.graph, export, TargetOptions(interval=interval - 1))
    assert not sooner.netlist.units()
    # Of few digits, a pipeline whose registers are enabled once an interval is about as small.
    assert _sites(folded) < 1.05 * _sites(sooner)
    verilog = tmp_path / "f.v"
    verilog.write_text(folded.emitted.verilog)
    assert lint([verilog], "f") == []
    columns = operands(kind, ARITY[op], 200, seed=3)
    buses = [bus for bus, _ in folded.netlist.inputs]
    want = foreign(op, kind, columns)
    assert simulate_netlist(folded.netlist, dict(zip(buses, columns))) == {"out_data": want}
    items = [dict(zip(buses, row)) for row in zip(*columns)]
    assert [found["out_data"] for found in evaluate(folded.netlist, items[:40])] == want[:40]


def test_a_recurrence_that_is_too_short_for_loops_is_pipelined(tmp_path: Path) -> None:
    source = tmp_path / "s.kera"
    source.write_text(
        "pub stream s(x: f16) -> f16 {\n  state last: f16 = 1.0;\n  last = x / last;\n  last\n}\n"
    )
    loaded = load_program(source)
    assert loaded.graph is not None, loaded.diagnostics
    interval = iterative.initiation_interval_of_div(KINDS["f16"]) + 4
    design = design_hardware(loaded.graph, loaded.graph.exports[0], TargetOptions(interval=interval))
    assert not design.netlist.units()
    assert design.plan.initiation_interval == interval
    assert any("pipelined, not folded" in note for note in design.plan.notes)


@pytest.mark.long
def test_an_interval_that_a_recurrence_sets_is_made_use_of(tmp_path: Path) -> None:
    source = tmp_path / "s.kera"
    source.write_text(
        "pub stream s(x: f32, y: f16) -> (f32, f16) {\n"
        "  state sum: f32 = 0.0;\n  sum = sum + x * sum;\n  (sum, sqrt(y))\n}\n"
    )
    loaded = load_program(source)
    assert loaded.graph is not None, loaded.diagnostics
    design = design_hardware(loaded.graph, loaded.graph.exports[0], TargetOptions())
    assert design.plan.initiation_interval >= iterative.initiation_interval_of_sqrt(KINDS["f16"])
    assert design.netlist.units()
