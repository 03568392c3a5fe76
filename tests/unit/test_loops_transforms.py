"""Transforms keep every bit, say no where they would not, and plans are text and back."""
from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kera_hw.loops.parser import parse_program
from kera_hw.loops.program import Alloc, For, LoopProgram, statements
from kera_hw.loops.transforms import TRANSFORMS, Refused, Step, apply_plan, parse_plan, print_plan
from kera_hw.loops.transforms.greedy import fused
from kera_hw.loops.verifier import verify_loops
from kera_hw.lower.export import lower_export
from kera_hw.support import KeraError
from tests.loop_programs import differing, random_export

MOST_STATEMENTS = 3000


def _draw(program: LoopProgram, below: random.Random) -> Step:
    loops = [item.var.name for item in statements(program.body) if isinstance(item, For)]
    temps = [item.buffer.name for item in statements(program.body) if isinstance(item, Alloc)]
    name = below.choice(list(TRANSFORMS))
    loop = below.choice(loops)
    match name:
        case "fuse":
            return Step(name, (loop, below.choice(loops)))
        case "fission" | "tile":
            return Step(name, (loop, below.randrange(1, 6)))
        case "contract":
            return Step(name, (below.choice(temps or ["none"]),))
        case _:
            return Step(name, (loop,))


def _checked(seed: int, taken: Counter[str]) -> None:
    """Random legal transforms one after another, sound after each, and the same bits at the end."""
    export, below = random_export(seed), random.Random(seed)
    try:
        program = lower_export(export)
    except KeraError:
        return
    joined, _ = fused(program)
    assert verify_loops(joined) == [] and differing(export, joined, 4, seed) == []
    for _ in range(12):
        if not any(isinstance(item, For) for item in statements(program.body)):
            return
        step = _draw(program, below)
        try:
            after = apply_plan(program, [step])
        except Refused:
            continue
        if sum(1 for _ in statements(after.body)) > MOST_STATEMENTS:
            continue
        program = after
        taken[step.transform] += 1
        assert verify_loops(program) == [], step
    assert differing(export, program, 4, seed) == []


@pytest.mark.parametrize("chunk", range(4))
def test_random_sequences(chunk: int) -> None:
    taken: Counter[str] = Counter()
    for seed in range(chunk, 360, 4):
        _checked(seed, taken)
    assert {"tile", "unroll", "interchange"} <= set(taken)


@pytest.mark.long
def test_many_random_sequences() -> None:
    taken: Counter[str] = Counter()
    for seed in range(20_000):
        _checked(seed, taken)
    assert set(taken) == set(TRANSFORMS)


TWO = """loops f
in.x: param u8[4]
out.0: result u8[4]
{
  t1: temp u8[4]
  parallel i2 < 4 {
    v3: u8 = load in.x[i2]
    store t1[i2] v3
  }
  t4: temp u8[4]
  parallel i5 < 4 {
    v6: u8 = load t1[%s]
    store t4[i5] v6
  }
  for i7 < 3 {
    v8: u8 = load t4[i7]
    store t4[i7 + 1] v8
  }
  parallel i9 < 2 {
    parallel i10 < 2 {
      v11: u8 = load t4[2*i9 + i10]
      store out.0[2*i9 + i10] v11
    }
  }
}
"""
SAME = parse_program(TWO % "i5")

REFUSED = {
    "fuse later rounds": ("-1*i5 + 3", ("fuse", "i2", "i5"), "`t1` before a later round of `i2`"),
    "fuse other counts": ("i5", ("fuse", "i5", "i7"), "`i5` has 4 rounds and `i7` 3"),
    "fuse apart": ("i5", ("fuse", "i5", "i2"), "Something stands between `i5` and `i2`"),
    "fuse nothing": ("i5", ("fuse", "i2", "i77"), "There is no loop `i77`"),
    "interchange a chain": ("i5", ("interchange", "i7"), "is more than one loop"),
    "contract other places": ("-1*i5 + 3", ("contract", "t1"), "is read in another round or place"),
    "contract a parameter": ("i5", ("contract", "in.x"), "There is no temporary `in.x`"),
    "fission a value": ("i5", ("fission", "i5", 1), "Both parts of `i5` use `v6`"),
    "fission nowhere": ("i5", ("fission", "i5", 2), "there is no cut after 2"),
    "tile by none": ("i5", ("tile", "i5", 0), "at least one round, not 0"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_would_change_a_bit_is_refused(case: str) -> None:
    place, (name, *arguments), message = REFUSED[case]
    with pytest.raises(Refused) as caught:
        apply_plan(parse_program(TWO % place), [Step(name, tuple(arguments))])
    assert message in str(caught.value)


def test_a_sequential_outer_loop_stays_outside() -> None:
    text = (TWO % "i5").replace("parallel i9 < 2", "for i9 < 2")
    with pytest.raises(Refused, match="Rounds of `i9` depend on each other"):
        apply_plan(parse_program(text), [Step("interchange", ("i9",))])


def test_joined_loops_need_no_buffer() -> None:
    steps = [Step("fuse", ("i2", "i5")), Step("contract", ("t1",))]
    after = apply_plan(SAME, steps)
    assert verify_loops(after) == []
    assert [item.buffer.name for item in statements(after.body) if isinstance(item, Alloc)] == ["t4"]
    assert fused(SAME)[1] == steps


def test_a_rest_is_a_loop_of_its_own() -> None:
    after = apply_plan(SAME, [Step("tile", ("i7", 2))])
    loops = [item for item in statements(after.body) if isinstance(item, For)]
    counts = [item.count for item in loops if item.var.name.startswith("i7")]
    assert counts == [1, 2, 1] and verify_loops(after) == []


PLAN = (Step("fuse", ("i2", "i5")), Step("tile", ("i2", 2)), Step("contract", ("t1",)))


def test_a_plan_reads_back() -> None:
    assert parse_plan(print_plan(PLAN)) == PLAN and parse_plan("") == ()


UNUSABLE = {
    "steps = 1": "something else",
    "step = 1": "something else",
    "[[step]]\ntransform = \"fuse\"": "needs `transform` and `arguments`",
    "[[step]]\ntransform = \"melt\"\narguments = []": "names no transform",
    "[[step]]\ntransform = \"tile\"\narguments = [\"i1\", \"2\"]": "takes a name, a number",
    "[[step]\n": "no TOML",
}


@pytest.mark.parametrize("text", UNUSABLE)
def test_other_plans_are_told(text: str) -> None:
    with pytest.raises(KeraError) as caught:
        parse_plan(text)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "K0821" and UNUSABLE[text] in diagnostic.message


@given(st.text(max_size=80))
def test_any_text(text: str) -> None:
    try:
        parse_plan(text)
    except KeraError as error:
        assert error.diagnostics[0].code == "K0821"
