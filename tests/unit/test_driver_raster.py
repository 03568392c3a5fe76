"""Stencils over whole pictures: an element a cycle through line buffers; bits, cycles, stalls, resets."""
from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import kera_hw
from kera_hw.driver.design import HardwareDesign
from kera_hw.driver.hardware import plan_looped
from kera_hw.driver.lowering import Lowering
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.raster import StencilDesign, plan_raster
from kera_hw.driver.rtl_target import departure, pack_inputs, unpack_outputs
from kera_hw.driver.session import load_program
from kera_hw.graph import Graph
from kera_hw.rtl.sim.bench import Traffic, simulate
from kera_hw.schedule.explain import Refusal
from kera_hw.support import KeraError

PROGRAM = """
/// Edges; the border of one pixel is 0.
pub fn edges(image: [u8; 20, 30]) -> [u8; 20, 30] {
    let mut out = [0u8; 20, 30];
    for y in 1..19 {
        for x in 1..29 {
            let q = image[y - 1..y + 2, x - 1..x + 2] as i16;
            let gx = (q[0, 2] - q[0, 0]) + 2 * (q[1, 2] - q[1, 0]) + (q[2, 2] - q[2, 0]);
            let gy = (q[2, 0] - q[0, 0]) + 2 * (q[2, 1] - q[0, 1]) + (q[2, 2] - q[0, 2]);
            out[y, x] = min(abs(gx) + abs(gy), 255) as u8;
        }
    }
    out
}

/// Two pictures, of which the second is wanted a line later, a weight, two results of unlike sizes.
pub fn chain(a: [u8; 24, 28], b: [i16; 24, 28], weight: i8) -> ([i16; 24, 28], [u8; 12, 14]) {
    let mut smooth = a;
    for y in 1..24 {
        for x in 1..28 { smooth[y, x] = a[y, x] / 2 + a[y - 1, x - 1] / 4 + smooth[y, x - 1] / 4; }
    }
    let mut mixed = [7i16; 24, 28];
    for y in 0..23 {
        for x in 0..28 {
            mixed[y, x] = b[y, x] + (smooth[y + 1, max(x as i32 - 1, 0) as u32] as i16) * (weight as i16);
        }
    }
    let mut small = [0u8; 12, 14];
    for y in 0..12 {
        for x in 0..14 { small[y, x] = max(smooth[2 * y, 2 * x + 1], smooth[2 * y + 1, 2 * x]); }
    }
    (mixed, small)
}

/// Colours side by side, averaged, blurred along lines.
pub fn grey(image: [u8; 12, 16, 3]) -> [u8; 12, 16] {
    let mut out = [1u8; 12, 16];
    for y in 0..12 {
        for x in 0..15 {
            let mut sum: u10 = 0;
            for c in 0..3 { sum += image[y, x, c] as u10; }
            out[y, x] = (sum / 4) as u8 ^ image[y, x + 1, 1];
        }
    }
    out
}

/// A recurrence that takes several cycles: every element waits for the one before.
pub fn filtered(x: [f32; 60]) -> [f32; 60] {
    let mut y = x;
    for i in 1..60 { y[i] = 0.5 * y[i - 1] + x[i]; }
    y
}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "p.kera"
    path.write_text(PROGRAM)
    return path


def planned(path: Path, name: str, **options: Any) -> StencilDesign | None:
    graph = cast(Graph, load_program(path).graph)
    export = graph.export(name)
    assert export is not None
    asked = TargetOptions(**options)
    return plan_raster(graph, export, asked, Lowering(graph, export, asked, {}), 1.0, (), lambda _: None)


def test_an_interval_that_stencils_exceed_is_refused_with_their_own(path: Path) -> None:
    """Not with that of a process, which would take more; and what a picture takes may be asked for."""
    graph = cast(Graph, load_program(path).graph)
    export = graph.export("edges")
    assert export is not None

    def looped(interval: int) -> HardwareDesign:
        asked = TargetOptions(interval=interval)
        given = asked, Lowering(graph, export, asked, {})
        return plan_looped(graph, export, *given, 1.0, (), lambda _: None)

    with pytest.raises(KeraError) as caught:
        looped(300)
    refusal = caught.value.diagnostics[0]
    free = planned(path, "edges")
    assert free is not None and isinstance(refusal, Refusal)
    assert (refusal.code, refusal.least) == ("K0603", free.pace.initiation_interval)
    assert refusal.message == (
        f"An item every 300 cycles is too often: with its loops as loops, `edges` takes {refusal.least} "
        "cycles an item."
    )
    assert isinstance(looped(refusal.least), StencilDesign)
    assert isinstance(looped(2_100_000), StencilDesign)


def items(name: str, count: int) -> dict[str, Any]:
    rng = np.random.default_rng(5)

    def bytes_of(*shape: int) -> Any:
        return rng.integers(0, 256, (count, *shape)).astype(np.uint8)

    match name:
        case "edges":
            return {"image": bytes_of(20, 30)}
        case "grey":
            return {"image": bytes_of(12, 16, 3)}
        case "filtered":
            return {"x": rng.normal(size=(count, 60)).astype(np.float32)}
        case _:
            weights = rng.integers(-128, 128, count).astype(np.int8)
            return {"a": bytes_of(24, 28), "b": bytes_of(24, 28).astype(np.int16), "weight": weights}


def bits(value: Any) -> list[bytes]:
    parts = cast("tuple[Any, ...]", value if isinstance(value, tuple) else (value,))
    return [np.ascontiguousarray(part).tobytes() for part in parts]


@pytest.mark.parametrize("name", ["edges", "chain", "grey", "filtered"])
def test_stencils_give_the_bits_in_the_cycles_planned(path: Path, name: str) -> None:
    """Unhindered, where the cycles of items are the plan's; then with stalls, and a reset in mid-flight."""
    design, given = planned(path, name), items(name, 4)
    assert design is not None
    expected = kera_hw.load(path).function(name, target="interp").batch(**given)
    words = pack_inputs(design, given, 4)
    middle = design.pace.initiation_interval
    for traffic in (
        Traffic(), Traffic(60, 60, seed=3), Traffic(70, 50, seed=4),
        Traffic(90, 90, seed=5, reset_at_cycle=middle + middle // 2),
    ):
        run = simulate(design.emitted, words, traffic, count=4)
        assert departure(design, run, traffic) is None, traffic
        found = {port.name: run.outputs[k] for k, port in enumerate(design.emitted.data_outputs)}
        assert bits(unpack_outputs(design, found, 4)) == bits(expected), traffic


def test_tensors_that_must_be_served_at_once_are_named(path: Path) -> None:
    design = planned(path, "chain")
    assert design is not None
    (note,) = [note for note in design.plan.notes if "in step" in note]
    assert "`in_a` and `in_b`" in note and "`out_0` and `out_1`" in note
    alone = planned(path, "grey")
    assert alone is not None and not [note for note in alone.plan.notes if "in step" in note]


def test_rows_between_stages_are_line_buffers(path: Path) -> None:
    design = planned(path, "edges")
    assert design is not None
    assert [(row["words"], row["bits"]) for row in design.memories_json()] == [(31, 8), (31, 8)]
    assert design.pace.initiation_interval == 21 * 31
    assert design.pace.latency_cycles == 32 + design.plan.latency_cycles


def test_a_copy_of_a_tensor_needs_no_window_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "c.kera"
    path.write_text(
        "pub fn most(x: [u8; 9, 30]) -> [u8; 9, 30] {\n    let mut y = x;\n"
        "    for i in 1..8 { for j in 0..30 { y[i, j] = max(x[i - 1, j], x[i + 1, j]); } }\n    y\n}\n"
    )
    design = planned(path, "most")
    assert design is not None
    assert [row["words"] for row in design.memories_json()] == [30, 30]


def test_what_is_wanted_later_comes_in_later(path: Path) -> None:
    """Of the second picture nothing is kept, although the first is looked at a line ahead."""
    design = planned(path, "chain")
    assert design is not None and design.round is not None
    spans = {take.port: take.spans for take in design.round.takes}
    assert spans["in_a"][0][0] == 0 and spans["in_b"][0][0] == 1
    assert not [row for row in design.memories_json() if "in_b" in row["name"]]
