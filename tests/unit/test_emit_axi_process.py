"""Processes behind AXI4-Lite: a beat is an element, of which a word of memory has several."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import kera_hw
from kera_hw.driver.lowering import Lowering
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.process import plan_process
from kera_hw.driver.process_design import ProcessDesign
from kera_hw.driver.rtl_target import departure, pack_inputs, unpack_outputs
from kera_hw.rtl.emit.ports import container_bytes
from kera_hw.rtl.emit.register_map import RegisterMap
from kera_hw.rtl.sim.bench import Traffic, simulate
from kera_hw.rtl.toolchain.harness import measure
from kera_hw.rtl.toolchain.nextpnr import CHIPS

SOURCE = """
pub fn turned(a: [i7; 150], by: i7) -> ([i13; 99], i7) {
    let mut r = [0i13; 99];
    for i in 0..99 { r[i] = mul_wide(a[i], a[149 - i]) as i13; }
    (r, by)
}
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> ProcessDesign:
    source = tmp_path_factory.mktemp("process") / "turned.kera"
    source.write_text(SOURCE)
    graph = kera_hw.load(source).graph
    export, options = graph.exports[0], TargetOptions(interface="axi-lite")
    lowering = Lowering(graph, export, options, {})
    return plan_process(graph, export, options, lowering, 1.0, (), lambda _: None)


def test_words_hold_several_beats(made: ProcessDesign) -> None:
    entries = RegisterMap.of(made.ports).memories
    assert [(entry.name, entry.beats_a_word) for entry in entries] == [("a", 4), ("result_0", 2)]
    assert [container_bytes(entry.value.element_bits) for entry in entries] == [1, 2]
    rng = np.random.default_rng(3)
    inputs = {"a": rng.integers(-64, 64, (6, 150), np.int8), "by": rng.integers(-64, 64, 6, np.int8)}
    a = inputs["a"].astype(np.int16)
    wanted = a[:, :99] * a[:, :50:-1]
    wanted = (wanted + 4096) % 8192 - 4096
    words = pack_inputs(made, inputs, 6)
    for traffic in (Traffic(), Traffic(50, 60, 4), Traffic(80, 80, 5, reset_at_cycle=900)):
        run = simulate(made.emitted, words, traffic)
        assert departure(made, run, traffic, None) is None
        outputs = {port.name: found for port, found in zip(made.emitted.data_outputs, run.outputs)}
        values, by = unpack_outputs(made, outputs, 6)
        assert np.array_equal(values, wanted) and np.array_equal(by, inputs["by"])


@pytest.mark.long  # Yosys on all of it
def test_costs(made: ProcessDesign, tmp_path: Path) -> None:
    verilog = tmp_path / "design.v"
    verilog.write_text(made.emitted.verilog)
    counts = measure([verilog], made.emitted.name, CHIPS[made.device.name], seeds=()).counts
    assert counts.bram == made.estimate.bram
    assert abs(counts.ff - made.estimate.ff) <= 0.25 * counts.ff
