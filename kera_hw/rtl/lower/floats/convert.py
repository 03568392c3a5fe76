"""Conversions between floats, and between floats and integers or fixed point of every width."""
from __future__ import annotations

from kera_hw.graph.node import Ref
from kera_hw.rtl.lower.builder import Builder
from kera_hw.rtl.lower.floats import shifts
from kera_hw.rtl.lower.floats.counted import counted
from kera_hw.rtl.lower.floats.fields import Fields, Format, unpack
from kera_hw.rtl.lower.floats.normal import normalise, round_staged
from kera_hw.rtl.lower.floats.ranks import shift_right, shift_right_sticky
from kera_hw.rtl.lower.floats.rounding import decide
from kera_hw.rtl.lower.floats.wires import Wires, uint
from kera_hw.types import BoolType, FixType, FloatType, IntType, Type


def raw_type(kind: Type) -> tuple[IntType, int]:
    """The integer type and the fraction bits of an integer or fixed-point type."""
    if isinstance(kind, FixType):
        return kind.raw, kind.fraction_bits
    assert isinstance(kind, IntType)
    return kind, 0


# To floats


def from_integer(builder: Builder, source: Type, target: FloatType, raw: Ref) -> Ref:
    """An integer, a bool or the raw integer of a fixed-point value, to nearest even."""
    wires, form = Wires(builder), Format(target)
    if isinstance(source, BoolType):
        one = wires.const(form.bias << form.fraction_bits, form.width)
        return wires.select(raw, one, wires.const(0, form.width))
    kind, fraction = raw_type(source)
    sign = wires.less(raw, builder.const(kind, 0)) if kind.signed else wires.flag(False)
    if fraction == 0:
        bits = builder.cast(raw, uint(kind.width_bits))
        return wires.cat(sign, counted(wires, form, bits, sign))
    size = builder.op("integer.abs", raw) if kind.signed else raw
    size = builder.cast(size, uint(kind.width_bits))
    missing = form.fraction_bits + 3 - kind.width_bits  # for a whole significand and bits to round by
    if missing > 0:
        size = wires.cat(size, wires.const(0, missing))
    scale = form.bias + kind.width_bits - 2 - fraction
    if scale < 1:  # the value may be subnormal: zeros above it, up to where a hidden bit would stand
        size, scale = wires.cat(wires.const(0, 1 - scale), size), 1
    return wires.cat(sign, _scaled(wires, form, size, scale))


def _scaled(wires: Wires, form: Format, value: Ref, scale: int) -> Ref:
    """Magnitude bits of an unsigned value whose second highest bit has the biased exponent ``scale``."""
    bits = max(form.exponent_bits, scale.bit_length())
    staged = normalise(wires, value, wires.const(scale, bits), form.exponent_bits)
    magnitude = round_staged(wires, form, staged, wires.flag(False))
    if scale + 1 < form.top:
        return magnitude
    zeros = wires.leading_zeros(value)
    over = wires.less(zeros, wires.builder.const(zeros.type, scale + 2 - form.top))
    return wires.select(over, wires.const(form.infinity, form.width - 1), magnitude)


# Between formats


def between(builder: Builder, source: FloatType, target: FloatType, word: Ref) -> Ref:
    """Another float format, to nearest even."""
    x, form = unpack(builder, source, word), Format(target)
    wires = x.wires
    if target.exponent_bits == source.exponent_bits:
        magnitude = _same_exponents(x, form)
    elif target.exponent_bits > source.exponent_bits:
        magnitude = _more_exponents(x, form)
    else:
        magnitude = _fewer_exponents(x, form)
    result = wires.select(x.is_nan, wires.const(form.nan, form.width - 1), magnitude)
    return wires.cat(wires.unless(x.sign, x.is_nan), result)


def _same_exponents(x: Fields, form: Format) -> Ref:
    """The exponent field stays, of subnormals too; infinity has no fraction to round."""
    wires, dropped = x.wires, x.form.fraction_bits - form.fraction_bits
    if dropped <= 0:
        return wires.cat(x.magnitude, wires.const(0, -dropped)) if dropped else x.magnitude
    up = decide(wires, x.magnitude, dropped, wires.flag(False))
    kept = wires.high_bits(x.magnitude, form.width - 1)
    return wires.add(kept, wires.cast(up, kept.type))


