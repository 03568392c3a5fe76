"""Scalar steps of a foreign library, and the orders in which the language takes them, written out plainly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import copysign, inf, isfinite, isnan, nan, prod
from typing import Any

import numpy as np

from kera_hw.types import F64, FloatType, TensorType, Type
from tests.conformance import oracle
from tests.conformance.arithmetic import interpreted
from tests.conformance.report import Row
from tests.conformance.vectors import Bits, bits_dtype, draw, values_of

ORDERS = ("lanes", "sequential", "tree", "exact")
Scalar = Any
Step = Callable[..., Scalar]


class Scalars:
    """One format's scalar steps, and columns of bit patterns as its objects."""

    def __init__(self, kind: FloatType) -> None:
        self.kind, self.unit, self.mpfr = kind, oracle.unit(kind), oracle.mpfr(kind)
        self.zero, self.one = self.load(np.zeros(1, bits_dtype(kind)))[0], self.number(1)

    def load(self, bits: Bits) -> list[Scalar]:
        return self.unit.bits_in(bits.reshape(-1))

    def number(self, count: int) -> Scalar:
        """A count in the format."""
        return self.load(self.mpfr.bits_out([self.mpfr.scaled(count, 0)]))[0]

    def store(self, values: Sequence[Scalar]) -> Bits:
        return self.unit.bits_out(values)

    def by_mpfr(self, function: Callable[[Any], Any], value: Scalar) -> Scalar:
        """A function SoftFloat lacks."""
        bits = self.store([value])
        return self.load(self.mpfr.bits_out([self.mpfr.of(function)(self.mpfr.bits_in(bits)[0])]))[0]


# ---------------------------------------------------------------- orders, as the language states them


def tree(values: Sequence[Scalar], combine: Step) -> Scalar:
    values = list(values)
    while len(values) > 1:
        values = [
            combine(values[i], values[i + 1]) if i + 1 < len(values) else values[i]
            for i in range(0, len(values), 2)
        ]
    return values[0]


def lanes(count: int, first: Step, step: Step, combine: Step) -> Scalar:
    blocks: list[Scalar] = []
    for low in range(0, count, 4096):
        lane: dict[int, Scalar] = {}
        for i in range(low, min(low + 4096, count)):
            k = (i - low) % 64
            lane[k] = step(lane[k], i) if k in lane else first(i)
        half = 32
        while half:
            for k in range(half):
                if k + half in lane:
                    lane[k] = combine(lane[k], lane.pop(k + half))
            half //= 2
        blocks.append(lane[0])
    return tree(blocks, combine)


def fold(order: str, count: int, first: Step, step: Step, combine: Step) -> Scalar:
    if order == "lanes":
        return lanes(count, first, step, combine)
    if order == "tree":
        return tree([first(i) for i in range(count)], combine)
    acc = first(0)
    for i in range(1, count):
        acc = step(acc, i)
    return acc


@dataclass(frozen=True, slots=True)
class Exact:
    """number * 2^exponent and its sign (a zero has one); an infinity or NaN is a float instead."""

    number: int
    exponent: int
    negative: bool


Term = Exact | float


def term(value: float) -> Term:
    """A float's exact value."""
    if not isfinite(value):
        return value
    top, bottom = value.as_integer_ratio()
    return Exact(top, 1 - bottom.bit_length(), copysign(1, value) < 0)


def product_term(a: float, b: float) -> Term:
    """An exact product; NaN for a zero and an infinity."""
    x, y = term(a), term(b)
    if isinstance(x, Exact) and isinstance(y, Exact):
        return Exact(x.number * y.number, x.exponent + y.exponent, x.negative != y.negative)
    if isnan(a) or isnan(b) or not a or not b:
        return nan
    return inf if (a > 0) == (b > 0) else -inf


_LEAST = -2200  # below the lowest bit of any product


def exact_total(kind: FloatType, terms: Sequence[Term]) -> int:
    """Bits of the exact sum; an exact zero is +0 unless every term is -0."""
    rounder = oracle.mpfr(kind)
    special = [item for item in terms if isinstance(item, float)]
    if special:
        return int(rounder.bits_out([sum(special)])[0])
    finite = [item for item in terms if isinstance(item, Exact)]
    total = sum(item.number << (item.exponent - _LEAST) for item in finite)
    if total == 0:
        every = all(item.negative and not item.number for item in finite)
        return 1 << (kind.width_bits - 1) if every else 0
    return int(rounder.bits_out([rounder.scaled(total, _LEAST)])[0])


