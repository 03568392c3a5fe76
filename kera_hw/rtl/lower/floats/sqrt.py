"""Square root and its reciprocal, by digit recurrences.

Neither can overflow, come out subnormal, or lie halfway between two floats: such a value would square to more
digits than the operand has, or to no dyadic number. So the digit below the last place alone rounds, and no
remainder is looked at.
"""
from __future__ import annotations

from kera_hw.graph.node import Ref
from kera_hw.rtl.lower.builder import Builder
from kera_hw.rtl.lower.floats import iterative, recurrence, words
from kera_hw.rtl.lower.floats.divide import scaled
from kera_hw.rtl.lower.floats.fields import Fields, Format, Wires
from kera_hw.rtl.lower.floats.rounding import increment, pack
from kera_hw.rtl.lower.floats.words import Wide
from kera_hw.types import FloatType, IntType


def lower_sqrt(builder: Builder, kind: FloatType, a: Ref) -> Ref:
    """The square root rounded to nearest even; NaN below zero, and -0 for -0."""
    if builder.interval >= iterative.interval_of_sqrt(kind):
        return iterative.lower_sqrt(builder, kind, a)
    wires, form = Wires(builder), Format(kind)
    x = Fields(wires, form, a)
    number = scaled(wires, form, x)
    span = IntType(form.exponent_bits + 2, True)
    doubled = wires.add(number.exponent, builder.const(span, form.bias))  # twice the field, perhaps 1 more
    odd = wires.bit(doubled, 0)
    field = wires.resize(wires.right(doubled, 1), form.exponent_bits)
    radicand = _radicand(wires, form, number.significand, odd)
    root = recurrence.square_root(builder, radicand, leads=True)
    nan = wires.either(x.is_nan, wires.unless(x.sign, x.is_zero))
    return _round(wires, form, x.sign, field, root, nan, wires.either(nan, x.is_top), x.is_zero)


def _radicand(wires: Wires, form: Format, significand: Ref, odd: Ref) -> Wide:
    """The significand, doubled for an odd exponent, above zeros: two bits for each digit of the root."""
    fraction = wires.low_bits(significand, form.fraction_bits)
    doubled = wires.cat(wires.flag(True), fraction, wires.const(0, 1))
    plain = wires.cat(wires.flag(False), wires.flag(True), fraction)
    head = words.of(wires.builder, wires.select(odd, doubled, plain))
    return words.scale(wires.builder, head, form.fraction_bits + 2)


def _round(
    wires: Wires, form: Format, sign: Ref, field: Ref, root: Wide, nan: Ref, infinite: Ref, zero: Ref
) -> Ref:
    """Pack a root of F + 2 digits, the first of them 1, the last the rounding bit."""
    special = wires.either(infinite, zero)
    keep = wires.invert(special)
    digits = words.extract_word(wires.builder, root, form.fraction_bits, 0)
    digits = wires.both(digits, wires.spread(keep, form.fraction_bits + 1))
    base = wires.select(zero, wires.const(0, form.exponent_bits), field)
    base = wires.either(base, wires.spread(infinite, form.exponent_bits))
    upper = wires.cat(base, nan, wires.const(0, form.fraction_bits - 1))
    fraction = wires.high_bits(digits, form.fraction_bits)
    magnitude = increment(wires, form, upper, fraction, wires.bit(digits, 0))
    return pack(wires, form, wires.unless(sign, nan), magnitude)


def lower_rsqrt(builder: Builder, kind: FloatType, a: Ref) -> Ref:
    """The real ``1 / sqrt(a)`` rounded once to nearest even; NaN below zero, infinity of its sign for 0.

    With a = M * 4^k and 1 <= M < 4 the result is ``sqrt(4 / M) * 2^(-k - 1)``. The root of an integer
    quotient is exact, since ``floor(sqrt(floor(z)))`` is ``floor(sqrt(z))``. The dividend is 4 less its last
    place: that keeps the root of 4 below 2, where rounding brings it back, and no other root sees it.
    """
    wires, form = Wires(builder), Format(kind)
    x = Fields(wires, form, a)
    number = scaled(wires, form, x)
    fraction = form.fraction_bits
    span = IntType(form.exponent_bits + 2, True)
    raised = wires.add(number.exponent, builder.const(span, 1))
    odd, half = wires.bit(raised, 0), wires.right(raised, 1)
    most = builder.const(span, form.bias - 1 + (form.bias + 1) // 2)
    field = wires.resize(wires.subtract(most, half), form.exponent_bits)
    zero = wires.const(0, 1)
    divisor = wires.select(odd, wires.cat(number.significand, zero), wires.cat(zero, number.significand))
    dividend = words.constant(builder, (1 << (fraction + 1)) - 1, fraction + 2)
    square, _ = recurrence.divide(
        builder, dividend, words.of(builder, divisor), 2 * fraction + 4, below=1
    )
    root = recurrence.square_root(builder, square, leads=True)
    nan = wires.either(x.is_nan, wires.unless(x.sign, x.is_zero))
    return _round(wires, form, x.sign, field, root, nan, wires.either(nan, x.is_zero), x.is_infinite)
