"""Float units in small formats, proved for all inputs against SMT-LIB's theory.

The units' code is that of all formats. Each proof plants a fault as well, which solver and MPFR have to find.
"""
from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from kera_hw.graph.node import Ref, Region
from kera_hw.rtl.formal import floats
from kera_hw.rtl.formal.blocks import scalar
from kera_hw.rtl.formal.graph import CarriedTranslator
from kera_hw.rtl.formal.scalars import Call
from kera_hw.rtl.formal.solver import prove
from kera_hw.rtl.formal.terms import FloatSort, Term, Terms, evaluate
from kera_hw.rtl.lower.floats.table import UNITS
from kera_hw.types import BOOL, F16, FloatType, Type
from tests.unit.floatrtl_support import foreign, unit

TINY, SMALL = FloatType("tiny", 3, 2), FloatType("small", 5, 2)
ARITHMETIC = {"add": 2, "sub": 2, "mul": 2, "fma": 3, "div": 2, "sqrt": 1, "recip": 1}
OTHERS = {"min": 2, "max": 2, "sign": 1, "floor": 1, "ceil": 1, "round": 1, "trunc": 1, "is_finite": 1}


def lowered(terms: Terms, region: Region, words: list[Term], flipped: int | None, bit: int = 0) -> Term:
    """The region's result, with one bit of one of its operations inverted where ``flipped`` numbers one."""
    seen: list[Ref] = []

    def change(ref: Ref, term: Term) -> Term:
        seen.append(ref)
        wrong = flipped is not None and len(seen) - 1 == flipped
        return terms.bit_xor(term, terms.const(1 << bit % term.width, term.width)) if wrong else term

    (result,) = CarriedTranslator(terms).region(region, [scalar(word) for word in words], change)
    return result.item


def specified(terms: Terms, verb: str, kind: FloatType, words: list[Term]) -> Term:
    result: Type = BOOL if verb.startswith("is_") else kind
    numbers = tuple(terms.as_float(word, floats.float_sort(kind)) for word in words)
    call = Call(terms, numbers, (kind,) * len(words), (result,), {})
    return floats.RULES[f"floating.{verb}"](call)[0]


def claim(terms: Terms, value: Term, bits: Term) -> Term:
    return floats.carries(terms, bits, value) if isinstance(value.sort, FloatSort) else terms.eq(value, bits)


Case = tuple[Terms, list[Term], Region, Term]


def case(verb: str, kind: FloatType, arity: int) -> Case:
    terms = Terms()
    words = [terms.var(f"x{k}", kind.width_bits) for k in range(arity)]
    region = unit(UNITS[f"floating.{verb}"].lower, kind, arity)
    return terms, words, region, specified(terms, verb, kind, words)


def check_fault(made: Case, verb: str, kind: FloatType, seed: int) -> None:
    """One of a few planted faults is refuted on an item on which MPFR finds the fault as well."""
    terms, words, region, value = made
    rng = random.Random(seed)
    operations = sum(node.opcode not in ("core.param", "core.constant") for node in region.nodes())
    for _ in range(8):
        wrong = lowered(terms, region, words, rng.randrange(operations), rng.getrandbits(6))
        answer = prove(terms, claim(terms, value, wrong), 60)
        if answer.status == "refuted":
            item = [answer.model.get(f"x{k}", 0) for k in range(len(words))]
            (expected,) = foreign(verb, kind, [[word] for word in item])
            right = lowered(terms, region, words, None)
            assert evaluate([right, wrong], answer.model)[0] == expected
            assert evaluate([wrong], answer.model) != [expected]
            return
    raise AssertionError("no planted fault was refuted")


_SLOW = pytest.param("fma", SMALL, marks=pytest.mark.long)
_QUICK = [(verb, kind) for kind in (TINY, SMALL) for verb in ARITHMETIC if (verb, kind) != ("fma", SMALL)]


@pytest.mark.parametrize(("verb", "kind"), [*_QUICK, _SLOW], ids=str)
def test_arithmetic_is_that_of_the_theory(verb: str, kind: FloatType) -> None:
    made = case(verb, kind, ARITHMETIC[verb])
    terms, words, region, value = made
    answer = prove(terms, claim(terms, value, lowered(terms, region, words, None)), 200)
    assert answer.status == "proved", answer
    check_fault(made, verb, kind, 1)


@pytest.mark.parametrize("verb", OTHERS)
@pytest.mark.parametrize("kind", (TINY, F16), ids=str)
def test_the_rest_is_that_of_the_theory(verb: str, kind: FloatType) -> None:
    terms, words, region, value = case(verb, kind, OTHERS[verb])
    answer = prove(terms, claim(terms, value, lowered(terms, region, words, None)), 200)
    assert answer.status == "proved", answer


Wrong = Callable[[Terms, Term], Term]


def swapped(terms: Terms, bits: Term, right: int, wrong: int) -> Term:
    """Another pattern in the place of one."""
    hit = terms.eq(bits, terms.const(right, bits.width))
    return terms.ite(hit, terms.const(wrong, bits.width), bits)


@pytest.mark.parametrize(
    "wrong",
    (
        lambda terms, bits: terms.bit_or(bits, terms.const(1, 6)),
        lambda terms, bits: swapped(terms, bits, 0b011110, 0b111110),
        lambda terms, bits: swapped(terms, bits, 0b100000, 0),
    ),
    ids=("last bit", "NaN with a sign", "zero without its sign"),
)
def test_a_wrong_unit_is_refuted(wrong: Wrong) -> None:
    terms, words, region, value = case("mul", TINY, 2)
    bits = wrong(terms, lowered(terms, region, words, None))
    assert prove(terms, claim(terms, value, bits), 60).status == "refuted"
