"""Processes: nests of loops on memories, regions in turn, channels in beats; bits, cycles, stalls, resets."""
from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock

import numpy as np
import pytest

import kera_hw
from kera_hw.driver import mapping, process
from kera_hw.driver.lowering import Lowering
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.process import plan_process, process_design, regions_of
from kera_hw.driver.process_design import ProcessDesign
from kera_hw.driver.rtl_target import departure, pack_inputs, unpack_outputs
from kera_hw.driver.session import load_program
from kera_hw.graph import Graph
from kera_hw.rtl.emit.process import ProcessPlan
from kera_hw.rtl.emit.stages import places_of
from kera_hw.rtl.machine.spread import Spread
from kera_hw.rtl.sim.bench import Traffic, simulate
from kera_hw.rtl.toolchain.harness import measure
from kera_hw.rtl.toolchain.nextpnr import CHIPS
from kera_hw.schedule.explain import Refusal
from kera_hw.schedule.fpga.delay_model import stall_mhz, stretch
from kera_hw.schedule.fpga.device import find_device
from kera_hw.schedule.fpga.units.storage import turn_ps
from kera_hw.support import KeraError
from tests.unit.cli_support import Kera

PROGRAM = """
/// One nest of three loops; the middle one stores what the inner one has summed.
pub fn matmul(a: [i16; 9, 8], b: [i16; 8, 10]) -> [i32; 9, 10] {
    let mut c = [0i32; 9, 10];
    for i in 0..9 {
        for j in 0..10 {
            let mut acc: i32 = 0;
            for k in 0..8 { acc += mul_wide(a[i, k], b[k, j]); }
            c[i, j] = acc;
        }
    }
    c
}

/// A scalar goes from the first region to the second, which reads what the first has written.
pub fn centred(x: [i16; 80], by: i16) -> ([i16; 80], i32) {
    let mut y = [0i16; 80];
    let mut sum: i32 = 0;
    for i in 0..80 {
        y[i] = x[i] - by;
        sum += y[i] as i32;
    }
    let mean = (sum >> 6) as i16;
    for i in 0..80 { y[i] = y[79 - i] ^ mean; }
    (y, sum + 1)
}

/// The same, what the second region makes apart from what it reads.
pub fn relayed(x: [i16; 80], by: i16) -> ([i16; 80], i32) {
    let mut y = [0i16; 80];
    let mut sum: i32 = 0;
    for i in 0..80 {
        y[i] = x[i] - by;
        sum += y[i] as i32;
    }
    let mean = (sum >> 6) as i16;
    let mut z = [0i16; 80];
    for i in 0..80 { z[i] = y[79 - i] ^ mean; }
    (z, sum + 1)
}

/// Every round reads what rounds before have written, at places that data decide.
pub fn histogram(x: [u4; 300]) -> [u16; 70] {
    let mut bins = [0u16; 70];
    for i in 0..300 { bins[4 * (x[i] as u8)] += i as u16; }
    bins
}

/// A carried value of the outer loop, set by code behind the inner one; rows are reached backwards.
pub fn rows(x: [i16; 12, 9]) -> [i16; 12, 9] {
    let mut y = [0i16; 12, 9];
    let mut last: i16 = 3;
    for i in 0..12 {
        let start = last ^ (i as i16);
        let mut most = start;
        for j in 0..9 {
            most = max(most, x[11 - i, j]);
            y[i, j] = most - start;
        }
        last = most - last;
    }
    y
}

/// A single element that one region leaves for another, in a loop that may not be unrolled.
pub fn passed(x: [i16; 90]) -> (i32, i16) {
    let mut kept = [7i16; 3];
    for i in 0..90 { kept[(x[i] & 1) as u8] += x[i]; }
    let mut sum: i32 = 0;
    for i in 0..90 { sum += mul_wide(x[i], kept[(x[89 - i] & 1) as u8]); }
    (sum, kept[0] ^ kept[2])
}

/// Two loops beside each other in a third, whose counter both read.
pub fn turns(x: [i16; 90]) -> [i16; 90] {
    let mut y = x;
    let mut z = [0i16; 90];
    let mut most: i16 = 5;
    for s in 0..3 {
        for i in 0..90 { z[i] = y[89 - i] + (s as i16); }
        for i in 0..90 {
            y[i] = z[i] ^ y[i];
            most = max(most, y[i]);
        }
        most -= 3;
    }
    y[7] = most;
    y
}

/// Elements that are read before an inner loop overwrites them go through registers to it.
pub fn around(x: [u16; 80]) -> [u16; 8] {
    let mut s: [u16; 8] = x[0..8];
    let first = s;
    for t in 0..20 {
        s = [s[7] + (t as u16), s[0], s[1], s[2] ^ s[4], s[3], s[4], s[5], s[6]];
    }
    first + s
}

/// What was read in one region goes to a third, while the second reads the same memory.
pub fn between(x: [u16; 80]) -> [u16; 8] {
    let mut s: [u16; 8] = x[0..8];
    let mut w: [u16; 16] = x[16..32];
    for t in 0..4 {
        let first = w[0];
        let late = w[14] >> 3;
        w = shift_in(w, late + w[9] + first);
        for i in 0..8 { s[i] += first; }
    }
    s
}

/// The first store of a round is to the word that the second, late, wrote in the round before.
pub fn twice(x: [u16; 90]) -> [u16; 91] {
    let mut y = [0u16; 91];
    for i in 0..90 {
        y[i] = x[i];
        y[i + 1] = ((x[i] * x[i] + 3) * x[i] ^ 5) * x[i];
    }
    y
}

/// The small result's rows can be sent where regions run in turn for every one.
pub fn small_rows(x: [u8; 6, 70]) -> ([u8; 6, 4], [u8; 70]) {
    let mut rows = [0u8; 6, 4];
    let mut z = [0u8; 70];
    for i in 0..6 {
        for j in 0..4 { rows[i, j] = x[i, 2 * j] ^ z[j]; }
        for j in 0..70 { z[j] = z[69 - j] + x[i, j]; }
    }
    (rows, z)
}

/// All beats of a tensor are taken, although nothing reads it.
pub fn unread(x: [i16; 70], y: [i16; 90]) -> [i16; 70] {
    let mut z = [0i16; 70];
    for i in 0..70 { z[i] = x[69 - i] + 1; }
    z
}

/// Windows of a picture, by three filters.
pub fn conv(x: [i8; 10, 14], w: [i8; 3, 3, 3]) -> [i16; 3, 8, 12] {
    let mut y = [0i16; 3, 8, 12];
    for o in 0..3 { for r in 0..8 { for c in 0..12 {
        let mut acc: i16 = 0;
        for i in 0..3 { for j in 0..3 { acc += (x[r + i, c + j] as i16) * (w[o, i, j] as i16); } }
        y[o, r, c] = acc;
    } } }
    y
}

/// Passes over a tensor, each overwriting all of it: what one makes the next one takes.
pub fn walsh(x: [i16; 128]) -> [i16; 128] {
    let mut y = x;
    for pass in 0..7 {
        let half: u32 = 1 << pass;
        for k in 0..64 {
            let top = (k / half) * (2 * half) + k % half;
            let sum = y[top] + y[top + half];
            y[top + half] = y[top] - y[top + half];
            y[top] = sum;
        }
    }
    y
}

/// The second region looks at what the first has made, within a window, and beside it at what came in.
pub fn smoothed(x: [i16; 90]) -> [i16; 88] {
    let mut z = [0i16; 90];
    let mut last: i16 = 0;
    for i in 0..90 {
        last = (last >> 1) + x[89 - i];
        z[i] = last;
    }
    let mut y = [0i16; 88];
    for i in 0..88 { y[i] = z[i] + 3 * z[i + 2]; }
    y
}

/// Two results in banks, of more block RAMs than a small device has.
pub fn shifted(x: [i63; 290]) -> ([i63; 290], [i63; 290]) {
    let mut y = [1i63; 290];
    for i in 0..290 { y[i] = x[max(i, 1) - 1]; }
    (x, y)
}

/// Floats in 64 lanes, folded by halves.
pub fn inner(x: [f32; 192], y: [f32; 192]) -> f32 { dot(x, y) }
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "p.kera"
    path.write_text(PROGRAM)
    return path


@pytest.fixture
def kera(capsys: pytest.CaptureFixture[str]) -> Kera:
    return Kera(capsys)


def items(name: str, count: int) -> dict[str, Any]:
    rng = np.random.default_rng(5)

    def small(*shape: int) -> Any:
        return rng.integers(-300, 300, (count, *shape)).astype(np.int16)

    match name:
        case "matmul":
            return {"a": small(9, 8), "b": small(8, 10)}
        case "centred" | "relayed":
            return {"x": small(80), "by": small()}
        case "conv":
            return {"x": small(10, 14).astype(np.int8), "w": small(3, 3, 3).astype(np.int8)}
        case "histogram":
            return {"x": rng.integers(0, 16, (count, 300)).astype(np.uint8)}
        case "around" | "between":
            return {"x": small(80).astype(np.uint16)}
        case "passed" | "turns" | "smoothed":
            return {"x": small(90)}
        case "walsh":
            return {"x": small(128)}
        case "small_rows":
            return {"x": small(6, 70).astype(np.uint8)}
        case "unread":
            return {"x": small(70), "y": small(90)}
        case "twice":
            return {"x": small(90).astype(np.uint16)}
        case "rows":
            return {"x": small(12, 9)}
        case "shifted":
            return {"x": rng.integers(-(1 << 62), 1 << 62, (count, 290))}
        case _:
            odd = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-40], np.float32)
            x, y = (rng.normal(size=(count, 192)).astype(np.float32) for _ in range(2))
            x[-1, 60:65], y[-2, 10:15] = odd, odd
            return {"x": x, "y": y}


def planned(path: Path, name: str, alone: bool = True, **options: Any) -> ProcessDesign:
    """The process, one round of a loop at a time where ``alone``."""
    graph = cast(Graph, load_program(path).graph)
    export = graph.export(name)
    assert export is not None
    asked = TargetOptions(**options)
    lowering = Lowering(graph, export, asked, {})
    if alone:
        regions = Spread((), regions_of(lowering))
        return process_design(graph, export, asked, lowering, regions, 1.0, (), lambda _: None)
    return plan_process(graph, export, asked, lowering, 1.0, (), lambda _: None)


def bits(value: Any) -> list[bytes]:
    parts = cast("tuple[Any, ...]", value if isinstance(value, tuple) else (value,))
    return [np.ascontiguousarray(part).tobytes() for part in parts]


@pytest.mark.parametrize("name", [
    "matmul", "centred", "histogram", "rows", "passed", "turns", "around", "between", "twice",
    "small_rows", "unread", "inner",
])  # fmt: skip
def test_a_process_gives_the_bits_in_the_cycles_planned(path: Path, name: str) -> None:
    """Unhindered, where the cycles of items are the plan's; then with stalls, and a reset in mid-flight."""
    check(path, name, planned(path, name))


