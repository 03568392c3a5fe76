"""Normalising and rounding significands of any width (``words``), as ``rounding`` does for one word."""
from __future__ import annotations

from dataclasses import dataclass

from kera_hw.graph.node import Ref
from kera_hw.rtl.lower.builder import index_type
from kera_hw.rtl.lower.floats import shifts, words
from kera_hw.rtl.lower.floats.fields import Format, Wires
from kera_hw.rtl.lower.floats.rounding import round_magnitude
from kera_hw.rtl.lower.floats.words import Wide
from kera_hw.types import IntType


@dataclass(frozen=True, slots=True)
class Normal:
    """A significand moved up: its highest bit is set, unless the value is subnormal or zero.

    ``base`` is the exponent field without what the highest bit adds to it. ``zero``: it was 0 before.
    """

    value: Wide
    base: Ref
    zero: Ref


def normalise(wires: Wires, value: Wide, scale: Ref, exponent_bits: int) -> Normal:
    """Move the highest set bit of ``value`` to its top, as far as the exponent allows.

    ``scale`` (unsigned, at least 1) is the biased exponent that the value has when the second bit below the
    top is its hidden bit, as in the sum of a product and an addend. The shift is the smaller of the leading
    zeros and ``scale + 1``; ``base`` has ``exponent_bits``.
    """
    builder, width = wires.builder, value.width_bits
    zeros = shifts.leading_zeros(builder, value)
    span = IntType(max(wires.width(scale), wires.width(zeros)) + 2, True)
    limit = wires.add(wires.cast(scale, span), builder.const(span, 1))
    difference = wires.subtract(limit, wires.cast(zeros, span))
    empty = wires.invert(words.any_set(builder, value))
    stops = wires.either(wires.less(difference, builder.const(span, 0)), empty)
    count = index_type(width - 1).width_bits
    amount = wires.select(stops, wires.resize(limit, count), wires.resize(zeros, count))
    base = wires.select(stops, wires.const(0, exponent_bits), wires.resize(difference, exponent_bits))
    return Normal(shifts.shift_left(builder, value, amount), base, empty)


def round_wide(wires: Wires, form: Format, normal: Normal, sticky: Ref) -> Ref:
    """Magnitude bits rounded to nearest even; a base past the finite ones is the caller's to catch."""
    builder, value = wires.builder, normal.value
    kept, width = form.fraction_bits + 2, value.width_bits
    extra = width - kept
    if extra:
        sticky = wires.either(sticky, words.any_set(builder, words.extract(builder, value, extra - 1, 0)))
    head = words.extract_word(builder, value, width - 1, extra)
    return round_magnitude(wires, form, normal.base, head, sticky)


def overflows(wires: Wires, form: Format, base: Ref) -> Ref:
    """Whether the exponent field, base + 1, reaches the infinities'."""
    low = wires.all(wires.bits(base, form.exponent_bits - 1, 1))
    above = wires.any(wires.bits(base, wires.width(base) - 1, form.exponent_bits))
    return wires.either(low, above)
