"""Real kernels by both emitters: each equal to the interpreter in simulation, and as large as the other."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import kera_hw
from kera_hw.cli.main import main
from kera_hw.driver.formal import prove_export
from kera_hw.driver.hardware import design_hardware
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.verify import verify_export
from kera_hw.rtl.emit.verilog import Emitted
from kera_hw.rtl.formal.circuit import emitted_circuit
from kera_hw.rtl.toolchain.harness import measure
from kera_hw.rtl.toolchain.nextpnr import CHIPS
from kera_hw.rtl.toolchain.verilator import lint

FIR = Path(__file__).resolve().parents[2] / "examples" / "fir.kera"
SOURCES = {"product": "pub fn unit(a: f16, b: f16) -> f16 { a * b }\n"}
KERNELS = ("fir", "product")


def source(name: str, folder: Path) -> Path:
    if name == "fir":
        return FIR
    path = folder / f"{name}.kera"
    path.write_text(SOURCES[name])
    return path


def emitted(path: Path, emitter: str, **options: Any) -> Emitted:
    graph = kera_hw.load(path).graph
    return design_hardware(graph, graph.exports[0], TargetOptions(emitter=emitter, **options)).emitted


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("emitter", ["text", "amaranth"])
def test_verify(name: str, emitter: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = source(name, tmp_path)
    assert main(["verify", str(path), "--vectors", "2000", "--emitter", emitter, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["equal"] and report["bits_compared"] >= 2000 * 16
    assert report["plans"]["rtl"]["emitter"] == emitter


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("interface", ["stream", "none"])
def test_synthesis_and_lint(name: str, interface: str, tmp_path: Path) -> None:
    counts: list[tuple[int, int, int, int]] = []
    for emitter in ("text", "amaranth"):
        made = emitted(source(name, tmp_path), emitter, interface=interface)
        path = tmp_path / f"{emitter}.v"
        path.write_text(made.verilog)
        assert lint([path], made.name) == []
        found = measure([path], made.name, CHIPS["ecp5-85k"], seeds=(), reset=None).counts
        counts.append((found.lut, found.ff, found.dsp, found.bram))
    assert counts[0] == counts[1]


def test_the_states_are_found_where_a_proof_looks_for_them() -> None:
    found: list[list[bool]] = []
    for emitter in ("text", "amaranth"):
        made = emitted(FIR, emitter)
        circuit = emitted_circuit(made)
        found.append([circuit.net(name) is not None for name in made.states])
    assert found[0] == found[1] and sum(found[0]) == 15  # the oldest is shifted out unread


def test_a_circuit_by_way_of_amaranth_is_proved(tmp_path: Path) -> None:
    path = tmp_path / "lookup.kera"
    table = ", ".join(str(k * k * 7 % 127) for k in range(20))
    path.write_text(
        f"const T: [u7; 20] = [{table}];\npub fn lookup(k: u5, x: u7) -> u7 {{ T[min(k, 19)] ^ x }}\n"
    )
    graph = kera_hw.load(path).graph
    proof = prove_export(graph, graph.exports[0], TargetOptions(emitter="amaranth"), 60)
    assert proof.proved


def test_the_receipt_names_the_emitter(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert main(["build", str(FIR), "--emit", "verilog", "--emitter", "amaranth", "-o", str(out)]) == 0
    assert json.loads((out / "receipt.json").read_text())["request"]["emitter"] == "amaranth"
    assert json.loads((out / "plan.json").read_text())["emitter"] == "amaranth"
    assert "module fir__datapath" in (out / "fir.v").read_text()
    assert main(["build", str(FIR), "--emit", "verilog", "--emitter", "vhdl", "-o", str(out)]) == 2


def test_a_folded_loop_by_way_of_amaranth(tmp_path: Path) -> None:
    path = tmp_path / "quotient.kera"
    path.write_text("pub fn quotient(a: f16, b: f16) -> f16 { a / b }\n")
    graph = kera_hw.load(path).graph
    export, options = graph.exports[0], TargetOptions(interval=16, emitter="amaranth")
    report = verify_export(graph, export, ["interp", "rtl"], 2000, 4, [], options)
    assert report.equal and report.plans["rtl"]["initiation_interval"] == 16
