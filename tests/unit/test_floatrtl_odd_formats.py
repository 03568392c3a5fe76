"""Float units on formats other than the four: generic in exponent and fraction bits, or a clear refusal."""
from __future__ import annotations

import numpy as np
import pytest

from kera_hw.graph.node import Ref
from kera_hw.graph.store import Store
from kera_hw.rtl.lower.builder import Builder
from kera_hw.rtl.lower.floats import add, divide, fma, iterative, mul, sqrt
from kera_hw.rtl.lower.floats.fields import Format
from kera_hw.types import FloatType, IntType
from tests.conformance import odd_formats
from tests.conformance.odd_formats import FORMATS, OTHERS, converted, ordered, rounded

from .floatrtl_support import Lowering, check

EIGHT = (FloatType("e4m3", 4, 3), FloatType("e5m2", 5, 2))
"""Eight bits wide: every pair of values is tried."""
NARROW = tuple(kind for kind in FORMATS if kind.width_bits <= 6)
SAMPLED = tuple(kind for kind in FORMATS if kind.width_bits > 6 and kind.fraction_bits in (1, 3, 4, 5, 8, 10))
WIDE = tuple(
    FloatType(f"e{e}m{f}", e, f) for e, f in
    [(2, 58), (3, 12), (4, 28), (4, 59), (5, 11), (6, 13), (5, 27), (8, 30), (9, 54), (12, 11), (15, 1),
     (15, 48)]
)
UNITS: dict[str, Lowering] = {
    **odd_formats.BINARY, **odd_formats.UNARY, "fma": fma.lower_fma,
}


def _names(rows: list[odd_formats.Row]) -> list[tuple[str, str, int, int]]:
    return [(row.op, row.dtype, row.differences, row.vectors) for row in rows if row.differences]


@pytest.mark.parametrize("kind", [*NARROW, *EIGHT], ids=str)
def test_all_values(kind: FloatType) -> None:
    rng = np.random.default_rng(1)
    rows = [*rounded(kind, 1 << 16, rng), *ordered(kind, 1 << 16, rng)]
    assert all(row.exhaustive for row in rows if row.op != "floating.fma")
    assert _names(rows) == []


@pytest.mark.parametrize("kind", SAMPLED, ids=str)
def test_some_values(kind: FloatType) -> None:
    rng = np.random.default_rng(2)
    assert _names([*rounded(kind, 100, rng), *ordered(kind, 100, rng)]) == []


@pytest.mark.parametrize("kind", [*NARROW, *EIGHT, FORMATS[9], FORMATS[18], FORMATS[29]], ids=str)
def test_conversions(kind: FloatType) -> None:
    assert _names(list(converted(kind, OTHERS, 1 << 8, np.random.default_rng(3)))) == []


@pytest.mark.parametrize("kind", WIDE, ids=str)
def test_wide_formats(kind: FloatType) -> None:
    for op, lowering in UNITS.items():
        check(lowering, op, kind, 60)
    if not Format(kind).is_deep:
        check(iterative.lower_div, "div", kind, 40)
        check(iterative.lower_sqrt, "sqrt", kind, 40)


def _lowered(lowering: Lowering, kind: FloatType, arity: int) -> Ref:
    builder, word = Builder(Store()), IntType(kind.width_bits, False)
    return lowering(builder, kind, *(builder.store.param(i, word) for i in range(arity)))


@pytest.mark.parametrize("lowering,kind,arity,why", [
    (mul.lower_mul, FloatType("e1m6", 1, 6), 2, "2 exponent bits and more"),
    (divide.lower_div, FloatType("e5m0", 5, 0), 2, "a fraction"),
    (iterative.lower_sqrt, FloatType("e3m8", 3, 8), 1, "may be subnormal"),
    (iterative.lower_div, FloatType("e3m8", 3, 8), 2, "too short"),
], ids=["e1m6", "e5m0", "folded sqrt", "folded div"])
def test_what_a_unit_cannot_do_it_refuses(lowering: Lowering, kind: FloatType, arity: int, why: str) -> None:
    with pytest.raises(AssertionError, match=why):
        _lowered(lowering, kind, arity)


@pytest.mark.parametrize("lowering,arity", [(divide.lower_div, 2), (sqrt.lower_sqrt, 1)])
def test_a_format_without_a_folded_unit_gets_the_array(lowering: Lowering, arity: int) -> None:
    kind = FloatType("e3m8", 3, 8)
    builder = Builder(Store(), initiation_interval=1000)
    word = IntType(kind.width_bits, False)
    params = [builder.store.param(i, word) for i in range(arity)]
    nodes = builder.store.region([word] * arity, [lowering(builder, kind, *params)]).nodes()
    assert not any(node.opcode == "control.loop" for node in nodes)


def test_a_wrong_bit_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(builder: Builder, kind: FloatType, a: Ref, b: Ref) -> Ref:
        total = add.lower_add(builder, kind, a, b)
        full = builder.const(total.type, ((1 << kind.exponent_bits) - 1) << kind.fraction_bits)
        lost = builder.op("compare.eq", total, full)  # infinity, as zero
        return builder.select(lost, builder.const(total.type, 0), total)

    monkeypatch.setitem(odd_formats.BINARY, "add", broken)
    rows = list(rounded(EIGHT[0], 1 << 16, np.random.default_rng(1)))
    assert {row.op for row in rows if row.differences} == {"floating.add"}
