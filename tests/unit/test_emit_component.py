"""A kernel inside an Amaranth design: elaborated, written as Verilog, simulated under random stalls."""
from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from amaranth.back import rtlil
from amaranth.hdl import ClockDomain, Elaboratable, Module, Signal

import kera_hw
from kera_hw.driver.hardware import HardwareDesign, design_hardware
from kera_hw.driver.options import TargetOptions
from kera_hw.graph import signature
from kera_hw.rtl.emit.component import AmaranthKernel, Cells, Kernel, VerilogKernel
from kera_hw.rtl.emit.convert import module_verilog
from kera_hw.rtl.emit.verilog import LIBRARY, model_text
from kera_hw.rtl.sim.bench import Traffic, simulate
from kera_hw.rtl.sim.words import from_words, to_words

SOURCE = """
pub fn blend(a: u8, b: u8, up: bool) -> (u16, u8) { (mul_wide(a, b), if up { a } else { b }) }
"""


class Outer(Elaboratable):
    """A design with the bus names of the kernel's own Verilog, so that the usual bench drives it."""

    def __init__(self, design: HardwareDesign, kernel: Kernel) -> None:
        self.kernel = kernel
        self.signals = {port.name: Signal(port.width, name=port.name) for port in design.emitted.ports}

    def elaborate(self, platform: object) -> Module:
        m, s, k = Module(), self.signals, self.kernel
        m.domains.sync = sync = ClockDomain("sync")
        sync.clk, sync.rst = s["clk"], s["rst"]
        m.submodules.blend = k
        m.d.comb += [
            k.i.valid.eq(s["in_valid"]), s["in_ready"].eq(k.i.ready),
            s["out_valid"].eq(k.o.valid), k.o.ready.eq(s["out_ready"]),
            k.i.payload.a.eq(s["in_a"]), k.i.payload.b.eq(s["in_b"]), k.i.payload.up.eq(s["in_up"]),
            s["out_0"].eq(k.o.payload["0"]), s["out_1"].eq(k.o.payload["1"]),
        ]
        return m


@pytest.fixture
def program(tmp_path: Path) -> kera_hw.Program:
    path = tmp_path / "blend.kera"
    path.write_text(SOURCE)
    return kera_hw.load(path)


@pytest.mark.parametrize("form", ["text", "generic", "device"])
def test_kernel_in_an_amaranth_design(program: kera_hw.Program, form: Cells | Literal["text"]) -> None:
    design = design_hardware(program.graph, program.graph.exports[0], TargetOptions("ecp5-25k", 150.0))
    if form == "text":
        kernel, parts = VerilogKernel(design.export, design.emitted), [design.emitted.verilog]
    else:
        kernel = AmaranthKernel(design.export, design.netlist, design.plan, "stream", "ecp5", form)
        parts = [model_text(name) for name in LIBRARY] if form == "device" else []
    pace = f"latency {kernel.latency_cycles}, interval {kernel.initiation_interval}"
    assert repr(kernel) == f"<{type(kernel).__name__} of {signature(design.export)}: {pace}>"
    outer = Outer(design, kernel)
    wrapper = module_verilog(outer, "outer", list(outer.signals.values()))
    assert ("kera_ecp5" in wrapper) == (form == "device")
    quiet = "/* verilator lint_off WIDTH */\n"
    whole = replace(design.emitted, name="outer", verilog=quiet + "".join([*parts, wrapper]))
    rng = np.random.default_rng(5)
    a, b, up = rng.integers(0, 256, 300), rng.integers(0, 256, 300), rng.integers(0, 2, 300)
    words = [to_words(values.tolist(), width) for values, width in ((a, 8), (b, 8), (up, 1))]
    run = simulate(whole, words, Traffic(valid_percent=70, ready_percent=60, seed=3))
    assert run.fault is None
    assert from_words(run.outputs[0]) == (a * b).tolist()
    assert from_words(run.outputs[1]) == np.where(up, a, b).tolist()


class Platform:
    """What a kernel asks of Amaranth's build platforms."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}

    def add_file(self, name: str, text: str) -> None:
        self.files[name] = text


def test_a_platform_gets_the_verilog_once_per_kernel(program: kera_hw.Program) -> None:
    platform = Platform()
    kernel = program.component("blend", interface="none", clock_mhz=100.0, emitter="text")
    assert kernel.latency_cycles >= 1
    assert "blend" in rtlil.convert(kernel, "top", platform)
    assert "module blend" in platform.files["blend.v"]


def test_device_cells_go_where_there_is_a_device(program: kera_hw.Program) -> None:
    platform = Platform()
    kernel = program.component("blend")
    assert "kera_ecp5" not in rtlil.convert(kernel, "top")
    assert "kera_ecp5_mul" in rtlil.convert(program.component("blend"), "top", platform)
    assert platform.files["kera_ecp5_mul.v"] == model_text("kera_ecp5_mul")
    assert "kera_ecp5" not in rtlil.convert(program.component("blend", cells="generic"), "top", Platform())


@pytest.mark.parametrize("wrong", [{"emitter": "vhdl"}, {"cells": "gates"}, {"interface": "bus"}])
def test_unknown_words_are_refused(program: kera_hw.Program, wrong: dict[str, str]) -> None:
    with pytest.raises(kera_hw.KeraError) as refused:
        program.component("blend", **wrong)  # pyright: ignore[reportArgumentType]
    assert refused.value.diagnostics[0].code == "K0908"
    with pytest.raises(kera_hw.KeraError) as refused:
        program.component("blurb")
    assert refused.value.diagnostics[0].code.startswith("K09")
