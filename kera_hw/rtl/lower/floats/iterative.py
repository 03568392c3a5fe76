"""Division and square root in little space, one digit a cycle, where an item comes only now and then.

Two folded loops follow one another. The first moves the operands' significands up a bit a cycle, for
subnormals; the second is the recurrence of ``recurrence``, one row. Its count of digits makes up for all
shifts of the result: it goes on until the significand and its rounding bit are full, and stops early for a
subnormal result, as its exponent counts down to 0 with the digits. What is then left of the dividend says
whether the result is exact.
"""
from __future__ import annotations

from kera_hw.graph.node import Ref
from kera_hw.rtl.lower.builder import Builder
from kera_hw.rtl.lower.floats.fields import Fields, Format, Wires
from kera_hw.rtl.lower.floats.rounding import increment, pack
from kera_hw.rtl.lower.folding import cycles_of, fold
from kera_hw.types import FloatType, IntType


def interval_of_div(kind: FloatType) -> int:
    """Cycles between items that a folded division needs."""
    return cycles_of(kind.fraction_bits + 3)


def interval_of_sqrt(kind: FloatType) -> int:
    """Cycles between items that a folded square root needs."""
    return cycles_of(kind.fraction_bits + 2)


def lower_div(builder: Builder, kind: FloatType, a: Ref, b: Ref) -> Ref:
    """``a / b`` rounded once to nearest even."""
    wires, form = Wires(builder), Format(kind)
    x, y = Fields(wires, form, a), Fields(wires, form, b)
    precision = form.fraction_bits + 1
    span = IntType(form.exponent_bits + 3, True)
    plain = {fields: wires.none(fields.fraction) for fields in (x, y)}
    zero = {fields: wires.both(fields.is_small, plain[fields]) for fields in (x, y)}
    nan = wires.either(
        *(wires.unless(fields.is_top, plain[fields]) for fields in (x, y)),
        wires.both(zero[x], zero[y]), wires.both(x.is_top, y.is_top),
    )
    infinite = wires.either(nan, x.is_top, zero[y])
    special = wires.either(infinite, zero[x], y.is_top)
    sign = wires.unless(wires.differ(x.sign, y.sign), nan)
    difference = wires.subtract(wires.cast(x.scale, span), wires.cast(y.scale, span))
    # The field of a quotient of 1 or more, and as many as it has digits beside the rounding bit's.
    place = wires.add(difference, builder.const(span, form.bias + precision))
    top, bottom, place, *kept = fold(
        builder, [x.significand, y.significand, place, nan, infinite, special, sign],
        form.fraction_bits, _move_up,
    )
    nan, infinite, special, sign = kept
    none = wires.either(special, wires.less(place, builder.const(span, 0)))
    digits = wires.select(none, builder.const(span, 0), place)
    low, feed = wires.right(top, 1), wires.bit(top, 0)
    flags = [wires.flag(True), feed, wires.flag(False)]
    numbers = [low, wires.low_bits(bottom, precision - 1), wires.const(0, precision + 1), digits]
    low, _, quotient, place, _, _, exact, nan, infinite, sign = fold(
        builder, [*numbers, *flags, nan, infinite, sign], form.fraction_bits + 3, _divide_row
    )
    exact = wires.either(exact, wires.none(low))
    half, lowest = wires.bit(quotient, 0), wires.bit(quotient, 1)
    overflows = wires.invert(wires.less(place, builder.const(span, form.top - 1)))
    out = wires.either(overflows, infinite)
    up = wires.unless(wires.both(half, wires.either(lowest, wires.invert(exact))), overflows)
    finite = wires.spread(wires.invert(overflows), precision)
    kept_bits = wires.both(wires.high_bits(quotient, precision), finite)
    base = wires.either(wires.resize(place, form.exponent_bits), wires.spread(out, form.exponent_bits))
    upper = wires.cat(base, nan, wires.const(0, form.fraction_bits - 1))
    return pack(wires, form, sign, increment(wires, form, upper, kept_bits, up))


def _move_up(builder: Builder, state: list[Ref]) -> list[Ref]:
    """Shift each significand up a bit unless its top bit is set, and keep the place of the quotient."""
    wires = Wires(builder)
    top, bottom, place, *kept = state
    precision = wires.width(top)
    lower, raise_it = (wires.invert(wires.bit(number, precision - 1)) for number in (top, bottom))
    span = place.type
    assert isinstance(span, IntType)
    change = wires.cast(wires.cat(wires.spread(lower, 1), wires.const(1, 1)), IntType(2, True))
    moved = wires.add(place, wires.cast(change, span))
    return [
        wires.select(lower, wires.left(top, 1), top),
        wires.select(raise_it, wires.left(bottom, 1), bottom),
        wires.select(wires.differ(lower, raise_it), moved, place),
        *kept,
    ]


