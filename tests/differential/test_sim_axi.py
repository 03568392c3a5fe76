"""AXI ports against the masters, sources and sinks of cocotbext-axi, with pauses on every channel."""
from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kera_hw
from kera_hw.driver.hardware import HardwareDesign, design_hardware
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.testbench.vectors import make_vectors
from kera_hw.rtl.emit.register_map import Entry, RegisterMap
from kera_hw.rtl.sim.axi_lite import memory_words
from kera_hw.rtl.sim.beats import BundleWords
from kera_hw.rtl.sim.words import to_words
from sim.runner import run_bench

# Each compiles a bench of cocotb for every design: minutes on a busy machine.
pytestmark = pytest.mark.long

_BENCH = "sim.axi_bench"
SOURCE = """
pub fn turned(a: [i7; 150], k: i12) -> ([i7; 150], i12) {
    let mut r = a;
    for i in 0..150 { r[i] = a[149 - i] ^ (k as i7); }
    (r, k + 1)
}
"""
RANDOM = 6
TESTS = 5  # those of the other interface are skipped


def _design(tmp_path: Path, interface: str, lanes: int | None = None) -> HardwareDesign:
    source = tmp_path / "turned.kera"
    source.write_text(SOURCE)
    graph = kera_hw.load(source).graph
    return design_hardware(graph, graph.exports[0], TargetOptions(interface=interface, lanes=lanes))


Rows = Sequence[Mapping[str, int]]


def _frames(design: HardwareDesign, rows: Rows, direction: str) -> dict[str, list[str]]:
    """The bytes of every item on every stream."""
    found: dict[str, list[str]] = {}
    for bundle in design.ports.bundles:
        if bundle.channel.direction != direction:
            continue
        words = {
            value.bus: to_words([row[value.bus] for row in rows], value.width)
            for value in bundle.channel.values
        }
        cut, width = BundleWords(bundle).cut(words, len(rows)), bundle.payload[0].width // 8
        beats = np.ascontiguousarray(cut).view(np.uint8).reshape(len(rows), bundle.channel.beats, -1)
        name = str(bundle.valid).removesuffix("_tvalid")
        found[name] = [row[:, :width].tobytes().hex() for row in beats]
    return found


def _places(design: HardwareDesign, rows: Rows, parameters: bool) -> list[list[Any]]:
    """Offset and bytes of every value of every item."""
    entries = [e for e in RegisterMap.of(design.ports).entries if e.is_parameter == parameters]

    def bits(entry: Entry, row: Mapping[str, int]) -> str:
        words = to_words([row[entry.value.bus]], entry.value.width)
        return memory_words(entry, words).tobytes().hex()

    return [[[entry.offset, bits(entry, row)] for entry in entries] for row in rows]


def test_streams(tmp_path: Path) -> None:
    design = _design(tmp_path, "axis", lanes=4)
    vectors = make_vectors(design, RANDOM, [])
    data = {
        "interface": "axis", "item_cycles": design.pace.item_cycles,
        "initiation_interval": design.pace.initiation_interval,
        "inputs": _frames(design, vectors.items, "input"),
        "outputs": _frames(design, vectors.expected, "output"),
    }
    assert run_bench(design.emitted, _BENCH, data, tmp_path / "work") == (TESTS, 0)
    # A frame without an end is seen.
    text = design.emitted.verilog
    broken = re.sub(r"assign m_axis_0_tlast = .*;", "assign m_axis_0_tlast = 1'b0;", text)
    assert broken != text
    _, failed = run_bench(replace(design.emitted, verilog=broken), _BENCH, data, tmp_path / "broken")
    assert failed == 2


def test_software(tmp_path: Path) -> None:
    design = _design(tmp_path, "axi-lite")
    vectors = make_vectors(design, RANDOM, [])
    entries = RegisterMap.of(design.ports).entries
    data = {
        "interface": "axi-lite",
        "items": _places(design, vectors.items, True), "expected": _places(design, vectors.expected, False),
        "readable": [[0, 16], *([e.offset, e.size_bytes] for e in entries)],
        "writable": [[e.offset, e.size_bytes] for e in entries if e.is_parameter],
        "kept": "11223344", "kept_half": "55663344",
    }
    assert run_bench(design.emitted, _BENCH, data, tmp_path / "work") == (TESTS, 0)
