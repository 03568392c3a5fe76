"""The way back from an exact significand to a float: round to nearest even, pack.

Subnormals need no path of their own: the shift to the left stops where the exponent field would fall below
1, and the hidden bit, added to the exponent field as a number, makes the field 0 or one more by itself.
Rounding is one increment of {exponent, fraction}: a fraction of all ones carries into the exponent, the
greatest finite number into infinity.
"""
from __future__ import annotations

from kera_hw.graph.node import Ref
from kera_hw.rtl.lower.floats.fields import Format
from kera_hw.rtl.lower.floats.wires import Wires, uint


def decide(wires: Wires, value: Ref, extra: int, sticky: Ref) -> Ref:
    """Nearest even: whether to round up when ``extra`` low bits (and ``sticky`` below them) fall away."""
    assert extra >= 1, "rounding needs the bit below the fraction"
    if extra > 1:
        sticky = wires.either(sticky, wires.any(wires.low_bits(value, extra - 1)))
    return wires.both(wires.bit(value, extra - 1), wires.either(wires.bit(value, extra), sticky))


def increment(wires: Wires, form: Format, upper: Ref, significand: Ref, up: Ref) -> Ref:
    """``upper + significand + up``: magnitude bits from {base, 0} and a significand with its hidden bit."""
    magnitude = uint(form.width - 1)
    return wires.add(upper, wires.cast(significand, magnitude), wires.cast(up, magnitude))


def pack(wires: Wires, form: Format, sign: Ref, magnitude: Ref) -> Ref:
    """Sign and magnitude bits as one word."""
    assert wires.width(magnitude) == form.width - 1
    return wires.cat(sign, magnitude)
