"""Tensors in beats: cycles as predicted under any traffic, results and padding right, costs as estimated."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import kera_hw
from kera_hw.driver.hardware import HardwareDesign, design_hardware
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.rtl_target import departure
from kera_hw.driver.verify import verify_export
from kera_hw.rtl.emit.portplan import shell_cost
from kera_hw.rtl.emit.ports import Pace, PortPlan, Value, plan_ports
from kera_hw.rtl.emit.serial import serial_name, serial_verilog
from kera_hw.rtl.sim.bench import Traffic, simulate
from kera_hw.rtl.sim.words import from_words, to_words
from kera_hw.rtl.toolchain.harness import measure
from kera_hw.rtl.toolchain.nextpnr import CHIPS
from kera_hw.rtl.toolchain.verilator import lint
from kera_hw.schedule.fpga.cells import Lut
from kera_hw.support import KeraError

pytestmark = pytest.mark.usefixtures("searched_once")

SOURCE = """
pub fn total(a: [i16; 100], k: i16) -> i32 { sum(a as i32) + (k as i32) }

pub fn turned(a: [i16; 70]) -> [i16; 70] {
    let mut r = a;
    for i in 0..70 { r[i] = a[69 - i] ^ (i as i16); }
    r
}

pub fn pair(a: [u8; 130], b: [u8; 150], k: u8) -> ([u8; 130], u8, [u8; 150]) {
    let mut q = b;
    for i in 0..150 { q[i] = b[149 - i]; }
    (map(a, |x| x ^ k), k + 1, q)
}

struct Pixel { r: u5, g: u6 }
pub fn pixels(image: [Pixel; 12, 10]) -> [Pixel; 12, 10] {
    map(image, |p| Pixel { r: p.r + 1, g: p.g ^ 3 })
}

pub stream counted(a: [u8; 129]) -> u8 {
    state n: u8 = 3;
    n = n + a[0] + a[128];
    n
}

