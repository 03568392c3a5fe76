"""Expansions of scalar operations are proved equal to the solver's own meanings, for all values."""
from __future__ import annotations

from collections.abc import Iterator

import pytest

from kera_hw.graph.expand import Expander
from kera_hw.graph.node import Node, Region
from kera_hw.graph.store import Store
from kera_hw.ops.choosing import Sample
from kera_hw.ops.convert import MODES, OVERFLOWS
from kera_hw.rtl.formal.graph import Translator, free_block
from kera_hw.rtl.formal.solver import Answer, prove
from kera_hw.rtl.formal.terms import FloatSort, Term, Terms
from kera_hw.types import BOOL, F16, FixType, IntType, Type, bit_width

ARITHMETIC = ("neg", "abs", "sign", "min", "max", "saturating_add", "saturating_sub")
ONE = ("neg", "abs", "sign")
WIDTHS = (1, 8, 13, 64)
LIMIT_S = 120


def integers(widths: tuple[int, ...]) -> list[IntType]:
    return [IntType(width, signed) for width in widths for signed in (False, True)]


def formats(widths: tuple[int, ...]) -> list[FixType]:
    return [FixType(width, (2 * width) // 3, signed) for width in widths for signed in (False, True)]


def cases() -> Iterator[tuple[str, Sample]]:
    for verb in ARITHMETIC:
        count = 1 if verb in ONE else 2
        for kind in integers(WIDTHS):
            yield f"integer.{verb}", Sample((kind,) * count, {})
        for kind in formats(WIDTHS):
            yield f"fixed.{verb}", Sample((kind,) * count, {})
    for kind in integers((1, 6, 9)):
        for verb in ("div", "rem", "saturating_mul", "mul_wide"):
            yield f"integer.{verb}", Sample((kind, kind), {})
    for width in (1, 2, 5, 8):
        yield "bits.clmul", Sample((IntType(width, False),) * 2, {})
    for kind in integers(WIDTHS):
        yield "integer.add_carry", Sample((kind, kind, BOOL), {})
        for verb in ("popcount", "clz", "ctz", "reverse_bits"):
            yield f"bits.{verb}", Sample((kind,), {})
        yield from ((f"bits.{verb}", Sample((kind, IntType(7, False)), {})) for verb in ("rotl", "rotr"))
    for kind in formats((5, 16, 40)):
        for target in formats((5, 16, 33)):
            yield "convert.cast", Sample((kind,), {"type": target})
            for mode in MODES:
                for overflow in OVERFLOWS:
                    attrs = {"mode": mode, "overflow": overflow, "type": target}
                    yield "convert.round_to", Sample((kind,), attrs)
    for verb in ("neg", "abs", "sign", "is_nan", "is_finite", "relu", "round", "trunc", "floor", "ceil"):
        yield f"floating.{verb}", Sample((F16,), {})
    for verb in ("min", "max", "copysign"):
        yield f"floating.{verb}", Sample((F16, F16), {})


CASES: dict[str, list[Sample]] = {}
for _name, _drawn in cases():
    CASES.setdefault(_name, []).append(_drawn)


def asked(kinds: tuple[Type, ...], first: Region, second: Region) -> Answer:
    """Whether two regions give the same, for all arguments."""
    terms = Terms()
    translator = Translator(terms)
    free = [terms.var(f"x{k}", bit_width(kind)) for k, kind in enumerate(kinds)]
    args = [free_block(translator, kind, [bits]) for kind, bits in zip(kinds, free)]
    pairs = zip(translator.region(first, args), translator.region(second, args), strict=True)
    claim = terms.const(1, 1)
    for a, b in pairs:
        claim = terms.bit_and(claim, same(terms, a.item, b.item))
    return prove(terms, claim, LIMIT_S)


def same(terms: Terms, a: Term, b: Term) -> Term:
    return terms.same_float(a, b) if isinstance(a.sort, FloatSort) else terms.eq(a, b)


def node_of(store: Store, name: str, drawn: Sample) -> Node:
    return store.node(name, [store.param(k, kind) for k, kind in enumerate(drawn.types)], drawn.attrs)


def whole(store: Store, drawn: Sample, node: Node) -> Region:
    return store.region(drawn.types, [node.out(k) for k in range(len(node.types))])


@pytest.mark.parametrize("name", CASES)
def test_an_expansion_is_proved(name: str) -> None:
    proved = 0
    for drawn in CASES[name]:
        store = Store()
        node = node_of(store, name, drawn)
        parts = Expander().region_of(node)
        if parts is not None:
            assert asked(drawn.types, whole(store, drawn, node), parts).status == "proved", drawn
            proved += 1
    assert proved


def test_what_is_not_the_operation_is_refuted() -> None:
    """A sum is saturated only where it has to be, which one pair of numbers in many shows."""
    kind, store = IntType(13, True), Store()
    pair = Sample((kind, kind), {})
    names = ("integer.saturating_add", "integer.add")
    right, wrong = (whole(store, pair, node_of(store, name, pair)) for name in names)
    assert asked(pair.types, right, wrong).status == "refuted"
