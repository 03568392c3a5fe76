"""Plans are text and back, hashed by what they do; planning takes well under a second."""
from __future__ import annotations

import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kera_hw.frontend import compile_source
from kera_hw.loops.parser import parse_program
from kera_hw.loops.transforms import (
    Plan,
    Step,
    parse_plan,
    print_plan,
    program_hash,
)
from kera_hw.loops.transforms.cost import Cost, cost_of
from kera_hw.loops.transforms.planner import planned
from kera_hw.loops.verifier import verify_loops
from kera_hw.lower.export import lower_export
from kera_hw.support import KeraError, SourceFile
from tests.unit.test_loops_verifier import SOUND

PLAN = (Step("fuse", ("i2", "i5")), Step("tile", ("i2", 2)), Step("contract", ("t1",)))


def test_a_plan_reads_back() -> None:
    assert parse_plan(print_plan(Plan("f", "00", PLAN))) == Plan("f", "00", PLAN) and parse_plan("") == Plan()


def test_a_plan_is_named_by_what_it_does() -> None:
    plan = Plan("f", "00", PLAN)
    explained = replace(plan, program="", steps=(replace(PLAN[0], reason="because"), *PLAN[1:]))
    assert explained.hash == plan.hash and len(bytes.fromhex(plan.hash)) == 32
    others = (PLAN[:2], PLAN[::-1], (*PLAN[:2], Step("contract", ("t2",))), (Step("tile", ("i2", 3)),))
    assert len({Plan(steps=tuple(steps)).hash for steps in (PLAN, *others)}) == len(others) + 1


def test_a_program_is_named_by_all_that_it_says() -> None:
    program = parse_program(SOUND)
    other = parse_program(SOUND.replace("t2: temp u8[4]", "t2: temp u8[4] in lut_ram"))
    assert program_hash(program) == program_hash(parse_program(SOUND)) != program_hash(other)


def test_cost_counts_what_runs() -> None:
    assert cost_of(parse_program(SOUND)) == Cost(
        loops=6, buffers=1, held_bytes=4, rounds=4 + 3 + 2 + 3 + 2 + 4,
        operations=4 + 2 + 3 * 2 + 1, moved_bytes=1 + 4 * 2 + 3 * 2 + 1 + 2 + 1 + 4 * 2 + 1 + 1,
    )


UNUSABLE = {
    "steps = 1": "something else",
    "step = 1": "something else",
    "function = 1": "are texts",
    "other = 1": "something else",
    "[[step]]\ntransform = \"unroll\"\narguments = [\"i1\"]\nreason = 1": "the reason in step 1",
    "[[step]]\ntransform = \"fuse\"": "needs `transform` and `arguments`",
    "[[step]]\ntransform = \"melt\"\narguments = []": "names no transform",
    "[[step]]\ntransform = \"tile\"\narguments = [\"i1\", \"2\"]": "takes a text, a number",
    "[[step]\n": "no TOML",
}


@pytest.mark.parametrize("text", UNUSABLE)
def test_other_plans_are_told(text: str) -> None:
    with pytest.raises(KeraError) as caught:
        parse_plan(text)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "K0821" and UNUSABLE[text] in diagnostic.message


@settings(deadline=None)
@given(st.text(max_size=80))
def test_any_text(text: str) -> None:
    try:
        parse_plan(text)
    except KeraError as error:
        assert error.diagnostics[0].code == "K0821"


LARGE = {
    "matmul": "pub fn f(a: [i8; 64, 64], b: [i8; 64, 64]) -> [i8; 64, 64] { matmul(a, b) }",
    "sobel": """pub fn f(img: [u8; 480, 640]) -> [u8; 478, 638] {
        let x: [i16; 1, 480, 640] = [img as i16];
        let a = conv2d(x, [[[[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]]]]);
        let b = conv2d(x, [[[[-1, -2, -1], [0, 0, 0], [1, 2, 1]]]]);
        min(abs(a[0]) + abs(b[0]), 255i16) as u8
    }""",
    "attention": """pub fn f(q: [f32; 64, 32], k: [f32; 64, 32], v: [f32; 64, 32]) -> [f32; 64, 32] {
        attention(q, k, v)
    }""",
}
MOST_S = 2.0
"""Ten times what the slowest takes on a quiet machine; of processor time, which a busy one hardly changes."""
HELD_BYTES = {"matmul": 0, "sobel": 0, "attention": 1024}
"""What temporaries still hold of 4,096, some 8,000,000 and 91,392 bytes."""


@pytest.mark.parametrize("name", LARGE)
def test_large_programs_are_planned_at_once(name: str) -> None:
    result = compile_source(SourceFile("f.kera", LARGE[name].encode()), lambda _: None)
    assert result.graph is not None, result.diagnostics
    start = time.process_time()
    program = lower_export(result.graph.exports[0])
    assert verify_loops(program) == []
    found = planned(program)
    assert verify_loops(found.after) == []
    assert time.process_time() - start < MOST_S
    assert found.costs[1].held_bytes == HELD_BYTES[name]
