"""Division: a digit recurrence over normalised significands, then one shift and one rounding.

The recurrence's first digit says whether the quotient is below 1; the shift that makes up for it and the one
that a subnormal result needs are one. Infinity, zero and NaN shift everything out and set the exponent field.
"""
from __future__ import annotations

from dataclasses import dataclass

from kera_hw.graph.laws.floats import inverse_of
from kera_hw.graph.node import Ref
from kera_hw.rtl.lower.builder import Builder
from kera_hw.rtl.lower.floats import iterative, recurrence
from kera_hw.rtl.lower.floats.fields import Fields, Format
from kera_hw.rtl.lower.floats.kinds import kind_flags, quotient_kind
from kera_hw.rtl.lower.floats.mul import lower_mul
from kera_hw.rtl.lower.floats.ranks import funnel_right, shift_left
from kera_hw.rtl.lower.floats.rounding import decide, increment, pack
from kera_hw.rtl.lower.floats.wires import Wires, uint
from kera_hw.types import FloatType, IntType


@dataclass(frozen=True, slots=True)
class Scaled:
    """A finite number not 0 as ``significand * 2^(exponent - bias - F)``, the significand's top bit set."""

    significand: Ref
    exponent: Ref
    """Biased, signed: below 1 for subnormals."""


def scaled(wires: Wires, form: Format, fields: Fields) -> Scaled:
    """A number's significand moved up, subnormal or not. (Zero gets the top bit too, and is no number.)"""
    significand = fields.significand
    zeros = wires.leading_zeros(significand)
    exponent = wires.subtract(wires.cast(fields.scale, form.span), wires.cast(zeros, form.span))
    moved = shift_left(wires, significand, zeros)
    return Scaled(wires.cat(wires.flag(True), wires.low_bits(moved, form.fraction_bits)), exponent)


def lower_div(builder: Builder, kind: FloatType, a: Ref, b: Ref) -> Ref:
    """``a / b`` rounded once to nearest even."""
    known = builder.value(b)
    inverse = None if known is None else inverse_of(kind, known)
    if inverse is not None:  # of one element of a tensor of constants, which no law of graphs sees
        return lower_mul(builder, kind, a, builder.const(Format(kind).word, inverse))
    long_enough = builder.initiation_interval >= iterative.initiation_interval_of_div(kind)
    if long_enough and not Format(kind).is_deep:
        return iterative.lower_div(builder, kind, a, b)
    wires, form = Wires(builder), Format(kind)
    x, y = Fields(wires, form, a), Fields(wires, form, b)
    top, bottom = scaled(wires, form, x), scaled(wires, form, y)
    digits = form.fraction_bits + 3  # a significand, its rounding bit, and one more for a quotient below 1
    quotient, remains = recurrence.divide(wires, top.significand, bottom.significand, digits)
    above = wires.bit(quotient, digits - 1)
    place = _place(wires, form, x, y, wires.subtract(top.exponent, bottom.exponent), above)
    amount = place.amount(wires, above)
    window, sticky = funnel_right(wires, wires.scaled(quotient, 1), amount, digits)
    up = decide(wires, window, 2, wires.either(sticky, remains))
    upper = wires.cat(place.base(wires), place.nan(wires), *wires.zeros(form.fraction_bits - 1))
    significand = wires.bits(window, digits - 1, 2)
    sign = wires.unless(wires.differ(x.sign, y.sign), place.nan(wires))
    return pack(wires, form, sign, increment(wires, form, upper, significand, up))


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a quotient goes, in as few bits as can wait beside the recurrence for its end.

    ``field`` is the exponent field less the hidden bit, unless ``odd``: then it holds how far twice the
    quotient goes to the right (all ones: entirely), and above that whether the result is infinite, and NaN.
    """

    form: Format
    odd: Ref
    field: Ref

    def amount(self, wires: Wires, above: Ref) -> Ref:
        """How far twice the quotient goes to the right; a quotient of 1 or more goes one place."""
        bits = amount_bits(self.form)
        plain = wires.resize(wires.cast(above, uint(1)), bits)
        return wires.select(self.odd, wires.low_bits(self.field, bits), plain)

    def base(self, wires: Wires) -> Ref:
        """The exponent field less the hidden bit."""
        width = self.form.exponent_bits
        infinite = wires.bit(self.field, amount_bits(self.form))
        return wires.select(self.odd, wires.spread(infinite, width), wires.low_bits(self.field, width))

    def nan(self, wires: Wires) -> Ref:
        return wires.both(self.odd, wires.bit(self.field, amount_bits(self.form) + 1))


def amount_bits(form: Format) -> int:
    """Bits of a shift that can move twice the quotient out."""
    return (form.fraction_bits + 4).bit_length()


def _place(wires: Wires, form: Format, x: Fields, y: Fields, difference: Ref, above: Ref) -> _Place:
    """``difference`` is that of the operands' exponents; ``above`` says that the quotient is at least 1."""
    builder, span, bits = wires.builder, difference.type, amount_bits(form)
    assert isinstance(span, IntType)
    nan, infinite, special = quotient_kind(wires, *kind_flags(wires, x), *kind_flags(wires, y))
    # Each spelt by the one before: the registers between then hold one code, not three flags.
    infinite = wires.either(nan, infinite)
    special = wires.either(infinite, special)
    # The field that a quotient below 1 has, less 1.
    exponent = wires.add(difference, builder.const(span, form.bias - 2))
    below = wires.less(exponent, builder.const(span, 0))
    # -n is ~(n - 1), and n - 1 comes from the difference as n does: no sum waits for another.
    wanted = wires.invert(wires.add(difference, builder.const(span, form.bias - 3)))
    wanted = wires.resize(wanted, span.width_bits)
    too_far = wires.any(wires.bits(wanted, span.width_bits - 1, bits))
    field = wires.resize(wires.add(exponent, wires.cast(above, span)), span.width_bits)
    past = wires.any(wires.bits(field, span.width_bits - 1, form.exponent_bits))
    last = wires.all(wires.bits(field, form.exponent_bits - 1, 1))
    overflows = wires.unless(wires.either(past, last), below)
    out = wires.either(special, overflows)
    amount = wires.either(wires.resize(wanted, bits), wires.spread(wires.either(out, too_far), bits))
    coded = wires.cat(nan, wires.either(infinite, overflows), amount)
    odd = wires.either(out, below)
    width = max(form.exponent_bits, bits + 2)
    return _Place(form, odd, wires.select(odd, wires.resize(coded, width), wires.resize(field, width)))


def lower_recip(builder: Builder, kind: FloatType, a: Ref) -> Ref:
    """``1 / a`` rounded once: a division whose constant numerator folds away."""
    form = Format(kind)
    one = builder.const(form.word, form.bias << form.fraction_bits)
    return lower_div(builder, kind, one, a)
