"""Division and square root in little space, one digit a cycle, where an item comes only now and then.

Two iterative units follow one another. The first moves the operands' significands up for subnormals: four
bits a cycle while so many are 0, else one. The second is the recurrence of ``recurrence``, one row. Its count
of digits makes up for all shifts of the result: it goes on until the significand and its rounding bit are
full, and stops early for a subnormal result, as its exponent counts down to 0 with the digits. What is then
left of the dividend says whether the result is exact.
"""
from __future__ import annotations

from itertools import product

from kera_hw.graph.node import Ref
from kera_hw.rtl.lower.builder import Builder
from kera_hw.rtl.lower.floats.fields import Fields, Format
from kera_hw.rtl.lower.floats.kinds import kind_flags, quotient_kind
from kera_hw.rtl.lower.floats.rounding import increment, pack
from kera_hw.rtl.lower.floats.wires import Wires
from kera_hw.rtl.lower.iterating import cycles_of, iterate
from kera_hw.types import FloatType, IntType


def _div_steps(kind: FloatType) -> int:
    """One a digit of a quotient below 1, one to look at what the last digit left, one to decide by it."""
    return kind.fraction_bits + 5


def initiation_interval_of_div(kind: FloatType) -> int:
    """Cycles between items that an iterative division needs."""
    return cycles_of(_div_steps(kind))


def initiation_interval_of_sqrt(kind: FloatType) -> int:
    """Cycles between items that an iterative square root needs."""
    return cycles_of(kind.fraction_bits + 2)


def lower_div(builder: Builder, kind: FloatType, a: Ref, b: Ref) -> Ref:
    """``a / b`` rounded once to nearest even."""
    wires, form = Wires(builder), Format(kind)
    assert not form.is_deep, f"exponents of {kind} are too short for the iterative division's count"
    x, y = Fields(wires, form, a), Fields(wires, form, b)
    precision = form.fraction_bits + 1
    span = IntType(form.exponent_bits + 3, True)
    difference = wires.subtract(wires.cast(x.exponent, span), wires.cast(y.exponent, span))
    # The field of a quotient of 1 or more, and as many as it has digits beside the rounding bit's.
    place = wires.add(difference, builder.const(span, form.bias + precision))
    off, sign = wires.flag(False), wires.differ(x.sign, y.sign)
    kinds = [*kind_flags(wires, x), *kind_flags(wires, y)]
    # A subnormal's exponent counts one more than its field.
    less = wires.unless(y.is_small, x.is_small)
    change = wires.cat(less, less, less, wires.differ(x.is_small, y.is_small))
    carried = [x.significand, y.significand, place, change, sign, off, off, off, *kinds]
    top, bottom, place, _, sign, nan, infinite, special, *_ = iterate(
        builder, carried, _moves(form) + 1, _move_up
    )
    none = wires.either(special, wires.less(place, builder.const(span, 0)))
    place = wires.resize(wires.select(none, builder.const(span, 0), place), form.exponent_bits + 2)
    low, feed = wires.right(top, 1), wires.bit(top, 0)
    numbers = [low, wires.low_bits(bottom, precision - 1), wires.const(0, precision + 1), place]
    kept = [nan, infinite, wires.unless(sign, nan)]
    _, _, quotient, place, _, _, _, up, overflows, nan, infinite, sign = iterate(
        builder, [*numbers, wires.flag(True), feed, off, off, off, *kept], _div_steps(kind), _divide_row
    )
    finite = wires.spread(wires.invert(overflows), precision)
    significand = wires.both(wires.high_bits(quotient, precision), finite)
    out = wires.either(overflows, infinite)
    base = wires.either(wires.low_bits(place, form.exponent_bits), wires.spread(out, form.exponent_bits))
    upper = wires.cat(base, nan, *wires.zeros(form.fraction_bits - 1))
    return pack(wires, form, sign, increment(wires, form, upper, significand, up))


def _move_up(builder: Builder, state: list[Ref]) -> list[Ref]:
    """Shift each significand up unless its top bit is set, and keep the place of the quotient, a step later.

    What kind of result it will be is found out meanwhile.
    """
    wires = Wires(builder)
    top, bottom, place, change, sign, _, _, _, *kinds = state
    (top, lower, four_less), (bottom, higher, four_more) = _up(wires, top), _up(wires, bottom)
    rows = [
        (4 if far_up else up) - (4 if far_down else down)
        for up, far_up, down, far_down in product((0, 1), repeat=4)
    ]
    case = wires.cat(higher, four_more, lower, four_less)
    table = wires.resize(Wires(builder).lookup(case, rows), wires.width(change))
    place = wires.add(place, wires.cast(wires.cast(change, IntType(wires.width(change), True)), place.type))
    return [top, bottom, place, table, sign, *quotient_kind(wires, *kinds), *kinds]


