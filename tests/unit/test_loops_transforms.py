"""Transforms keep every bit, say no where they would not, and plans are text and back."""
from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kera_hw.loops.parser import parse_program
from kera_hw.loops.printer import print_program
from kera_hw.loops.program import For, statements
from kera_hw.loops.transforms import (
    TRANSFORMS,
    Plan,
    Refused,
    Step,
    apply_plan,
    parse_plan,
    print_plan,
)
from kera_hw.loops.transforms.planner import planned
from kera_hw.loops.verifier import verify_loops
from kera_hw.lower.export import lower_export
from kera_hw.support import KeraError
from tests.loop_programs import differing, random_export, random_step

MOST_STATEMENTS = 3000


def _checked(seed: int, taken: Counter[str]) -> None:
    """Random legal transforms one after another, sound after each, and the same bits at the end."""
    export, below = random_export(seed), random.Random(seed)
    try:
        program = lower_export(export)
    except KeraError:
        return
    joined = planned(program).after
    assert verify_loops(joined) == [] and differing(export, joined, 4, seed) == []
    for _ in range(12):
        if not any(isinstance(item, For) for item in statements(program.body)):
            return
        step = random_step(program, below)
        try:
            after = apply_plan(program, [step])
        except Refused:
            continue
        if sum(1 for _ in statements(after.body)) > MOST_STATEMENTS:
            continue
        program = after
        taken[step.transform] += 1
        assert verify_loops(program) == [], step
        assert parse_program(print_program(program)) == program
    assert differing(export, program, 4, seed) == []


@pytest.mark.parametrize("chunk", range(4))
def test_random_sequences(chunk: int) -> None:
    taken: Counter[str] = Counter()
    for seed in range(chunk, 360, 4):
        _checked(seed, taken)
    assert {"tile", "unroll", "vectorise", "parallelise", "pack", "place", "stream", "pipeline"} <= set(taken)


@pytest.mark.long
def test_many_random_sequences() -> None:
    taken: Counter[str] = Counter()
    for seed in range(20_000):
        _checked(seed, taken)
    assert set(taken) == set(TRANSFORMS)


PLAN = (Step("fuse", ("i2", "i5")), Step("tile", ("i2", 2)), Step("contract", ("t1",)))


def test_a_plan_reads_back() -> None:
    assert parse_plan(print_plan(Plan("f", "00", PLAN))) == Plan("f", "00", PLAN) and parse_plan("") == Plan()


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


@given(st.text(max_size=80))
def test_any_text(text: str) -> None:
    try:
        parse_plan(text)
    except KeraError as error:
        assert error.diagnostics[0].code == "K0821"
