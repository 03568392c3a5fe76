"""Case splits: every pattern is in exactly one case, and a case's term takes the values of the case alone."""
from __future__ import annotations

from itertools import product

from kera_hw.rtl.formal.cases import Case, Known, class_count, classes, exponents, leading_ones, whole
from kera_hw.rtl.formal.terms import Terms, evaluate
from kera_hw.types import F16, F32, FloatType, IntType, Type

TINY = FloatType("tiny", 3, 2)


def leaves(kinds: list[Type], case: Case, fully: bool = False) -> list[Case]:
    halves = classes(kinds, case) or leading_ones(kinds, case) or (exponents(kinds, case) if fully else None)
    return [case] if halves is None else [leaf for half in halves for leaf in leaves(kinds, half, fully)]


def holds(case: Case, patterns: tuple[int, ...]) -> bool:
    return all(known.holds(bits) for known, bits in zip(case, patterns, strict=True))


def test_every_pattern_is_in_one_case() -> None:
    kinds: list[Type] = [TINY, TINY]
    for fully in (False, True):
        found = leaves(kinds, whole(kinds), fully)
        assert len(found) == (64 if not fully else 100)
        for patterns in product(range(64), repeat=2):
            assert sum(holds(case, patterns) for case in found) == 1


def test_every_split_divides_its_case() -> None:
    """Halves exclude each other and together are the whole, at every step down to known exponents."""
    kinds: list[Type] = [IntType(2, False), TINY]
    pending, steps = [whole(kinds)], 0
    while pending:
        case = pending.pop()
        halves = classes(kinds, case) or leading_ones(kinds, case) or exponents(kinds, case)
        for patterns in product(range(4), range(64)) if halves else ():
            inside = [holds(half, patterns) for half in halves or ()]
            assert sum(inside) == holds(case, patterns)
        pending += halves or ()
        steps += halves is not None
    assert steps == 9


def test_cases_are_of_one_class() -> None:
    """Zero, one leading place of a subnormal number, a normal number, or infinity and NaN; each is told by
    its known bits alone."""
    kinds: list[Type] = [TINY]
    for (known,) in leaves(kinds, whole(kinds)):
        members = [bits & 31 for bits in range(64) if known.holds(bits)]
        assert len({min(bits.bit_length(), 3) + (bits >> 2 == 7) for bits in members}) == 1
        field, told = known.mask >> 2 & 7, known.value >> 2 & 7
        assert field == 7 or (told and told != field)


def test_there_are_as_many_classes_as_said() -> None:
    for kind in (TINY, F16, F32):
        pending, count = [whole([kind])], 0
        while pending:
            halves = classes([kind], pending.pop())
            pending += halves or ()
            count += halves is None
        assert count == class_count(kind)


def test_only_the_first_inputs_are_split_where_asked() -> None:
    kinds: list[Type] = [TINY, TINY]
    halves = classes(kinds[:1], whole(kinds))
    assert halves is not None and all(half[1].anything for half in halves)


def test_the_term_of_a_case_takes_its_values() -> None:
    kinds: list[Type] = [TINY]
    odd = [(Known(6, 0b010001, 0b000001),)]
    for (known,) in [*leaves(kinds, whole(kinds)), *leaves(kinds, whole(kinds), fully=True), *odd]:
        terms = Terms()
        pattern = known.pattern(terms, terms.var("x", 6))
        values = [evaluate([pattern], {"x": bits})[0] for bits in range(64)]
        assert set(values) == {bits for bits in range(64) if known.holds(bits)}
        assert all(values[bits] == bits for bits in range(64) if known.holds(bits))