def exact_product(kind: FloatType, terms: Sequence[Term]) -> int:
    """Bits of the exact product."""
    finite = [item for item in terms if isinstance(item, Exact)]
    special = [item for item in terms if isinstance(item, float)]
    negative = (sum(item.negative for item in finite) + sum(item < 0 for item in special)) % 2 == 1
    rounder = oracle.mpfr(kind)
    if any(map(isnan, special)) or (special and not all(item.number for item in finite)):
        return kind.canonical_nan
    if special:
        return int(rounder.bits_out([-inf if negative else inf])[0])
    product = prod(item.number for item in finite)
    if not product:
        return int(rounder.bits_out([-0.0 if negative else 0.0])[0])
    return int(rounder.bits_out([rounder.scaled(product, sum(item.exponent for item in finite))])[0])


# ---------------------------------------------------------------- operands


def rows(kind: FloatType, count: int, length: int, rng: np.random.Generator) -> Bits:
    """Mostly numbers of one size, with cancelling neighbours; a quarter of the rows anything at all."""
    anything = draw(kind, count * length, rng).reshape(count, length)
    zeros = np.array([0, 1 << (kind.width_bits - 1)], bits_dtype(kind))
    anything[::8] = rng.choice(zeros, (len(anything[::8]), length))
    bias = (1 << (kind.exponent_bits - 1)) - 1
    exponent = rng.integers(bias - 3, bias + 4, (count, length)).astype(np.uint64)
    exponent <<= np.uint64(kind.fraction_bits)
    fraction = rng.integers(0, 1 << kind.fraction_bits, (count, length)).astype(np.uint64)
    sign = rng.integers(0, 2, (count, length)).astype(np.uint64) << np.uint64(kind.width_bits - 1)
    usual = (exponent | fraction | sign).astype(bits_dtype(kind))
    return np.where(np.arange(count)[:, np.newaxis] % 4 == 0, anything, usual)


def run(op: str, kind: FloatType, operands: Sequence[Bits], **attrs: Any) -> Bits:
    types: list[Type] = [
        TensorType(kind, bits.shape[1:]) if bits.ndim > 1 else kind for bits in operands
    ]
    out = interpreted(op, [values_of(bits, kind) for bits in operands], types, **attrs)
    return out if out.dtype == np.uint32 and op.startswith("reduce.arg") else out.view(bits_dtype(kind))


class Counted:
    """Adds up comparisons of one operation and format."""

    def __init__(self, op: str, kind: FloatType, by: str) -> None:
        self.op, self.kind, self.by, self.vectors, self.differences = op, kind, by, 0, 0

    def compare(self, got: Bits, want: Any) -> None:
        flat = np.asarray(want).reshape(-1)
        assert got.size == flat.size
        self.vectors += flat.size
        self.differences += int(np.count_nonzero(got.reshape(-1) != flat))

    def row(self, note: str = "") -> Row:
        return Row(self.op, self.kind.name, self.by, self.vectors, self.differences, note=note)


class Products:
    """The three ways to accumulate products; `wide` in f64 by SoftFloat."""

    def __init__(self, scalars: Scalars, mul: str) -> None:
        self.scalars, self.mul, self.unit = scalars, mul, scalars.unit
        if mul == "wide":
            self.wide: Any = oracle.soft(F64)

    def load(self, bits: Bits) -> list[Scalar]:
        if self.mul != "wide":
            return self.scalars.load(bits)
        return self.wide.bits_in(oracle.as_doubles(bits.reshape(-1), self.scalars.kind).view(np.uint64))

    def first(self, a: Scalar, b: Scalar) -> Scalar:
        return self.wide.mul(a, b) if self.mul == "wide" else self.unit.mul(a, b)

    def step(self, acc: Scalar, a: Scalar, b: Scalar) -> Scalar:
        if self.mul == "wide":
            return self.wide.add(acc, self.wide.mul(a, b))
        return self.unit.fma(a, b, acc) if self.mul == "fused" else self.unit.add(acc, self.unit.mul(a, b))

    def combine(self, a: Scalar, b: Scalar) -> Scalar:
        return self.wide.add(a, b) if self.mul == "wide" else self.unit.add(a, b)

    def store(self, values: Sequence[Scalar]) -> Bits:
        if self.mul != "wide":
            return self.scalars.store(values)
        rounder, wide = self.scalars.mpfr, oracle.mpfr(F64).bits_in(self.wide.bits_out(values))
        return rounder.bits_out([rounder.rounded(value) for value in wide])

    def zero(self) -> Scalar:
        return self.load(np.zeros(1, bits_dtype(self.scalars.kind)))[0]

    def chain(self, pairs: Sequence[tuple[Scalar, Scalar]]) -> Scalar:
        """One sequential chain; +0 where nothing takes part."""
        if not pairs:
            return self.zero()
        acc = self.first(*pairs[0])
        for a, b in pairs[1:]:
            acc = self.step(acc, a, b)
        return acc
