"""Case splits: every pattern is in exactly one case, and the cases tell the special numbers apart."""
from __future__ import annotations

from itertools import product

from kera_hw.rtl.formal.cases import Case, Known, exponents, outlines, whole
from kera_hw.rtl.formal.terms import Terms, evaluate
from kera_hw.types import F16, FloatType, IntType, Type

TINY = FloatType("tiny", 3, 2)


def leaves(kinds: list[Type], case: Case) -> list[Case]:
    halves = outlines(kinds, case)
    return [case] if halves is None else [leaf for half in halves for leaf in leaves(kinds, half)]


def holds(case: Case, patterns: tuple[int, ...]) -> bool:
    return all(bits & known.mask == known.value for known, bits in zip(case, patterns))


def test_every_pattern_is_in_one_case() -> None:
    kinds: list[Type] = [TINY, TINY]
    found = leaves(kinds, whole(kinds))
    for patterns in product(range(64), repeat=2):
        assert sum(holds(case, patterns) for case in found) == 1


def test_a_further_split_keeps_that() -> None:
    kinds: list[Type] = [F16, IntType(8, False)]
    for case in leaves(kinds, whole(kinds)):
        halves = exponents(kinds, case)
        if halves is not None:
            masks = [sum(known.mask.bit_count() for known in half) for half in halves]
            assert masks == [1 + sum(known.mask.bit_count() for known in case)] * 2
            (place,) = [k for k in range(2) if halves[0][k] != halves[1][k]]
            bit = halves[0][place].mask ^ case[place].mask
            assert (halves[0][place].value, halves[1][place].value) == (
                case[place].value, case[place].value | bit,
            )  # fmt: skip


def test_cases_are_of_one_class() -> None:
    """Zero, one leading place of a subnormal number, normal numbers, or infinities and NaN."""
    kinds: list[Type] = [TINY]
    for (known,) in leaves(kinds, whole(kinds)):
        members = [bits & 31 for bits in range(64) if holds((known,), (bits,))]
        classes = {
            "special" if bits >> 2 == 7 else "normal" if bits >> 2 else bits.bit_length() for bits in members
        }
        assert len(classes) == 1


def test_known_bits_become_constants() -> None:
    terms = Terms()
    variable = terms.var("x", 8)
    pattern = Known(8, 0b01110001, 0b00100001).pattern(terms, variable)
    values = {evaluate([pattern], {"x": bits})[0] for bits in range(256)}
    assert values == {bits for bits in range(256) if bits & 0b01110001 == 0b00100001}
