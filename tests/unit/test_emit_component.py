"""A kernel inside an Amaranth design: elaborated, written as Verilog, simulated under random stalls."""
from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from amaranth.back import rtlil
from amaranth.hdl import ClockDomain, Elaboratable, Module, Signal

import kera_hw
from kera_hw.driver.hardware import HardwareDesign, design_hardware
from kera_hw.driver.options import TargetOptions
from kera_hw.rtl.emit.component import Kernel
from kera_hw.rtl.emit.handshake import module_verilog
from kera_hw.rtl.sim.bench import Traffic, simulate
from kera_hw.rtl.sim.words import from_words, to_words

SOURCE = """
pub fn blend(a: u8, b: u8, up: bool) -> (u16, u8) { (mul_wide(a, b), if up { a } else { b }) }
"""


class Outer(Elaboratable):
    """A design with the bus names of the kernel's own Verilog, so that the usual bench drives it."""

    def __init__(self, design: HardwareDesign) -> None:
        self.kernel = Kernel(design.emitted)
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


def test_kernel_in_an_amaranth_design(program: kera_hw.Program) -> None:
    design = design_hardware(program.graph, program.graph.exports[0], TargetOptions("ecp5-25k", 150.0))
    outer = Outer(design)
    wrapper = module_verilog(outer, "outer", list(outer.signals.values()))
    whole = replace(design.emitted, name="outer", verilog=design.emitted.verilog + wrapper)
    rng = np.random.default_rng(5)
    a, b, up = rng.integers(0, 256, 300), rng.integers(0, 256, 300), rng.integers(0, 2, 300)
    words = [to_words(values.tolist(), width) for values, width in ((a, 8), (b, 8), (up, 1))]
    run = simulate(whole, words, Traffic(valid_percent=70, ready_percent=60, seed=3))
    assert run.fault is None
    assert from_words(run.outputs[0]) == (a * b).tolist()
    assert from_words(run.outputs[1]) == np.where(up, a, b).tolist()


def test_a_platform_gets_the_verilog_once_per_kernel(program: kera_hw.Program) -> None:
    files: dict[str, str] = {}

    class Platform:
        add_file = staticmethod(files.__setitem__)

    kernel = program.component("blend", interface="none", clock_mhz=100.0)
    assert kernel.latency_cycles >= 1
    assert "blend" in rtlil.convert(kernel, "top", Platform())
    assert "module blend" in files["blend.v"]
    with pytest.raises(kera_hw.KeraError) as refused:
        program.component("blurb")
    assert refused.value.diagnostics[0].code.startswith("K09")
