"""Synthesised netlists, simulated with the device library's own cells on the same vectors as the source."""
from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from kera_hw.driver.hardware import HardwareDesign, design_hardware
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.session import compile_text
from kera_hw.rtl.emit.verilog import model_text
from kera_hw.rtl.toolchain.tools import require
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
"""


def _design(name: str, device: str, clock_mhz: float) -> HardwareDesign:
    loaded = compile_text(SourceFile("synth.kera", SOURCE.encode()), Path("synth.kera"))
    assert loaded.graph is not None, loaded.diagnostics
    export = loaded.graph.export(name)
    assert export is not None
    return design_hardware(loaded.graph, export, TargetOptions(device, clock_mhz))


def _library(family: str) -> str:
    """The device's simulation models, less their timing, which a cycle simulator does not read."""
    folder = require("pyosys") / "share" / family
    text = (folder / "cells_sim.v").read_text()
    include = re.compile(r'`include "([^"]+)"')
    while include.search(text):
        text = include.sub(lambda found: (folder / Path(found.group(1)).name).read_text(), text)
    # Defaults of unconnected inputs read as drivers; a synthesised netlist connects all of them.
    text = "`define NO_ICE40_DEFAULT_ASSIGNMENTS\n" + text
    # The library's ECP5 block RAM has ports and timing, but does nothing.
    text = re.sub(r"\bmodule DP16KD\b.*?\bendmodule\b", "", text, flags=re.DOTALL)
    return re.sub(r"\bspecify\b.*?\bendspecify\b", "", text, flags=re.DOTALL)


def _synthesised(design: HardwareDesign, family: str, work: Path) -> HardwareDesign:
    name = design.emitted.name
    (work / "design.v").write_text(design.emitted.verilog)
    synthesis = f"synth_{family} -abc9 -top {name}"
    run_script(["read_verilog -sv design.v", synthesis, "write_verilog -noattr netlist.v"], work)
    parts = [(work / "netlist.v").read_text(), _library(family)]
    if family == "ecp5":
        parts += [model_text(module) for module in ("MULT18X18D", "DP16KD") if module in parts[0]]
    return replace(design, emitted=replace(design.emitted, verilog="\n".join(parts)))


@pytest.mark.parametrize("family", ("ecp5", "ice40"))
@pytest.mark.parametrize("name", ("mixed", "filter", "tables"))
def test_synthesised_netlist_equals_the_interpreter(name: str, family: str, tmp_path: Path) -> None:
    device, clock = ("ecp5-85k", 150.0) if family == "ecp5" else ("ice40-hx8k", 40.0)
    check_rtl(_synthesised(_design(name, device, clock), family, tmp_path), 100)
