"""sigmoid and silu on f32: 1 / (1 + e^-|x|) by polynomials, and that times e^-|x| for negative arguments.

s(|x|) lies in [1/2, 1): polynomials over octaves give it, relative to 1. Below 1/2 they give what it lacks to
the line 1/2 + |x| / 4, which is added exactly: where the line is half-way between floats, the curve lies
below it by less than any polynomial shows, so the tables there are a little low. Negative arguments that
small take 1 - s, the others e^-|x| s, which keeps its precision down to the smallest results.
"""
from __future__ import annotations

from kera_hw.graph.node import Ref
from kera_hw.rtl.lower.builder import Builder
from kera_hw.rtl.lower.floats.elementary import sigmoid_data as data
from kera_hw.rtl.lower.floats.elementary.exponential import (
    LAST_NATURAL,
    POINT,
    TINY,
    VALUE_POINT,
    fixed_point,
    power_of_rest,
    reduce_natural,
)
from kera_hw.rtl.lower.floats.elementary.nearest import round_positive
from kera_hw.rtl.lower.floats.elementary.octaves import locate
from kera_hw.rtl.lower.floats.elementary.polynomial import evaluate
from kera_hw.rtl.lower.floats.fields import Fields, Format
from kera_hw.rtl.lower.floats.wires import TILE_BITS, Wires
from kera_hw.types import FloatType

_HALF = 126
"""Exponent field of arguments from 1/2 up to 1."""


def lower_sigmoid(builder: Builder, kind: FloatType, word: Ref) -> Ref:
    """sigmoid, correctly rounded."""
    wires, form = Wires(builder), Format(kind)
    fields = Fields(wires, form, word)
    value, field = _value(wires, fields)
    magnitude = round_positive(wires, value, VALUE_POINT, field)
    huge = wires.is_below(wires.integer(LAST_NATURAL), fields.exponent)
    limit = wires.choose(fields.sign, wires.integer(0), wires.integer(form.bias << form.fraction_bits))
    magnitude = wires.choose(huge, limit, magnitude)
    magnitude = wires.choose(fields.is_nan, wires.integer(form.nan), magnitude)
    return builder.cast(magnitude, form.word)


def lower_silu(builder: Builder, kind: FloatType, word: Ref) -> Ref:
    """silu, correctly rounded: |x| sigmoid(x) with the sign of x.

    Below 2^-25 it lies above x / 2 by less than anything computed, and x / 2 may be half-way between
    subnormal floats: there the factor is a little above 1/2 for positive x, a little below for negative.
    """
    wires, form = Wires(builder), Format(kind)
    fields = Fields(wires, form, word)
    value, field = _value(wires, fields)
    one = 1 << VALUE_POINT
    nearly = wires.choose(fields.sign, wires.integer(one - 1), wires.integer(one + 1))
    tiny = wires.is_below(fields.exponent, wires.integer(TINY))
    value = wires.choose(tiny, nearly, value)
    field = wires.choose(tiny, wires.integer(form.bias - 1), field)
    upper, lower = wires.piece(fields.significand, 23, 6), wires.piece(fields.significand, 5, 0)
    product = wires.sum_of(wires.times_lowered(value, upper, 17), wires.times_lowered(value, lower, 23))
    scale = wires.fit(wires.sum_of(fields.scale, wires.integer(-form.bias)), (1 - form.bias, 7))
    magnitude = round_positive(wires, product, VALUE_POINT, wires.sum_of(field, scale))
    huge = wires.is_below(wires.integer(LAST_NATURAL), fields.exponent)
    limit = wires.choose(fields.sign, wires.integer(0), fields.magnitude)
    magnitude = wires.choose(huge, limit, magnitude)
    magnitude = wires.choose(fields.is_nan, wires.integer(form.nan), magnitude)
    return wires.cat(wires.unless(fields.sign, fields.is_nan), wires.resize(magnitude, form.width - 1))


def _value(wires: Wires, fields: Fields) -> tuple[Ref, Ref]:
    """sigmoid(x) for |x| < 128: a value with 57 fraction bits, at least 1 but for a few units; its field."""
    size = fixed_point(wires, fields, LAST_NATURAL)
    small = wires.is_below(fields.exponent, wires.integer(_HALF))
    upper = _upper(wires, fields, size, small)
    n, rest = reduce_natural(wires, wires.difference(wires.integer(0), size))
    lower = _product(wires, power_of_rest(wires, rest, True), upper)
    complement = wires.raised(wires.difference(wires.integer(1 << data.POINT), upper), 2)
    complement = wires.fit(complement, (1 << data.POINT, 2 << data.POINT))
    value = wires.choose(small, complement, lower)
    field = wires.choose(small, wires.integer(125), wires.sum_of(n, wires.integer(126)))
    value = wires.choose(fields.sign, value, wires.raised(upper, 1))
    return value, wires.choose(fields.sign, field, wires.integer(126))


def _upper(wires: Wires, fields: Fields, size: Ref, small: Ref) -> Ref:
    """sigmoid(|x|) with ``data.POINT`` fraction bits, for |x| < 128."""
    place = locate(wires, data, fields.exponent, fields.fraction)
    curve = evaluate(wires, data.TABLE, place.segment, place.offset, data.OFFSET_BITS)
    low_size = wires.piece(size, POINT - 2, 0)
    line = wires.raised(wires.choose(small, low_size, wires.integer(0)), data.POINT - POINT - 2)
    return wires.fit(wires.sum_of(curve, line), ((1 << data.POINT - 1) - 64, 1 << data.POINT))


def _product(wires: Wires, power: Ref, upper: Ref) -> Ref:
    """``2 power upper`` with 57 fraction bits, as its factors: all but the lowest partial product."""

    def pieces(value: Ref, lowest: int) -> list[Ref]:
        last = lowest + 2 * TILE_BITS
        parts = [wires.piece(value, low + TILE_BITS - 1, low) for low in (lowest, lowest + TILE_BITS)]
        return [*parts, wires.lowered(value, last)]

    p, q = pieces(power, 5), pieces(upper, 4)

    def diagonal(*pairs: tuple[int, int]) -> Ref:
        return wires.sum_of(*(wires.times(p[i], q[j]) for i, j in pairs))

    # Diagonals weigh 2^(9 + 18 k) for k = i + j, the result's unit 2^56.
    carried = wires.lowered(diagonal((0, 1), (1, 0)), TILE_BITS)
    carried = wires.lowered(wires.sum_of(diagonal((0, 2), (1, 1), (2, 0)), carried), 56 - 9 - 2 * TILE_BITS)
    return wires.sum_of(
        wires.raised(wires.times(p[2], q[2]), 9 + 4 * TILE_BITS - 56),
        wires.raised(diagonal((1, 2), (2, 1)), 9 + 3 * TILE_BITS - 56), carried,
    )
