"""Every law of simplification is proved on all values of small types, floats on a format of 64 values."""
from __future__ import annotations

import pytest

from kera_hw.graph.laws import (
    CIRCUITS,
    FLOATS,
    INTEGERS,
    OF_CIRCUITS,
    OF_PROGRAMS,
    ORDER,
    PROGRAMS,
    SHAPES,
    Book,
    Law,
    floats,
    integers,
)
from kera_hw.graph.laws.terms import Op, laws
from kera_hw.types import FORMATS, IntType, Type
from tests.unit import law_prover
from tests.unit.law_prover import BOOL, TENSORS, TINY, U3, Refuted, prove

ALL = (*INTEGERS, *ORDER, *CIRCUITS, *PROGRAMS, *FLOATS, *SHAPES)
X, Y, ZERO, K = integers.X, integers.Y, integers.ZERO, integers.K
POWER = integers.power_of_two("k")


@pytest.fixture(autouse=True)
def _tiny_formats(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs have no format of 64 values, since nothing stores it; laws are about formats of any size."""
    known = (*FORMATS, TINY, law_prover.TINY_WIDER, law_prover.TINY_OTHER)
    monkeypatch.setattr("kera_hw.ops.rules.FORMATS", known)


def _pools(law: Law) -> list[tuple[Type, ...]]:
    """The types that a law is tried on."""
    family = law.opcode.split(".")[0]
    if family == "tensor":
        return [(U3, *TENSORS)]
    if law.opcode == "bits.reverse_bytes":
        return [(IntType(8, True),)]
    pools: list[tuple[Type, ...]] = []
    if family != "floating":
        pools.append(law_prover.INTEGERS)
    if family in ("floating", "compare") or law.opcode == "convert.cast":
        pools.append((TINY,))
    if law.opcode == "control.select":
        pools.append((BOOL, TINY))
    return pools


@pytest.mark.parametrize("law", ALL, ids=str)
def test_both_sides_are_equal_wherever_a_law_applies(law: Law) -> None:
    assert sum(prove(law, pool) for pool in _pools(law)), "the law was never applied"


FALSE = (
    laws("integer.add", (X, ZERO), ZERO)
    + laws("bits.xor", (X, X), X)
    + laws("integer.sub", (X, Y), Op("integer.sub", (Y, X)))
    + laws("integer.min", (X, Y), Y, integers.not_above("x", "y"))
    + laws("integer.div", (X, K), Op("bits.shr", (X, integers.exponent("k"))), POWER)
    + laws("integer.rem", (X, K), Op("bits.and", (X, integers.predecessor("k"))), POWER)
    + laws("convert.cast", (Op("convert.cast", (X,)),), Op("convert.cast", (X,)))
    + laws("compare.eq", (X, X), integers.TRUE)
    + laws("floating.add", (X, floats.ZERO), X)
    + laws("floating.sub", (X, floats.MINUS_ZERO), X)
    + laws("floating.mul", (X, floats.ZERO), floats.ZERO)
    + laws("floating.sub", (X, X), floats.ZERO)
    + laws("floating.fma", (X, Y, floats.ZERO), Op("floating.mul", (X, Y)))
    + laws("floating.neg", (Op("floating.sub", (X, Y)),), Op("floating.sub", (Y, X)))
)


@pytest.mark.parametrize("law", FALSE, ids=str)
def test_what_is_no_law_is_refuted(law: Law) -> None:
    with pytest.raises(Refuted):
        for pool in _pools(law):
            prove(law, pool)


def test_both_readers_know_the_laws_of_integers() -> None:
    """Which of the tables a reader has is its only difference from the other."""

    def of(book: Book) -> set[str]:
        return {str(law) for table in book.laws.values() for law in table}

    shared = {str(law) for law in (*INTEGERS, *ORDER)}
    assert of(OF_CIRCUITS) == shared | {str(law) for law in CIRCUITS}
    assert of(OF_PROGRAMS) == shared | {str(law) for law in (*FLOATS, *SHAPES, *PROGRAMS)}
