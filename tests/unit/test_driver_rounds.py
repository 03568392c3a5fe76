"""Loops that stay loops in hardware: results, cycles of every item, stalls, resets, plans that say so."""
from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import kera_hw
from kera_hw.driver.formal import prove_export
from kera_hw.driver.hardware import HardwareDesign, design_hardware
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.rtl_target import RtlExecutor, departure, pack_inputs
from kera_hw.driver.session import load_program
from kera_hw.graph import Export, Graph
from kera_hw.rtl.sim.bench import Traffic, simulate
from kera_hw.support import KeraError
from tests.unit.cli_support import Kera

pytestmark = pytest.mark.usefixtures("searched_once")

PROGRAM = """
/// Leaves at once for 0 and 1; the greatest count is reached by 27 within bytes, 111.
pub fn collatz(n: u8) -> (u8, u16, bool) {
    let mut x = n as u16;
    let mut steps: u8 = 0;
    let mut peak = x;
    while x > 1, max 120 {
        x = if x.bit(0) { 3 * x + 1 } else { x >> 1 };
        peak = max(peak, x);
        steps += 1;
    }
    (steps, peak, x == 1)
}

/// Ends by its condition, or by `max`: 255 - 1 differences would be needed for (255, 1).
pub fn gcd(a: u8, b: u8, by: u8) -> u16 {
    if a == 0 || b == 0 {
        (a | b) as u16
    } else {
        let mut x = a;
        let mut y = b;
        while x != y, max 40 {
            let high = max(x, y);
            y = min(x, y);
            x = high - y;
        }
        (x as u16) * (by as u16)
    }
}

/// The state lasts from item to item, and is written by the round that ends the loop alone.
pub stream total(n: u8) -> u16 {
    state sum: u16 = 7;
    let mut x = n;
    let mut bits: u16 = 0;
    while x != 0, max 64 {
        bits += (x & 1) as u16;
        x = x >> 1;
    }
    sum += bits;
    sum
}

/// Newton's iteration: carried floats, NaN and infinities among them.
pub fn root(a: f32) -> f32 {
    let mut x = a;
    let mut last: f32 = 0.0;
    while x != last, max 30 {
        last = x;
        x = 0.5 * (x + a / x);
    }
    x
}

/// Counted, with a table that is looked into in each round, and what stands outside of the loop.
const TABLE: [u8; 16] = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3];
pub fn mixed(seed: u16, key: u16) -> u16 {
    let mut s = seed ^ 0x55aa;
    for i in 0..100 {
        let t = TABLE[(s & 15) as u4] as u16;
        s = rotl(s, 3) + t * (i as u16) + key;
    }
    s ^ key
}

/// Counted, in a branch: what it stores is stored where the branch is taken.
pub fn branched(seed: u16, key: u16) -> u16 {
    let mut t = [seed, 3];
    if seed > key {
        for i in 0..100 {
            t[0] = rotl(t[0], 3) + t[1] * key;
            t[1] = t[0] ^ (i as u16);
        }
    }
    t[0] ^ t[1]
}

/// Counted, with a loop in every round that would stay one by itself.
pub fn braided(words: [u16; 8]) -> [u16; 8] {
    let mut v = words;
    for i in 0..20 {
        let mut t = [0u16; 8];
        for c in 0..8 {
            let mixed = rotl(v[c], 3) + (v[(c + 1) % 8] ^ (i as u16)) + (v[(c + 3) % 8] & v[(c + 5) % 8]);
            t[c] = (mixed ^ v[(c + 6) % 8]) + (rotr(v[(c + 2) % 8], 5) | v[c]);
        }
        v = t;
    }
    v
}
"""
ODD = np.array([0.0, -0.0, 1.0, 2.0, np.inf, -np.inf, np.nan, -4.0, 1e-40, 3e38, 7.5], np.float32)
ITEMS: dict[str, dict[str, Any]] = {
    "collatz": {"n": np.arange(256, dtype=np.uint8)},
    "gcd": {
        "a": np.array([0, 0, 5, 255, 12, 18, 96, 1], np.uint8),
        "b": np.array([0, 9, 0, 1, 18, 12, 36, 1], np.uint8), "by": np.full(8, 200, np.uint8),
    },
    "total": {"n": np.array([0, 255, 1, 128, 0, 0, 37], np.uint8)},
    "root": {"a": ODD},
    "mixed": {"seed": np.arange(9, dtype=np.uint16) * 7919, "key": np.arange(9, dtype=np.uint16) * 257},
    "branched": {"seed": np.arange(9, dtype=np.uint16) * 7919, "key": np.full(9, 30000, np.uint16)},
    "braided": {"words": np.arange(24, dtype=np.uint16).reshape(3, 8) * 7919},
}  # fmt: skip
ENDING = ["collatz", "gcd", "total", "root"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "p.kera"
    path.write_text(PROGRAM)
    return path


@pytest.fixture
def kera(capsys: pytest.CaptureFixture[str]) -> Kera:
    return Kera(capsys)


def exported(path: Path, name: str) -> tuple[Graph, Export]:
    graph = load_program(path).graph
    assert graph is not None
    export = graph.export(name)
    assert export is not None
    return graph, export


def bits(value: Any) -> list[bytes]:
    parts = cast("tuple[Any, ...]", value if isinstance(value, tuple) else (value,))
    return [np.ascontiguousarray(part).tobytes() for part in parts]


def expected(path: Path, name: str) -> Any:
    return kera_hw.load(path).function(name, target="interp").batch(**ITEMS[name])


@pytest.mark.parametrize("name", ENDING)
def test_a_loop_that_ends_by_a_condition_takes_its_rounds_and_gives_its_bits(path: Path, name: str) -> None:
    """The executor runs unhindered and under stalls, and holds the cycles of every item against the plan."""
    executor = RtlExecutor(*exported(path, name), TargetOptions())
    items = ITEMS[name]
    assert bits(executor.run(items, len(next(iter(items.values()))))) == bits(expected(path, name))
    (least, _), (most, _) = executor.design.core_paces
    assert least < most and executor.plan["latency_cycles"] == {"min": least, "max": most}
    (region,) = executor.plan["regions"]
    assert most == least + region["rounds"]["max"] * region["initiation_interval"]


@pytest.mark.parametrize("options", [
    TargetOptions(interval=2000),
    pytest.param(TargetOptions(interval=2000, interface="none"), marks=pytest.mark.long),
    TargetOptions(interval=2000, emitter="amaranth"), TargetOptions(device="ice40-hx8k", interval=2000),
], ids=lambda options: f"{options.interface}-{options.emitter}-{options.device}")  # fmt: skip
def test_a_counted_loop_stays_one_where_that_is_the_smaller_circuit(
    path: Path, options: TargetOptions
) -> None:
    executor = RtlExecutor(*exported(path, "mixed"), options)
    assert bits(executor.run(ITEMS["mixed"], 9)) == bits(expected(path, "mixed"))
    design = executor.design
    assert design.rounds is not None and design.rounds.count == 100
    rate = design.plan.initiation_interval
    assert design.core_paces == ((99 * rate + design.plan.latency_cycles, 100 * rate),) * 2
    assert design.plan.estimate.lut < 300


def test_a_counted_loop_in_a_branch_stores_where_that_is_taken(path: Path) -> None:
    executor = RtlExecutor(*exported(path, "branched"), TargetOptions(interval=2000))
    assert executor.design.rounds is not None and executor.design.rounds.count == 100
    assert bits(executor.run(ITEMS["branched"], 9)) == bits(expected(path, "branched"))


def test_loops_inside_a_round_are_unrolled_where_they_could_not_take_turns(path: Path) -> None:
    """Unrolled as a whole, its 20 rounds would take far more; as a process, 160 cycles."""
    executor = RtlExecutor(*exported(path, "braided"), TargetOptions(interval=22, clock_mhz=80))
    assert executor.design.rounds is not None and executor.design.rounds.count == 20
    assert executor.design.pace.initiation_interval <= 22 and executor.design.estimate.lut < 1000
    assert bits(executor.run(ITEMS["braided"], 3)) == bits(expected(path, "braided"))


def test_a_loop_is_unrolled_where_its_rounds_would_take_too_long(path: Path) -> None:
    design = design_hardware(*exported(path, "mixed"), TargetOptions(interval=50))
    assert design.rounds is None and design.plan.initiation_interval == 50
    assert design.pace.initiation_interval == 50 and design.plan_json()["regions"] == []


@pytest.mark.parametrize("name", ["collatz", "total", "mixed"])
def test_nothing_outlives_a_reset_in_mid_flight(path: Path, name: str) -> None:
    graph, export = exported(path, name)
    design = design_hardware(graph, export, TargetOptions(interval=2000))
    assert design.rounds is not None
    items = {key: value[:6] for key, value in ITEMS[name].items()}
    words, own = pack_inputs(design, items, 6), design.latencies(items, 6)
    whole = simulate(design.emitted, words, count=6, latencies=own)
    assert departure(design, whole, Traffic(), own) is None
    for cycle in (7, 30, 61):
        traffic = Traffic(70, 70, seed=cycle, reset_at_cycle=cycle)
        again = simulate(design.emitted, words, traffic, count=6, latencies=own)
        assert departure(design, again, traffic, own) is None
        assert all(map(np.array_equal, whole.outputs, again.outputs))


def test_the_bench_sees_a_round_too_many_and_one_too_few(path: Path) -> None:
    graph, export = exported(path, "collatz")
    design = design_hardware(graph, export, TargetOptions())
    words = pack_inputs(design, ITEMS["collatz"], 256)
    own = design.latencies(ITEMS["collatz"], 256)
    assert own is not None
    assert simulate(design.emitted, words, Traffic(), latencies=own).fault is None
    for item, change in ((27, 1), (27, -1), (200, design.plan.initiation_interval)):
        other = own.copy()
        other[item] = int(other[item]) + change
        assert simulate(design.emitted, words, Traffic(), latencies=other).fault is not None


def test_a_planted_fault_in_the_exit_is_found(path: Path) -> None:
    graph, export = exported(path, "gcd")
    executor = RtlExecutor(graph, export, TargetOptions())
    verilog = executor.design.emitted.verilog
    assert "6'h27" in verilog  # 40 rounds at the most, told a round ahead
    executor.design = executor.design.with_verilog(verilog.replace("6'h27", "6'h26"))
    with pytest.raises(KeraError) as caught:
        executor.run(ITEMS["gcd"], 8)
    assert caught.value.diagnostics[0].code == "K0910"


def test_plan_build_verify_and_the_exported_bench_speak_of_rounds(
    kera: Kera, path: Path, tmp_path: Path
) -> None:
    done = kera("plan", path, "--fn", "collatz")
    assert done.status == 0 and "stays a loop: at most 120 rounds" in done.out.replace("\n", " ")
    done = kera("verify", path, "--fn", "gcd", "--targets", "interp,rtl", "--vectors", "20")
    assert done.status == 0 and " to " in done.out
    out = tmp_path / "out"
    done = kera("build", path, "--fn", "total", "--emit", "verilog", "--testbench", "cocotb", "-o", out)
    assert done.status == 0, done.err
    plan = json.loads((out / "plan.json").read_text())
    assert plan["latency_cycles"]["max"] > plan["latency_cycles"]["min"]
    vectors = json.loads((out / "total_vectors.json").read_text())
    assert len(set(vectors["latencies"])) > 1 and "stays a loop" in (out / "report.html").read_text()
    saved = tmp_path / "p.toml"
    assert kera("plan", path, "--fn", "collatz", "--target", "fpga:ecp5-85k", "--save", saved).status == 0
    assert "rolled = true" in saved.read_text()
    again = kera("plan", path, "--fn", "collatz", "--plan", saved)
    assert again.status == 0 and "stays a loop" in again.out


def test_proofs_say_that_they_know_no_loops(path: Path) -> None:
    with pytest.raises(KeraError) as caught:
        prove_export(*exported(path, "collatz"), TargetOptions(), 5)
    assert caught.value.diagnostics[0].code == "K0961"


def test_a_stream_is_stepped_with_its_rounds_counted_from_its_state(path: Path) -> None:
    executor = RtlExecutor(*exported(path, "total"), TargetOptions())
    with closing(executor.stepper()) as stepper:
        for _ in range(2):
            items = ITEMS["total"]["n"][:4]
            steps = [stepper.step({"n": items[k : k + 1]}) for k in range(4)]
            assert np.concatenate(steps).tolist() == expected(path, "total")[:4].tolist()
            stepper.reset()


def test_rounds_are_counted_for_a_stream_item_by_item(path: Path) -> None:
    design: HardwareDesign = design_hardware(*exported(path, "total"), TargetOptions())
    own = design.latencies(ITEMS["total"], 7)
    assert own is not None
    rate, least = design.plan.initiation_interval, design.plan.latency_cycles
    assert own.tolist() == [least + rate * int(n).bit_length() for n in ITEMS["total"]["n"]]