pub fn clash(a: [u8; 200], a_valid: u8) -> u8 { a[0] + a_valid }
pub fn little(x: i7, y: u5) -> (u5, i8) { (y, (x as i8) + 1) }
"""

CASES: dict[str, tuple[str, TargetOptions]] = {
    "total": ("total", TargetOptions(lanes=7)),
    "turned": ("turned", TargetOptions()),
    "turned-ice40": ("turned", TargetOptions("ice40-hx8k", lanes=4)),
    "pair": ("pair", TargetOptions(lanes=33, emitter="amaranth")),
    "pair-axis": ("pair", TargetOptions(lanes=4, interface="axis")),
    "pixels": ("pixels", TargetOptions(lanes=3, interface="axis")),
    "counted": ("counted", TargetOptions(lanes=10)),
    "little-axis": ("little", TargetOptions(interface="axis")),
}
# Of the models of device cells, too.
QUIET = ("DECLFILENAME", "UNUSEDSIGNAL", "UNUSEDPARAM")
# What neighbours may do: nothing, stall, reset, and serve one channel after the other.
TRAFFICS = (
    Traffic(), Traffic(60, 50, 7), Traffic(30, 90, 8, reset_at_cycle=97), Traffic(in_turn=True),
    Traffic(70, 60, 3, in_turn=True),
)


@pytest.fixture(scope="module")
def design(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, TargetOptions], HardwareDesign]:
    source = tmp_path_factory.mktemp("channels") / "channels.kera"
    source.write_text(SOURCE)
    graph = kera_hw.load(source).graph
    exports = {export.name: export for export in graph.exports}
    return lambda name, options: design_hardware(graph, exports[name], options)


@pytest.mark.parametrize("case", CASES)
def test_under_any_traffic(
    case: str, design: Callable[[str, TargetOptions], HardwareDesign], tmp_path: Path
) -> None:
    name, options = CASES[case]
    made = design(name, options)
    verilog, shell = tmp_path / "design.v", tmp_path / "shell.v"
    verilog.write_text(made.emitted.verilog)
    shell.write_text(serial_verilog(made.emitted))
    assert lint([verilog], made.emitted.name, allowed=QUIET) == []
    assert lint([verilog, shell], serial_name(made.emitted), allowed=QUIET) == []
    # Against the interpreter, unhindered (every figure of the pace) and under stalls.
    assert verify_export(made.program, made.export, ["interp", "rtl"], 30, 5, [], options).equal
    rng = np.random.default_rng(4)
    items = [
        to_words([int.from_bytes(rng.bytes(port.width // 8 + 1), "little") for _ in range(12)], port.width)
        for port in made.emitted.data_inputs
    ]
    first = simulate(made.emitted, items, TRAFFICS[0])
    for traffic in TRAFFICS:
        run = simulate(made.emitted, items, traffic)
        assert run.fault is None, traffic
        for one, two in zip(first.outputs, run.outputs, strict=True):
            assert from_words(one) == from_words(two), traffic


@pytest.mark.parametrize("case", ["total", "turned", "pair-axis", "little-axis"])
def test_costs(
    case: str, design: Callable[[str, TargetOptions], HardwareDesign], tmp_path: Path
) -> None:
    """Flip-flops to the bit, LUTs within a few hundredths of what surrounds the pipeline."""
    name, options = CASES[case]
    made = design(name, options)
    verilog = tmp_path / "design.v"
    verilog.write_text(made.emitted.verilog)
    counts = measure([verilog], made.emitted.name, CHIPS[made.device.name], seeds=()).counts
    assert counts.ff == made.estimate.ff
    # Estimates take an inverter for part of the logic that reads it, which none is before a register.
    single = [cell for cell in made.netlist.cells if isinstance(cell, Lut) and len(cell.inputs) == 1]
    expected = made.estimate.lut + sum(cell.width for cell in single)
    assert abs(counts.lut - expected) <= 12 + 0.04 * shell_cost(made.ports, made.device).lut
    assert made.estimate.ff > made.plan.estimate.ff


def test_the_pace_and_the_names(design: Callable[[str, TargetOptions], HardwareDesign]) -> None:
    made = design("turned", TargetOptions(lanes=10))
    inner = made.plan.latency_cycles
    assert made.pace == Pace(6 + inner, 12 + inner, 7)
    data = made.plan_json()
    assert (data["latency_cycles"], data["item_cycles"]) == (6 + inner, 12 + inner)
    assert data["initiation_interval"] == 7
    assert [(port.name, port.direction, port.width) for port in made.emitted.ports] == [
        ("clk", "input", 1), ("rst", "input", 1),
        ("in_a_valid", "input", 1), ("in_a_ready", "output", 1), ("in_a_data", "input", 160),
        ("in_a_last", "input", 1),
        ("out_valid", "output", 1), ("out_ready", "input", 1), ("out_data", "output", 160),
        ("out_last", "output", 1),
    ]  # fmt: skip
    axis = design("pair", TargetOptions(lanes=5, interface="axis")).emitted
    assert [port.name for port in axis.ports if not port.name.endswith(("tready", "tvalid", "tlast"))] == [
        "aclk", "aresetn", "s_axis_tdata", "s_axis_a_tdata", "s_axis_b_tdata", "m_axis_tdata",
        "m_axis_0_tdata", "m_axis_2_tdata",
    ]  # fmt: skip


def plan_of(width: int, elements: int, interval: int, lanes: int | None = None) -> PortPlan:
    tensor = Value("in_a", width * elements, elements=elements, tensor=True)
    return plan_ports([tensor], [Value("out_data", 8)], "stream", "stream", interval, lanes)


@pytest.mark.parametrize(
    ("width", "elements", "interval", "lanes", "expected"),
    [
        (8, 128, 1, None, 0),  # 1,024 bits: a bus
        (8, 129, 1, None, 128),  # as many as a beat may have
        (8, 256, 16, None, 16),  # as few as keep up with the circuit
        (8, 256, 1000, None, 1),
        (2000, 2, 1, None, 1),  # an element is never cut
        (8, 256, 1, 999, 256),
        (8, 256, 1, 3, 3),
    ],
)  # fmt: skip
def test_lanes(width: int, elements: int, interval: int, lanes: int | None, expected: int) -> None:
    (channel,) = plan_of(width, elements, interval, lanes).inputs
    assert channel.lanes == expected
    if lanes is None and expected > 1:
        assert channel.beats <= max(interval, -(-width * elements // 1024))


def test_two_values_never_share_a_port(design: Callable[[str, TargetOptions], HardwareDesign]) -> None:
    with pytest.raises(KeraError) as caught:
        design("clash", TargetOptions())
    assert [item.code for item in caught.value.diagnostics] == ["K0612"]
    assert "in_a_valid" in caught.value.diagnostics[0].message
    assert design("clash", TargetOptions(interface="none")).ports.clashes == ()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("assign out_last = out_left == 1'h1", "assign out_last = out_left == 2'h2"),
        ("assign in_a_ready = ", "assign in_a_ready = ~"),
        (" : out_rest_0;", " : ~out_rest_0;"),
        ("out_left - 1'h1", "out_left - 2'h2"),
    ],
)
def test_faults_are_seen(
    old: str, new: str, design: Callable[[str, TargetOptions], HardwareDesign]
) -> None:
    made = design("turned", TargetOptions(lanes=10))
    text = made.emitted.verilog
    assert old in text, text[:6000]
    broken = made.with_verilog(text.replace(old, new, 1))
    rng = np.random.default_rng(2)
    items = [to_words([int.from_bytes(rng.bytes(141), "little") for _ in range(9)], 1120)]
    good, bad = (simulate(one.emitted, items, count=9) for one in (made, broken))
    assert departure(made, good, Traffic()) is None
    same = all(map(np.array_equal, good.outputs, bad.outputs))
    assert not same or departure(broken, bad, Traffic()) is not None


def test_a_circuit_with_channels_is_stepped(tmp_path: Path) -> None:
    source = tmp_path / "channels.kera"
    source.write_text(SOURCE)
    program = kera_hw.load(source)
    rng = np.random.default_rng(8)
    items = rng.integers(0, 256, (5, 129), np.uint8)
    wanted = program.function("counted").batch(a=items)
    for interface, lanes in (("stream", 10), ("axis", None)):
        with program.stream("counted", target="rtl", interface=interface, lanes=lanes) as stepped:
            for _ in range(2):
                assert [int(stepped.step(a=item)) for item in items] == wanted.tolist()
                stepped.reset()
