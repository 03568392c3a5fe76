"""Division: a digit recurrence over normalised significands, then one shift and one rounding.

The recurrence's first digit says whether the quotient is below 1; the shift that makes up for it and the one
that a subnormal result needs are one. Infinity, zero and NaN shift everything out and set the exponent field.
"""
from __future__ import annotations

from dataclasses import dataclass

from kera_hw.graph.node import Ref
from kera_hw.rtl.lower.builder import Builder
from kera_hw.rtl.lower.floats import recurrence, words
from kera_hw.rtl.lower.floats.fields import Fields, Format, Wires
from kera_hw.rtl.lower.floats.ranks import funnel_right, shift_left
from kera_hw.rtl.lower.floats.rounding import decide, increment, pack
from kera_hw.types import FloatType, IntType


@dataclass(frozen=True, slots=True)
class Scaled:
    """A finite number not 0 as ``significand * 2^(exponent - bias - F)``, the significand's top bit set."""

    significand: Ref
    exponent: Ref
    """Biased, signed: below 1 for subnormals."""


def scaled(wires: Wires, form: Format, fields: Fields) -> Scaled:
    """A number's significand moved up, subnormal or not."""
    significand = fields.significand
    zeros = wires.leading_zeros(significand)
    span = IntType(form.exponent_bits + 2, True)
    exponent = wires.subtract(wires.cast(fields.scale, span), wires.cast(zeros, span))
    return Scaled(shift_left(wires, significand, zeros), exponent)


def lower_div(builder: Builder, kind: FloatType, a: Ref, b: Ref) -> Ref:
    """``a / b`` rounded once to nearest even."""
    wires, form = Wires(builder), Format(kind)
    x, y = Fields(wires, form, a), Fields(wires, form, b)
    top, bottom = scaled(wires, form, x), scaled(wires, form, y)
    digits = form.fraction_bits + 3  # a significand, its rounding bit, and one more for a quotient below 1
    quotient, remains = recurrence.divide(
        builder, words.of(builder, top.significand), words.of(builder, bottom.significand), digits
    )
    span = IntType(form.exponent_bits + 2, True)
    difference = wires.subtract(top.exponent, bottom.exponent)
    exponent = wires.add(difference, builder.const(span, form.bias - 2))
    nan = wires.either(
        x.is_nan, y.is_nan, wires.both(x.is_zero, y.is_zero), wires.both(x.is_infinite, y.is_infinite)
    )
    infinite = wires.either(nan, x.is_top, y.is_zero)
    zero = wires.either(x.is_zero, y.is_top)
    base, amount = _placement(
        wires, form, exponent, words.bit(builder, quotient, digits - 1), infinite, zero
    )
    window, sticky = funnel_right(wires, words.scale(builder, quotient, 1), amount, digits)
    up = decide(wires, window, 2, wires.either(sticky, remains))
    upper = wires.cat(base, nan, wires.const(0, form.fraction_bits - 1))
    significand = wires.bits(window, digits - 1, 2)
    sign = wires.unless(wires.differ(x.sign, y.sign), nan)
    return pack(wires, form, sign, increment(wires, form, upper, significand, up))


def _placement(
    wires: Wires, form: Format, exponent: Ref, above: Ref, infinite: Ref, zero: Ref
) -> tuple[Ref, Ref]:
    """The exponent field without the hidden bit, and how far twice the quotient goes to the right.

    ``exponent`` is the field that a quotient below 1 has, less 1; ``above`` says that it is 1 or more, which
    adds one to the field and to the shift. An infinity and a zero shift everything out.
    """
    builder, span = wires.builder, exponent.type
    assert isinstance(span, IntType)
    bits = (form.fraction_bits + 4).bit_length()
    below = wires.less(exponent, builder.const(span, 0))
    wanted = wires.resize(wires.subtract(builder.const(span, 0), exponent), span.width_bits)
    too_far = wires.any(wires.bits(wanted, span.width_bits - 1, bits))
    far = wires.either(wires.resize(wanted, bits), wires.spread(too_far, bits))
    field = wires.resize(wires.add(exponent, wires.cast(above, span)), span.width_bits)
    last = wires.const(form.top - 1, span.width_bits)
    overflows = wires.both(wires.invert(below), wires.invert(wires.less(field, last)))
    infinite = wires.either(infinite, overflows)
    small = wires.either(below, zero)
    base = wires.select(small, wires.const(0, form.exponent_bits), wires.resize(field, form.exponent_bits))
    amount = wires.select(below, far, wires.resize(wires.cast(above, IntType(1, False)), bits))
    out = wires.either(infinite, zero)
    return (
        wires.either(base, wires.spread(infinite, form.exponent_bits)),
        wires.either(amount, wires.spread(out, bits)),
    )


def lower_recip(builder: Builder, kind: FloatType, a: Ref) -> Ref:
    """``1 / a`` rounded once: a division whose constant numerator folds away."""
    form = Format(kind)
    one = builder.const(form.word, form.bias << form.fraction_bits)
    return lower_div(builder, kind, one, a)
