"""Planted faults: caught by the comparison, proved to be none, or missed and said; and resets that forget."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import kera_hw
from kera_hw.driver.hardware import HardwareDesign, design_hardware
from kera_hw.driver.mutation import MutationReport, try_faults
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.rtl_target import departure, pack_inputs, traffics
from kera_hw.graph import Export, Graph
from kera_hw.rtl.sim.bench import simulate
from kera_hw.rtl.sim.faults import FaultyDesign, PlantedFault, plant_faults
from tests.unit.cli_support import Kera

PROGRAM = """
pub fn add(a: u6, b: u6) -> u7 { a as u7 + b as u7 }
pub stream shift(x: u4) -> u4 {
    state line: [u4; 4] = [0; 4];
    let y = line[0];
    line = shift_in(line, x);
    y ^ x
}
"""


@pytest.fixture
def kera(capsys: pytest.CaptureFixture[str]) -> Kera:
    return Kera(capsys)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mutation") / "p.kera"
    path.write_text(PROGRAM)
    return path


def parts(path: Path, name: str) -> tuple[Graph, Export]:
    graph = kera_hw.load(path).graph
    export = graph.export(name)
    assert export is not None
    return graph, export


def design(path: Path, name: str) -> HardwareDesign:
    return design_hardware(*parts(path, name), TargetOptions())


@pytest.fixture(scope="module")
def faulty(path: Path) -> FaultyDesign:
    return plant_faults(design(path, "shift").emitted, 30, 1)


@pytest.mark.parametrize("name", ["add", "shift"])
def test_nearly_all_faults_are_caught(path: Path, name: str) -> None:
    report = try_faults(*parts(path, name), TargetOptions(), 30, 500, 1)
    assert len(report.tried) == 30 and report.faults >= 20
    assert report.fine and report.caught >= 0.95 * report.faults
    assert {item.how for item in report.tried} >= {"a result is wrong"}
    data = report.to_json()
    assert data["faults"] == data["caught"] + data["missed"] == 30 - data["none"]


def test_items_that_show_nothing_miss_what_there_is(path: Path, kera: Kera, tmp_path: Path) -> None:
    """One item in two: the same fault that many items catch is missed by few, and that is a failure."""
    few = kera("verify", path, "--fn", "add", "--mutate", 30, "--vectors", 1)
    assert few.status == 1 and "missed: " in few.out
    many = kera("verify", path, "--fn", "add", "--mutate", 30, "--vectors", 500, "--json")
    assert many.status == 0 and many.json["missed"] == 0 and many.json["fingerprint"] in few.out
    for wrong in (["0"], ["10", "--wave", tmp_path / "w.vcd"], ["5", "--target", "cpu"]):
        assert kera("verify", path, "--fn", "add", "--mutate", *wrong).status == 2


def test_what_is_proved_to_be_none_is_none_and_other_faults_are_not(faulty: FaultyDesign) -> None:
    commands = {fault.number: fault for fault in faulty.faults}
    assert sorted(commands) == list(range(1, 31)) and "kera_fault == 32'd30" in faulty.verilog
    assert not any(" -port C " in fault.command for fault in faulty.faults)
    reset = next(line for line in faulty.original.splitlines() if line.startswith("  cell $_SDFFE"))
    register = reset.split()[-1]
    stuck = f"mutate -mode const0 -module shift -cell {register} -port R -portbit 0"
    assert not faulty.is_none(PlantedFault(0, stuck))
    assert faulty.is_none(PlantedFault(0, "log nothing is changed"))
    # A reset that is taken back at once: two inversions are none.
    twice = f"mutate -mode inv -module shift -cell {register} -port D -portbit 0"
    assert not faulty.is_none(PlantedFault(0, twice))
    assert faulty.is_none(PlantedFault(0, f"{twice}; {twice}"))


def test_a_state_that_survives_a_reset_is_seen(path: Path) -> None:
    """Each bit of the state in turn is left out of the reset: the unhindered run has no way to see that."""
    made = design(path, "shift")
    items = {"x": np.random.default_rng(1).integers(0, 16, 100).astype(np.uint8)}
    words = pack_inputs(made, items, 100)
    smooth, _, resets = traffics(made.emitted, 100)
    assert resets.reset_at_cycle is not None and resets.resets > 1
    text = made.emitted.verilog
    lines = [line for line in text.splitlines() if "if (rst)" in line and "line_" in line]
    assert lines
    for line in lines:
        forgetful = made.with_verilog(text.replace(line, line.replace("if (rst)", "if (1'b0)"))).emitted
        assert departure(made, simulate(forgetful, words, resets), resets) is not None, line
    assert departure(made, simulate(made.emitted, words, resets), resets) is None
    assert departure(made, simulate(made.emitted, words, smooth), smooth) is None


def test_a_report_without_faults_is_fine() -> None:
    report = MutationReport("keg", "keg", "f", "fpga:ecp5-85k", 3, ())
    assert report.fine and "0 of 0" in report.text() and repr(report).endswith("0 of 0 faults caught>")
