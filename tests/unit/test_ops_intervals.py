"""Interval rules are sound: every operation, on every interval of small types, by the reference evaluator."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from kera_hw.interp.evaluator import Context
from kera_hw.ops.intervals import RULES, Interval, OpShape, apply_rule, type_interval
from kera_hw.ops.registry import OPS
from kera_hw.ops.spec import EvalCall
from kera_hw.types import FixType, IntType, TensorType, Type, numpy_dtype

NARROW = [IntType(3, False), IntType(3, True), FixType(3, 1, True), FixType(3, 2, False)]
WIDE = [IntType(4, False), IntType(4, True)]
TARGETS = [*NARROW, IntType(7, True), IntType(2, False), FixType(8, 4, True)]
UNARY = [f"bits.{verb}" for verb in ("not", "popcount", "clz", "ctz")] + [
    f"{family}.{verb}" for family in ("integer", "fixed") for verb in ("abs", "neg", "sign")]
BINARY = [f"bits.{verb}" for verb in ("and", "or", "xor", "shl", "shr")] + ["integer.mul_wide"] + [
    f"{family}.{verb}" for family in ("integer", "fixed")
    for verb in ("add", "sub", "mul", "div", "rem", "min", "max", "saturating_add", "saturating_sub",
                 "saturating_mul")]


def _values(kind: Type) -> np.ndarray[Any, Any]:
    full = type_interval(kind)
    assert full is not None
    return np.arange(full.low, full.high + 1).astype(numpy_dtype(kind))


def _intervals(kind: Type) -> Iterator[Interval]:
    full = type_interval(kind)
    assert full is not None
    yield from (Interval(a, b) for a in range(full.low, full.high + 1) for b in range(a, full.high + 1))


def _apply(
    name: str, operands: list[np.ndarray[Any, Any]], kinds: tuple[Type, ...], attrs: dict[str, Any]
) -> tuple[np.ndarray[Any, Any], Type]:
    (result,) = OPS[name].infer(kinds, attrs)
    call = EvalCall(Context(len(operands[0])), tuple(operands), kinds, (result,), attrs)
    return np.asarray(OPS[name].evaluate(call)[0]), result


def _kinds(name: str, kinds: list[Any]) -> list[Any]:
    family = {"integer": IntType, "fixed": FixType}.get(name.split(".")[0], IntType)
    signed_only = name.endswith(".neg")
    return [kind for kind in kinds if isinstance(kind, family) and (kind.signed or not signed_only)]


@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str) -> None:
    for kind in _kinds(name, NARROW + WIDE):
        _check_unary(name, kind, {})


@pytest.mark.parametrize("source", NARROW + WIDE, ids=str)
@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_cast(source: Type, target: Type) -> None:
    _check_unary("convert.cast", source, {"type": target})


@pytest.mark.parametrize(("high", "low"), [(3, 0), (2, 1), (3, 3)])
def test_extract(high: int, low: int) -> None:
    for kind in WIDE:
        _check_unary("bits.extract", kind, {"high": high, "low": low})


def _check_unary(name: str, kind: Type, attrs: dict[str, Any]) -> None:
    values = _values(kind)
    found, result = _apply(name, [values], (kind,), attrs)
    first = int(values[0])
    for interval in _intervals(kind):
        said = apply_rule(name, [interval], OpShape((kind,), result, attrs))
        part = found[interval.low - first : interval.high - first + 1]
        assert said is not None and Interval(int(part.min()), int(part.max())).within(said), (kind, interval)


@pytest.mark.parametrize("name", [name for name in BINARY if name in OPS])
def test_binary(name: str) -> None:
    for kind in _kinds(name, NARROW):
        amounts = name in ("bits.shl", "bits.shr")
        other = IntType(3, False) if amounts else kind
        values, others = _values(kind), _values(other)
        pairs = [np.repeat(values, len(others)), np.tile(others, len(values))]
        flat, result = _apply(name, pairs, (kind, other), {})
        found = flat.reshape(len(values), len(others))
        for a in _intervals(kind):
            rows = found[a.low - int(values[0]) : a.high - int(values[0]) + 1]
            for b in _intervals(other):
                part = rows[:, b.low - int(others[0]) : b.high - int(others[0]) + 1]
                said = apply_rule(name, [a, b], OpShape((kind, other), result, {}))
                exact = Interval(int(part.min()), int(part.max()))
                assert said is not None and exact.within(said), (name, kind, a, b)


@pytest.mark.parametrize("kind", [*NARROW, FixType(9, 3, True), IntType(9, True)], ids=str)
@pytest.mark.parametrize("size", [0, 1, 3, 9, 40])
def test_iota(kind: Type, size: int) -> None:
    attrs = {"size": size, "type": kind}
    call = EvalCall(Context(1), (), (), (TensorType(kind, (size,)),), attrs)
    found = np.asarray(OPS["tensor.iota"].evaluate(call)[0])
    said = apply_rule("tensor.iota", [], OpShape((), TensorType(kind, (size,)), attrs))
    assert said is not None and all(said.low <= int(value) <= said.high for value in found.ravel())


def test_counts_know_where_zero_is_excluded() -> None:
    kind = IntType(8, False)
    shape = OpShape((kind,), IntType(32, False), {})
    assert apply_rule("bits.ctz", [Interval(1, 255)], shape) == Interval(0, 7)
    assert apply_rule("bits.clz", [Interval(4, 31)], shape) == Interval(3, 5)
    assert apply_rule("bits.popcount", [Interval(1, 31)], shape) == Interval(1, 5)
    assert {"bits.popcount", "bits.clz", "bits.ctz"} <= set(RULES)
