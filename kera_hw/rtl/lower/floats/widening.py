"""Normalising sums of any width: the top bits come out, the rest only as a sticky bit."""
from __future__ import annotations

from dataclasses import dataclass

from kera_hw.graph.node import Ref
from kera_hw.rtl.lower.floats.fields import Format
from kera_hw.rtl.lower.floats.ranks import funnel_right
from kera_hw.rtl.lower.floats.wires import Wires
from kera_hw.types import IntType


@dataclass(frozen=True, slots=True)
class Normal:
    """A magnitude moved up: the highest bit of ``head`` is set, unless the value is subnormal or zero.

    ``head`` has the significand and the bit below it, ``sticky`` says whether more is set. ``base`` is the
    exponent field without what the highest bit adds to it. ``overflows``: that sum is past the finite ones.
    """

    head: Ref
    sticky: Ref
    base: Ref
    zero: Ref
    overflows: Ref


def normalise(wires: Wires, value: Ref, scale: Ref, offset: int, form: Format) -> Normal:
    """Move the highest set bit of ``value`` to its top, as far as the exponent allows.

    ``scale + offset - 1`` (signed; at least 1) is the biased exponent that the value has when the second bit
    below the top is its hidden bit, as in the sum of a product and an addend. The shift is the smaller of
    the leading zeros and ``scale + offset``.
    """
    builder, width, kept = wires.builder, wires.width(value), form.fraction_bits + 2
    zeros = wires.leading_zeros(value)
    span = scale.type
    assert isinstance(span, IntType)
    # The constant joins the count, beside which it is often a bit of its own.
    taken = wires.add(wires.cast(zeros, span), builder.const(span, -offset))
    difference = wires.subtract(scale, taken)
    empty = wires.equals(zeros, width)
    stops = wires.either(wires.less(difference, builder.const(span, 0)), empty)
    bits = width.bit_length()
    most = (1 << bits) - 1
    limit = wires.resize(wires.add(scale, builder.const(span, offset)), bits)
    amount = wires.select(stops, limit, wires.resize(zeros, bits))
    base = wires.select(stops, wires.const(0, span.width_bits), wires.resize(difference, span.width_bits))
    # A shift to the left by n is one to the right by most - n, from ``most`` places higher up.
    raised = wires.scaled(value, most - (width - kept))
    head, sticky = funnel_right(wires, raised, wires.invert(amount), kept)
    low = wires.bits(base, form.exponent_bits - 1, 0)
    overflows = wires.either(
        wires.all(wires.bits(low, form.exponent_bits - 1, 1)),
        wires.any(wires.bits(base, span.width_bits - 1, form.exponent_bits)),
    )
    return Normal(head, sticky, low, empty, overflows)
