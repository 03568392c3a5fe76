"""The AXI4-Lite port: values at their places, every access answered, control as usual, costs as estimated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

import kera_hw
from kera_hw.driver.hardware import HardwareDesign, design_hardware
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.rtl_target import departure
from kera_hw.driver.verify import verify_export
from kera_hw.rtl.emit.ports import Channel, PortPlan, Value
from kera_hw.rtl.emit.register_map import RegisterMap
from kera_hw.rtl.emit.serial import serial_name, serial_verilog
from kera_hw.rtl.sim.axi_lite import AWAIT, READ, WRITE, AccessBench
from kera_hw.rtl.sim.bench import Traffic, simulate
from kera_hw.rtl.sim.words import from_words, to_words
from kera_hw.rtl.toolchain.harness import measure
from kera_hw.rtl.toolchain.nextpnr import CHIPS
from kera_hw.rtl.toolchain.process import scratch
from kera_hw.rtl.toolchain.verilator import lint

pytestmark = pytest.mark.usefixtures("searched_once")

SOURCE = """
pub fn little(x: i7, y: u5) -> (u5, i8) { (y, (x as i8) + 1) }

pub fn pair(a: [u8; 130], b: [i13; 90], k: u8) -> ([u8; 130], u8, [i13; 90]) {
    let mut q = b;
    for i in 0..90 { q[i] = b[89 - i]; }
    (map(a, |x| x ^ k), k + 1, q)
}

struct Big { low: u64, high: i6 }
pub fn kinds(wide: [i40; 30], x: i9, s: [i5; 3], f: f32, big: Big) -> ([i40; 30], i9, [i5; 3], f32, Big) {
    (map(wide, |v| v + 1), x + 1, map(s, |v| v + 1), f, Big { low: big.low ^ 1, high: big.high + 1 })
}

