"""Short loops written out and small arrays in registers: the same bits, the rounds of long loops alone."""
from __future__ import annotations

import random
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import kera_hw
from kera_hw.driver.hardware import plan_hardware
from kera_hw.driver.lowering import Lowering
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.process import ProcessDesign
from kera_hw.driver.rtl_target import departure, pack_inputs, unpack_outputs
from kera_hw.driver.session import load_program
from kera_hw.graph import Graph
from kera_hw.loops.parser import parse_program
from kera_hw.loops.printer import print_program
from kera_hw.loops.program import Alloc, For, LoopProgram, statements
from kera_hw.loops.transforms.meeting import clear
from kera_hw.loops.transforms.nests import split, unroll
from kera_hw.loops.transforms.plan import apply_plan
from kera_hw.loops.transforms.reason import Refused
from kera_hw.loops.transforms.scalars import constant_indices, fold, promote
from kera_hw.loops.verifier import verify_loops
from kera_hw.lower.export import lower_export
from kera_hw.rtl.machine.compact import compact
from kera_hw.rtl.sim.bench import Traffic, simulate
from tests.loop_programs import Reference, random_export, runs

PROGRAMS = Path(__file__).parents[2] / "bench" / "programs"

SOURCE = """
const TABLE: [u8; 16] = [7, 250, 3, 91, 128, 64, 33, 200, 11, 5, 77, 164, 99, 18, 240, 1];

fn stirred(s: [u8; 4], key: u8) -> [u8; 4] {
    let mut t = s;
    for i in 0..4 { t[i] = TABLE[(s[(i + 1) % 4] >> 4) as u4] + (s[i] ^ key); }
    t
}

/// One long loop; what stands behind it does in part what a round does.
pub fn folded(x: [u8; 4], key: u8) -> [u8; 4] {
    let mut keys = [0u8; 61];
    let mut k = key;
    for r in 0..60 {
        for i in 0..3 { k = rotl(k, 1) ^ (i as u8); }
        keys[r] = k;
    }
    let mut s = x;
    for r in 0..59 { s = stirred(s, keys[r]); }
    let last = stirred(s, keys[59]);
    last ^ x
}

/// Two loops, one in the other, on a tensor that lies in memory; the outer one adds up what the inner leaves.
pub fn blocks(words: [u16; 96]) -> [u16; 4] {
    let mut sum = [1u16, 20, 300, 4000];
    for b in 0..6 {
        let mut w = [0u16; 16];
        for i in 0..16 { w[i] = words[16 * b + i]; }
        let mut s = sum;
        for t in 0..20 {
            let new = (w[1] ^ rotl(w[14], 3)) + w[0] + (t as u16);
            w = shift_in(w, new);
            s = [s[3] + new, s[0] ^ (s[1] & w[3]), s[1], s[2] + (s[0] >> 1)];
        }
        for i in 0..4 { sum[i] += s[i]; }
    }
    sum
}
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("compact") / "compact.kera"
    found.write_text(SOURCE)
    return found


def lowering_of(path: Path, name: str) -> Lowering:
    graph = cast(Graph, load_program(path).graph)
    export = graph.export(name)
    assert export is not None
    return Lowering(graph, export, TargetOptions(), {})


def loops_in(program: LoopProgram) -> list[int]:
    return [item.count for item in statements(program.body) if isinstance(item, For)]


@pytest.mark.parametrize(("file", "name", "counts"), [
    ("", "folded", [59]), ("", "blocks", [6, 20]),
    ("sha256", "blocks", [4, 64]), ("aes128", "encrypt", [9]),
])  # fmt: skip
def test_long_loops_alone_stay_and_arrays_are_scalars(
    path: Path, file: str, name: str, counts: list[int]
) -> None:
    program = lowering_of(PROGRAMS / f"{file}.kera" if file else path, name).program
    found = compact(program)
    assert found is not None and loops_in(found.program) == counts
    assert apply_plan(program, found.steps) == found.program
    assert not any(isinstance(item, Alloc) for item in statements(found.program.body))
    assert verify_loops(found.program) == []
    assert parse_program(print_program(found.program)) == found.program
    assert runs(found.program) == runs(program)


@pytest.mark.parametrize("file", ["fft1024", "matmul64", "sobel640", "collatz"])
def test_programs_without_small_arrays_are_left_alone(file: str) -> None:
    graph = cast(Graph, load_program(PROGRAMS / f"{file}.kera").graph)
    for export in graph.exports:
        assert Lowering(graph, export, TargetOptions(), {}).compact is None


@pytest.mark.parametrize("name", ["folded", "blocks"])
def test_circuits_give_the_bits_in_the_cycles_planned(path: Path, name: str) -> None:
    """A round of the innermost loop a cycle, and one for what stands behind it."""
    graph = cast(Graph, load_program(path).graph)
    export = graph.export(name)
    assert export is not None
    design = plan_hardware(graph, export, TargetOptions(interval={"folded": 60, "blocks": 6 * 21 + 40}[name]))
    found = design.written_out_json()
    assert found is not None and found["steps"] and found["in_registers"]
    regions = design.regions_json()
    assert max(row["rounds"] for row in regions) == {"folded": 60, "blocks": 6 * 21}[name]
    assert isinstance(design, ProcessDesign) == (name == "blocks")
    rng = np.random.default_rng(1)
    given: dict[str, Any] = {
        "folded": {"x": rng.integers(0, 256, (6, 4)).astype(np.uint8),
                   "key": rng.integers(0, 256, 6).astype(np.uint8)},
        "blocks": {"words": rng.integers(0, 1 << 16, (6, 96)).astype(np.uint16)},
    }[name]  # fmt: skip
    expected = kera_hw.load(path).function(name, target="interp").batch(**given)
    words, middle = pack_inputs(design, given, 6), design.pace.initiation_interval
    for traffic in (
        Traffic(), Traffic(60, 60, seed=3), Traffic(90, 90, seed=5, reset_at_cycle=middle + middle // 2),
    ):
        run = simulate(design.emitted, words, traffic, count=6)
        assert departure(design, run, traffic) is None, traffic
        outputs = {port.name: run.outputs[k] for k, port in enumerate(design.emitted.data_outputs)}
        assert np.array_equal(unpack_outputs(design, outputs, 6), expected), traffic


def test_more_cycles_never_cost_more(path: Path) -> None:
    """Each interval is kept, and no longer one has more sites."""
    graph = cast(Graph, load_program(path).graph)
    export = graph.export("folded")
    assert export is not None
    sites: list[int] = []
    for interval in (60, 130, 4000):
        design = plan_hardware(graph, export, TargetOptions(interval=interval))
        assert design.pace.initiation_interval <= interval
        sites.append(max(design.estimate.lut, design.estimate.ff))
    assert sites == sorted(sites, reverse=True)


# The transforms


@pytest.mark.parametrize("chunk", range(2))
def test_transforms_keep_every_bit_of_random_programs(chunk: int) -> None:
    taken = {"promoted": 0, "cleared": 0, "split": 0}
    for seed in range(40 * chunk, 40 * chunk + 40):
        export, below = random_export(seed), random.Random(seed)
        program, reference = lower_export(export), Reference(export, 3, seed)
        forms: list[LoopProgram] = []
        for loop in [item for item in statements(program.body) if isinstance(item, For) and item.count <= 8]:
            if below.random() < 0.7:
                with suppress(Refused):  # it was within another one
                    program = unroll(program, loop.var.name)
        forms.append(_folded(program))
        for buffer in constant_indices(forms[-1]):
            taken["promoted"] += 1
            forms.append(promote(forms[-1], buffer.name))
        forms.append(_folded(forms[-1]))
        whole = forms[-1]
        loops = [item for item in whole.body.body if isinstance(item, For)]
        for one, two in pairwise(loops):
            try:
                forms.append(clear(whole, one.var.name, two.var.name))
                taken["cleared"] += forms[-1] != whole
            except Refused:
                continue
        for loop in [item for item in loops if item.count > 1][:2]:
            forms.append(split(whole, loop.var.name, below.randrange(1, loop.count)))
            taken["split"] += 1
        for form in forms:
            assert verify_loops(form) == [], seed
            assert reference.differing(form) == [], seed
    assert all(count > 4 for count in taken.values()), taken


def _folded(program: LoopProgram) -> LoopProgram:
    try:
        return fold(program)
    except Refused:
        return program


KEPT = parse_program("""loops f
in.x: param u8[4]
out.0: result u8[4]
{
  t1: temp u8[4]
  for i2 < 4 {
    v3: u8 = load in.x[i2]
    store t1[i2] v3
  }
  v4: u8 = load t1[3]
  for i5 < 4 {
    v6: u8 = load in.x[i5]
    v7: u8 = integer.add v6 v4
    store out.0[i5] v7
  }
}
""")


def test_what_would_change_a_bit_is_refused() -> None:
    with pytest.raises(Refused, match="needs the one, and the other needs it"):
        clear(KEPT, "i2", "i5")
    with pytest.raises(Refused, match="`i5` does not stand before `i2`"):
        clear(KEPT, "i5", "i2")
    with pytest.raises(Refused, match="`t1` has an index that is not constant"):
        promote(KEPT, "t1")
    with pytest.raises(Refused, match="Nothing is known"):
        fold(KEPT)
