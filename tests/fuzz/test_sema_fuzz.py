"""Mutated programs: the checker ends, never raises, and gives a sound tree or a diagnostic."""
from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from kera_hw.frontend.parser import parse, tokenize
from kera_hw.frontend.sema import check
from kera_hw.frontend.sema.constants.run import evaluate_constant
from kera_hw.support import SourceFile
from tests.errors.sema_rows import ROWS
from tests.unit.sema_verify import verify_program
from tests.unit.test_sema_builtins import CASES

_RIGHT = [f"fn f({params}) -> {result} {{ {body} }}" for params, body, result in CASES]
_WRONG = [text.replace("«", "").replace("»", "") for _, text in ROWS]


def _tokens(text: str) -> list[str]:
    file = SourceFile.from_text(text)
    return [file.data[token.start : token.end].decode() for token in tokenize(file)[0]]


RIGHT_SEEDS = [_tokens(text) for text in _RIGHT]
SEEDS = [*RIGHT_SEEDS, *(_tokens(text) for text in _WRONG)]
POOL = [token for tokens in SEEDS for token in tokens if token.strip()]


def mutate(rng: random.Random, seeds: Sequence[Sequence[str]] = SEEDS, most: int = 4) -> str:
    """One to ``most`` edits of a seed: replace, insert, delete, swap tokens, splice in a piece of another."""
    tokens = list(rng.choice(seeds))
    for _ in range(rng.randint(1, most)):
        place = rng.randrange(len(tokens)) if tokens else 0
        edit = rng.randrange(5)
        if edit == 0 and tokens:
            tokens[place] = rng.choice(POOL)
        elif edit == 1:
            tokens.insert(place, rng.choice(POOL))
        elif edit == 2 and tokens:
            del tokens[place]
        elif edit == 3 and tokens:
            other = rng.randrange(len(tokens))
            tokens[place], tokens[other] = tokens[other], tokens[place]
        else:
            donor = rng.choice(SEEDS)
            start = rng.randrange(len(donor))
            tokens[place:place] = donor[start : start + rng.randint(1, 12)]
    return "".join(tokens)


def _load(name: str) -> SourceFile | None:
    return SourceFile.from_text("fn window(x: u8) -> u8 { x }") if name == "dsp" else None


def try_text(text: str) -> bool:
    """Check a text; True when it is a right program."""
    file = SourceFile.from_text(text)
    unit, syntax = parse(file)
    program, found = check(unit, file, _load, evaluate_constant)
    if not syntax:
        assert (program is None) == any(item.is_error for item in found), text
    if program is None or syntax:
        return False
    verify_program(program)
    return True


@pytest.mark.timeout(120)
@pytest.mark.parametrize("seed", range(4))
def test_mutated_programs(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(120):
        try_text(mutate(rng))
    right = sum(try_text(mutate(rng, RIGHT_SEEDS, 1)) for _ in range(80))
    assert right > 0  # some mutants mean something, so the tree's verifier has been at work


@pytest.mark.long
@pytest.mark.timeout(3000)
def test_many_mutated_programs() -> None:
    rng = random.Random(20_000)
    for _ in range(20_000):
        try_text(mutate(rng))
