"""Fused multiply-add: the exact product and the addend meet in one window and are rounded once.

The product has 2p bits, p being the significand's. Whichever of product and addend has the larger exponent
stays; the other is moved right. Two guard bits and a sticky bit below the product's bits are enough, also
where an operand is subnormal and the product begins lower: either the addend's exponent is the larger one,
and its lowest bit is far above the window's end, or the product is the larger one, and then what is shifted
past the window is too small to cancel more than one of its bits. So an f32 unit adds in 51 bits rather than
74. The larger exponent does not make the larger number: a negative difference is negated.

Muller and others, "Handbook of Floating-Point Arithmetic", 2nd edition, 2018, section 8.5.
"""
from __future__ import annotations

from dataclasses import dataclass

from kera_hw.graph.node import Ref
from kera_hw.rtl.lower.builder import Builder
from kera_hw.rtl.lower.floats import shifts
from kera_hw.rtl.lower.floats.fields import Fields, Format, unpack
from kera_hw.rtl.lower.floats.rounding import decide, increment, pack
from kera_hw.rtl.lower.floats.widening import normalise
from kera_hw.rtl.lower.floats.wires import Wires, uint
from kera_hw.types import FloatType, IntType

_GUARDS = 2


@dataclass(frozen=True, slots=True)
class _Aligned:
    """Two magnitudes in one window; ``scale`` is its bit 2F + guards as a biased exponent, plus bias + 1."""

    larger: Ref
    smaller: Ref
    sticky: Ref
    scale: Ref
    product_stays: Ref


@dataclass(frozen=True, slots=True)
class _Special:
    """Whether operands make the result NaN, or infinite or NaN; the sign of an infinity; factors of 0."""

    nan: Ref
    top: Ref
    sign: Ref
    vanishes: Ref


def lower_fma(builder: Builder, kind: FloatType, a: Ref, b: Ref, c: Ref) -> Ref:
    """``a * b + c`` rounded once to nearest even."""
    x, y, z = (unpack(builder, kind, word) for word in (a, b, c))
    wires, form = x.wires, x.form
    product_sign = wires.differ(x.sign, y.sign)
    differs = wires.differ(product_sign, z.sign)
    special = _special(wires, x, y, z, product_sign)
    aligned = _align(wires, form, x, y, z, special.vanishes)
    total, negative = _total(wires, aligned, differs)
    normal = normalise(wires, total, aligned.scale, -form.bias, form)
    out = wires.either(special.top, normal.overflows)
    sticky = wires.either(aligned.sticky, normal.sticky)
    up = wires.unless(decide(wires, normal.head, 1, sticky), out)
    base = wires.either(normal.base, wires.spread(out, form.exponent_bits))
    upper = wires.cat(base, special.nan, *wires.zeros(form.fraction_bits - 1))
    kept = wires.both(
        wires.high_bits(normal.head, form.fraction_bits + 1),
        wires.spread(wires.invert(out), form.fraction_bits + 1),
    )
    kept_sign = wires.select(aligned.product_stays, product_sign, z.sign)
    vanishes = wires.unless(normal.zero, aligned.sticky)
    # An exact zero of opposite signs is +0.
    sign = wires.unless(wires.differ(kept_sign, negative), wires.both(vanishes, differs))
    sign = wires.unless(wires.select(special.top, special.sign, sign), special.nan)
    return pack(wires, form, sign, increment(wires, form, upper, kept, up))


def _special(wires: Wires, x: Fields, y: Fields, z: Fields, product_sign: Ref) -> _Special:
    plain = {fields: wires.none(fields.fraction) for fields in (x, y, z)}
    zero = {fields: wires.both(fields.is_small, plain[fields]) for fields in (x, y)}
    endless = {fields: wires.both(fields.is_top, plain[fields]) for fields in (x, y, z)}
    nans = [wires.unless(fields.is_top, plain[fields]) for fields in (x, y, z)]
    product_top = wires.either(x.is_top, y.is_top)
    clash = wires.both(product_top, endless[z], wires.differ(product_sign, z.sign))
    nan = wires.either(
        *nans, clash, wires.both(endless[x], zero[y]), wires.both(endless[y], zero[x])
    )
    return _Special(
        nan=nan,
        top=wires.either(product_top, z.is_top),
        sign=wires.select(z.is_top, z.sign, product_sign),
        vanishes=wires.either(zero[x], zero[y]),
    )


def _align(wires: Wires, form: Format, x: Fields, y: Fields, z: Fields, vanishes: Ref) -> _Aligned:
    """Product and addend in the window: one shifted right by the difference of their exponents.

    Where the addend stays, the product begins one place lower, and the distance is one less: the complement
    of the negative difference.
    """
    builder, fraction = wires.builder, form.fraction_bits
    window = 2 * fraction + 2 + _GUARDS
    product = wires.scaled(wires.product(x.significand, y.significand), _GUARDS)
    lowered = wires.extended(wires.bits(product, window - 1, 1), window)
    addend = wires.extended(wires.scaled(z.significand, fraction + _GUARDS), window)
    least = window + 2 + form.bias  # what is taken from an exponent, leading zeros and all, is less
    span = IntType(max(form.exponent_bits + 3, least.bit_length() + 1), True)
    # a - ~b is a + b + 1: sums with bias + 1 on top, of which the addend's is one bit.
    complement = wires.cast(wires.invert(y.scale), span)
    product_scale = wires.subtract(wires.cast(x.scale, span), complement)
    product_scale = wires.add(product_scale, builder.const(span, 1 << form.exponent_bits))
    addend_scale = wires.add(wires.cast(z.scale, span), builder.const(span, form.bias + 1))
    distance = wires.subtract(product_scale, addend_scale)
    behind = wires.less(distance, builder.const(span, 0))
    stays = wires.invert(wires.either(behind, vanishes))  # a product of 0 must not push the addend out
    places = wires.flip_if(behind, wires.resize(distance, span.width_bits - 1))
    moved, sticky = shifts.shift_right_sticky(wires, wires.select(stays, addend, lowered), places)
    scale = wires.select(stays, product_scale, addend_scale)
    return _Aligned(wires.select(stays, product, addend), moved, sticky, scale, stays)


def _total(wires: Wires, aligned: _Aligned, differs: Ref) -> tuple[Ref, Ref]:
    """The magnitude of larger ± smaller, one bit wider, and whether the difference was negative.

    With a sticky bit the smaller one lies above its truncation: the difference's floor is one less, which
    the missing carry gives; turned over, the complement alone is the magnitude's floor.
    """
    width = wires.width(aligned.larger) + 2
    larger, smaller = (wires.extended(number, width) for number in (aligned.larger, aligned.smaller))
    completes = wires.unless(differs, aligned.sticky)
    total = wires.add(larger, wires.flip_if(differs, smaller), wires.cast(completes, uint(width)))
    negative = wires.both(differs, wires.bit(total, width - 1))
    body = wires.flip_if(negative, wires.low_bits(total, width - 1))
    completes = wires.unless(negative, aligned.sticky)
    return wires.add(body, wires.cast(completes, body.type)), negative