pub stream counted(step: u8) -> u16 {
    state n: u16 = 7;
    n = n + (step as u16);
    n
}
"""
LITE = TargetOptions(interface="axi-lite")
_ALL = 15
# Of the models of device cells, too.
QUIET = ("DECLFILENAME", "UNUSEDSIGNAL", "UNUSEDPARAM")
Design = Callable[[str, TargetOptions], HardwareDesign]


@pytest.fixture(scope="module")
def design(tmp_path_factory: pytest.TempPathFactory) -> Design:
    source = tmp_path_factory.mktemp("lite") / "lite.kera"
    source.write_text(SOURCE)
    graph = kera_hw.load(source).graph
    exports = {export.name: export for export in graph.exports}
    return lambda name, options: design_hardware(graph, exports[name], options)


@pytest.mark.parametrize("name", ["little", "pair", "kinds", "counted"])
def test_against_the_interpreter(name: str, design: Design, tmp_path: Path) -> None:
    """At once and with stalls on all five channels, in the cycles that the plan says."""
    made = design(name, LITE)
    verilog, shell = tmp_path / "design.v", tmp_path / "shell.v"
    verilog.write_text(made.emitted.verilog)
    assert lint([verilog], made.emitted.name, allowed=QUIET) == []
    shell.write_text(serial_verilog(made.emitted))
    assert lint([verilog, shell], serial_name(made.emitted), allowed=QUIET) == []
    assert verify_export(made.program, made.export, ["interp", "rtl"], 20, 5, [], LITE).equal


def test_a_reset_between_accesses(design: Design) -> None:
    made = design("pair", LITE)
    rng = np.random.default_rng(4)
    items = [
        to_words([int.from_bytes(rng.bytes(port.width // 8 + 1), "little") for _ in range(6)], port.width)
        for port in made.emitted.data_inputs
    ]
    first = simulate(made.emitted, items)
    for traffic in (Traffic(40, 70, 3, reset_at_cycle=300), Traffic(80, 30, 9, reset_at_cycle=777)):
        again = simulate(made.emitted, items, traffic)
        assert again.fault is None
        assert list(map(from_words, first.outputs)) == list(map(from_words, again.outputs))


def places(plan: PortPlan) -> dict[str, tuple[int, int, bool]]:
    entries = RegisterMap.of(plan).entries
    return {entry.name: (entry.offset, entry.size_bytes, entry.memory) for entry in entries}


def test_the_map(design: Design) -> None:
    assert places(design("pair", LITE).ports) == {
        "k": (0x10, 4, False), "result_1": (0x14, 4, False),
        "a": (0x100, 132, True), "b": (0x200, 180, True),
        "result_0": (0x300, 132, True), "result_2": (0x400, 180, True),
    }  # fmt: skip
    assert places(design("kinds", LITE).ports) == {
        "x": (0x10, 4, False), "s": (0x14, 4, False), "f": (0x18, 4, False), "big": (0x1C, 12, False),
        "result_1": (0x28, 4, False), "result_2": (0x2C, 4, False), "result_3": (0x30, 4, False),
        "result_4": (0x34, 12, False), "wide": (0x100, 240, True), "result_0": (0x200, 240, True),
    }  # fmt: skip


def test_pieces_cover_each_value_once() -> None:
    for value in (
        Value("in_x", 7, signed=True), Value("in_x", 70, signed=True), Value("in_x", 64),
        Value("in_x", 3 * 33, elements=3, tensor=True, signed=True),
        Value("in_x", 5, elements=5, tensor=True),
        Value("in_x", 4 * 129, elements=4, tensor=True, signed=True),
    ):
        (entry,) = RegisterMap.of(PortPlan("axi-lite", "stream", (Channel("in", "input", (value,)),))).entries
        bits: list[int] = []
        for word in range(entry.words):
            filled = 0
            for piece in entry.pieces(word):
                assert piece.word_low >= filled and piece.extended <= 32
                filled = max(piece.word_low + piece.width, piece.extended)
                if not piece.repeats:
                    bits += range(piece.value_low, piece.value_low + piece.width)
        assert bits == list(range(value.width))


Rows = Sequence[tuple[int, int, int, int]]


def accesses(design: HardwareDesign, rows: Rows, traffic: Traffic) -> list[list[int]]:
    with scratch("accesses") as work:
        found, fault, _ = AccessBench(design.emitted, work).run(np.array(rows, "<u4"), traffic)
    assert fault is None
    return found.tolist()


@pytest.mark.parametrize("traffic", [Traffic(), Traffic(40, 40, 5)])
def test_control(traffic: Traffic, design: Design) -> None:
    """Start, done and ready told once, idle, auto restart, the interrupt and how it is cleared."""
    made = design("counted", LITE)
    entries = {entry.name: entry.offset for entry in RegisterMap.of(made.ports).entries}
    step, result = entries["step"], entries["result"]
    rows = [
        (READ, 0, 0, 0), (WRITE, step, 5, _ALL), (WRITE, 0x4, 1, _ALL), (WRITE, 0x8, 3, _ALL),
        (READ, step, 0, 0), (READ, 0x4, 0, 0), (READ, 0x8, 0, 0),
        (WRITE, 0, 1, _ALL), (AWAIT, 0, 0, 0), (READ, 0xC, 0, 0), (WRITE, 0xC, 3, _ALL), (READ, 0xC, 0, 0),
        (READ, 0, 0, 0), (READ, 0, 0, 0), (READ, result, 0, 0),
        (WRITE, 0x8, 2, _ALL), (WRITE, 0, 1, _ALL), (AWAIT, 0, 0, 0), (WRITE, 0xC, 2, _ALL),
        (READ, 0x0, 0, 0), (READ, result, 0, 0),
        (WRITE, 0, 0, 0b1110), (READ, 0, 0, 0),  # no byte that has a bit
    ]  # fmt: skip
    got = accesses(made, rows, traffic)
    values = [value for (value, _), row in zip(got, rows) if row[0] == READ]
    assert values[:4] == [4, 5, 1, 3]
    assert values[4] & 2 and values[5] == 0, "written ones clear what is pending"
    assert values[6:9] == [0b1110, 0b100, 12]
    assert values[9] & 0b1000 and values[10] == 17 and values[11] & 0b100
    assert all(response == 0 for (_, response), row in zip(got, rows) if row[0] != AWAIT)
    # With auto restart, items follow each other until it is taken back.
    rows = [(WRITE, step, 1, _ALL), (WRITE, 0, 0x81, _ALL), *[(READ, result, 0, 0)] * 30, (WRITE, 0, 0, _ALL)]
    rows += [(READ, result, 0, 0)] * 20
    numbers = [value for (value, _), row in zip(accesses(made, rows, traffic), rows) if row[0] == READ]
    assert numbers[29] > numbers[5] > 7 and numbers == sorted(numbers)
    assert numbers[-1] == numbers[-10] <= numbers[29] + 10


def test_every_access_is_answered(design: Design) -> None:
    made = design("kinds", LITE)
    space = RegisterMap.of(made.ports)
    words = {entry: range(entry.offset, entry.offset + entry.size_bytes, 4) for entry in space.entries}
    readable = {word for entry in space.entries for word in words[entry]}
    writable = {word for entry in space.entries if entry.is_parameter for word in words[entry]}
    addresses = list(range(0x10, 1 << space.address_bits, 4))
    rows = [(READ, address, 0, 0) for address in addresses]
    rows += [(WRITE, address, 0xFFFFFFFF, _ALL) for address in addresses]
    got = [response for _, response in accesses(made, rows, Traffic(80, 60, 2))]
    for address, read, written in zip(addresses, got, got[len(addresses) :]):
        assert read == (0 if address in readable else 2), hex(address)
        assert written == (0 if address in writable else 2), hex(address)
    x = space.entries[0].offset
    rows = [(WRITE, x, 0x0FF, _ALL)]
    rows += [(kind, x + lane, 0, _ALL) for lane in (1, 2, 3) for kind in (READ, WRITE)]
    rows += [(READ, x, 0, 0), (WRITE, x, 0, 0b0010), (READ, x, 0, 0), (WRITE, x, 0x155, 0), (READ, x, 0, 0),
             (WRITE, x, 0x1AA, _ALL), (READ, x, 0, 0)]  # fmt: skip
    got = accesses(made, rows, Traffic())
    assert [response for _, response in got[1:7]] == [2] * 6
    assert [got[k][0] for k in (7, 9, 11, 13)] == [0xFF, 0xFF, 0xFF, 0xFFFFFFAA]


@pytest.mark.parametrize(
    ("name", "device"), [("little", "ecp5-85k"), ("pair", "ecp5-85k"), ("pair", "ice40-hx8k")]
)
def test_costs(name: str, device: str, design: Design, tmp_path: Path) -> None:
    made = design(name, TargetOptions(device, interface="axi-lite"))
    verilog = tmp_path / "design.v"
    verilog.write_text(made.emitted.verilog)
    counts = measure([verilog], made.emitted.name, CHIPS[device], seeds=()).counts
    assert (counts.ff, counts.bram) == (made.estimate.ff, made.estimate.bram)
    assert abs(counts.lut - made.estimate.lut) <= 20 + 0.06 * made.estimate.lut


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("write_address_kept & write_data_kept", "write_address_kept | write_data_kept"),
        ("in_a_word + 1'h1", "in_a_word + 2'h2"),
        ("in_a_word == 6'h21", "in_a_word == 6'h20"),
    ],
)
def test_faults_are_seen(old: str, new: str, design: Design) -> None:
    made = design("pair", LITE)
    text = made.emitted.verilog
    assert old in text
    rng = np.random.default_rng(6)
    items = [
        to_words([int.from_bytes(rng.bytes(port.width // 8 + 1), "little") for _ in range(3)], port.width)
        for port in made.emitted.data_inputs
    ]
    slow = Traffic(50, 50, 3)
    good = simulate(made.emitted, items, slow)
    bad = simulate(made.with_verilog(text.replace(old, new, 1)).emitted, items, slow)
    differs = list(map(from_words, good.outputs)) != list(map(from_words, bad.outputs))
    assert differs or departure(made, bad, slow, None) is not None
