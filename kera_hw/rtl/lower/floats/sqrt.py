"""Square root and its reciprocal, by digit recurrences.

Neither can lie halfway between two floats of full precision: such a value would square to more digits than
the operand has, or to no dyadic number. So the digit below the last place alone rounds, and no remainder is
looked at. Neither can overflow or come out subnormal, unless the format has so many fraction bits for its
exponent that subnormals lie below the square of the least normal number (``Format.is_deep``): there the root
is moved right and rounded by what falls off.
"""
from __future__ import annotations

from kera_hw.graph.node import Ref
from kera_hw.rtl.lower.builder import Builder
from kera_hw.rtl.lower.floats import iterative, recurrence, shifts
from kera_hw.rtl.lower.floats.divide import scaled
from kera_hw.rtl.lower.floats.fields import Fields, Format
from kera_hw.rtl.lower.floats.rounding import decide, increment, pack
from kera_hw.rtl.lower.floats.wires import Wires
from kera_hw.types import FloatType, IntType


def lower_sqrt(builder: Builder, kind: FloatType, a: Ref) -> Ref:
    """The square root rounded to nearest even; NaN below zero, and -0 for -0."""
    long_enough = builder.initiation_interval >= iterative.initiation_interval_of_sqrt(kind)
    if long_enough and not Format(kind).is_deep:
        return iterative.lower_sqrt(builder, kind, a)
    wires, form = Wires(builder), Format(kind)
    x = Fields(wires, form, a)
    number = scaled(wires, form, x)
    # Twice the field, perhaps 1 more.
    doubled = wires.add(number.exponent, builder.const(form.span, form.bias))
    odd, field = wires.bit(doubled, 0), wires.right(doubled, 1)
    radicand = _radicand(wires, form, number.significand, odd)
    root = recurrence.square_root(wires, radicand, leads=True)
    nan = wires.either(x.is_nan, wires.unless(x.sign, x.is_zero))
    infinite = wires.either(nan, x.is_top)
    if form.is_deep:
        lost = wires.any(wires.differ(wires.product(root, root), radicand))
        return _round_deep(wires, form, x.sign, field, root, lost, nan, infinite, x.is_zero)
    return _round(wires, form, x.sign, field, root, nan, infinite, x.is_zero)


def _radicand(wires: Wires, form: Format, significand: Ref, odd: Ref) -> Ref:
    """The significand, doubled for an odd exponent, above zeros: two bits for each digit of the root."""
    fraction = wires.low_bits(significand, form.fraction_bits)
    doubled = wires.cat(wires.flag(True), fraction, wires.const(0, 1))
    plain = wires.cat(wires.flag(False), wires.flag(True), fraction)
    return wires.scaled(wires.select(odd, doubled, plain), form.fraction_bits + 2)


def _round(
    wires: Wires, form: Format, sign: Ref, field: Ref, root: Ref, nan: Ref, infinite: Ref, zero: Ref
) -> Ref:
    """Pack a root of F + 2 digits, the first of them 1, the last the rounding bit; ``field`` is in range."""
    special = wires.either(infinite, zero)
    keep = wires.invert(special)
    digits = wires.window(root, form.fraction_bits, 0)
    digits = wires.both(digits, wires.spread(keep, form.fraction_bits + 1))
    field = wires.resize(field, form.exponent_bits)
    base = wires.select(zero, wires.const(0, form.exponent_bits), field)
    base = wires.either(base, wires.spread(infinite, form.exponent_bits))
    upper = wires.cat(base, nan, *wires.zeros(form.fraction_bits - 1))
    fraction = wires.high_bits(digits, form.fraction_bits)
    magnitude = increment(wires, form, upper, fraction, wires.bit(digits, 0))
    return pack(wires, form, wires.unless(sign, nan), magnitude)


def _round_deep(
    wires: Wires, form: Format, sign: Ref, field: Ref, root: Ref, lost: Ref, nan: Ref, infinite: Ref,
    zero: Ref,
) -> Ref:
    """The same for a field of any size; ``lost``: whether the root has digits beyond those given."""
    builder, span, precision = wires.builder, field.type, form.fraction_bits + 1
    assert isinstance(span, IntType)
    past = wires.less(builder.const(span, form.top - 1), field)
    infinite = wires.either(infinite, past)
    small = wires.less(field, builder.const(span, 1))
    places = wires.resize(wires.subtract(builder.const(span, 1), field), span.width_bits)
    amount = wires.select(small, places, wires.const(0, span.width_bits))
    moved, dropped = shifts.shift_right_sticky(wires, root, amount)
    digits = wires.window(moved, precision, 0)
    special = wires.either(infinite, zero)
    digits = wires.both(digits, wires.spread(wires.invert(special), precision + 1))
    field = wires.resize(wires.subtract(field, builder.const(span, 1)), form.exponent_bits)
    base = wires.select(wires.either(small, zero), wires.const(0, form.exponent_bits), field)
    base = wires.either(base, wires.spread(infinite, form.exponent_bits))
    upper = wires.cat(base, nan, *wires.zeros(form.fraction_bits - 1))
    up = decide(wires, digits, 1, wires.unless(wires.either(dropped, lost), special))
    magnitude = increment(wires, form, upper, wires.high_bits(digits, precision), up)
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
    span = form.span
    raised = wires.add(number.exponent, builder.const(span, 1))
    odd, half = wires.bit(raised, 0), wires.right(raised, 1)
    most = builder.const(span, form.bias - 1 + (form.bias + 1) // 2)
    field = wires.subtract(most, half)
    zero = wires.const(0, 1)
    divisor = wires.select(odd, wires.cat(number.significand, zero), wires.cat(zero, number.significand))
    dividend = wires.const((1 << (fraction + 1)) - 1, fraction + 2)
    square, _ = recurrence.divide(wires, dividend, divisor, 2 * fraction + 4, below=1)
    root = recurrence.square_root(wires, square, leads=True)
    nan = wires.either(x.is_nan, wires.unless(x.sign, x.is_zero))
    infinite = wires.either(nan, x.is_zero)
    if form.is_deep:  # where the root is exact, its digits end in ones: more are lost in any case
        lost = wires.flag(True)
        return _round_deep(wires, form, x.sign, field, root, lost, nan, infinite, x.is_infinite)
    return _round(wires, form, x.sign, field, root, nan, infinite, x.is_infinite)
