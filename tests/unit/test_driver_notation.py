"""One notation of targets and devices everywhere, and texts of objects that fit on a line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import kera_hw
from kera_hw.driver.build import build
from kera_hw.driver.hardware import design_hardware
from kera_hw.driver.options import CPU_TARGETS, TargetOptions
from kera_hw.driver.session import load_program
from kera_hw.driver.targets import EVERY_MACHINE, hardware_device, resolve_target
from kera_hw.driver.verify import verify_export
from kera_hw.graph import Graph
from kera_hw.support import SourceFile, Span
from tests.unit.cli_support import Kera

PROGRAM = """
struct P { r: u8, g: i12 }
pub fn swap(p: P, k: [bool; 2]) -> (i12, u8) { (p.g, if k[0] { p.r } else { 0 }) }
pub stream acc(x: i16) -> i16 {
    state s: i16 = 0;
    s = s + x;
    s
}
"""


@pytest.fixture
def kera(capsys: pytest.CaptureFixture[str]) -> Kera:
    return Kera(capsys)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "p.kera"
    path.write_text(PROGRAM)
    return path


GOOD = [
    (("interp", None), ("interp", None)), (("rtl", None), ("rtl", None)),
    (("rtl", "ecp5-25k"), ("rtl", "ecp5-25k")), (("rtl", "fpga:ecp5-25k"), ("rtl", "ecp5-25k")),
    (("fpga:ecp5-25k", None), ("rtl", "ecp5-25k")), (("ecp5-25k", None), ("rtl", "ecp5-25k")),
    (("fpga:ecp5-25k", "ecp5-25k"), ("rtl", "ecp5-25k")),
]  # fmt: skip
BAD = [
    (("fpga:nope", None), "K0605"), (("rtl", "nope"), "K0605"), (("nope", None), "K0903"),
    (("", None), "K0903"),
    (("fpga:", None), "K0605"), (("fpga:ecp5-25k", "ecp5-85k"), "K0908"), ((7, None), "K0908"),
    (("rtl", 7), "K0605"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "meant"), GOOD)
def test_targets_are_understood(given: tuple[Any, Any], meant: tuple[str, str | None]) -> None:
    assert resolve_target(*given) == meant


@pytest.mark.parametrize(("given", "code"), BAD)
def test_what_is_no_target_is_told(given: tuple[Any, Any], code: str) -> None:
    with pytest.raises(kera_hw.KeraError) as caught:
        resolve_target(*given)
    assert [item.code for item in caught.value.diagnostics] == [code]


def test_hardware_has_a_default_and_is_not_the_interpreter() -> None:
    assert hardware_device(None) == "ecp5-85k" and hardware_device("rtl", "ecp5-25k") == "ecp5-25k"
    with pytest.raises(kera_hw.KeraError, match=r"K0903.*no hardware"):
        hardware_device("interp")


@pytest.mark.parametrize(
    "how",
    [["--target", "fpga:ice40-hx8k"], ["--target", "ice40-hx8k"], ["--device", "ice40-hx8k"],
     ["--device", "fpga:ice40-hx8k"]],
    ids=" ".join,
)  # fmt: skip
def test_every_command_takes_every_notation(kera: Kera, path: Path, tmp_path: Path, how: list[str]) -> None:
    def device(*call: object) -> Any:
        done = kera(*call, "--fn", "acc", *how, "--json")
        assert done.status == 0, done.out
        return done.json

    assert device("plan", path)["target"] == "fpga:ice40-hx8k"
    assert device("inspect", path, "--plan")["plan"]["target"] == "fpga:ice40-hx8k"
    assert device("build", path, "--emit", "verilog", "-o", tmp_path / "o")["target"] == "fpga:ice40-hx8k"
    assert device("verify", path, "--vectors", "5")["plans"]["rtl"]["target"] == "fpga:ice40-hx8k"
    ran = device("run", path, "-i", "x=3")
    assert (ran["target"], ran["device"], ran["result"]) == ("rtl", "ice40-hx8k", 3)


def test_devices_may_be_compared_with_each_other(kera: Kera, path: Path) -> None:
    targets = "interp,rtl,fpga:ice40-hx8k"
    data = kera("verify", path, "--fn", "acc", "--targets", targets, "--vectors", "5", "--json").json
    plans = [data["plans"][name]["target"] for name in targets.split(",")]
    assert data["equal"] and plans == ["interp", "fpga:ecp5-85k", "fpga:ice40-hx8k"]
    data = kera("verify", path, "--fn", "acc", "--targets", "all", "--vectors", "5", "--json").json
    assert data["equal"] and [row["target"] for row in data["results"]] == list(EVERY_MACHINE)
    # All are compared but those of another processor, or of another level than this one's.
    refused = {row["target"]: row["reasons"][0]["code"] for row in data["results"] if row["reasons"]}
    assert data["targets"] == [name for name in EVERY_MACHINE if name not in refused]
    assert set(refused.values()) <= {"K0706"} and set(refused) <= set(CPU_TARGETS) - {"cpu"}


def test_the_options_of_build_are_those_of_run(kera: Kera, path: Path) -> None:
    call = ["--fn", "acc", "--latency", "4", "--ii", "2", "--clock", "99MHz", "--dsp", "0"]
    call += ["--interface", "none"]
    for command in (["plan", path], ["inspect", path, "--plan"]):
        data = kera(*command, *call, "--json").json
        plan = data.get("plan", data)
        assert (plan["latency_cycles"], plan["initiation_interval"], plan["clock_mhz"]) == (4, 2, 99)
    data = kera("verify", path, *call, "--vectors", "3", "--json").json
    assert data["equal"] and data["plans"]["rtl"]["latency_cycles"] == 4


def test_python_takes_the_same_notation(path: Path) -> None:
    program = kera_hw.load(path)
    assert program.function("acc").plan["target"] == "interp"
    part = "fpga:ecp5-25k"
    for given in ({"target": part}, {"device": "ecp5-25k"}, {"target": "rtl", "device": part}):
        assert program.function("acc", **given).plan["target"] == "fpga:ecp5-25k"
    with pytest.raises(kera_hw.KeraError, match="K0908"):
        program.function("acc", "fpga:ecp5-25k", device="ecp5-85k")
    for wrong, code in (("interp", "K0903"), ("fpga:nope", "K0605")):
        with pytest.raises(kera_hw.KeraError, match=code):
            program.component("acc", target=wrong)


def test_the_module_shows_its_interface_and_nothing_else(path: Path) -> None:
    kera_hw.load(path).function("acc", target="rtl")  # loads most of the compiler
    assert sorted(dir(kera_hw)) == [
        "Function", "KeraError", "Program", "Stream", "TracedProgram", "__version__", "compile", "constant",
        "fn", "kera", "load", "state", "trace",
    ]
    assert all(hasattr(kera_hw, name) for name in dir(kera_hw))


def test_objects_tell_what_they_are_on_one_line(path: Path, tmp_path: Path) -> None:
    loaded, program = load_program(path), kera_hw.load(path)
    assert loaded.graph is not None
    export = loaded.graph.export("acc")
    assert export is not None
    acc = "stream acc(x: i16) -> i16"
    swap = "fn swap(p: P, k: [bool; 2]) -> (i12, u8)"
    rtl = program.function("acc", target="rtl")
    costs = "{lut} LUT, {ff} FF".format(**rtl.plan["estimate"])
    design = design_hardware(loaded.graph, export, TargetOptions())
    result = build(loaded, loaded.graph, export, TargetOptions(), tmp_path / "o", True, 1, lambda _: None)
    report = verify_export(loaded.graph, export, ["interp", "rtl"], 4, 1, [], TargetOptions())
    file = SourceFile("p.kera", b"ab\ncd")
    with pytest.raises(kera_hw.KeraError) as caught:
        program.function("nope")
    texts = {
        repr(program): f"<Program {path}: {acc}; {swap}>",
        repr(program.function("acc")): f"<{acc} on interp>",
        repr(program.function("acc").plan): "<plan: interp>",
        repr(rtl): f"<{acc} on fpga:ecp5-85k, latency 1, interval 1>",
        repr(rtl.plan): f"<plan of acc: fpga:ecp5-85k at 150 MHz, latency 1, interval 1, {costs}>",
        repr(export): f"<{acc}>",
        repr(Graph([export])): f"<Graph {program.function('acc').fingerprint}: {acc}>",
        repr(loaded): f"<Loaded {path}: {loaded.graph!r}, 0 diagnostics>",
        repr(design): f"<HardwareDesign of {acc}: {design.plan!r}>",
        repr(result): f"<BuildResult {tmp_path / 'o'}: {', '.join(result.files)}>",
        repr(report): "<VerifyReport acc: equal on interp, rtl, 4 items>",
        repr(file): "<SourceFile p.kera, 5 bytes>",
        repr(caught.value.diagnostics): f"[<error K0902: {caught.value.diagnostics[0].message}>]",
    }
    for shown, wanted in texts.items():
        assert shown == wanted and "\n" not in shown
    for long in (design.plan, design.netlist, design.emitted, design.flat.region):
        assert len(repr(long)) < 120 and repr(long).startswith("<")
    assert rtl.plan == dict(rtl.plan) and "latency_cycles" in rtl.plan
    bad = kera_hw.support.Diagnostic("K0201", "No.", file, Span(3, 4))
    assert repr(bad) == "<error K0201 p.kera:2:1: No.>"
