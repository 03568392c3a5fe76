"""The same circuit after synthesis and in Icarus: equal, and seen to differ where it does."""
from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import kera_hw
from kera_hw.driver import simulations
from kera_hw.driver.hardware import HardwareDesign, design_hardware
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.rtl_target import RtlExecutor, pack_inputs, traffics
from kera_hw.driver.simulations import NetlistExecutor
from kera_hw.rtl.emit.verilog import Emitted
from kera_hw.rtl.sim import gates, replay
from kera_hw.rtl.sim.bench import Bench
from kera_hw.rtl.toolchain.nextpnr import Chip
from kera_hw.rtl.toolchain.process import ToolMissing, scratch
from kera_hw.rtl.toolchain.tools import TOOLS, locate
from tests.unit.cli_support import Kera

PROGRAM = """
pub stream mix(x: i8, go: bool) -> (i16, bool) {
    state line: [i8; 3] = [1, 2, 3];
    state on: bool = true;
    line = shift_in(line, x);
    on = on ^ go;
    (line[2] as i16 * line[0] as i16, on)
}
pub fn masked(x: [bool; 1100]) -> u4 { (if x[3] ^ x[1099] { 9 } else { 6 }) as u4 }
"""
needs_icarus = pytest.mark.skipif(locate("iverilog") is None, reason=TOOLS["iverilog"].remedy)


@pytest.fixture
def kera(capsys: pytest.CaptureFixture[str]) -> Kera:
    return Kera(capsys)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("simulations") / "p.kera"
    path.write_text(PROGRAM)
    return path


def design(path: Path, name: str) -> HardwareDesign:
    graph = kera_hw.load(path).graph
    export = graph.export(name)
    assert export is not None
    return design_hardware(graph, export, TargetOptions())


@needs_icarus
@pytest.mark.parametrize(
    ("name", "options"),
    [("mix", ["--target", "fpga:ecp5-25k"]), ("mix", ["--target", "fpga:ice40-hx8k", "--interface", "none"]),
     ("masked", ["--interface", "axis", "--lanes", "40"])],
)  # fmt: skip
def test_every_simulation_of_a_circuit_is_a_row(
    kera: Kera, path: Path, name: str, options: list[str]
) -> None:
    call = ["verify", path, "--fn", name, "--vectors", 6, "--netlist", "--simulator", "icarus", *options]
    data = kera(*call, "--json").json
    assert data["ok"], data
    wanted = ["interp", "rtl", "rtl:netlist", "rtl:icarus", "rtl:netlist:icarus"]
    assert [row["target"] for row in data["results"]] == wanted
    assert {row["verdict"] for row in data["results"][1:]} == {"equal"}
    assert data["plans"]["rtl:netlist"]["cells"]["lut"] > 0
    assert data["plans"]["rtl:netlist:icarus"]["simulator"] == "icarus"


# What becomes of a port of the design on its way to the bench.
CROOKED = "wire [95:0] crooked; assign data_out[15:0] = crooked[15:0] ^ {15'd0, crooked[3:0] == 4'd6};"
LATE = "wire straight; reg late = 0; always @(posedge clk) late <= straight; assign out_valid[0] = late;"
FAULTS = {
    "another result": ("data_out[", "crooked[", CROOKED),
    "an unknown result": ("data_out[", "nothing[", "wire [95:0] nothing;"),
    "a late result": ("(out_valid[0])", "(straight)", LATE),
}


@needs_icarus
@pytest.mark.parametrize("fault", FAULTS)
def test_another_answer_in_any_cycle_is_seen(path: Path, fault: str) -> None:
    made = design(path, "mix")
    rng = np.random.default_rng(1)
    items = {"x": rng.integers(-128, 128, 50).astype(np.int8), "go": rng.integers(0, 2, 50).astype(np.bool_)}
    old, new, extra = FAULTS[fault]
    for traffic in traffics(made.emitted, 50):
        with scratch("replay") as work:
            bench = Bench(made.emitted, work, pack_inputs(made, items, 50), 50)
            bench.run(traffic, record=work / "record.bin")
            assert replay.replay(made.emitted, work, work / "record.bin") is None
            wrapper = work / "kera_bench_top.v"
            head, dut, rest = wrapper.read_text().partition(" dut(")
            assert old in rest
            rest = rest.replace(old, new, 1).replace("endmodule", extra + " endmodule")
            wrapper.write_text(head + dut + rest)
            found = replay.replay(made.emitted, work, work / "record.bin")
            assert found is not None and "in cycle" in found


def test_a_netlist_with_a_fault_differs_and_a_missing_simulator_is_said(
    path: Path, monkeypatch: pytest.MonkeyPatch, kera: Kera
) -> None:
    def crooked(emitted: Emitted, chip: Chip) -> gates.Gates:
        made = gates.synthesised(emitted, chip)
        place = made.verilog.rindex("module mix")
        head, body = made.verilog[:place], made.verilog[place:]
        found = re.search(r"INIT\(16'h(\w{4})\)", body)
        assert found is not None
        other = f"INIT(16'h{int(found[1], 16) ^ 0xFFFF:04x})"
        return gates.Gates(head + body.replace(found[0], other, 1), made.counts)

    def missing(tool: str) -> Path:
        raise ToolMissing(tool, TOOLS[tool].remedy)

    call = ["verify", path, "--fn", "mix", "--vectors", 60]
    monkeypatch.setattr(simulations, "synthesised", crooked)
    done = kera(*call, "--netlist", "--json")
    rows = {row["target"]: row["verdict"] for row in done.json["results"]}
    assert done.status == 1 and rows["rtl"] == "equal" and rows["rtl:netlist"] in ("different", "failed")
    monkeypatch.setattr(simulations, "require", missing)
    done = kera(*call, "--simulator", "icarus")
    assert done.status == 3 and "error[K0950]" in done.err and "not compared" in done.out
    assert kera(*call, "--simulator", "other").status == 2
    done = kera(*call, "--simulator", "icarus", "--interface", "axi-lite")
    assert done.status == 2 and "are not replayed" in done.err and "0 differing bits" in done.out


def test_executors_say_what_they_are(path: Path) -> None:
    graph = kera_hw.load(path).graph
    export = graph.export("mix")
    assert export is not None
    rtl = RtlExecutor(graph, export, TargetOptions())
    netlist = NetlistExecutor(rtl)
    assert netlist.plan["level"] == "netlist" and netlist.plan["cells"]["dsp"] == rtl.plan["estimate"]["dsp"]
    assert "TRELLIS_FF #" in netlist.design.emitted.verilog
    assert "TRELLIS_FF #" not in rtl.design.emitted.verilog
