"""Rounding to an integral value in the format: a mask of the fractional bits, one addition, one AND.

{exponent, fraction} is incremented as one number, so a fraction that rounds over carries into the exponent.
"""
from __future__ import annotations

from collections.abc import Callable

from kera_hw.graph.node import Ref
from kera_hw.rtl.lower.builder import Builder
from kera_hw.rtl.lower.floats.fields import Fields, unpack
from kera_hw.rtl.lower.floats.units import Unit
from kera_hw.types import FloatType

_MODES = ("trunc", "floor", "ceil", "round")


def _fractional_mask(x: Fields) -> Ref:
    """Ones where a magnitude of 1 and more has bits of weight below 1 (for the exponents that have any)."""
    wires, form = x.wires, x.form
    bits = form.fraction_bits.bit_length()
    ones = wires.const((1 << form.fraction_bits) - 1, form.fraction_bits)
    # exponent - bias in as many bits as count; beyond the fraction's bits the caller selects.
    near = wires.resize(x.exponent, min(bits, form.exponent_bits))
    offset = wires.const(form.bias & ((1 << wires.width(near)) - 1), wires.width(near))
    return wires.right(ones, wires.subtract(near, offset))


def _lower(builder: Builder, kind: FloatType, word: Ref, mode: str) -> Ref:
    x = unpack(builder, kind, word)
    wires, form = x.wires, x.form
    width = form.width - 1
    mask = wires.resize(_fractional_mask(x), width)
    magnitude = x.magnitude
    raised = _raised(x, mask, mode)
    rounded = wires.both(wires.add(magnitude, raised), wires.invert(mask))
    small = wires.less(x.exponent, wires.const(form.bias, form.exponent_bits))
    least = form.bias + form.fraction_bits  # the least exponent field without fractional bits
    whole = x.is_top
    if least < form.top:
        whole = wires.invert(wires.less(x.exponent, wires.const(least, form.exponent_bits)))
    one = wires.const(form.bias << form.fraction_bits, width)
    tiny = wires.select(_below_one_up(x, mode), one, wires.const(0, width))
    result = wires.select(small, tiny, wires.select(whole, magnitude, rounded))
    result = wires.select(x.is_nan, wires.const(form.nan, width), result)
    return wires.cat(wires.unless(x.sign, x.is_nan), result)


def _raised(x: Fields, mask: Ref, mode: str) -> Ref:
    """What is added before the fractional bits are cleared."""
    wires = x.wires
    zero = wires.const(0, wires.width(mask))
    if mode == "trunc":
        return zero
    if mode in ("floor", "ceil"):
        away = x.sign if mode == "floor" else wires.invert(x.sign)
        return wires.select(away, mask, zero)
    # Nearest even: half of the last place less one, and one more where the last place is odd.
    unit = wires.add(mask, wires.const(1, wires.width(mask)))
    odd = wires.any(wires.both(x.magnitude, unit))
    return wires.add(wires.right(mask, 1), wires.cast(odd, mask.type))


def _below_one_up(x: Fields, mode: str) -> Ref:
    """Whether a magnitude below 1 becomes 1 rather than 0."""
    wires, form = x.wires, x.form
    if mode == "trunc":
        return wires.flag(False)
    if mode == "round":  # above one half; one half itself is a tie with 0, which is even
        half = wires.equals(x.exponent, form.bias - 1)
        if form.bias > 1:
            return wires.both(half, wires.any(x.fraction))
        # One half is subnormal: its bit is the fraction's highest.
        lower = wires.resize(x.fraction, form.fraction_bits - 1) if form.fraction_bits > 1 else None
        more = wires.flag(False) if lower is None else wires.any(lower)
        return wires.both(half, wires.bit(x.fraction, form.fraction_bits - 1), more)
    away = x.sign if mode == "floor" else wires.invert(x.sign)
    return wires.both(away, wires.invert(x.is_zero))


def _unit(mode: str) -> Callable[[Builder, FloatType, Ref], Ref]:
    def lower(builder: Builder, kind: FloatType, word: Ref) -> Ref:
        return _lower(builder, kind, word, mode)

    return lower


UNITS = {f"floating.{mode}": Unit(_unit(mode)) for mode in _MODES}
