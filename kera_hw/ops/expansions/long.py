"""Floats as integers of many 32-bit digits, and back by one rounding: what exact sums and products share.

Every operation is element by element, so a value may be a scalar or a tensor; constants are scalars.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic

from kera_hw.ops.expansions.parts import integer, select, shifted, unsigned
from kera_hw.ops.spec import V, Writer
from kera_hw.types import BOOL, U32, FloatType, IntType

DIGIT_BITS = 32
MASK = (1 << DIGIT_BITS) - 1
WORD = unsigned(64)
SIGNED = IntType(64, True)


@dataclass(frozen=True, slots=True)
class Term(Generic[V]):
    """What a float is beside its significand: its value is (-1)^negative * significand * 2^position units."""

    negative: V
    position: V
    most: int  # of the position
    nan: V
    infinite: V
    zero: V


def word_of(to: Writer[V], value: int) -> V:
    return integer(to, WORD, value)


def low(to: Writer[V], value: V) -> V:
    return to.op("bits.and", value, word_of(to, MASK))


def high(to: Writer[V], value: V) -> V:
    return shifted(to, "bits.shr", value, DIGIT_BITS)


def add(to: Writer[V], *values: V) -> V:
    total = values[0]
    for value in values[1:]:
        total = to.op("integer.add", total, value)
    return total


def either(to: Writer[V], *flags: V) -> V:
    total = flags[0]
    for flag in flags[1:]:
        total = to.op("bits.or", total, flag)
    return total


def fields(to: Writer[V], x: V, kind: FloatType) -> tuple[Term[V], V]:
    """A float in units of its least subnormal number, with its significand: 0 of NaN and infinities."""
    pattern = unsigned(kind.width_bits)
    bits = to.op("convert.bitcast", x, type=pattern)
    negative = to.op("bits.test", bits, index=kind.width_bits - 1)
    fraction = to.op("bits.extract", bits, high=kind.fraction_bits - 1, low=0)
    field = to.op("bits.extract", bits, high=kind.width_bits - 2, low=kind.fraction_bits)
    top = (1 << kind.exponent_bits) - 1
    special = to.op("compare.eq", field, integer(to, unsigned(kind.exponent_bits), top))
    subnormal, none = (
        to.op("compare.eq", part, integer(to, unsigned(width), 0))
        for part, width in ((field, kind.exponent_bits), (fraction, kind.fraction_bits))
    )
    hidden = select(to, subnormal, word_of(to, 0), word_of(to, 1 << kind.fraction_bits))
    significand = to.op("bits.or", hidden, to.op("convert.cast", fraction, type=WORD))
    significand = select(to, special, word_of(to, 0), significand)
    wide = unsigned(kind.exponent_bits + 1)
    field = to.op("convert.cast", field, type=wide)
    position = to.op("integer.sub", field, integer(to, wide, 1))
    position = select(to, to.op("bits.or", subnormal, special), integer(to, wide, 0), position)
    number = to.op("bits.not", none)
    term = Term(
        negative, position, top - 2, to.op("bits.and", special, number), to.op("bits.and", special, none),
        to.op("bits.and", subnormal, none),
    )
    return term, significand


@dataclass(frozen=True, slots=True)
class Leading(Generic[V]):
    """A magnitude's 64 bits from its highest on, how many it has in all (i64), whether any is set below."""

    word: V
    length: V
    lost: V


def leading(to: Writer[V], digits: Sequence[V]) -> Leading[V]:
    """A magnitude from its highest bit on: the first digit is picked from below, then moved up."""
    nothing, no = word_of(to, 0), to.constant(BOOL, False)
    first = second = third = nothing
    lost, passed, place = no, no, integer(to, U32, 0)
    some = [to.op("compare.ne", digit, nothing) for digit in digits]
    for k, digit in enumerate(digits):
        if k >= 3:
            passed = to.op("bits.or", passed, some[k - 3])
        first = select(to, some[k], digit, first)
        second = select(to, some[k], digits[k - 1] if k else nothing, second)
        third = select(to, some[k], digits[k - 2] if k > 1 else nothing, third)
        lost = select(to, some[k], passed, lost)
        place = select(to, some[k], integer(to, U32, DIGIT_BITS * k), place)
    zeros = to.op("bits.clz", to.op("convert.cast", first, type=unsigned(DIGIT_BITS)))
    length = to.op("integer.sub", integer(to, U32, DIGIT_BITS), zeros)
    word = either(
        to, to.op("bits.shl", first, to.op("integer.add", integer(to, U32, DIGIT_BITS), zeros)),
        to.op("bits.shl", second, zeros), to.op("bits.shr", third, length),
    )
    lost = to.op("bits.or", lost, _some_below(to, third, length))
    return Leading(word, to.op("convert.cast", to.op("integer.add", place, length), type=SIGNED), lost)


def _some_below(to: Writer[V], word: V, count: V) -> V:
    """Whether any of the lowest ``count`` bits is set."""
    mask = to.op("integer.sub", to.op("bits.shl", word_of(to, 1), count), word_of(to, 1))
    return to.op("compare.ne", to.op("bits.and", word, mask), word_of(to, 0))


def rounded(to: Writer[V], kind: FloatType, top: Leading[V], exponent: V) -> V:
    """Bits of the float nearest to a magnitude in units of 2^exponent times the format's least number."""
    kept_bits, infinity_field = kind.fraction_bits + 1, (1 << kind.exponent_bits) - 1

    def signed(value: int) -> V:
        return integer(to, SIGNED, value)

    length = to.op("integer.add", top.length, exponent)
    # The exponent field less the hidden bit, which the significand adds; beyond the format, infinity's.
    octave = to.op("integer.sub", length, signed(kept_bits))
    octave = to.op("integer.min", to.op("integer.max", octave, signed(0)), signed(infinity_field))
    drop = to.op("integer.sub", to.op("integer.add", octave, signed(64)), length)
    drop = to.op("integer.min", to.op("integer.max", drop, signed(64 - kept_bits)), signed(65))
    drop = to.op("convert.cast", drop, type=unsigned(7))
    before = to.op("integer.sub", drop, integer(to, unsigned(7), 1))
    kept, cut = (to.op("bits.shr", top.word, distance) for distance in (drop, before))
    odd, half = (to.op("bits.test", word, index=0) for word in (kept, cut))
    rest = either(to, _some_below(to, top.word, before), top.lost, odd)
    up = to.op("convert.cast", to.op("bits.and", half, rest), type=WORD)
    field = shifted(to, "bits.shl", to.op("convert.cast", octave, type=WORD), kind.fraction_bits)
    return to.op("integer.min", add(to, field, kept, up), word_of(to, infinity_field << kind.fraction_bits))


def decided(
    to: Writer[V], kind: FloatType, bits: V, negative: V, nan: V, above: V, below: V
) -> V:
    """The float of a rounded magnitude and a sign; ``nan``, else an infinity, decides where it is set."""
    infinity = word_of(to, ((1 << kind.exponent_bits) - 1) << kind.fraction_bits)
    sign = word_of(to, 1 << (kind.width_bits - 1))
    bits = select(to, negative, to.op("bits.or", bits, sign), bits)
    bits = select(to, above, infinity, bits)
    bits = select(to, below, to.op("bits.or", infinity, sign), bits)
    bits = select(to, nan, word_of(to, kind.canonical_nan), bits)
    return to.op("convert.bitcast", to.op("convert.cast", bits, type=unsigned(kind.width_bits)), type=kind)
