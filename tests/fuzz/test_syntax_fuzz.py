"""Any byte string parses, quickly, into a tree that spells it."""
from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.syntax_mutation import PROGRAM, WORDS, check_bytes, long_syntax_fuzz

FEW = settings(max_examples=80, deadline=None)


@FEW
@given(st.binary(max_size=300))
def test_bytes(data: bytes) -> None:
    check_bytes(data)


@FEW
@given(st.text(max_size=200))
def test_text(text: str) -> None:
    check_bytes(text.encode("utf-8", "surrogatepass"))


@FEW
@given(st.lists(st.sampled_from(WORDS), max_size=120))
def test_words(words: list[bytes]) -> None:
    check_bytes(b"".join(words))


@FEW
@given(st.integers(0, len(PROGRAM)), st.integers(0, 30), st.sampled_from(WORDS))
def test_edited_program(start: int, length: int, word: bytes) -> None:
    check_bytes(PROGRAM[:start] + word + PROGRAM[start + length:])


def test_mutations() -> None:
    long_syntax_fuzz(300, seed=1)


@pytest.mark.long
def test_many_mutations() -> None:
    long_syntax_fuzz(100_000, seed=2)
