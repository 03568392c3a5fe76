"""Comparisons, extremes, signs and integral values against exact rationals, run by the interpreter."""
from __future__ import annotations

import operator
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from math import ceil, floor, inf, trunc

import pytest

from kera_hw.graph.node import Ref
from kera_hw.rtl.lower.builder import Builder
from kera_hw.rtl.lower.design import FlatDesign, FlatLeaf
from kera_hw.rtl.lower.floats.canonical import canonical
from kera_hw.rtl.lower.floats.table import UNITS
from kera_hw.rtl.techmap import map_design
from kera_hw.schedule.fpga.cells import Chain, Lut
from kera_hw.schedule.fpga.simulate import simulate_netlist
from kera_hw.types import BOOL, F32, FloatType, IntType

from .floatrtl_exact import Number, is_negative, nearest, value_of, word_of
from .floatrtl_support import FORMATS, is_nan, operands, run, unit

COUNT = 3000
RELATIONS: dict[str, Callable[[Number, Number], bool]] = {
    name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")
}


@pytest.mark.parametrize("kind", FORMATS, ids=str)
@pytest.mark.parametrize("name", RELATIONS)
def test_relation(name: str, kind: FloatType) -> None:
    columns = operands(kind, 2, COUNT, 2)
    got = run(unit(UNITS[f"compare.{name}"].lower, kind, 2), kind, columns)
    for row, found in zip(zip(*columns), got):
        assert found == RELATIONS[name](*(value_of(kind, word) for word in row)), row


@pytest.mark.parametrize("kind", FORMATS, ids=str)
@pytest.mark.parametrize("name", ["lt", "le", "gt", "ge"])
def test_relation_in_one_chain(name: str, kind: FloatType) -> None:
    columns = operands(kind, 2, COUNT, 4)
    special = [word for sign in (0, 1) for word in _near_corners(kind, sign)]
    columns = [column + list(more) for column, more in zip(columns, zip(*product(special, repeat=2)))]
    region = unit(UNITS[f"compare.{name}"].lower, kind, 2, carry_logic=True)
    for row, found in zip(zip(*columns), run(region, kind, columns)):
        assert found == RELATIONS[name](*(value_of(kind, word) for word in row)), row


def _near_corners(kind: FloatType, sign: int) -> list[int]:
    """Zero, infinity and their neighbours: subnormals, the greatest numbers, NaN of few and of many bits."""
    top = ((1 << kind.exponent_bits) - 1) << kind.fraction_bits
    least = 1 << kind.fraction_bits
    magnitudes = [0, 1, least - 1, least, top - 1, top, top + 1, top + least - 1]
    return [sign << (kind.width_bits - 1) | magnitude for magnitude in magnitudes]


def test_relation_takes_a_chain_and_nine_luts() -> None:
    region, word = unit(UNITS["compare.lt"].lower, F32, 2, carry_logic=True), IntType(32, False)
    design = FlatDesign(
        "less", region, (FlatLeaf("in_a", 0, 32, word), FlatLeaf("in_b", 0, 32, word)),
        (FlatLeaf("out_data", 0, 1, BOOL),), (), (("in_a", 32), ("in_b", 32)), (("out_data", 1),),
    )
    netlist = map_design(design, "ecp5-25k", 8000)
    columns = operands(F32, 2, COUNT, 5)
    got = simulate_netlist(netlist, dict(zip(("in_a", "in_b"), columns)))["out_data"]
    assert got == run(region, F32, columns)
    chains = [cell for cell in netlist.cells if isinstance(cell, Chain)]
    assert [cell.width for cell in chains] == [34]
    assert sum(cell.width for cell in netlist.cells if isinstance(cell, Lut)) == 9


@pytest.mark.parametrize("kind", FORMATS, ids=str)
@pytest.mark.parametrize("name", ["min", "max"])
def test_extreme(name: str, kind: FloatType) -> None:
    columns = operands(kind, 2, COUNT, 3)
    got = run(unit(UNITS[f"floating.{name}"].lower, kind, 2), kind, columns)
    pick = min if name == "min" else max
    for row, found in zip(zip(*columns), got):
        if any(is_nan(kind, word) for word in row):
            want = kind.canonical_nan
        else:  # by value, then -0 below +0
            want = pick(row, key=lambda word: (value_of(kind, word), not is_negative(kind, word)))
        assert found == want, row


def _sign(value: Number) -> Number:
    return value if value == 0 or value != value else Fraction(1 if value > 0 else -1)


def _integral(function: Callable[[Fraction], int]) -> Callable[[Number], Number]:
    return lambda value: value if isinstance(value, float) else Fraction(function(Fraction(value)))


UNARY: dict[str, Callable[[Number], Number]] = {
    "sign": _sign,
    "abs": abs,
    "neg": operator.neg,
    "floor": _integral(floor),
    "ceil": _integral(ceil),
    "trunc": _integral(trunc),
    "round": _integral(nearest),
}


@pytest.mark.parametrize("kind", FORMATS, ids=str)
@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str, kind: FloatType) -> None:
    (column,) = operands(kind, 1, COUNT, 4)

    def seen(builder: Builder, kind: FloatType, word: Ref) -> Ref:
        return canonical(builder, kind, UNITS[f"floating.{name}"].lower(builder, kind, word))

    got = run(unit(seen, kind, 1), kind, [column])
    for word, found in zip(column, got):
        negative = is_negative(kind, word) and name != "abs"
        want = word_of(kind, UNARY[name](value_of(kind, word)), negative != (name == "neg"))
        assert found == want, hex(word)


@pytest.mark.parametrize("kind", FORMATS, ids=str)
def test_relu_copysign_and_classes(kind: FloatType) -> None:
    left, right = operands(kind, 2, COUNT, 5)

    def through(name: str, count: int) -> list[int]:
        def seen(builder: Builder, kind: FloatType, *words: Ref) -> Ref:
            found = UNITS[f"floating.{name}"].lower(builder, kind, *words)
            return canonical(builder, kind, found) if name in ("relu", "copysign") else found

        return run(unit(seen, kind, count), kind, [left, right][:count])

    sign = 1 << (kind.width_bits - 1)
    nan_left = [is_nan(kind, word) for word in left]
    nan_right = [is_nan(kind, word) for word in right]
    assert through("is_nan", 1) == nan_left
    assert through("is_finite", 1) == [abs(value_of(kind, word)) < inf for word in left]
    assert through("relu", 1) == [
        kind.canonical_nan if bad else 0 if word & sign else word for word, bad in zip(left, nan_left)
    ]
    assert through("copysign", 2) == [
        kind.canonical_nan if bad else a & ~sign | (0 if bad_sign else b & sign)
        for a, b, bad, bad_sign in zip(left, right, nan_left, nan_right)
    ]
