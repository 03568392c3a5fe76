"""Fixed-point arithmetic and conversions against exact fractions."""
from __future__ import annotations

import operator
from itertools import product

import numpy as np
import pytest

from kera_hw.ops.spec import TypeRuleError
from kera_hw.types import BOOL, FixType, IntType, Type
from tests.unit import ops_oracle as model

FORMATS = [
    FixType(width, fraction, signed)
    for width in model.WIDTHS
    for fraction in sorted({0, width // 2, width})
    for signed in (True, False)
]
SCALARS: list[Type] = [
    *FORMATS, *(IntType(width, signed) for width in (1, 7, 32, 33, 64) for signed in (True, False)),
]
ROUNDED = [kind for kind in FORMATS if kind.width_bits in (1, 8, 33, 64)]
MODES = ("floor", "trunc", "half_up", "half_even")


def _raw(kind: Type) -> IntType:
    raw = model.raw_type(kind)
    assert raw is not None
    return raw


def _ints(array: np.ndarray) -> list[int]:
    return [int(value) for value in array]


@pytest.mark.parametrize("kind", FORMATS, ids=str)
def test_arithmetic_acts_on_the_raw_integer(kind: FixType) -> None:
    raw = _raw(kind)
    a, b = model.pairs(raw, 1, 3)
    args = [model.array_of(a, kind), model.array_of(b, kind)]
    for verb in ("add", "sub", "min", "max", "saturating_add", "saturating_sub", "saturating_mul"):
        got, = model.run_op(f"fixed.{verb}", args, (kind, kind))
        rule = model.BINARY[verb]
        assert _ints(got) == [model.wrapped(rule(x, y, raw), raw) for x, y in zip(a, b)], verb
    for verb in ("neg", "abs"):
        got, = model.run_op(f"fixed.{verb}", args[:1], (kind,))
        assert _ints(got) == [model.wrapped(model.UNARY[verb](x, raw), raw) for x in a], verb
    got, = model.run_op("fixed.sign", args[:1], (kind,))
    one = 1 << kind.fraction_bits
    assert _ints(got) == [model.clamped(((x > 0) - (x < 0)) * one, raw) for x in a]
    for verb in ("lt", "eq"):
        got, = model.run_op(f"compare.{verb}", args, (kind, kind))
        assert got.tolist() == [getattr(operator, verb)(x, y) for x, y in zip(a, b)]
    amounts = model.array_of([y % 70 for y in range(len(a))], IntType(7, False))
    for verb in ("shl", "shr"):
        got, = model.run_op(f"bits.{verb}", [args[0], amounts], (kind, IntType(7, False)))
        wanted = [model.MOVING[verb](x, y % 70, raw) for y, x in enumerate(a)]
        assert _ints(got) == [model.wrapped(x, raw) for x in wanted], verb


@pytest.mark.parametrize("kind", [f for f in FORMATS if f.width_bits <= 33], ids=str)
def test_product_is_exact(kind: FixType) -> None:
    other = FixType(min(64 - kind.width_bits, 31), 5 if kind.width_bits < 60 else 0, kind.signed)
    xs, ys = model.edge_values(_raw(kind), 2, 6), model.edge_values(_raw(other), 3, 6)
    a, b = [x for x in xs for _ in ys], [y for _ in xs for y in ys]
    got, = model.run_op("fixed.mul", [model.array_of(a, kind), model.array_of(b, other)], (kind, other))
    assert _ints(got) == [x * y for x, y in zip(a, b)]


@pytest.mark.parametrize("source", SCALARS, ids=str)
def test_casts_floor_and_wrap(source: Type) -> None:
    a = model.edge_values(_raw(source), 4, 12)
    for target in SCALARS:
        got, = model.run_op("convert.cast", [model.array_of(a, source)], (source,), type=target)
        scale = 1 << target.fraction_bits if isinstance(target, FixType) else 1
        wanted = [model.rounded(model.value_of(x, source) * scale, "floor") for x in a]
        assert _ints(got) == [model.wrapped(x, _raw(target)) for x in wanted], target


@pytest.mark.parametrize("source", SCALARS, ids=str)
def test_round_to_every_mode_and_overflow(source: Type) -> None:
    raw = _raw(source)
    a = model.edge_values(raw, 5, 8)
    fraction = source.fraction_bits if isinstance(source, FixType) else 0
    halves = [(2 * k + 1) << (fraction - 1) for k in range(-3, 3) if fraction]
    a = list(dict.fromkeys([*a, *(model.wrapped(x, raw) for x in halves)]))
    args = [model.array_of(a, source)]
    for target, mode in product(ROUNDED, MODES):
        exact = [model.rounded(model.value_of(x, source) * (1 << target.fraction_bits), mode) for x in a]
        for overflow, fit in (("wrap", model.wrapped), ("saturate", model.clamped)):
            attrs = {"mode": mode, "overflow": overflow, "type": target}
            got, = model.run_op("convert.round_to", args, (source,), **attrs)
            assert _ints(got) == [fit(x, _raw(target)) for x in exact], (target, mode, overflow)


def test_bool_becomes_zero_or_one_but_no_other_type_becomes_bool() -> None:
    values = np.array([False, True])
    for width, signed in product((2, 8, 33, 64), (True, False)):
        kind = IntType(width, signed)
        got, = model.run_op("convert.cast", [values], (BOOL,), type=kind)
        assert _ints(got) == [0, 1]
        with pytest.raises(TypeRuleError, match="does not convert to bool"):
            model.run_op("convert.cast", [], (kind,), type=BOOL)
    with pytest.raises(TypeRuleError, match="integers only"):
        model.run_op("convert.cast", [], (BOOL,), type=FixType(8, 2, True))


@pytest.mark.parametrize("width", model.WIDTHS)
def test_bitcast_keeps_the_pattern(width: int) -> None:
    kinds: list[Type] = [IntType(width, True), IntType(width, False), FixType(width, width // 2, True)]
    for source, target in product(kinds, kinds):
        a = model.edge_values(_raw(source), 6, 20)
        got, = model.run_op("convert.bitcast", [model.array_of(a, source)], (source,), type=target)
        assert _ints(got) == [model.wrapped(x, _raw(target)) for x in a]
