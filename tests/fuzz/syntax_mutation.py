"""Mutated programs for the front end's fuzzers, and what must hold of any bytes at all."""
from __future__ import annotations

import random
import re
import time
from pathlib import Path

from kera_hw.frontend.parser import format_source, parse
from kera_hw.support import SourceFile, render_diagnostics
from tests.errors.habit_rows import ROWS
from tests.errors.test_sema_errors import marked

PROGRAM = (Path(__file__).parents[1] / "unit" / "syntax_program.kera").read_bytes()
WORDS: list[bytes] = [
    *re.findall(rb"\w+|\s+|[^\w\s]", PROGRAM), b"\xff", b"\xc3\xa9", b"\0", b"/*", b'"', b"\\",
]
HABITS = [re.findall(rb"\w+|\s+|[^\w\s]", marked(row[1])[0].encode()) for row in ROWS]
TIME_LIMIT_S = 5.0


def check_bytes(data: bytes) -> None:
    """Parse, print and format: no exception, no hang, the tree spells the input."""
    file = SourceFile("fuzz.kera", data)
    started = time.monotonic()
    unit, diagnostics = parse(file)
    assert unit.node.data == data
    for diagnostic in diagnostics:
        if diagnostic.code == "K0012":
            assert diagnostics == [diagnostic]  # the whole file is meant
            continue
        assert diagnostic.span is not None
        assert 0 <= diagnostic.span.start <= diagnostic.span.end <= len(data)
    render_diagnostics(diagnostics)
    formatted, _ = format_source(file)
    assert (formatted is None) == bool(diagnostics)
    if formatted is not None:
        assert format_source(SourceFile("again.kera", formatted))[0] == formatted
    assert time.monotonic() - started < TIME_LIMIT_S


def random_bytes(rng: random.Random) -> bytes:
    return rng.randbytes(rng.randrange(200))


def word_soup(rng: random.Random) -> bytes:
    return b"".join(rng.choice(WORDS) for _ in range(rng.randrange(150)))


def mutated_program(rng: random.Random) -> bytes:
    """A stretch of the sample program with a few cuts, swaps and insertions."""
    start = rng.randrange(len(PROGRAM))
    data = bytearray(PROGRAM if rng.random() < 0.3 else PROGRAM[start:start + 400])
    for _ in range(rng.randrange(1, 6)):
        first = rng.randrange(len(data) + 1)
        last = min(len(data), first + rng.randrange(12))
        word = rng.choice(WORDS)
        data[first:last] = (b"", word, bytes(data[first:last]) + word)[rng.randrange(3)]
    return bytes(data)


def mutated_habit(rng: random.Random) -> bytes:
    """What other languages write, with a few words cut, swapped and inserted."""
    words = list(rng.choice(HABITS))
    for _ in range(rng.randrange(4)):
        first = rng.randrange(len(words) + 1)
        words[first:first + rng.randrange(3)] = rng.choice(HABITS)[:rng.randrange(4)]
    return b"".join(words)


GENERATORS = (random_bytes, word_soup, mutated_program, mutated_habit)


def long_syntax_fuzz(cases: int, seed: int = 0) -> None:
    """Run ``cases`` inputs, the kinds in turn; the failing input is in the assertion's traceback."""
    rng = random.Random(seed)
    for case in range(cases):
        check_bytes(GENERATORS[case % len(GENERATORS)](rng))
