"""Synthesised netlists, simulated with the device library's own cells on the same vectors as the source."""
from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kera_hw.driver.hardware import HardwareDesign, design_hardware
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.session import compile_text
from kera_hw.rtl.sim.gates import synthesised
from kera_hw.rtl.toolchain.cells import read_netlist
from kera_hw.rtl.toolchain.nextpnr import CHIPS
from kera_hw.rtl.toolchain.yosys import run_script
from kera_hw.support import SourceFile
from tests.differential.hardware_support import check_rtl

SOURCE = """
pub fn mixed(a: i10, b: i10, c: u12, s: bool) -> (i20, u12, i10, u32) {
    let y = if s { saturating_add(a, b) } else { a / (b | 3) };
    (mul_wide(a, b), rotl(c, c & 15), y, popcount(c) + clz(b))
}
pub stream filter(x: i12) -> i24 {
    state z: [i24; 3] = [1; 3];
    state peak: i12 = -7;
    z = shift_in(z, (x as i24) * 77 - z[0]);
    peak = max(peak, x);
    sum(z) + (peak as i24)
}
pub fn tables(x: f16) -> f16 { tanh(x) }
pub stream framed(load: bool, step: bool, x: u12) -> (u12, u10, u8) {
    state data: u12 = 0;
    state since: u10 = 0;
    state mark: u8 = 255;
    let shown = (data, since, mark);
    if load { data = x; } else if step { data = rotl(data, 1); }
    since = if load && x.bit(0) { 0 } else { since + 1 };
    if x == 9 { mark = 255; } else if step && load { mark = x.bits(7, 0); }
    shown
}
"""


def _design(name: str, device: str, clock_mhz: float, emitter: str = "text") -> HardwareDesign:
    loaded = compile_text(SourceFile("synth.kera", SOURCE.encode()), Path("synth.kera"))
    assert loaded.graph is not None, loaded.diagnostics
    export = loaded.graph.export(name)
    assert export is not None
    return design_hardware(loaded.graph, export, TargetOptions(device, clock_mhz, emitter=emitter))


@pytest.mark.parametrize("family", ("ecp5", "ice40"))
@pytest.mark.parametrize("name", ("mixed", "filter", "tables", "framed"))
def test_synthesised_netlist_equals_the_interpreter(name: str, family: str) -> None:
    device, clock = ("ecp5-85k", 150.0) if family == "ecp5" else ("ice40-hx8k", 40.0)
    design = _design(name, device, clock)
    check_rtl(design.with_verilog(synthesised(design.emitted, CHIPS[device]).verilog), 100)


def _cells(design: HardwareDesign, family: str, work: Path) -> list[dict[str, Any]]:
    name = design.emitted.name
    (work / "design.v").write_text(design.emitted.verilog)
    passes = [f"synth_{family} -abc9 -top {name}", "write_json netlist.json"]
    run_script(["read_verilog -sv design.v", *passes], work)
    found: dict[str, Any] = json.loads((work / "netlist.json").read_text())
    return list(found["modules"][design.emitted.name]["cells"].values())


STATE_LUTS = 12 + 10  # a choice of two for each bit of `data`, a carry chain for `since`, wires for `mark`
CONTROL_LUTS = 8  # conditions with "the pipeline moves", and the comparison with 9
SHELL_LUTS = 4  # admission, stall, and an item that moves on
# iCE40's flip-flops start with 0, so that `mark` is kept inverted; and reset only where enabled.
ICE40_LUTS = 2 * 8 + 4


@pytest.mark.parametrize("emitter", ("text", "amaranth"))
@pytest.mark.parametrize("family", ("ecp5", "ice40"))
def test_states_use_the_controls_of_flip_flops(family: str, emitter: str, tmp_path: Path) -> None:
    """No LUT holds a state or starts it anew; the estimate is what synthesis makes of it."""
    device, clock = ("ecp5-85k", 100.0) if family == "ecp5" else ("ice40-hx8k", 40.0)
    design = _design("framed", device, clock, emitter)
    cells = _cells(design, family, tmp_path)
    enable, resets = ("CE", ("LSR",)) if family == "ecp5" else ("E", ("R", "S"))
    registers = [cell["connections"] for cell in cells if "FF" in cell["type"]]
    # Each state has an enable of its own, the two that start anew a reset; `data` has the design's, as the
    # valid bit has. What is left are registers of the pipeline.
    enables = Counter(str(pins.get(enable)) for pins in registers)
    reset = Counter(str(next((pins[name] for name in resets if name in pins), "['0']")) for pins in registers)
    assert sorted(enables.values()) == ([8, 10, 12, 31] if family == "ecp5" else [1, 8, 10, 12, 30])
    assert sorted(reset.values()) == [8, 10, 13, 30] and reset["['0']"] == 30
    counts = read_netlist(tmp_path / "netlist.json", "framed").counts
    bound = STATE_LUTS + CONTROL_LUTS + SHELL_LUTS + (ICE40_LUTS if family == "ice40" else 0)
    assert counts.lut <= bound
    assert counts.ff == design.plan.estimate.ff
    if family == "ecp5":
        assert 0 <= counts.lut - design.plan.estimate.lut <= SHELL_LUTS
