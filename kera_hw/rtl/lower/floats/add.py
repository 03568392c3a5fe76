"""Addition and subtraction: one path, special cases folded into the data rather than selected at the end.

The operand of larger magnitude is kept, the other is complemented for a difference and shifted right with
its complement's fill, so that one adder serves both; what falls off is one sticky bit, whose absence is the
carry that completes the negation. Infinity and NaN ride along: with an operand of the top exponent the other
is shifted out entirely and nothing is subtracted, so an infinity comes through by itself.
"""
from __future__ import annotations

from dataclasses import dataclass

from kera_hw.graph.node import Ref
from kera_hw.rtl.lower.builder import Builder
from kera_hw.rtl.lower.floats.fields import Fields, Format
from kera_hw.rtl.lower.floats.normal import normalise, round_staged
from kera_hw.rtl.lower.floats.ranks import shift_right_sticky
from kera_hw.rtl.lower.floats.rounding import pack
from kera_hw.rtl.lower.floats.wires import Wires
from kera_hw.types import FloatType, IntType

_GUARDS = 2
"""Bits kept below the larger operand's lowest, beside the sticky bit: what a cancellation by one needs."""


@dataclass(frozen=True, slots=True)
class _Ordered:
    """The operands by magnitude, and how they are combined."""

    larger: Ref
    """Significand of the larger operand."""
    smaller: Ref
    """Significand of the smaller one, complemented for a difference."""
    scale: Ref
    sign: Ref
    differs: Ref
    """Whether magnitudes are subtracted (never when one is infinite or NaN)."""
    distance: Ref
    """How far the smaller one is shifted right; all ones stands for "out"."""
    nan: Ref
    top: Ref
    """Whether an operand is infinite or NaN."""


def lower_add(builder: Builder, kind: FloatType, a: Ref, b: Ref) -> Ref:
    """``a + b`` rounded once."""
    return _sum(Wires(builder), Format(kind), a, b, None)


def lower_sub(builder: Builder, kind: FloatType, a: Ref, b: Ref) -> Ref:
    """``a - b`` rounded once: the sum with b's sign turned, which costs nothing."""
    return _sum(Wires(builder), Format(kind), a, b, True)


def _sum(wires: Wires, form: Format, a: Ref, b: Ref, negate: bool | None) -> Ref:
    x, y = Fields(wires, form, a), Fields(wires, form, b)
    y_sign = wires.invert(y.sign) if negate else y.sign
    ordered = _order(wires, form, x, y, y_sign)
    aligned, sticky = _align(wires, ordered.smaller, ordered.differs, ordered.distance)
    total = _combine(wires, ordered, aligned, sticky)
    return _round(wires, form, ordered, total, sticky)


def _order(wires: Wires, form: Format, x: Fields, y: Fields, y_sign: Ref) -> _Ordered:
    swap = wires.less(x.magnitude, y.magnitude)
    x_top, y_top = x.is_top, y.is_top
    some_top = wires.either(x_top, y_top)
    opposite = wires.differ(x.sign, y_sign)
    differs = wires.unless(opposite, some_top)
    magnitude = wires.select(swap, y.magnitude, x.magnitude)
    fraction = wires.low_bits(magnitude, form.fraction_bits)
    hidden_larger = wires.select(swap, wires.invert(y.is_small), wires.invert(x.is_small))
    hidden_smaller = wires.select(swap, wires.invert(x.is_small), wires.invert(y.is_small))
    # Complemented part by part: a LUT holds the choice and the complement.
    smaller = wires.cat(
        wires.differ(hidden_smaller, differs),
        wires.flip_if(differs, wires.select(swap, x.fraction, y.fraction)),
    )
    exponent = wires.high_bits(magnitude, form.exponent_bits)
    lowest = wires.either(wires.bit(exponent, 0), wires.invert(hidden_larger))
    both_top = wires.both(x_top, y_top)
    nan = wires.both(some_top, wires.either(wires.any(fraction), wires.both(both_top, opposite)))
    return _Ordered(
        larger=wires.cat(hidden_larger, fraction),
        smaller=smaller,
        scale=wires.cat(wires.bits(exponent, form.exponent_bits - 1, 1), lowest),
        sign=wires.select(swap, y_sign, x.sign),
        differs=differs,
        distance=_distance(wires, form, x.scale, y.scale, swap, some_top),
        nan=nan,
        top=some_top,
    )


def _distance(wires: Wires, form: Format, a: Ref, b: Ref, swap: Ref, out: Ref) -> Ref:
    """The difference of the exponents, larger less smaller; all ones where it is past the last bit."""
    bits = (form.fraction_bits + _GUARDS + 1).bit_length()
    span = IntType(form.exponent_bits + 1, True)
    one_way = wires.resize(wires.subtract(wires.cast(a, span), wires.cast(b, span)), form.exponent_bits)
    other_way = wires.resize(wires.subtract(wires.cast(b, span), wires.cast(a, span)), form.exponent_bits)
    difference = wires.select(swap, other_way, one_way)
    if bits < form.exponent_bits:
        upper = wires.select(
            swap,
            wires.bits(other_way, form.exponent_bits - 1, bits),
            wires.bits(one_way, form.exponent_bits - 1, bits),
        )
        out = wires.either(out, wires.any(upper))
    near = wires.low_bits(difference, bits) if bits < form.exponent_bits else wires.resize(difference, bits)
    return wires.either(near, wires.spread(out, wires.width(near)))


def _align(wires: Wires, smaller: Ref, fill: Ref, distance: Ref) -> tuple[Ref, Ref]:
    """The smaller significand with its guard bits, shifted with copies of ``fill``; whether bits fell off."""
    plain = wires.cat(fill, smaller, wires.spread(fill, _GUARDS))
    value = wires.cast(plain, IntType(wires.width(plain), True))
    return shift_right_sticky(wires, value, distance, fill)


def _combine(wires: Wires, ordered: _Ordered, aligned: Ref, sticky: Ref) -> Ref:
    """``larger ± smaller`` with guard bits and room for a carry; never negative."""
    width = wires.width(ordered.larger) + _GUARDS + 1
    kind = IntType(width, False)
    larger = wires.cat(wires.const(0, 1), ordered.larger, wires.const(0, _GUARDS))
    carry = wires.unless(ordered.differs, sticky)
    signed = wires.cast(aligned, IntType(width, True))
    return wires.add(larger, wires.cast(signed, kind), wires.cast(carry, kind))


def _round(wires: Wires, form: Format, ordered: _Ordered, total: Ref, sticky: Ref) -> Ref:
    """Normalise as far as the exponent allows, round, and give the special results.

    What overflows by its carry is shifted out, so that the fraction of infinity is 0 and nothing is rounded.
    """
    width = wires.width(total)
    top_bit = wires.bit(total, width - 1)
    nearly = wires.all(wires.bits(ordered.scale, form.exponent_bits - 1, 1))
    overflows = wires.both(nearly, wires.invert(wires.bit(ordered.scale, 0)), top_bit)
    out = wires.either(ordered.top, overflows)
    staged = normalise(wires, total, ordered.scale, form.exponent_bits, out)
    # Only with the top exponent is there a NaN, and its fraction was shifted out: the quiet bit is free.
    quiet = wires.cat(ordered.nan, *wires.zeros(form.fraction_bits - 1))
    result = round_staged(wires, form, staged, sticky, quiet)
    cancelled = wires.both(ordered.differs, wires.none(total))
    return pack(wires, form, wires.unless(ordered.sign, wires.either(ordered.nan, cancelled)), result)
