"""Every input of f32 units of one operand: hours together, part of `make check-long`; in short, the ends."""
from __future__ import annotations

from dataclasses import replace

import pytest

from kera_hw.graph.node import Ref
from kera_hw.rtl.lower.builder import Builder
from tests.conformance.exhaustive_units import CASES, row_of, run

ENDS = [(0x7F7F_FF00, 0x8000_0FFF), (0x3F7F_FF00, 0x4000_0FFF)]
"""The greatest numbers, infinity, NaN and the least negatives; from below 1 to above 2."""


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_every_input(name: str) -> None:
    row = row_of(CASES[name], run(CASES[name]))
    assert (row.vectors, row.differences, row.exhaustive) == (1 << 32, 0, True)


@pytest.mark.parametrize("name", ["rsqrt", "to_i64", "f16_of_u32"])
def test_ends(name: str) -> None:
    for first, last in ENDS:
        assert run(CASES[name], first, last) == [f"count {last - first + 1} wrong 0"]


def test_a_wrong_bit_is_seen() -> None:
    case = CASES["rsqrt"]

    def broken(builder: Builder, word: Ref) -> Ref:
        good = case.lower(builder, word)
        odd = builder.op("compare.eq", word, builder.const(word.type, 0x3F80_0123))
        return builder.op("bits.xor", good, builder.cast(odd, good.type))

    lines = run(replace(case, lower=broken), *ENDS[1])
    assert [line.split()[:2] for line in lines[:-1]] == [["wrong", "3f800123"]]
    assert lines[-1].endswith(" wrong 1")
