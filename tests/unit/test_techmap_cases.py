"""Ladders of selections on one value: found, right for every number, and what they cost."""
from __future__ import annotations

import random
from pathlib import Path

import pytest

from kera_hw.graph.node import Ref
from kera_hw.graph.store import Store
from kera_hw.types import BOOL, IntType

from .control_support import planned
from .hw_random import check


def ladder(rng: random.Random, store: Store, value: Ref, branches: list[Ref], rungs: int) -> Ref:
    """Selections one behind the other, their conditions on ``value``, now and then on something else."""
    kind = value.type
    assert isinstance(kind, IntType)
    result = rng.choice(branches)
    for _ in range(rungs):
        chance = rng.random()
        limit = store.constant(kind, rng.randint(kind.min, kind.max))
        if chance < 0.7:
            condition = store.op("compare.eq", value, limit)
        elif chance < 0.9:
            name = rng.choice(["compare.ne", "compare.lt", "compare.ge", "compare.le", "compare.gt"])
            condition = store.op(name, *rng.sample([value, limit], 2))
        elif chance < 0.97:
            condition = store.op("bits.test", value, index=rng.randrange(kind.width_bits))
            if rng.random() < 0.5:
                condition = store.op("bits.not", condition)
        else:
            condition = store.param(3, BOOL)
        other = rng.choice(branches)
        sides = (result, other) if rng.random() < 0.2 else (other, result)
        result = store.op("control.select", condition, *sides)
    return result


@pytest.mark.parametrize("seed", range(40))
def test_ladders_take_the_branch_that_the_interpreter_takes(seed: int) -> None:
    rng = random.Random(seed)
    store = Store()
    kind = IntType(rng.choice([2, 3, 4, 5, 8, 12]), rng.random() < 0.4)
    result = IntType(rng.choice([1, 5, 16]), rng.random() < 0.5)
    value = store.param(0, kind)
    branches = [store.param(1, result), store.param(2, result)]
    branches += [store.constant(result, rng.randint(result.min, result.max)) for _ in range(rng.randrange(6))]
    branches = rng.choice([branches, branches[2:] or branches])
    found = ladder(rng, store, value, branches, rng.choice([3, 6, 20]))
    device = "ecp5-85k" if seed % 4 else "ice40-hx8k"
    check(store, [kind, result, result, BOOL], [found], count=200, seed=seed, device=device)


def test_signed_values_and_constants_out_of_reach() -> None:
    store = Store()
    kind, result = IntType(4, True), IntType(8, True)
    value, other = store.param(0, kind), store.param(1, result)
    found = other
    for number in range(-8, 8):
        condition = store.op("compare.eq", value, store.constant(kind, number))
        found = store.op("control.select", condition, store.constant(result, -number * 3), found)
    check(store, [kind, result], [found, store.op("integer.neg", found)], count=100)


def arms(contents: list[str]) -> str:
    named = [f"        {k} => {text},\n" for k, text in enumerate(contents[:-1])]
    return "".join([*named, f"        _ => {contents[-1]},\n"])


def test_a_machine_of_256_states_is_a_table(tmp_path: Path) -> None:
    rng = random.Random(3)
    following = rng.sample(range(256), 256)
    source = (
        "pub stream f(go: bool) -> u8 {\n    state s: u8 = 0;\n    let n: u8 = match s {\n"
        f"{arms([str(k) for k in following])}    }};\n    if go {{ s = n; }}\n    s\n}}\n"
    )
    plan = planned(tmp_path, source, 100.0)
    assert plan.initiation_interval == 1
    assert plan.estimate.lut <= 240


def test_many_branches_that_move_are_chosen_in_a_tree(tmp_path: Path) -> None:
    rng = random.Random(4)
    contents = [rng.choice(["a", "b", "c", "d"]) for _ in range(64)]
    head = "pub fn f(s: u6, a: u16, b: u16, c: u16, d: u16) -> u16"
    source = f"{head} {{\n    match s {{\n{arms(contents)}    }}\n}}\n"
    plan = planned(tmp_path, source, 150.0)
    assert plan.latency_cycles <= 2
    assert plan.estimate.lut <= 50


def test_few_numbers_among_many_are_joined(tmp_path: Path) -> None:
    rng = random.Random(5)
    codes = rng.sample(range(1 << 12), 20)
    rungs = "".join(f"if s == {code} {{ {rng.randrange(256)} }} else " for code in codes)
    plan = planned(tmp_path, f"pub fn f(s: u12) -> u8 {{ {rungs}{{ 0 }} }}\n", 150.0)
    assert plan.latency_cycles <= 3
    assert plan.estimate.lut <= 110
