"""Multiplication: one product, one shift of the result, one rounding.

Subnormal operands are not normalised: the leading zeros of the one that is subnormal are counted while the
multipliers work, and the product is moved once, to the left for a subnormal operand, to the right for a
subnormal result, before the usual choice between its two highest places. Where both operands are subnormal
the product lies far below the smallest number, so which of them was counted does not matter.
"""
from __future__ import annotations

from kera_hw.graph.node import Ref
from kera_hw.rtl.lower.builder import Builder, index_type
from kera_hw.rtl.lower.floats import words
from kera_hw.rtl.lower.floats.fields import Fields, Format, Wires
from kera_hw.rtl.lower.floats.ranks import funnel_right
from kera_hw.rtl.lower.floats.rounding import increment, pack
from kera_hw.types import FloatType, IntType


def lower_mul(builder: Builder, kind: FloatType, a: Ref, b: Ref) -> Ref:
    """``a * b`` rounded once."""
    wires, form = Wires(builder), Format(kind)
    x, y = Fields(wires, form, a), Fields(wires, form, b)
    precision = form.fraction_bits + 1
    product = words.multiply(builder, words.of(builder, x.significand), words.of(builder, y.significand))
    nan = wires.either(
        x.is_nan, y.is_nan, wires.both(x.is_top, y.is_zero), wires.both(y.is_top, x.is_zero)
    )
    base, amount = _placement(wires, form, x, y)
    # Bits 2p-1 and 2p-2 of the product are the places its highest bit may take; the window ends below the
    # rounding bit of the lower one.
    scaled = words.scale(builder, product, 1)
    window, sticky = funnel_right(wires, scaled, amount, precision + 2)
    return _round(wires, form, wires.differ(x.sign, y.sign), nan, base, window, sticky)


def _placement(wires: Wires, form: Format, x: Fields, y: Fields) -> tuple[Ref, Ref]:
    """The exponent field less the product's highest bit, and how far the product is shifted right.

    A product shifted by more than its width stands for an infinity, whose exponent field is all ones.
    """
    precision = form.fraction_bits + 1
    span = IntType(form.exponent_bits + 2, True)
    total = wires.add(wires.cast(x.scale, span), wires.cast(y.scale, span))
    exponent = wires.subtract(total, wires.builder.const(span, form.bias))
    some_small = wires.either(x.is_small, y.is_small)
    counted = wires.cat(wires.invert(some_small), wires.select(x.is_small, x.fraction, y.fraction))
    zeros = wires.leading_zeros(counted)
    remaining = wires.subtract(exponent, wires.cast(zeros, span))
    below = wires.less(remaining, wires.builder.const(span, 0))
    most = 2 * precision + 1
    bits = most.bit_length()
    near = _right_of(wires, zeros, precision - 1, bits)
    far = _far_amount(wires, exponent, precision - 1, bits)
    amount = wires.select(below, far, near)
    too_large = wires.unless(
        wires.less(wires.builder.const(span, form.top - 1), remaining), wires.none(counted)
    )
    out = wires.either(x.is_top, y.is_top, too_large)
    base = wires.select(
        wires.either(below, wires.none(counted)), wires.const(0, form.exponent_bits),
        wires.resize(remaining, form.exponent_bits),
    )
    return (
        wires.either(base, wires.spread(out, form.exponent_bits)),
        wires.either(amount, wires.spread(out, bits)),
    )


def _right_of(wires: Wires, zeros: Ref, start: int, bits: int) -> Ref:
    """``start - zeros``; what zeros beyond ``start`` give does not matter, the product being 0."""
    kind = index_type((1 << bits) - 1)
    return wires.subtract(wires.builder.const(kind, start), wires.cast(zeros, kind))


def _far_amount(wires: Wires, exponent: Ref, start: int, bits: int) -> Ref:
    """``start - exponent`` where the exponent is small, all ones where that is past the last bit."""
    span = IntType(wires.width(exponent) + 1, True)
    wanted = wires.subtract(wires.builder.const(span, start), wires.cast(exponent, span))
    upper = wires.bits(wires.resize(wanted, span.width_bits), span.width_bits - 1, bits)
    return wires.either(wires.resize(wanted, bits), wires.spread(wires.any(upper), bits))


def _round(
    wires: Wires, form: Format, sign: Ref, nan: Ref, base: Ref, window: Ref, sticky: Ref
) -> Ref:
    """Choose between the two places of the highest bit, round, pack."""
    precision = form.fraction_bits + 1
    highest = wires.bit(window, precision + 1)
    upper_place = wires.either(highest, wires.none(base))
    fraction = wires.select(
        upper_place,
        wires.bits(window, precision, 2),
        wires.bits(window, precision - 1, 1),
    )
    half = wires.select(upper_place, wires.bit(window, 1), wires.bit(window, 0))
    below = wires.either(sticky, wires.both(upper_place, wires.bit(window, 0)))
    up = wires.both(half, wires.either(wires.bit(fraction, 0), below))
    # The last finite exponent and a product of two or more: infinity, whatever the fraction.
    overflows = wires.both(highest, wires.equals(base, form.top - 1))
    fraction = wires.select(overflows, wires.const(0, form.fraction_bits), fraction)
    up = wires.unless(up, overflows)
    upper = wires.cat(base, nan, wires.const(0, form.fraction_bits - 1))
    result = increment(wires, form, upper, wires.cat(highest, fraction), up)
    return pack(wires, form, wires.unless(sign, nan), result)
