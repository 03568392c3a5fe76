"""The way back from an exact significand to a float: normalise, round to nearest even, pack.

Subnormals need no path of their own: the shift to the left stops where the exponent field would fall below
1, and the hidden bit, added to the exponent field as a number, makes the field 0 or one more by itself.
Rounding is one increment of {exponent, fraction}: a fraction of all ones carries into the exponent, the
greatest finite number into infinity.
"""
from __future__ import annotations

from dataclasses import dataclass

from kera_hw.graph.node import Ref
from kera_hw.rtl.lower.floats.fields import Format, Wires, uint
from kera_hw.rtl.lower.floats.ranks import shift_left
from kera_hw.types import IntType


@dataclass(frozen=True, slots=True)
class Normal:
    """A significand moved up: its highest bit is set, unless the value is subnormal or zero.

    ``base`` is the exponent field of the value without what its highest bit adds to it: the field is base + 1
    when that bit is set, and 0 (base is 0) otherwise. ``zero``: the significand was 0.
    """

    value: Ref
    base: Ref
    zero: Ref


def normalise(
    wires: Wires, value: Ref, scale: Ref, exponent_bits: int, out: Ref | None = None
) -> Normal:
    """Move the highest set bit of ``value`` to its top, as far as the exponent allows.

    ``scale`` (unsigned, at least 1, ``exponent_bits`` wide) is the biased exponent that the value has when
    the bit *below* the top one is its hidden bit, as a sum has that may carry. The shift is the smaller of
    the leading zeros and ``scale``. Where ``out`` is set the value becomes 0 and the base all ones, which
    makes an infinity at no cost.
    """
    zeros = wires.leading_zeros(value)
    width = wires.width(value)
    # One bit more than either holds: the difference's sign says which of the two is smaller.
    span = IntType(max(exponent_bits, wires.width(zeros)) + 2, True)
    difference = wires.subtract(wires.cast(scale, span), wires.cast(zeros, span))
    below = wires.less(difference, wires.builder.const(span, 0))
    empty = wires.none(value)
    stops = wires.either(below, empty)
    bits = (width - 1).bit_length()
    amount = wires.select(stops, _fitted(wires, scale, bits), _fitted(wires, zeros, bits))
    base = wires.select(stops, wires.const(0, exponent_bits), _fitted(wires, difference, exponent_bits))
    if out is not None:
        assert width < 1 << bits, "an amount of all ones must clear the value"
        amount = wires.either(amount, wires.spread(out, bits))
        base = wires.either(base, wires.spread(out, exponent_bits))
    return Normal(shift_left(wires, value, amount), base, empty)


def _fitted(wires: Wires, value: Ref, width: int) -> Ref:
    """The low ``width`` bits, unsigned."""
    return wires.resize(value, width)


def decide(wires: Wires, value: Ref, extra: int, sticky: Ref) -> Ref:
    """Nearest even: whether to round up when ``extra`` low bits (and ``sticky`` below them) fall away."""
    assert extra >= 1, "rounding needs the bit below the fraction"
    if extra > 1:
        sticky = wires.either(sticky, wires.any(wires.low_bits(value, extra - 1)))
    return wires.both(wires.bit(value, extra - 1), wires.either(wires.bit(value, extra), sticky))


def round_magnitude(wires: Wires, form: Format, base: Ref, value: Ref, sticky: Ref) -> Ref:
    """Magnitude bits {exponent field, fraction} of ``value`` rounded to nearest even.

    ``value`` is unsigned with its hidden bit on top, followed by the fraction and at least one bit more;
    ``sticky`` says whether anything below it is not zero; ``base`` is as in ``Normal``. Overflow by rounding
    gives infinity; a base of ``form.top`` or more is the caller's to catch.
    """
    kept = form.fraction_bits + 1
    up = decide(wires, value, wires.width(value) - kept, sticky)
    upper = wires.cat(wires.resize(base, form.exponent_bits), wires.const(0, form.fraction_bits))
    return increment(wires, form, upper, wires.high_bits(value, kept), up)


def increment(wires: Wires, form: Format, upper: Ref, significand: Ref, up: Ref) -> Ref:
    """``upper + significand + up``: magnitude bits from {base, 0} and a significand with its hidden bit."""
    magnitude = uint(form.width - 1)
    return wires.add(upper, wires.cast(significand, magnitude), wires.cast(up, magnitude))


def pack(wires: Wires, form: Format, sign: Ref, magnitude: Ref) -> Ref:
    """Sign and magnitude bits as one word."""
    assert wires.width(magnitude) == form.width - 1
    return wires.cat(sign, magnitude)


def finish(
    wires: Wires, form: Format, sign: Ref, magnitude: Ref, *, nan: Ref, infinite: Ref | None = None,
    zero: Ref | None = None,
) -> Ref:
    """The word, with its special cases selected: NaN wins, then infinity, then zero."""
    result = magnitude
    if zero is not None:
        result = wires.select(zero, wires.const(0, form.width - 1), result)
    if infinite is not None:
        result = wires.select(infinite, wires.const(form.infinity, form.width - 1), result)
    result = wires.select(nan, wires.const(form.nan, form.width - 1), result)
    return pack(wires, form, wires.unless(sign, nan), result)
