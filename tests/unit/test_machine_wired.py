"""Converted elements have no memory of their own, first terms of sums no multiplier: bits, cycles, stalls."""
from __future__ import annotations

from pathlib import Path
from typing import cast

import numpy as np

import kera_hw
from kera_hw.driver.lowering import Lowering
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.process import plan_process
from kera_hw.driver.process_design import ProcessDesign
from kera_hw.driver.rtl_target import departure, pack_inputs, unpack_outputs
from kera_hw.driver.session import load_program
from kera_hw.graph import Graph
from kera_hw.loops.program import Alloc, For, statements
from kera_hw.loops.verifier import verify_loops
from kera_hw.rtl.machine.wired import wired
from kera_hw.rtl.sim.bench import Traffic, simulate

PROGRAM = """
pub fn product(a: [i16; 8, 96], b: [i16; 96, 8]) -> [i32; 8, 8] { matmul(a as i32, b as i32) }

/// The first product is read for itself as well.
pub fn kept(a: [i16; 90], b: [i16; 90]) -> (i32, i32) {
    let first = (a[0] as i32) * (b[0] as i32);
    let mut sum = first;
    for i in 0..89 { sum += (a[i + 1] as i32) * (b[i + 1] as i32); }
    (first, sum)
}
"""


def _lowering(path: Path, name: str, options: TargetOptions) -> Lowering:
    path.write_text(PROGRAM)
    graph = cast(Graph, load_program(path).graph)
    export = graph.export(name)
    assert export is not None
    return Lowering(graph, export, options, {})


def _planned(path: Path, name: str, dsp: int) -> ProcessDesign:
    options = TargetOptions(dsp=dsp)
    lowering = _lowering(path, name, options)
    graph = cast(Graph, load_program(path).graph)
    export = graph.export(name)
    assert export is not None
    return plan_process(graph, export, options, lowering, 1.0, (), lambda _: None)


def test_a_product_of_converted_matrices_keeps_its_multipliers_busy(tmp_path: Path) -> None:
    """Under four of them each works in nearly every cycle; memories are those of the ports alone."""
    path = tmp_path / "p.kera"
    design = _planned(path, "product", 4)
    program = wired(design.lowering.program)
    assert not verify_loops(program)
    held = [item.buffer for item in statements(program.body) if isinstance(item, Alloc)]
    assert [(buffer.shape, str(buffer.element)) for buffer in held] in ([], [((8, 8), "i32")])
    (region,) = design.regions_json()
    assert design.estimate.dsp == 4 and 1536 <= region["cycles"] < 1536 / 0.9
    rng = np.random.default_rng(5)
    given = {
        "a": rng.integers(-4000, 4000, (4, 8, 96)).astype(np.int16),
        "b": rng.integers(-4000, 4000, (4, 96, 8)).astype(np.int16),
    }
    expected = kera_hw.load(path).function("product", target="interp").batch(**given)
    assert (expected == given["a"].astype(np.int32) @ given["b"].astype(np.int32)).all()
    words = pack_inputs(design, given, 4)
    for traffic in (Traffic(), Traffic(60, 60, seed=3), Traffic(90, 90, seed=5, reset_at_cycle=2500)):
        run = simulate(design.emitted, words, traffic, count=4)
        assert departure(design, run, traffic) is None, traffic
        found = {port.name: run.outputs[k] for k, port in enumerate(design.emitted.data_outputs)}
        assert unpack_outputs(design, found, 4).tobytes() == expected.tobytes(), traffic


def test_a_first_term_that_is_read_elsewhere_stays(tmp_path: Path) -> None:
    program = _lowering(tmp_path / "p.kera", "kept", TargetOptions()).program
    program = wired(program)
    assert not verify_loops(program)
    counts = [item.count for item in statements(program.body) if isinstance(item, For)]
    assert counts == [89]
