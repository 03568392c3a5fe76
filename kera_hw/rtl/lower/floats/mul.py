"""Multiplication: one product, one shift of the result, one rounding.

Subnormal operands are not normalised: the leading zeros of the one that is subnormal are counted while the
multipliers work, and the product is moved once, to the left for a subnormal operand, to the right for a
subnormal result, before the usual choice between its two highest places. Where both operands are subnormal
the product lies far below the smallest number, so which of them was counted does not matter.
"""
from __future__ import annotations

from dataclasses import dataclass

from kera_hw.graph.node import Ref
from kera_hw.rtl.lower.builder import Builder
from kera_hw.rtl.lower.floats.fields import Fields, Format
from kera_hw.rtl.lower.floats.ranks import funnel_right
from kera_hw.rtl.lower.floats.rounding import increment, pack
from kera_hw.rtl.lower.floats.wires import Wires, uint
from kera_hw.types import FloatType, IntType


def lower_mul(builder: Builder, kind: FloatType, a: Ref, b: Ref) -> Ref:
    """``a * b`` rounded once."""
    wires, form = Wires(builder), Format(kind)
    x, y = _Factor(wires, form, a), _Factor(wires, form, b)
    precision = form.fraction_bits + 1
    product = wires.product(x.significand, y.significand)
    nan = wires.either(
        x.is_nan, y.is_nan, wires.both(x.is_top, y.is_zero), wires.both(y.is_top, x.is_zero)
    )
    sign = wires.unless(wires.differ(x.sign, y.sign), nan)
    place = _place(wires, form, x, y, wires.bit(product, 2 * precision - 1))
    # Bits 2p-1 and 2p-2 of the product are the places its highest bit may take; the window ends below the
    # rounding bit of the lower one.
    window, sticky = funnel_right(wires, wires.scaled(product, 1 + place.offset), place.amount, precision + 2)
    return pack(wires, form, sign, _round(wires, form, nan, place, window, sticky))


class _Factor(Fields):
    """An operand whose hidden bit is wired as the multipliers want it; all else reads its complement."""

    @property
    def hidden(self) -> Ref:
        """Whether the exponent field is not 0, as a sum of bits."""
        wires, half = self.wires, self.form.exponent_bits // 2
        flags = [wires.bit(self.exponent, k) for k in range(self.form.exponent_bits)]
        return wires.either(wires.either(*flags[:half]), wires.either(*flags[half:]))

    @property
    def is_small(self) -> Ref:
        return self.wires.invert(self.hidden)


@dataclass(frozen=True, slots=True)
class _Place:
    """``base``: the exponent field less the product's highest bit; ``is_least``: whether that is 0, for all
    but infinities. ``amount``: how far the product is shifted right, ``offset`` places more than its own;
    past its width it stands for an infinity of base all ones."""

    base: Ref
    is_least: Ref
    amount: Ref
    offset: int


def _place(wires: Wires, form: Format, x: Fields, y: Fields, highest: Ref) -> _Place:
    """Where the product goes, from the exponents and the leading zeros of a subnormal operand.

    A product of normal numbers whose exponent is the last finite one overflows by its highest bit; it is not
    shifted otherwise, so that bit is known before the shift.
    """
    precision = form.fraction_bits + 1
    some_small = wires.either(x.is_small, y.is_small)
    counted = wires.cat(wires.invert(some_small), wires.select(x.is_small, x.fraction, y.fraction))
    zeros, nothing = _count(wires, counted)
    exponent = _exponent(wires, form, x.scale, y.scale)
    remaining = wires.subtract(exponent, wires.cast(zeros, form.span))
    below = wires.bit(remaining, form.span.width_bits - 1)
    field = wires.resize(remaining, form.exponent_bits)
    beyond, odd = wires.bit(remaining, form.exponent_bits), wires.bit(field, 0)
    all_above = _most(wires, field)
    past = wires.either(beyond, wires.both(odd, all_above))
    last = wires.both(wires.invert(wires.either(beyond, odd)), all_above)
    in_range = wires.invert(wires.either(below, nothing))
    out = wires.either(x.is_top, y.is_top, wires.both(past, in_range))
    late = wires.both(last, highest, in_range)
    base = wires.select(in_range, field, wires.const(0, form.exponent_bits))
    start, bits = _start(precision)
    offset = start - (precision - 1)
    parts, far = _amount(wires, exponent, zeros, below, start, bits)
    # What is known late comes last: it turns the last finite exponent into the infinities'.
    base = wires.either(base, wires.spread(out, form.exponent_bits))
    base = wires.either(base, wires.cast(late, base.type))
    far = wires.either(far, out, late)
    parts = [wires.either(part, wires.spread(far, wires.width(part))) for part in parts]
    is_least = wires.either(wires.none(field), wires.invert(in_range))
    return _Place(base, is_least, wires.cat(*parts), offset)


