"""Designs without a handshake that are told which cycles hold an item: ports, early items, reset, proof."""
from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import kera_hw
from kera_hw.cli.main import main
from kera_hw.driver.formal import prove_export
from kera_hw.driver.hardware import HardwareDesign, design_hardware
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.verify import verify_export
from kera_hw.rtl.emit.serial import serial_name, serial_verilog
from kera_hw.rtl.sim.bench import Traffic, simulate
from kera_hw.rtl.sim.words import from_words, to_words
from kera_hw.rtl.toolchain.harness import measure
from kera_hw.rtl.toolchain.nextpnr import CHIPS
from kera_hw.rtl.toolchain.verilator import lint

pytestmark = pytest.mark.usefixtures("searched_once")

SOURCES = {
    "counter": "pub stream counter(x: u8) -> u12 { state sum: u12 = 5; sum = sum + (x as u12); sum }",
    "slow": "pub stream slow(x: u8) -> u16 { state y: u16 = 3; y = ((y * y) >> 3) ^ (x as u16); y }",
    "folded": "pub fn folded(a: f16, b: f16) -> f16 { a / b }",
    "spaced": "pub fn spaced(a: i16, b: i16) -> i32 { mul_wide(a, b) + 1 }",
    "late": "pub fn late(a: i16, b: i16) -> i32 { mul_wide(a, b) + 1 }",
    "deep": "pub stream deep(x: u32) -> u32 { state y: u32 = 1; y = (y * (x | 1)) / 7 + x; y }",
    "plain": "pub fn plain(a: i16, b: i16) -> i32 { mul_wide(a, b) + 1 }",
}
OPTIONS = {
    "counter": TargetOptions(interface="none"),
    "slow": TargetOptions(interface="none", clock_mhz=250),
    "folded": TargetOptions(interface="none", interval=16),
    "spaced": TargetOptions(interface="none", interval=3),
    "late": TargetOptions(interface="none", interval=6, latency=20),
    "deep": TargetOptions(interface="none", clock_mhz=120),
    "plain": TargetOptions(interface="none"),
}
STROBED = ("counter", "slow", "folded", "spaced", "late", "deep")


def design(name: str, emitter: str, folder: Path) -> HardwareDesign:
    path = folder / f"{name}.kera"
    path.write_text(SOURCES[name])
    graph = kera_hw.load(path).graph
    return design_hardware(graph, graph.exports[0], replace(OPTIONS[name], emitter=emitter))


@pytest.mark.parametrize("emitter", ["text", "amaranth"])
@pytest.mark.parametrize("name", SOURCES)
def test_ports_figures_and_values(name: str, emitter: str, tmp_path: Path) -> None:
    made = design(name, emitter, tmp_path)
    control = [(port.name, port.direction) for port in made.emitted.control]
    strobes = [("rst", "input"), ("in_valid", "input"), ("out_valid", "output")]
    assert control == (strobes if name in STROBED else [])
    assert (made.plan.initiation_interval > 1) == (name in ("slow", "folded", "spaced", "late", "deep"))
    verilog, shell = tmp_path / "design.v", tmp_path / "shell.v"
    verilog.write_text(made.emitted.verilog)
    shell.write_text(serial_verilog(made.emitted))
    assert lint([verilog], name) == []
    assert lint([verilog, shell], serial_name(made.emitted), allowed=("DECLFILENAME", "UNUSEDSIGNAL")) == []
    options = replace(OPTIONS[name], emitter=emitter)
    assert verify_export(made.graph, made.export, ["interp", "rtl"], 200, 5, [], options).equal
    if name in ("counter", "folded", "late", "deep"):
        counts = measure([verilog], name, CHIPS["ecp5-85k"], seeds=()).counts
        assert counts.ff == made.plan.estimate.ff


@pytest.mark.parametrize("name", STROBED)
def test_early_items_and_resets(name: str, tmp_path: Path) -> None:
    """The bench offers other data until an item is due, and starts over after a reset in mid-flight."""
    made = design(name, "text", tmp_path)
    rng = np.random.default_rng(1)
    items = [[int(v) for v in rng.integers(0, 1 << port.width, 80)] for port in made.emitted.data_inputs]
    words = [to_words(column, port.width) for column, port in zip(items, made.emitted.data_inputs)]
    found: list[list[int]] = []
    for traffic in (Traffic(), Traffic(40, 100, 3), Traffic(70, 100, 4, reset_at_cycle=60)):
        run = simulate(made.emitted, words, traffic)
        assert run.fault is None, traffic
        found.append(from_words(run.outputs[0]))
    assert found[0] == found[1] == found[2]


def test_the_bench_sees_an_item_that_came_early(tmp_path: Path) -> None:
    made = design("slow", "text", tmp_path).emitted
    words = [to_words(range(50), 8)]
    assert simulate(made, words, Traffic(50, 100, 1)).fault is None
    broken = replace(made, verilog=made.verilog.replace("assign due = ", "assign due = 1'h1 | "))
    assert broken.verilog != made.verilog
    assert simulate(broken, words, Traffic(50, 100, 1)).fault is not None


@pytest.mark.parametrize("emitter", ["text", "amaranth"])
@pytest.mark.parametrize("name", ["counter", "spaced", "late"])
def test_proofs(name: str, emitter: str, tmp_path: Path) -> None:
    made = design(name, emitter, tmp_path)
    options = replace(OPTIONS[name], emitter=emitter)
    assert prove_export(made.graph, made.export, options, 60).proved


def test_it_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "slow.kera"
    path.write_text(SOURCES["slow"])
    assert main(["plan", str(path), "--interface", "none", "--clock", "250MHz"]) == 0
    said = capsys.readouterr().err
    assert "K0617" in said and "earlier is ignored" in said
    assert main(["explain", "K0617"]) == 0
    assert "in_valid may be high" in " ".join(capsys.readouterr().out.split())
