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
from kera_hw.rtl.lower.floats.elementary.exact import TILE_BITS, Exact
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
from kera_hw.rtl.lower.floats.fields import Fields, Format, Wires
from kera_hw.types import FloatType

_HALF = 126
"""Exponent field of arguments from 1/2 up to 1."""


def lower_sigmoid(builder: Builder, kind: FloatType, word: Ref) -> Ref:
    """sigmoid, correctly rounded."""
    exact, wires, form = Exact(builder), Wires(builder), Format(kind)
    fields = Fields(wires, form, word)
    value, field = _value(exact, wires, fields)
    magnitude = round_positive(exact, value, VALUE_POINT, field)
    huge = exact.less(exact.const(LAST_NATURAL), fields.exponent)
    limit = exact.select(fields.sign, exact.const(0), exact.const(form.bias << form.fraction_bits))
    magnitude = exact.select(huge, limit, magnitude)
    magnitude = exact.select(fields.is_nan, exact.const(form.nan), magnitude)
    return builder.cast(magnitude, form.word)


def lower_silu(builder: Builder, kind: FloatType, word: Ref) -> Ref:
    """silu, correctly rounded: |x| sigmoid(x) with the sign of x.

    Below 2^-25 it lies above x / 2 by less than anything computed, and x / 2 may be half-way between
    subnormal floats: there the factor is a little above 1/2 for positive x, a little below for negative.
    """
    exact, wires, form = Exact(builder), Wires(builder), Format(kind)
    fields = Fields(wires, form, word)
    value, field = _value(exact, wires, fields)
    one = 1 << VALUE_POINT
    nearly = exact.select(fields.sign, exact.const(one - 1), exact.const(one + 1))
    tiny = exact.less(fields.exponent, exact.const(TINY))
    value = exact.select(tiny, nearly, value)
    field = exact.select(tiny, exact.const(form.bias - 1), field)
    upper, lower = exact.bits(fields.significand, 23, 6), exact.bits(fields.significand, 5, 0)
    product = exact.add(exact.mul_shr(value, upper, 17), exact.mul_shr(value, lower, 23))
    scale = exact.fit(exact.add(fields.scale, exact.const(-form.bias)), (1 - form.bias, 7))
    magnitude = round_positive(exact, product, VALUE_POINT, exact.add(field, scale))
    huge = exact.less(exact.const(LAST_NATURAL), fields.exponent)
    limit = exact.select(fields.sign, exact.const(0), fields.magnitude)
    magnitude = exact.select(huge, limit, magnitude)
    magnitude = exact.select(fields.is_nan, exact.const(form.nan), magnitude)
    return wires.cat(wires.unless(fields.sign, fields.is_nan), wires.resize(magnitude, form.width - 1))


def _value(exact: Exact, wires: Wires, fields: Fields) -> tuple[Ref, Ref]:
    """sigmoid(x) for |x| < 128: a value with 57 fraction bits, at least 1 but for a few units; its field."""
    size = fixed_point(exact, wires, fields, LAST_NATURAL)
    small = exact.less(fields.exponent, exact.const(_HALF))
    upper = _upper(exact, fields, size, small)
    n, rest = reduce_natural(exact, exact.sub(exact.const(0), size))
    lower = _product(exact, power_of_rest(exact, rest, True), upper)
    complement = exact.shl(exact.sub(exact.const(1 << data.POINT), upper), 2)
    complement = exact.fit(complement, (1 << data.POINT, 2 << data.POINT))
    value = exact.select(small, complement, lower)
    field = exact.select(small, exact.const(125), exact.add(n, exact.const(126)))
    value = exact.select(fields.sign, value, exact.shl(upper, 1))
    return value, exact.select(fields.sign, field, exact.const(126))


def _upper(exact: Exact, fields: Fields, size: Ref, small: Ref) -> Ref:
    """sigmoid(|x|) with ``data.POINT`` fraction bits, for |x| < 128."""
    place = locate(exact, data, fields.exponent, fields.fraction)
    curve = evaluate(exact, data.TABLE, place.segment, place.offset, data.OFFSET_BITS)
    low_size = exact.bits(size, POINT - 2, 0)
    line = exact.shl(exact.select(small, low_size, exact.const(0)), data.POINT - POINT - 2)
    return exact.fit(exact.add(curve, line), ((1 << data.POINT - 1) - 64, 1 << data.POINT))


def _product(exact: Exact, power: Ref, upper: Ref) -> Ref:
    """``2 power upper`` with 57 fraction bits, as its factors: all but the lowest partial product."""

    def pieces(value: Ref, lowest: int) -> list[Ref]:
        last = lowest + 2 * TILE_BITS
        parts = [exact.bits(value, low + TILE_BITS - 1, low) for low in (lowest, lowest + TILE_BITS)]
        return [*parts, exact.shr(value, last)]

    p, q = pieces(power, 5), pieces(upper, 4)

    def diagonal(*pairs: tuple[int, int]) -> Ref:
        return exact.add(*(exact.mul(p[i], q[j]) for i, j in pairs))

    # Diagonals weigh 2^(9 + 18 k) for k = i + j, the result's unit 2^56.
    carried = exact.shr(diagonal((0, 1), (1, 0)), TILE_BITS)
    carried = exact.shr(exact.add(diagonal((0, 2), (1, 1), (2, 0)), carried), 56 - 9 - 2 * TILE_BITS)
    return exact.add(
        exact.shl(exact.mul(p[2], q[2]), 9 + 4 * TILE_BITS - 56),
        exact.shl(diagonal((1, 2), (2, 1)), 9 + 3 * TILE_BITS - 56), carried,
    )
