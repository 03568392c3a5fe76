"""Emitted Verilog at the edges of what source can ask for: odd ports, odd names, feedback, nothing at all."""
from __future__ import annotations

import functools
import tempfile
from pathlib import Path

import numpy as np
import pytest

from kera_hw.driver.hardware import HardwareDesign, design_hardware
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.session import Loaded, compile_text
from kera_hw.interp import run_export
from kera_hw.rtl.toolchain.verilator import lint
from kera_hw.support import SourceFile
from kera_hw.types import TensorType
from tests.differential.hardware_support import (
    assert_same,
    check_rtl,
    pack,
    random_inputs,
    result_buses,
    simulate_design,
)

SOURCE = """
struct Quote { bid: u7, live: bool, pair: (i3, ufix<5,2>) }
pub fn wire(clk: u1, rst: bool, reg: [Quote; 2, 3], module: [u8; 0], advance: i33, holds: u64, out_data: i5)
    -> (Quote, [Quote; 2, 3], bool, [u8; 0], (), u1, i33, u64, i5) {
    (reg[1, 2], reverse(reg, 1), rst, module, (), clk, advance + 1, holds ^ 5, out_data)
}
pub fn wide(x: [u64; 64], begin: u6) -> ([u64; 64], u64) { (reverse(x, 0), x[begin]) }
pub fn answer() -> (u8, bool) { (42, true) }
pub fn nothing() -> () { }
pub fn unit(x: u8) -> () { }
pub fn empty(x: [u8; 0]) -> [u8; 0] { x }
pub fn same(x: u8) -> u8 { x }
pub stream counter() -> u8 { state c: u8 = 250; c += 3; c }
pub stream silent(x: u8) -> () { state c: u8 = 0; c += x; }
pub stream mac(x: i16, y: i16) -> i32 { state acc: i32 = 7; acc = acc * (x as i32) + (y as i32); acc }
pub stream swap(x: i12) -> (i12, i12) {
    state a: i12 = -1;
    state b: i12 = 5;
    let t = a * b + x;
    b = a;
    a = t;
    (a, b)
}
pub stream lag(x: bool) -> bool { state z: bool = true; let y = z; z = x; y }
pub stream divide(x: i9) -> i9 { state z: i9 = 100; z = (z * 17 + 3) / (x | 1); z }
pub stream begin(endmodule: u4) -> u4 { state initial: u4 = 1; initial += endmodule; initial }
"""
ECP5, ICE40 = "ecp5-85k", "ice40-hx8k"


@functools.cache
def program() -> Loaded:
    loaded = compile_text(SourceFile("edges.kera", SOURCE.encode()), Path("edges.kera"))
    assert loaded.graph is not None, loaded.diagnostics
    return loaded


def design(
    name: str, device: str = ECP5, clock_mhz: float = 120, interface: str = "stream", slack: int = 0
) -> HardwareDesign:
    graph = program().graph
    assert graph is not None
    export = graph.export(name)
    assert export is not None
    made = design_hardware(graph, export, TargetOptions(device, clock_mhz, None, interface))
    if slack:
        latency = made.plan.latency_cycles + slack
        made = design_hardware(graph, export, TargetOptions(device, clock_mhz, latency, interface))
        assert made.plan.latency_cycles == latency
    return made


@pytest.mark.parametrize(
    ("name", "device", "clock_mhz", "interface", "slack"),
    [
        ("wire", ECP5, 120, "stream", 0), ("wide", ICE40, 30, "none", 1),
        ("answer", ICE40, 50, "stream", 0), ("answer", ECP5, 50, "none", 0),
        ("nothing", ECP5, 100, "stream", 2), ("unit", ICE40, 50, "stream", 0),
        ("empty", ECP5, 100, "stream", 0), ("same", ECP5, 350, "stream", 0),
        ("counter", ECP5, 200, "stream", 1), ("silent", ECP5, 200, "stream", 0),
        ("lag", ICE40, 80, "stream", 2), ("begin", ECP5, 250, "none", 1),
    ],
)
def test_odd_designs(name: str, device: str, clock_mhz: float, interface: str, slack: int) -> None:
    check_rtl(design(name, device, clock_mhz, interface, slack))


@pytest.mark.parametrize(
    ("name", "device", "clock_mhz", "interface"),
    [
        ("mac", ECP5, 300, "stream"), ("mac", ECP5, 150, "none"), ("swap", ECP5, 250, "stream"),
        ("divide", ICE40, 60, "stream"),
    ],
)
def test_feedback_that_does_not_fit_a_cycle(name: str, device: str, clock_mhz: float, interface: str) -> None:
    """State advances once an accepted item also when items may come only every few cycles."""
    made = design(name, device, clock_mhz, interface)
    assert made.plan.initiation_interval > 1
    assert made.plan.latency_cycles >= made.plan.initiation_interval
    check_rtl(made, 80)


def test_state_survives_any_stall_of_a_long_run() -> None:
    made = design("swap", ECP5, 250)
    inputs = random_inputs(made.export, 2000, 9)
    expected = result_buses(made.export, run_export(made.export, inputs, 2000), 2000)
    assert_same(expected, simulate_design(made, inputs, 2000), "Verilog")


def test_ports_are_packed_as_described() -> None:
    """Fields in order, the first lowest; elements row-major; structs in an array stay together."""
    made = design("wire")
    widths = {port.name: port.width for port in made.emitted.ports}
    assert widths["in_reg"] == 6 * 16 and widths["out_1"] == 6 * 16 and widths["out_0"] == 16
    assert "in_module" not in widths and "out_3" not in widths and "out_4" not in widths
    assert {"clk", "in_clk", "in_rst", "in_advance", "in_out_data"} <= set(widths)
    quote = {"bid": np.array([1, 2]), "live": np.array([True, False]),
             "pair": (np.array([-1, 3]), np.array([5, 31]))}
    array = dict(made.export.params)["reg"]
    assert isinstance(array, TensorType)
    first = 1 | 1 << 7 | 7 << 8 | 5 << 11
    second = 2 | 3 << 8 | 31 << 11
    assert pack(TensorType(array.element, (2,)), quote) == (first | second << 16, 32)


def test_names_are_legal_and_lint_is_clean() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name in ("wire", "begin", "mac", "nothing", "unit", "answer", "counter", "silent", "empty"):
            for device, interface in ((ECP5, "stream"), (ICE40, "stream")):
                path, emitted = Path(folder) / f"{name}.v", design(name, device, 40, interface).emitted
                path.write_text(emitted.verilog)
                assert lint([path], emitted.name) == [], name


def test_the_bench_sees_a_wrong_state_update() -> None:
    """The comparison can fail: state that advances without an item is noticed."""
    made = design("begin", ECP5, 100)
    text = made.emitted.verilog
    broken = text.replace("if (valid_stage0 && advance)", "if (advance)")
    assert broken != text
    wrong = made.with_verilog(broken)
    with pytest.raises(AssertionError):
        check_rtl(wrong, 40)