def _more_exponents(x: Fields, form: Format) -> Ref:
    """Subnormals become normal numbers; a narrower fraction is rounded."""
    wires, offset = x.wires, form.bias - x.form.bias
    value = wires.cat(wires.const(0, 1), x.significand)
    missing = form.fraction_bits + 3 - wires.width(value)
    if missing > 0:
        value = wires.cat(value, wires.const(0, missing))
    scale = wires.add(wires.resize(x.scale, form.exponent_bits), wires.const(offset, form.exponent_bits))
    staged = normalise(wires, value, scale, form.exponent_bits)
    magnitude = round_staged(wires, form, staged, wires.flag(False))
    return wires.select(x.is_top, wires.const(form.infinity, form.width - 1), magnitude)


def _fewer_exponents(x: Fields, form: Format) -> Ref:
    """What is too small is moved right into a subnormal, what is too large becomes infinity."""
    wires, offset = x.wires, x.form.bias - form.bias
    kept = form.fraction_bits + 1
    value = x.significand
    if wires.width(value) < kept + 2:
        value = wires.cat(value, wires.const(0, kept + 2 - wires.width(value)))
    width = wires.width(value)
    span = IntType(x.form.exponent_bits + 2, True)
    exponent = wires.subtract(wires.cast(x.scale, span), wires.builder.const(span, offset))
    low = wires.less(exponent, wires.builder.const(span, 1))
    # 1 - exponent places to the right; from kept + 1 on nothing but the sticky bit is left.
    bits = (kept + 1).bit_length()
    places = wires.resize(wires.subtract(wires.builder.const(span, 1), exponent), span.width_bits)
    amount = wires.low_bits(places, bits)
    if bits < span.width_bits - 1:
        far = wires.any(wires.bits(places, span.width_bits - 2, bits))
        amount = wires.either(amount, wires.spread(far, bits))
    amount = wires.select(low, amount, wires.const(0, bits))
    moved, sticky = shift_right_sticky(wires, value, amount)
    field = wires.subtract(exponent, wires.builder.const(span, 1))
    base = wires.select(low, wires.const(0, form.exponent_bits), wires.resize(field, form.exponent_bits))
    up = decide(wires, moved, width - kept, sticky)
    magnitude = IntType(form.width - 1, False)
    upper = wires.cat(base, wires.const(0, form.fraction_bits))
    rounded = wires.add(upper, wires.cast(wires.high_bits(moved, kept), magnitude), wires.cast(up, magnitude))
    over = wires.less(wires.builder.const(span, form.top - 1), exponent)
    return wires.select(over, wires.const(form.infinity, form.width - 1), rounded)


# From floats


def to_integer(builder: Builder, source: FloatType, target: Type, word: Ref) -> Ref:
    """The raw integer: toward zero for integers, nearest even for fixed point; saturating, NaN gives 0."""
    kind, fraction = raw_type(target)
    x = unpack(builder, source, word)
    if isinstance(target, IntType):
        return _truncated(x, kind)
    return _rounded(x, kind, fraction)


def _truncated(x: Fields, kind: IntType) -> Ref:
    """Toward zero: the complement of a negative is shifted, and completed by the last addition.

    Magnitudes too large are all ones from the start, negative ones without the completing one: so the
    greatest and the least value come out by themselves.
    """
    wires, form = x.wires, x.form
    if not kind.signed:
        return _truncated_unsigned(x, kind)
    most = kind.width_bits - 1  # bits of the magnitude
    width = max(most, form.fraction_bits + 1)
    negative = wires.unless(x.sign, x.is_nan)
    if most == 0:
        return wires.select(
            wires.both(negative, _at_least(x, form.bias)), wires.builder.const(kind, -1),
            wires.builder.const(kind, 0),
        )
    over = wires.unless(_at_least(x, form.bias + most), x.is_nan)
    # Part by part: a LUT holds the choice and the complement.
    missing = width - form.fraction_bits - 1
    parts = [wires.differ(wires.either(wires.invert(x.is_small), over), negative), wires.flip_if(
        negative, wires.either(x.fraction, wires.spread(over, form.fraction_bits)))]
    if missing:
        parts.append(wires.spread(wires.differ(over, negative), missing))
    signed = wires.cast(wires.cat(negative, *parts), IntType(width + 1, True))
    amount = _amount(x, x.exponent, most - 1, most, over)
    moved = shift_right(wires, signed, amount)
    whole = wires.cast(wires.right(moved, width - most), kind)
    return wires.add(whole, wires.cast(wires.unless(negative, over), kind))


