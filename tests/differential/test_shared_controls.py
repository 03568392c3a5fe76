"""State registers with an enable in common: they are written together, however long their values take."""
from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import kera_hw
from kera_hw.driver.hardware import design_hardware
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.verify import verify_export
from kera_hw.schedule.fpga.delay_model import DelayModel
from kera_hw.schedule.fpga.netlist import control_readers
from kera_hw.schedule.verifier import verify_plan

HEAD = "pub stream f(x: i16, c: bool, r: bool) -> (i16, i32) { state a: i16 = 0; state b: i32 = 0;"
LONG = "let p = mul_wide(x, x) * 3; let q = (p ^ (p >> 3)) * 5;"
# At once and late; late, and the other without a use for an enable; kept by one signal, cleared by another.
PROGRAMS = {
    "both": f"{HEAD} {LONG} if c {{ a = x; b = (b << 1) ^ q; b = (b >> 3) ^ (b << 5); }} (a, b) }}",
    "one": f"{HEAD} {LONG} if c {{ a = a ^ x; b = q; }} (a, b) }}",
    "cleared": f"{HEAD} {LONG} if r {{ a = 0; b = 0; }} else if c {{ a = x; b = b ^ q; }} (a, b) }}",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_item_that_waits_is_written_once(tmp_path: Path, name: str) -> None:
    path = tmp_path / "f.kera"
    path.write_text(PROGRAMS[name])
    graph = kera_hw.load(path).graph
    report = verify_export(graph, graph.exports[0], ["interp", "rtl"], 400, 1, [], TargetOptions())
    assert report.equal and not report.diagnostics, report.diagnostics


def test_a_signal_of_another_stage_is_found(tmp_path: Path) -> None:
    path = tmp_path / "f.kera"
    path.write_text(PROGRAMS["both"])
    graph = kera_hw.load(path).graph
    design = design_hardware(graph, graph.exports[0], TargetOptions())
    readers = control_readers(design.netlist.cells)
    pins = [pin for state in design.netlist.states for pin in state.pins() if readers.get(pin)]
    assert pins, "no state has a control"
    stage = list(design.plan.stage)
    stage[pins[-1]] += 1
    faults = verify_plan(design.netlist, replace(design.plan, stage=tuple(stage)), DelayModel(design.device))
    assert any("told what holds in another stage" in fault for fault in faults)