def _most(wires: Wires, field: Ref) -> Ref:
    """Whether all bits but the lowest are set, by halves: each is early enough for all that asks."""
    width = wires.width(field)
    half = max(1, width // 2)
    found = wires.all(wires.bits(field, width - 1, half))
    return wires.both(found, wires.all(wires.bits(field, half - 1, 1))) if half > 1 else found


def _count(wires: Wires, value: Ref) -> tuple[Ref, Ref]:
    """Leading zeros where any bit is set, and whether none is: the lowest bit stops the count either way."""
    width = wires.width(value)
    zeros = wires.leading_zeros(wires.cat(wires.high_bits(value, width - 1), wires.flag(True)))
    zeros = wires.low_bits(zeros, (width - 1).bit_length())
    return zeros, wires.unless(wires.all_of(zeros, width - 1), wires.bit(value, 0))


def _start(precision: int) -> tuple[int, int]:
    """All ones, at least ``precision - 1``: the amount that does not move the product; and the amount's bits.

    Amounts above it, for subnormal results, then need one bit more.
    """
    start = (1 << (precision - 1).bit_length()) - 1
    while (bits := (start + precision + 2).bit_length()) > start.bit_length() + 1:
        start = 2 * start + 1
    return start, bits


def _exponent(wires: Wires, form: Format, a: Ref, b: Ref) -> Ref:
    """``a + b - bias``: the sum and one in one adder, and a power of two from its highest bits."""
    bits = form.exponent_bits
    kind = uint(bits + 1)
    total = wires.add(wires.cast(a, kind), wires.cast(b, kind), wires.builder.const(kind, 1))
    upper = wires.bits(total, bits, bits - 1)
    lowered = wires.subtract(wires.cast(upper, IntType(3, True)), wires.builder.const(IntType(3, True), 1))
    joined = wires.cat(wires.resize(lowered, 3), wires.low_bits(total, bits - 1))
    return wires.cast(wires.cast(joined, IntType(bits + 2, True)), form.span)


def _amount(
    wires: Wires, exponent: Ref, zeros: Ref, below: Ref, start: int, bits: int
) -> tuple[list[Ref], Ref]:
    """``start`` less the smaller of exponent and zeros, ``start`` being all ones: complements suffice.

    In parts, the highest bits first, and whether that is past the last bit of the product.
    """
    count = start.bit_length()
    negative = wires.bit(exponent, wires.width(exponent) - 1)
    pattern = wires.resize(exponent, max(wires.width(exponent), bits))
    counted = min(count, wires.width(zeros))
    lowest = wires.select(below, wires.low_bits(pattern, counted), wires.low_bits(zeros, counted))
    parts = [wires.invert(lowest)]
    if counted < count:
        middle = wires.bits(pattern, count - 1, counted)
        parts.insert(0, wires.invert(wires.both(middle, wires.spread(below, count - counted))))
    more = bits - count
    # The exponent's upper part u is negative or 0 here: -u of the steps of 2^count are made.
    upper = wires.bits(pattern, wires.width(pattern) - 1, count)
    steps = wires.subtract(wires.const(0, more), wires.low_bits(upper, more))
    least = wires.const((1 << wires.width(upper)) - (1 << more) + 1, wires.width(upper))
    past = wires.both(negative, wires.less(upper, least))
    return [wires.select(negative, steps, wires.const(0, more)), *parts], past


def _round(wires: Wires, form: Format, nan: Ref, place: _Place, window: Ref, sticky: Ref) -> Ref:
    """Choose between the two places of the highest bit, and round."""
    precision = form.fraction_bits + 1
    highest = wires.bit(window, precision + 1)
    upper_place = wires.either(highest, place.is_least)
    fraction = wires.select(
        upper_place,
        wires.bits(window, precision, 2),
        wires.bits(window, precision - 1, 1),
    )
    half = wires.select(upper_place, wires.bit(window, 1), wires.bit(window, 0))
    below = wires.either(sticky, wires.both(upper_place, wires.bit(window, 0)))
    lowest = wires.select(upper_place, wires.bit(window, 2), wires.bit(window, 1))
    up = wires.both(half, wires.either(lowest, below))
    upper = wires.cat(place.base, nan, *wires.zeros(form.fraction_bits - 1))
    return increment(wires, form, upper, wires.cat(highest, fraction), up)
