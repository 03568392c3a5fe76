"""Rounds skipped by what is the same in all lanes: the same bits, and only where nothing changes else."""
from __future__ import annotations

import pytest

from kera_hw.loops.parser import parse_program
from kera_hw.loops.program import For, If, LoopProgram, Op, statements
from kera_hw.loops.verifier import verify_loops
from kera_hw.schedule.software.guards import guarded_rounds
from kera_hw.schedule.software.vector_loops import plan_vectors
from tests.loop_programs import runs

_PROGRAM = """loops f
in.x: param i32[16]
in.y: param i32[5]
out.0: result i32[16]
out.1: result i32[16]
{{
  parallel i1 < 16 {{
    v2: i32 = load in.x[i1]
    for i3 < 5 (v4: i32 = v2 -> v5, v6: i32 = 0x0:i32 -> v7) {{
      v8: i32 = load in.y[i3]
      v9: bool = compare.gt v8 0x0:i32
      v10: bool = compare.lt i3 0x4:i64
      v11: bool = compare.ge v2 0x0:i32
      v12: bool = {both} v9 {with}
      v13: i32 = integer.mul v8 v2
      v14: i32 = integer.add v4 v13
      v15: i32 = control.select v12 v14 v4
      v16: i32 = integer.add v6 v8
      v17: i32 = control.select v12 v16 {otherwise}
      yield v15, v17
    }}
    store out.0[i1] v5
    store out.1[i1] v7
  }}
}}
"""


def tried(both: str, with_: str, otherwise: str) -> tuple[LoopProgram, LoopProgram]:
    before = parse_program(_PROGRAM.format(both=both, otherwise=otherwise, **{"with": with_}))
    assert plan_vectors(before, 128), "the loop runs as vectors"
    after = guarded_rounds(before, 128)
    assert verify_loops(after) == [] and runs(after) == runs(before)
    return before, after


def selections(program: LoopProgram) -> int:
    return sum(isinstance(item, Op) and item.opcode == "control.select" for item in statements(program.body))


def test_a_condition_of_the_round_is_a_branch() -> None:
    _, after = tried("bits.and", "v10", "v6")
    assert sum(isinstance(item, If) for item in statements(after.body)) == 1
    assert selections(after) == 0 and plan_vectors(after, 128)


def test_a_condition_from_outside_is_a_branch_around_all_rounds() -> None:
    text = _PROGRAM.format(both="bits.and", otherwise="v6", **{"with": "v10"})
    question = "      v10: bool = compare.lt i3 0x4:i64\n"
    outside = "    v18: i32 = load in.y[4]\n    v10: bool = compare.lt v18 0x4:i32\n    for i3"
    before = parse_program(text.replace(question, "").replace("v12: bool = bits.and v9 v10\n", "")
                           .replace("    for i3", outside).replace("select v12", "select v10"))
    after = guarded_rounds(before, 128)
    assert verify_loops(after) == [] and runs(after) == runs(before)
    (branch,) = [item for item in statements(after.body) if isinstance(item, If)]
    assert any(isinstance(item, For) for item in branch.then.body) and selections(after) == 0


@pytest.mark.parametrize(
    ("both", "with_", "otherwise"),
    [("bits.and", "v11", "v6"), ("bits.or", "v10", "v8"), ("bits.and", "v10", "0x7:i32")],
    ids=["of which a part differs by lane", "without which something changes", "to a constant"],
)
def test_other_rounds_stay(both: str, with_: str, otherwise: str) -> None:
    before, after = tried(both, with_, otherwise)
    assert after == before
