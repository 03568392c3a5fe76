"""Fused multiply-add: the exact product and the addend meet in one window and are rounded once.

The product has 2p bits, p being the significand's. Whichever of product and addend has the larger exponent
stays; the other is moved right. Two guard bits and a sticky bit below the product's bits are enough, also
where an operand is subnormal and the product begins lower: either the addend's exponent is the larger one,
and its lowest bit is far above the window's end, or the product is the larger one, and then what is shifted
past the window is too small to cancel more than one of its bits. So an f32 unit adds in 51 bits rather than
74. The larger exponent does not make the larger number: a negative difference is negated.
"""
from __future__ import annotations

from dataclasses import dataclass

from kera_hw.graph.node import Ref
from kera_hw.rtl.lower.builder import Builder
from kera_hw.rtl.lower.floats import shifts, words
from kera_hw.rtl.lower.floats.fields import Fields, Format, Wires, unpack
from kera_hw.rtl.lower.floats.rounding import finish
from kera_hw.rtl.lower.floats.widening import normalise, overflows, round_wide
from kera_hw.rtl.lower.floats.words import Wide
from kera_hw.types import FloatType, IntType

_GUARDS = 2


@dataclass(frozen=True, slots=True)
class _Aligned:
    """Two magnitudes in one window; ``scale`` is the biased exponent of its bit 2F + guards."""

    larger: Wide
    smaller: Wide
    sticky: Ref
    scale: Ref
    product_stays: Ref


def lower_fma(builder: Builder, kind: FloatType, a: Ref, b: Ref, c: Ref) -> Ref:
    """``a * b + c`` rounded once to nearest even."""
    x, y, z = (unpack(builder, kind, word) for word in (a, b, c))
    wires, form = x.wires, x.form
    product_sign = wires.differ(x.sign, y.sign)
    differs = wires.differ(product_sign, z.sign)
    aligned = _align(wires, form, x, y, z)
    total, negative = _total(wires, aligned, differs)
    base_bits = form.exponent_bits + 2
    normal = normalise(wires, total, aligned.scale, base_bits)
    magnitude = round_wide(wires, form, normal, aligned.sticky)
    kept_sign = wires.select(aligned.product_stays, product_sign, z.sign)
    vanishes = wires.unless(normal.zero, aligned.sticky)
    cancelled = wires.both(vanishes, differs)  # an exact zero of opposite signs is +0
    sign = wires.unless(wires.differ(kept_sign, negative), cancelled)
    nan, infinite, infinite_sign = _special(wires, x, y, z, product_sign)
    return finish(
        wires, form, wires.select(infinite, infinite_sign, sign), magnitude,
        nan=nan, infinite=wires.either(infinite, overflows(wires, form, normal.base)),
    )


def _special(wires: Wires, x: Fields, y: Fields, z: Fields, product_sign: Ref) -> tuple[Ref, Ref, Ref]:
    """Whether the result is NaN, whether an operand makes it infinite, and that infinity's sign."""
    product_infinite = wires.either(x.is_infinite, y.is_infinite)
    invalid = wires.either(
        wires.both(x.is_infinite, y.is_zero), wires.both(y.is_infinite, x.is_zero),
        wires.both(product_infinite, z.is_infinite, wires.differ(product_sign, z.sign)),
    )
    nan = wires.either(x.is_nan, y.is_nan, z.is_nan, invalid)
    infinite = wires.either(product_infinite, z.is_infinite)
    return nan, infinite, wires.select(z.is_infinite, z.sign, product_sign)


def _align(wires: Wires, form: Format, x: Fields, y: Fields, z: Fields) -> _Aligned:
    builder, fraction = wires.builder, form.fraction_bits
    window = 2 * fraction + 2 + _GUARDS
    product = words.multiply(builder, words.of(builder, x.significand), words.of(builder, y.significand))
    product = words.scale(builder, product, _GUARDS)
    addend = words.scale(builder, words.of(builder, z.significand), fraction + _GUARDS)
    addend = words.resize(builder, addend, window)
    span = IntType(form.exponent_bits + 2, True)
    product_scale = wires.add(
        wires.cast(x.scale, span), wires.cast(y.scale, span), builder.const(span, -form.bias)
    )
    addend_scale = wires.cast(z.scale, span)
    distance = wires.subtract(product_scale, addend_scale)
    behind = wires.less(distance, builder.const(span, 0))
    vanishes = wires.either(x.is_zero, y.is_zero)  # such a product must not push the addend out
    stays = wires.invert(wires.either(behind, vanishes))
    width = form.exponent_bits + 2
    away = wires.select(behind, wires.subtract(builder.const(span, 0), distance), distance)
    smaller = words.select(builder, stays, addend, product)
    moved, sticky = shifts.shift_right_sticky(builder, smaller, wires.resize(away, width))
    scale = wires.select(stays, wires.resize(product_scale, width), wires.resize(addend_scale, width))
    return _Aligned(words.select(builder, stays, product, addend), moved, sticky, scale, stays)


def _total(wires: Wires, aligned: _Aligned, differs: Ref) -> tuple[Wide, Ref]:
    """The magnitude of larger ± smaller, one bit wider, and whether the difference was negative.

    With a sticky bit the smaller one lies above its truncation: the difference's floor is one less, which
    the missing carry gives; turned over, the complement alone is the magnitude's floor.
    """
    builder = wires.builder
    width = aligned.larger.width_bits + 2
    larger, smaller = (words.resize(builder, number, width) for number in (aligned.larger, aligned.smaller))
    completes = wires.unless(differs, aligned.sticky)
    total = words.add(builder, larger, words.invert_if(builder, differs, smaller), completes)
    negative = wires.both(differs, words.bit(builder, total, width - 1))
    body = words.resize(builder, total, width - 1)
    completes = wires.unless(negative, aligned.sticky)
    return words.increment(builder, words.invert_if(builder, negative, body), completes), negative