@pytest.mark.parametrize(("name", "times", "options"), [
    ("matmul", 16, {"dsp": 18}), ("conv", 6, {"dsp": 6}),
])  # fmt: skip
def test_rounds_side_by_side_give_the_same_bits_sooner(
    path: Path, name: str, times: int, options: dict[str, Any]
) -> None:
    """Tensors come several elements a beat, into banks and out of them, where these suffice."""
    design = planned(path, name, alone=False, **options)
    assert design.keeps_to(TargetOptions(**options))
    one_by_one = max(row["cycles"] for row in planned(path, name).regions_json())
    assert max(row["cycles"] for row in design.regions_json()) < one_by_one / times + 40
    check(path, name, design)


@pytest.mark.parametrize("name", ["centred", "passed"])
def test_memories_that_are_far_take_a_clock_more_on_their_way(
    path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a process of many blocks: registers around the ports of block RAM, and the bits are the same."""
    near = planned(path, name)
    monkeypatch.setattr(process, "stretch", Mock(return_value=1.2))
    design = planned(path, name)
    blocks = [kind for kind in design.process.memories.values() if kind.blocks]
    assert blocks and all(kind.latency_cycles == 4 or kind.forwards for kind in blocks)
    assert design.estimate.ff > near.estimate.ff and design.estimate.bram == near.estimate.bram
    if name == "passed":
        check_overlap(path, name, replace(design, overlaps=True), 3)
    else:
        check(path, name, design)


def test_wires_are_as_long_as_the_blocks_of_a_device_are_many() -> None:
    device = find_device("ecp5-85k")
    assert device is not None
    assert stretch(16, 28, device) == 1 < stretch(36, 80, device) < stretch(36, 114, device)
    clocks = [stall_mhz(*blocks, device) for blocks in ((0, 0), (8, 0), (64, 0), (0, 114))]
    assert clocks[0] == clocks[1] > clocks[2] > clocks[3] > 90


def test_banks_of_a_result_may_be_memories_of_two_kinds(path: Path) -> None:
    """Where block RAMs run out, words of the others come sooner: a beat's are handed on together."""
    design = planned(path, "shifted", alone=False, device="ecp5-25k")
    memories = design.process.memories
    assert len({memories[bank].latency_cycles for bank in memories if bank.startswith("out.0.")}) == 2
    check(path, "shifted", design)


def check(path: Path, name: str, design: ProcessDesign) -> None:
    given = items(name, 4)
    expected = kera_hw.load(path).function(name, target="interp").batch(**given)
    words = pack_inputs(design, given, 4)
    middle = design.pace.initiation_interval
    for traffic in (
        Traffic(), Traffic(60, 60, seed=3), Traffic(70, 50, seed=4, in_turn=True),
        Traffic(90, 90, seed=5, reset_at_cycle=middle + middle // 2),
    ):
        run = simulate(design.emitted, words, traffic, count=4)
        assert departure(design, run, traffic) is None, traffic
        found = {port.name: run.outputs[k] for k, port in enumerate(design.emitted.data_outputs)}
        assert bits(unpack_outputs(design, found, 4)) == bits(expected), traffic


@pytest.mark.parametrize(("name", "stages"), [("relayed", 2), ("passed", 3), ("turns", 1)])
def test_stages_overlap_in_the_cycles_planned(path: Path, name: str, stages: int) -> None:
    """Scalars and memories of several copies go from stage to stage, however channels stall."""
    check_overlap(path, name, replace(planned(path, name), overlaps=True), stages)


def test_passes_over_a_tensor_are_stages_without_a_gap(path: Path) -> None:
    """An item in as many cycles as its elements, although rounds take a while to leave each pipeline."""
    design = planned(path, "walsh", alone=False)
    overlap = design.process.overlap
    assert overlap is not None and len(overlap.stages) == 8 and overlap.prompt == set(range(8))
    assert design.pace.initiation_interval == 128
    assert_circles(design.process)
    check_overlap(path, "walsh", design, 8)
    assert planned(path, "walsh", alone=False, interval=4000).steps == ()  # in turn that is cheaper


def check_overlap(path: Path, name: str, design: ProcessDesign, stages: int) -> None:
    assert design.process.overlap is not None and len(design.process.overlap.stages) == stages
    in_turn = replace(design, overlaps=False).pace
    assert design.pace.initiation_interval < 0.9 * in_turn.initiation_interval
    check_bits(path, name, design, 6)


def check_bits(path: Path, name: str, design: ProcessDesign, count: int) -> None:
    """However channels stall, and after a reset; and in the cycles planned."""
    given, middle = items(name, count), design.pace.initiation_interval
    expected = kera_hw.load(path).function(name, target="interp").batch(**given)
    words = pack_inputs(design, given, count)
    for traffic in (
        Traffic(), Traffic(60, 60, seed=3), Traffic(70, 50, seed=4, in_turn=True),
        Traffic(90, 90, seed=5, reset_at_cycle=2 * middle + middle // 2),
    ):
        run = simulate(design.emitted, words, traffic, count=count)
        assert departure(design, run, traffic) is None, traffic
        found = {port.name: run.outputs[k] for k, port in enumerate(design.emitted.data_outputs)}
        assert bits(unpack_outputs(design, found, count)) == bits(expected), traffic


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_layers_of_a_network_overlap_on_pictures() -> None:
    """Three int8 layers, each at work on a picture of its own: bits, and all cycles as planned."""
    program = Path(__file__).parents[2] / "bench" / "programs" / "cnn.kera"
    design = planned(program, "cnn", alone=False)
    overlap, in_turn = design.process.overlap, replace(design, overlaps=False).pace
    assert overlap is not None and len(overlap.stages) == 3
    assert design.pace.initiation_interval < 0.8 * in_turn.initiation_interval
    y, x = np.mgrid[-1:1:28j, -1:1:28j]
    ring, bar = np.hypot(x, 1.3 * y), np.hypot(0.2 * (x + y), x - y)
    shapes = (ring, 0.6), (bar, 0.1), (ring, 0.3)
    strokes = [255 * np.exp(-40 * (shape - size) ** 2) for shape, size in shapes]
    given = {"picture": np.stack(strokes).astype(np.uint8)}
    expected = kera_hw.load(program).function("cnn", target="interp").batch(**given)
    words = pack_inputs(design, given, 3)
    for traffic in (Traffic(), Traffic(60, 70, seed=3)):
        run = simulate(design.emitted, words, traffic, count=3)
        assert departure(design, run, traffic) is None, traffic
        found = {port.name: run.outputs[k] for k, port in enumerate(design.emitted.data_outputs)}
        assert bits(unpack_outputs(design, found, 3)) == bits(expected), traffic


def test_every_circle_of_places_has_a_token(path: Path) -> None:
    """Else stages would wait for ever: without the places that begin with one, no circle is left."""
    for name in ("relayed", "passed", "turns", "small_rows", "unread"):
        assert_circles(replace(planned(path, name), overlaps=True).process)


def assert_circles(process: ProcessPlan) -> None:
    assert process.overlap is not None
    follows = {
        (place.source, place.target) for place in places_of(process, process.overlap) if not place.tokens
    }
    nodes = {node for pair in follows for node in pair}
    while nodes:
        free = {
            node for node in nodes
            if not any(target == node and source in nodes for source, target in follows)
        }  # fmt: skip
        assert free, nodes
        nodes -= free


def test_an_interval_that_regions_in_turn_exceed_makes_them_overlap(path: Path) -> None:
    assert not planned(path, "passed", interval=1000).overlaps
    found = planned(path, "passed", interval=150)
    assert found.overlaps and found.pace.initiation_interval <= 150


def test_a_nest_is_one_pipeline_with_a_round_a_cycle(path: Path) -> None:
    design = planned(path, "matmul")
    (region,) = design.regions_json()
    assert (region["rounds"], region["initiation_interval"]) == (9 * 10 * 8, 1)
    words = {row["name"]: row["words"] for row in design.memories_json()}
    assert words == {"in.a": 72, "in.b": 80, "out.0": 90}
    pace = design.pace
    assert pace.item_cycles == pace.latency_cycles + 89
    assert 80 + 720 < pace.latency_cycles < 80 + 720 + 20


def test_a_region_starts_when_what_it_reads_first_is_there(path: Path) -> None:
    """The tensor between is a FIFO of what is alive at once, and the two take hardly longer than one."""
    design = replace(planned(path, "smoothed"), overlaps=False)
    one, two = design.process.regions
    assert one.after is None and two.after is not None and two.after < 16
    assert design.process.run_cycles == max(one.cycles, two.after + two.cycles) < 90 + 16
    between = next(row for row in design.memories_json() if row["name"] not in ("in.x", "out.0"))
    assert between["words"] == 8
    check_bits(path, "smoothed", design, 3)


def test_what_is_read_once_and_in_order_comes_straight_from_its_channel(path: Path) -> None:
    """Its elements need no memory, and no cycles before the region starts; what is read twice or not in
    order does.
    """
    design = planned(path, "histogram")
    assert {row["name"] for row in design.memories_json()} == {"out.0"}
    assert design.process.taken == {"in_x": 1} and design.pace.item_cycles < 300 + 2 * 70 + 30
    for name, kept in (("rows", "in.x"), ("passed", "in.x"), ("matmul", "in.a")):
        assert kept in {row["name"] for row in planned(path, name).memories_json()}


def test_regions_follow_each_other_in_the_plan(path: Path) -> None:
    rows = replace(planned(path, "centred"), overlaps=False).regions_json()
    assert len(rows) >= 2 and all(row["rounds"] == 80 for row in rows)
    for one, two in pairwise(rows):
        assert two["starts_at"] == one["starts_at"] + one["cycles"]


def test_an_interval_asked_for_that_a_process_exceeds_is_refused(path: Path) -> None:
    with pytest.raises(KeraError) as caught:
        planned(path, "histogram", alone=False, interval=200)
    refusal = caught.value.diagnostics[0]
    assert isinstance(refusal, Refusal) and refusal.code == "K0603"
    assert refusal.message.startswith("An item every 200 cycles is too often")
    assert f"`histogram` takes {refusal.least:,} cycles an item" in refusal.message
    planned(path, "histogram", alone=False, interval=refusal.least)
    within = planned(path, "matmul", alone=False, interval=1000)
    assert not within.steps
    sooner = planned(path, "matmul", alone=False, interval=500)
    assert sooner.steps and sooner.pace.initiation_interval <= 500


def test_asking_for_less_never_costs_more_and_nothing_asked_for_is_never_longer(path: Path) -> None:
    free = planned(path, "matmul", alone=False)
    last = free
    for dsp in (16, 8, 5, 2, 1):
        found = planned(path, "matmul", alone=False, dsp=dsp)
        assert found.estimate.dsp <= dsp
        assert found.pace.initiation_interval >= last.pace.initiation_interval
        assert found.area <= last.area
        last = found
    limits: tuple[dict[str, Any], ...] = ({"lut": 250}, {"bram": 20}, {"sites": 300})
    for limit in limits:
        found = planned(path, "matmul", alone=False, **limit)
        assert found.keeps_to(TargetOptions(**limit))
        assert found.pace.initiation_interval >= free.pace.initiation_interval
    with pytest.raises(KeraError) as caught:
        planned(path, "matmul", alone=False, lut=50)
    assert caught.value.diagnostics[0].code == "K0604"
    assert "50 may be used (`--lut`)" in caught.value.diagnostics[0].message


def test_words_for_more_block_ram_than_there_is_are_refused_before_anything_is_mapped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("mapped")

    monkeypatch.setattr(mapping, "logic_of", refuse)
    path = tmp_path / "picture.kera"
    path.write_text(
        "pub fn turned(x: [u8; 700, 700]) -> [u8; 700, 700] {\n    let mut y = [0u8; 700, 700];\n"
        "    for i in 0..700 { for j in 0..700 { y[i, j] = x[j, i]; } }\n    y\n}\n"
    )
    with pytest.raises(KeraError) as caught:
        planned(path, "turned", alone=False)
    assert caught.value.diagnostics[0].code == "K0604"
    assert "3,920,000 of them in `in.x`" in caught.value.diagnostics[0].message


def test_what_is_too_large_for_one_pipeline_becomes_a_process(kera: Kera, tmp_path: Path) -> None:
    path = tmp_path / "large.kera"
    path.write_text(
        "pub fn large(x: [i16; 4000]) -> i42 {\n    let mut acc: i42 = 0;\n"
        "    for k in 0..4000 { acc += mul_wide(x[k], x[3999 - k]) as i42; }\n    acc\n}\n"
    )
    done = kera("verify", path, "--fn", "large", "--targets", "interp,rtl", "--vectors", "3")
    assert done.status == 0, done.err
    out = tmp_path / "out"
    done = kera("build", path, "--fn", "large", "--dsp", 1, "--emit", "verilog", "-o", out)
    report = (out / "report.html").read_text()
    assert done.status == 0 and "4,000 rounds" in report, done.err
    assert "process: channels and loops by cycle" in report and "in_x: item 1, cycles" in report


@pytest.mark.long
def test_what_controllers_and_memories_take_is_foretold(path: Path, tmp_path: Path) -> None:
    for name in ("rows", "centred"):
        design = planned(path, name)
        file = tmp_path / f"{name}.v"
        file.write_text(design.emitted.verilog)
        found = measure([file], design.emitted.name, CHIPS["ecp5-85k"], seeds=()).counts
        said = design.estimate
        assert (said.dsp, said.bram) == (found.dsp, found.bram)
        assert abs(said.ff - found.ff) <= 0.25 * found.ff, (name, said, found)
        assert abs(said.lut - found.lut) <= 0.25 * found.lut, (name, said, found)


def test_a_port_that_regions_share_is_known_to_take_the_time_of_choosing(path: Path) -> None:
    design = planned(path, "centred")
    drivers = {
        place.storage.name: (place.storage.writers, place.storage.readers)
        for region in design.process.regions for place in region.storages
    }  # fmt: skip
    # What comes in is taken as it comes; two regions write the result, one and a channel read it.
    assert drivers == {"out.0": (2, 2)}
    times = [turn_ps(design.device, count) for count in (1, 2, 3, 8, 9)]
    assert times[0] == 0 and times == sorted(times) and times[1] < times[2] == times[3] < times[4]