def _up(wires: Wires, number: Ref) -> tuple[Ref, Ref, Ref]:
    """A significand moved up four bits or one while they are 0; whether it moves, and whether by four."""
    width = wires.width(number)
    low = wires.invert(wires.bit(number, width - 1))
    far = wires.none(wires.high_bits(number, 4)) if width > 4 else wires.flag(False)
    moved = wires.select(far, wires.left(number, 4), wires.left(number, 1))
    return wires.select(low, moved, number), low, far


def _moves(form: Format) -> int:
    """Steps that move any significand up: all fours, then up to three ones."""
    return form.fraction_bits // 4 + min(form.fraction_bits, 3)


def _divide_row(builder: Builder, state: list[Ref]) -> list[Ref]:
    """One row: another digit, unless the quotient is full or the digits have run out.

    Beside it stand what the digits so far mean: whether nothing is left, whether to round up, and whether
    the exponent is past the finite ones.
    """
    wires = Wires(builder)
    low, divisor, quotient, place, positive, feed, exact, _, _, *kept = state
    width = wires.width(low)
    active = wires.unless(wires.any(place), wires.bit(quotient, width))
    twice = wires.cat(low, feed)
    operand = wires.flip_if(positive, wires.cat(wires.const(0b11, 2), divisor))
    total = wires.add(twice, operand, wires.cast(positive, twice.type))
    digit = wires.bit(total, width)
    less = wires.subtract(place, builder.const(place.type, 1))
    half, lowest = wires.bit(quotient, 0), wires.bit(quotient, 1)
    bits = wires.width(place)
    overflows = wires.either(
        wires.any(wires.bits(place, bits - 1, bits - 2)), wires.all(wires.bits(place, bits - 3, 1))
    )
    up = wires.both(half, wires.either(lowest, wires.invert(exact)), wires.invert(overflows))
    return [
        wires.select(active, wires.low_bits(total, width), low),
        divisor,
        wires.select(active, wires.cat(wires.low_bits(quotient, width), digit), quotient),
        wires.select(active, less, place),
        wires.select(active, digit, positive),
        wires.flag(False),  # only the first row has a bit of the dividend left to take
        wires.either(exact, wires.unless(wires.none(low), feed)), up, overflows, *kept,
    ]


def lower_sqrt(builder: Builder, kind: FloatType, a: Ref) -> Ref:
    """The square root rounded to nearest even; NaN below zero, and -0 for -0."""
    wires, form = Wires(builder), Format(kind)
    assert not form.is_deep, f"a root in {kind} may be subnormal, which the iterative one does not round"
    x = Fields(wires, form, a)
    precision, off = form.fraction_bits + 1, wires.flag(False)
    span = IntType(form.exponent_bits + 2, True)
    doubled = wires.add(wires.cast(x.exponent, span), builder.const(span, form.bias))
    kinds = [x.sign, x.is_small, x.is_top, wires.none(x.fraction)]
    significand, doubled, _, nan, infinite, zero, sign, *_ = iterate(
        builder, [x.significand, doubled, off, off, off, off, *kinds], _moves(form), _move_root_up
    )
    odd = wires.bit(doubled, 0)
    field = wires.resize(wires.right(doubled, 1), form.exponent_bits)
    empty = wires.const(0, 1)
    radicand = wires.select(odd, wires.cat(significand, empty), wires.cat(empty, significand))
    rest, root = wires.const(0, precision + 2), wires.const(0, precision + 1)
    _, root, _, field, _, nan, infinite, zero, sign = iterate(
        builder, [rest, root, radicand, field, wires.flag(True), nan, infinite, zero, sign],
        precision + 1, _root_row,
    )
    keep = wires.spread(wires.invert(wires.either(infinite, zero)), precision + 1)
    digits = wires.both(root, keep)
    width = form.exponent_bits
    base = wires.either(wires.select(zero, wires.const(0, width), field), wires.spread(infinite, width))
    upper = wires.cat(base, nan, *wires.zeros(form.fraction_bits - 1))
    fraction = wires.bits(digits, form.fraction_bits, 1)
    magnitude = increment(wires, form, upper, fraction, wires.bit(digits, 0))
    return pack(wires, form, wires.unless(sign, nan), magnitude)


def _move_root_up(builder: Builder, state: list[Ref]) -> list[Ref]:
    """Shift the significand up four bits or one while they are 0; twice the field goes down with it.

    As in division a subnormal's first bit up is free, and the kind of result is found out meanwhile.
    """
    wires = Wires(builder)
    significand, doubled, begun, _, _, _, *kinds = state
    sign, small, top, plain = kinds
    significand, low, far = _up(wires, significand)
    # Less 4 or 1, but in the first step 3 or 0.
    most = wires.unless(far, begun)
    change = wires.cat(wires.both(far, begun), most, wires.either(most, wires.unless(begun, far)))
    change = wires.cast(change, doubled.type)
    zero = wires.both(small, plain)
    nan = wires.either(wires.unless(top, plain), wires.unless(sign, zero))
    return [
        significand,
        wires.select(low, wires.subtract(doubled, change), doubled),
        wires.flag(True), nan, wires.either(nan, top), zero, *kinds,
    ]


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
