"""Conversions of floats against exact rationals, run by the interpreter."""
from __future__ import annotations

import random
from fractions import Fraction
from math import trunc

import numpy as np
import pytest

from kera_hw.graph.node import Ref
from kera_hw.graph.store import Store
from kera_hw.interp import run_region
from kera_hw.rtl.lower.builder import Builder
from kera_hw.rtl.lower.floats import convert
from kera_hw.types import F16, FixType, FloatType, IntType, numpy_dtype

from .floatrtl_exact import is_negative, nearest, value_of, word_of
from .floatrtl_support import FORMATS, operands, run, unit

COUNT = 1500
INTEGERS = tuple(
    IntType(width, signed) for width, signed in
    [(1, False), (1, True), (8, True), (13, False), (24, False), (32, True),
     (32, False), (33, True), (64, True), (64, False)]
)
FIXED = (
    FixType(1, 0, True), FixType(1, 1, True), FixType(1, 1, False), FixType(16, 8, True),
    FixType(8, 8, True), FixType(32, 0, True), FixType(64, 63, True), FixType(64, 64, False),
    FixType(64, 0, False), FixType(40, 17, True),
)


def _integers(kind: IntType, seed: int) -> list[int]:
    """Values of every magnitude, near powers of two, and the ends."""
    rng = random.Random(seed)
    found = [kind.wrap(rng.getrandbits(64) >> rng.randrange(64)) for _ in range(COUNT)]
    found += [kind.wrap((1 << rng.randrange(64)) + rng.randint(-3, 3)) for _ in range(COUNT)]
    return [kind.min, kind.max, 0, kind.wrap(-1), kind.wrap(1), *found]


def _from_raw(kind: FloatType, source: IntType | FixType, raw: IntType, values: list[int]) -> list[int]:
    builder = Builder(Store())
    result = convert.from_integer(builder, source, kind, builder.store.param(0, raw))
    region = builder.store.region([raw], [result])
    (found,) = run_region(region, [np.array(values, dtype=numpy_dtype(raw))], batch=len(values))
    return [int(word) for word in found]


@pytest.mark.parametrize("kind", FORMATS, ids=str)
@pytest.mark.parametrize("source", [*INTEGERS, *FIXED], ids=str)
def test_to_float(source: IntType | FixType, kind: FloatType) -> None:
    raw, fraction = convert.raw_type(source)
    values = _integers(raw, 6)
    for value, found in zip(values, _from_raw(kind, source, raw, values)):
        assert found == word_of(kind, Fraction(value, 1 << fraction)), value


@pytest.mark.parametrize("kind", FORMATS, ids=str)
@pytest.mark.parametrize("target", [*INTEGERS, *FIXED], ids=str)
def test_from_float(target: IntType | FixType, kind: FloatType) -> None:
    raw, fraction = convert.raw_type(target)
    (column,) = operands(kind, 1, COUNT, 7)

    def lowering(builder: Builder, kind: FloatType, word: Ref) -> Ref:
        return convert.to_integer(builder, kind, target, word)

    for word, found in zip(column, run(unit(lowering, kind, 1), kind, [column])):
        value = value_of(kind, word)
        if value != value:
            want = 0
        elif isinstance(value, float):
            want = raw.max if value > 0 else raw.min
        else:
            scaled = Fraction(value) * (1 << fraction)
            whole = trunc(scaled) if isinstance(target, IntType) else nearest(scaled)
            want = min(max(whole, raw.min), raw.max)
        assert found == want, hex(word)


@pytest.mark.parametrize("source", FORMATS, ids=str)
@pytest.mark.parametrize("target", FORMATS, ids=str)
def test_between_formats(source: FloatType, target: FloatType) -> None:
    (column,) = operands(source, 1, 2 * COUNT, 8)

    def lowering(builder: Builder, kind: FloatType, word: Ref) -> Ref:
        return convert.between(builder, kind, target, word)

    for word, found in zip(column, run(unit(lowering, source, 1), source, [column])):
        assert found == word_of(target, value_of(source, word), is_negative(source, word)), hex(word)


@pytest.mark.parametrize("target", [FixType(1, 0, True), FixType(1, 1, True), FixType(2, 1, True)], ids=str)
def test_every_half_to_a_narrow_format(target: FixType) -> None:
    """A signed format of one bit has no magnitude; its halves are ties."""
    words = np.arange(1 << 16, dtype=np.uint16)
    store = Store()
    region = store.region([F16], [store.op("convert.cast", store.param(0, F16), type=target)])
    builder = Builder(Store())
    result = convert.to_integer(builder, F16, target, builder.store.param(0, IntType(16, False)))
    lowered = builder.store.region([IntType(16, False)], [result])
    (wanted,) = run_region(region, [words.view(np.float16)], len(words))
    (found,) = run_region(lowered, [words], len(words))
    assert np.array_equal(wanted, found)