def _truncated_unsigned(x: Fields, kind: IntType) -> Ref:
    wires, form = x.wires, x.form
    most = kind.width_bits
    width = max(most, form.fraction_bits + 1)
    void = wires.either(x.sign, x.is_nan)
    over = wires.unless(_at_least(x, form.bias + most), void)
    value = wires.either(_top_aligned(x, width), wires.spread(over, width))
    amount = _amount(x, x.exponent, most - 1, most, over)
    amount = wires.either(amount, wires.spread(void, wires.width(amount)))
    moved = shift_right(wires, value, amount)
    return wires.cast(wires.high_bits(moved, most), kind)


def _at_least(x: Fields, exponent: int) -> Ref:
    """Whether the exponent field is at least a number (which may be beyond the field)."""
    wires, form = x.wires, x.form
    if exponent > form.top:
        return x.is_top
    return wires.invert(wires.less(x.exponent, wires.const(exponent, form.exponent_bits)))


def _top_aligned(x: Fields, width: int) -> Ref:
    missing = width - x.form.fraction_bits - 1
    return x.wires.cat(x.significand, x.wires.const(0, missing)) if missing else x.significand


def _amount(x: Fields, exponent: Ref, highest: int, clears: int, none: Ref) -> Ref:
    """How far the top-aligned significand moves right when its top has the weight 2^highest.

    Too far is all ones, which shifts at least ``clears`` bits out; where ``none`` holds, nothing moves.
    """
    wires, form = x.wires, x.form
    bits, top = clears.bit_length(), form.bias + highest  # top: the exponent field that does not move
    near = wires.resize(exponent, bits)
    # top - e is the complement of e - top - 1, a sum with a constant of few bits.
    amount = wires.invert(wires.add(near, wires.const(-(top + 1) % (1 << bits), bits)))
    least = top - (1 << bits) + 1
    far = x.is_nan
    if least > 0:
        below = wires.less(exponent, wires.const(min(least, form.top), form.exponent_bits))
        far = wires.either(far, below)
    amount = wires.either(amount, wires.spread(far, bits))
    return wires.select(none, wires.const(0, bits), amount)


def _rounded(x: Fields, kind: IntType, fraction: int) -> Ref:
    """To nearest even, then saturating, on the magnitude; the least value is saturation's own."""
    wires, form, builder = x.wires, x.form, x.wires.builder
    most = kind.width_bits - kind.signed
    if most == 0:
        return _sign_bit(x, kind, fraction)
    negative = wires.unless(x.sign, x.is_nan)
    least = form.bias + most - fraction  # the exponent field from which a number is too large
    lift = max(0, 2 - least)  # places above the target's, where that may be a subnormal
    over = wires.unless(_at_least(x, max(least, 1)), x.is_nan)
    width = max(most + 1, form.fraction_bits + 2)
    missing = width + lift - form.fraction_bits - 1
    value = wires.scaled(x.significand, missing)
    amount = _amount(x, x.scale, most - 1 - fraction + lift, width + lift, x.is_nan)
    moved, sticky = shifts.shift_right_sticky(wires, value, amount)
    if lift:
        above = wires.any(wires.window(moved, width + lift - 1, width))
        over = wires.either(over, wires.unless(above, x.is_nan))
    extra = width - most
    kept = wires.window(moved, width - 1, extra)
    if extra > 1:
        sticky = wires.either(sticky, wires.any(wires.low_bits(moved, extra - 1)))
    up = wires.both(wires.bit(moved, extra - 1), wires.either(wires.bit(kept, 0), sticky))
    up = wires.unless(up, x.is_nan)
    over = wires.either(over, wires.both(up, wires.all(kept)))
    kept = wires.select(x.is_nan, wires.const(0, most), kept)
    size = builder.cast(wires.add(kept, builder.cast(up, kept.type)), kind)
    low_end, high_end = builder.const(kind, kind.min), builder.const(kind, kind.max)
    if not kind.signed:
        return wires.select(negative, low_end, wires.select(over, high_end, size))
    whole = wires.select(negative, builder.op("integer.neg", size), size)
    return wires.select(over, wires.select(negative, low_end, high_end), whole)


def _sign_bit(x: Fields, kind: IntType, fraction: int) -> Ref:
    """A signed number of one bit: -1 for what lies below -1/2; the half is a tie with 0, which is even."""
    wires, form, builder = x.wires, x.form, x.wires.builder
    exponent = form.bias - fraction - 1
    place = form.fraction_bits + exponent - 1  # of the one bit of a subnormal half
    half = exponent << form.fraction_bits if exponent > 0 else 1 << place if place >= 0 else 0
    beyond = wires.less(wires.const(half, form.width - 1), x.magnitude)
    below = wires.both(wires.unless(x.sign, x.is_nan), beyond)
    return wires.select(below, builder.const(kind, -1), builder.const(kind, 0))