def _divide_row(builder: Builder, state: list[Ref]) -> list[Ref]:
    """One row: another digit, unless the quotient is full or the digits have run out."""
    wires = Wires(builder)
    low, divisor, quotient, place, positive, feed, exact, nan, infinite, sign = state
    width = wires.width(low)
    full = wires.bit(quotient, width)
    active = wires.unless(wires.any(wires.resize(place, wires.width(place))), full)
    twice = wires.cat(low, feed)
    operand = wires.flip_if(positive, wires.cat(wires.const(0b11, 2), divisor))
    carry = wires.cast(positive, twice.type)
    total = wires.add(twice, operand, carry)
    digit = wires.bit(total, width)
    return [
        wires.select(active, wires.low_bits(total, width), low),
        divisor,
        wires.select(active, wires.cat(wires.low_bits(quotient, width), digit), quotient),
        wires.select(active, wires.subtract(place, builder.const(place.type, 1)), place),
        wires.select(active, digit, positive),
        wires.unless(feed, active),
        wires.either(exact, wires.unless(wires.none(low), feed)),
        nan, infinite, sign,
    ]


def lower_sqrt(builder: Builder, kind: FloatType, a: Ref) -> Ref:
    """The square root rounded to nearest even; NaN below zero, and -0 for -0."""
    wires, form = Wires(builder), Format(kind)
    x = Fields(wires, form, a)
    precision = form.fraction_bits + 1
    plain = wires.none(x.fraction)
    zero = wires.both(x.is_small, plain)
    nan = wires.either(wires.unless(x.is_top, plain), wires.unless(x.sign, zero))
    infinite = wires.either(nan, x.is_top)
    span = IntType(form.exponent_bits + 2, True)
    doubled = wires.add(wires.cast(x.scale, span), builder.const(span, form.bias))
    significand, doubled, nan, infinite, zero, sign = fold(
        builder, [x.significand, doubled, nan, infinite, zero, wires.unless(x.sign, nan)],
        form.fraction_bits, _move_root_up,
    )
    odd = wires.bit(doubled, 0)
    field = wires.resize(wires.right(doubled, 1), form.exponent_bits)
    empty = wires.const(0, 1)
    radicand = wires.select(odd, wires.cat(significand, empty), wires.cat(empty, significand))
    rest, root = wires.const(0, precision + 2), wires.const(0, precision + 1)
    _, root, _, field, _, nan, infinite, zero, sign = fold(
        builder, [rest, root, radicand, field, wires.flag(True), nan, infinite, zero, sign],
        precision + 1, _root_row,
    )
    keep = wires.spread(wires.invert(wires.either(infinite, zero)), precision + 1)
    digits = wires.both(root, keep)
    width = form.exponent_bits
    base = wires.either(
        wires.select(zero, wires.const(0, width), field), wires.spread(infinite, width)
    )
    upper = wires.cat(base, nan, wires.const(0, form.fraction_bits - 1))
    fraction = wires.bits(digits, form.fraction_bits, 1)
    return pack(wires, form, sign, increment(wires, form, upper, fraction, wires.bit(digits, 0)))


def _move_root_up(builder: Builder, state: list[Ref]) -> list[Ref]:
    """Shift the significand up a bit unless its top bit is set; twice the field goes down with it."""
    wires = Wires(builder)
    significand, doubled, *kept = state
    low = wires.invert(wires.bit(significand, wires.width(significand) - 1))
    less = wires.subtract(doubled, builder.const(doubled.type, 1))
    moved = wires.left(significand, 1)
    return [wires.select(low, moved, significand), wires.select(low, less, doubled), *kept]


def _root_row(builder: Builder, state: list[Ref]) -> list[Ref]:
    """One row over the whole width: two bits of the radicand enter, one of the root."""
    wires = Wires(builder)
    rest, root, radicand, field, positive, *kept = state
    width = wires.width(rest)  # p + 2
    pair = wires.high_bits(radicand, 2)
    left = wires.cat(wires.low_bits(rest, width - 1), pair)
    above = wires.cat(wires.const(1, 1), wires.low_bits(root, width - 2))
    operand = wires.cat(wires.flip_if(positive, above), wires.const(0b11, 2))
    total = wires.add(left, operand)
    digit = wires.bit(total, width)
    return [
        wires.low_bits(total, width),
        wires.cat(wires.low_bits(root, width - 2), digit),
        wires.left(radicand, 2),
        field, digit, *kept,
    ]
