"""Values once: programs without repeats give the same bits, and what may have changed is read again."""
from __future__ import annotations

from pathlib import Path

import pytest

from kera_hw.driver.session import load_program
from kera_hw.loops.parser import parse_program
from kera_hw.loops.program import Load, LoopProgram, Op, Store, statements
from kera_hw.loops.transforms.planner import planned
from kera_hw.loops.verifier import verify_loops
from kera_hw.lower.export import lower_export
from kera_hw.schedule.software.common import without_repeats
from tests.loop_programs import Reference, random_export, runs


def count(program: LoopProgram, kind: type[Load] | type[Op] | type[Store]) -> int:
    return sum(isinstance(item, kind) for item in statements(program.body))


@pytest.mark.parametrize("chunk", range(4))
def test_random_graphs(chunk: int) -> None:
    fewer = 0
    for seed in range(chunk, 160, 4):
        export = random_export(seed)
        before = planned(lower_export(export)).after
        after = without_repeats(before)
        assert verify_loops(after) == []
        assert Reference(export, 5, seed).differing(after) == []
        fewer += count(after, Op) + count(after, Load) < count(before, Op) + count(before, Load)
    assert fewer


def parsed(body: str) -> LoopProgram:
    found = parse_program(f"loops f\nin.x: param i32[8]\nout.0: result i32[8]\n{{\n{body}\n}}\n")
    assert isinstance(found, LoopProgram), found
    return found


_CASES = {
    "a load, an operation and a load of what was stored": ("""
  v1: i32 = load in.x[0]
  v2: i32 = load in.x[0]
  v3: i32 = integer.add v1 v1
  v4: i32 = integer.add v2 v2
  store out.0[0] v3
  store out.0[1] v4
""", 1, 1),
    "stored between, so read again": ("""
  t1: temp i32[8]
  parallel i2 < 8 {
    v3: i32 = load in.x[i2]
    store t1[i2] v3
  }
  v4: i32 = load t1[1]
  v5: i32 = load in.x[2]
  store t1[1] v5
  v6: i32 = load t1[2]
  v7: i32 = integer.add v4 v6
  parallel i8 < 8 {
    store out.0[i8] v7
  }
""", 4, 1),
    "a loop that stores knows nothing of before": ("""
  t1: temp i32[8]
  parallel i2 < 8 {
    v3: i32 = load in.x[i2]
    store t1[i2] v3
  }
  v4: i32 = load t1[1]
  for i5 < 7 {
    v6: i32 = load t1[1]
    v7: i32 = integer.add v6 v4
    store t1[i5 + 1] v7
  }
  parallel i8 < 8 {
    v9: i32 = load t1[i8]
    store out.0[i8] v9
  }
""", 4, 1),
}


@pytest.mark.parametrize("name", _CASES)
def test_what_is_known(name: str) -> None:
    text, loads, ops = _CASES[name]
    before = parsed(text.strip("\n"))
    after = without_repeats(before)
    assert (count(after, Load), count(after, Op)) == (loads, ops)
    assert runs(after) == runs(before)


def test_a_product_of_matrices_converts_once(tmp_path: Path) -> None:
    """Elements of a row are the same for all columns."""
    path = tmp_path / "f.kera"
    path.write_text("pub fn f(a: [f32; 4], b: f32) -> [f32; 4] { (a * b) + (a * b) }")
    loaded = load_program(path)
    assert loaded.graph is not None
    program = without_repeats(planned(lower_export(loaded.graph.exports[0])).after)
    assert count(program, Op) == 2
