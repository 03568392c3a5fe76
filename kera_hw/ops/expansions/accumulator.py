"""What sums and inner products in the order ``exact`` are made of: terms as digits of a long accumulator.

The accumulator is U. Kulisch's ("Computer Arithmetic and Validity", 2008): fixed point from the least bit of
the format to beyond its greatest number. Here it is a row of 32-bit digits, each the sum of what the terms
put there, as a signed number of 64 bits: so the terms are added digit by digit in any order, up to 2^31 of
them, and carries move once, at the end, as in R. M. Neal's small superaccumulator ("Fast exact summation
using small and large superaccumulators", 2015).
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic

from kera_hw.ops.expansions.long import (
    DIGIT_BITS,
    MASK,
    SIGNED,
    WORD,
    Term,
    add,
    decided,
    either,
    fields,
    high,
    leading,
    low,
    rounded,
    word_of,
)
from kera_hw.ops.expansions.parts import integer, select, shifted, unsigned
from kera_hw.ops.spec import V, Writer
from kera_hw.types import FloatType


@dataclass(frozen=True, slots=True)
class Summand(Generic[V]):
    """One term: what it adds, signed, to the digits from number ``first`` on, which is at most ``last``."""

    term: Term[V]
    first: V
    last: int
    parts: list[V]

    @property
    def digit_count(self) -> int:
        """Digits that terms can reach."""
        return self.last + len(self.parts)


def summand(to: Writer[V], args: Sequence[V], kind: FloatType) -> Summand[V]:
    """A number, or the product of two."""
    found = [fields(to, x, kind) for x in args]
    (term, significand), *second = found
    digits = _digits(to, significand, kind)
    if second:
        digits = _multiplied(to, digits, _digits(to, second[0][1], kind))
        term = _joined(to, term, second[0][0], kind)
    first, parts = _moved(to, term, digits)
    return Summand(term, first, term.most // DIGIT_BITS, parts)


def _digits(to: Writer[V], significand: V, kind: FloatType) -> list[V]:
    if kind.fraction_bits < DIGIT_BITS:
        return [significand]
    return [low(to, significand), high(to, significand)]


def _multiplied(to: Writer[V], first: Sequence[V], second: Sequence[V]) -> list[V]:
    """Digits of a product."""
    columns: list[list[V]] = [[] for _ in range(len(first) + len(second))]
    for i, x in enumerate(first):
        for j, y in enumerate(second):
            whole = to.op("integer.mul", x, y)
            columns[i + j].append(low(to, whole))
            columns[i + j + 1].append(high(to, whole))
    digits: list[V] = []
    carry: list[V] = []
    for column in columns:
        total = add(to, *column, *carry)
        digits.append(low(to, total))
        carry = [high(to, total)]
    return digits


def _joined(to: Writer[V], a: Term[V], b: Term[V], kind: FloatType) -> Term[V]:
    """An exact product, in units of the square of the format's least number."""
    wide = unsigned(kind.exponent_bits + 2)
    position = add(to, *(to.op("convert.cast", term.position, type=wide) for term in (a, b)))
    nothing, infinite = either(to, a.zero, b.zero), either(to, a.infinite, b.infinite)
    nan = either(to, a.nan, b.nan, to.op("bits.and", nothing, infinite))
    zero = to.op("bits.and", nothing, to.op("bits.not", nan))
    return Term(to.op("bits.xor", a.negative, b.negative), position, a.most + b.most, nan, infinite, zero)


def _moved(to: Writer[V], term: Term[V], digits: Sequence[V]) -> tuple[V, list[V]]:
    """Number of the first digit that a term reaches, and what it adds there and above, signed."""
    width = term.most.bit_length()
    position = to.op("convert.cast", term.position, type=unsigned(max(width, 6)))
    first = shifted(to, "bits.shr", position, 5)
    distance = to.op("convert.cast", position, type=unsigned(5))
    parts: list[list[V]] = [[] for _ in range(len(digits) + 1)]
    for k, digit in enumerate(digits):
        whole = to.op("bits.shl", digit, distance)
        parts[k].append(low(to, whole))
        parts[k + 1].append(high(to, whole))
    signed: list[V] = []
    for part in parts:
        amount = to.op("convert.cast", add(to, *part), type=SIGNED)
        other = to.op("integer.sub", integer(to, SIGNED, 0), amount)
        signed.append(select(to, term.negative, other, amount))
    return first, signed


def _magnitude(to: Writer[V], digits: Sequence[V]) -> tuple[V, list[V]]:
    """Whether the number is negative, and its magnitude's digits below 2^32, with one for the carries."""
    carry: V | None = None
    plain: list[V] = []
    for digit in digits:
        total = digit if carry is None else add(to, digit, carry)
        plain.append(low(to, to.op("convert.cast", total, type=WORD)))
        carry = shifted(to, "bits.shr", total, DIGIT_BITS)
    assert carry is not None
    negative = to.op("compare.lt", carry, integer(to, SIGNED, 0))
    plain.append(low(to, to.op("convert.cast", carry, type=WORD)))
    flip = select(to, negative, word_of(to, MASK), word_of(to, 0))
    more = to.op("convert.cast", negative, type=WORD)
    found: list[V] = []
    for digit in plain:
        total = add(to, to.op("bits.xor", digit, flip), more)
        found.append(low(to, total))
        more = high(to, total)
    return negative, found


@dataclass(frozen=True, slots=True)
class Flags(Generic[V]):
    """What is known of all terms: some NaN, +infinity, -infinity among them; nothing but -0."""

    nan: V
    above: V
    below: V
    minus_zero: V


def result(to: Writer[V], kind: FloatType, digits: Sequence[V], flags: Flags[V], is_product: bool) -> V:
    """The float of an accumulator's digits, least first."""
    negative, magnitude = _magnitude(to, digits)
    # Products are in units of the square of the format's least number.
    exponent = 2 - (1 << (kind.exponent_bits - 1)) - kind.fraction_bits if is_product else 0
    bits = rounded(to, kind, leading(to, magnitude), integer(to, SIGNED, exponent))
    nan = to.op("bits.or", flags.nan, to.op("bits.and", flags.above, flags.below))
    negative = to.op("bits.or", negative, flags.minus_zero)
    return decided(to, kind, bits, negative, nan, flags.above, flags.below)
