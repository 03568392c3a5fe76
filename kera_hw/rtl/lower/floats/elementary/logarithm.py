"""log and log2 on f32: the exponent's multiple of ln 2 and a piecewise polynomial of the significand.

x = 2^k (1 + t) with -1/4 <= t < 1/2. The distance |t| is exact in 24 bits: its upper 9 choose a segment of
width 2^-9, the lower 15 are the offset in it. |log(1 + t)| is a polynomial of degree 5 there; in the two
segments that touch 0 it has no constant term, so that small logarithms keep their relative precision.
"""
from __future__ import annotations

from kera_hw.graph.node import Ref
from kera_hw.rtl.lower.builder import Builder
from kera_hw.rtl.lower.floats.elementary import logarithm_data as data
from kera_hw.rtl.lower.floats.elementary.exact import Exact
from kera_hw.rtl.lower.floats.elementary.polynomial import evaluate
from kera_hw.rtl.lower.floats.fields import Fields, Format, Wires
from kera_hw.types import FloatType

OFFSET_BITS = 15
_SUM_POINT = 54
"""Fraction bits of k ln 2 + log(1 + t)."""
_SUM_TOP, _NEAR_TOP = 7, -1
"""Weights of the highest bits: of that sum (149 at most), and of |log(1 + t)| alone (0.585 at most)."""
_WINDOW = 50
"""Bits from there on that normalisation looks at: 25 leading zeros, then 25 bits."""


def lower_log(builder: Builder, kind: FloatType, word: Ref) -> Ref:
    """log, correctly rounded."""
    return _lower(builder, kind, word, True)


def lower_log2(builder: Builder, kind: FloatType, word: Ref) -> Ref:
    """log2, correctly rounded."""
    return _lower(builder, kind, word, False)


def _lower(builder: Builder, kind: FloatType, word: Ref, natural: bool) -> Ref:
    exact, wires, form = Exact(builder), Wires(builder), Format(kind)
    fields = Fields(wires, form, word)
    exponent, fraction = normalised(exact, wires, fields)
    near = exact.bit(fraction, 22)  # 1.5 and above: the next power of two is nearer
    k = exact.add(exponent, exact.const(-form.bias), near)
    distance = exact.select(near, exact.sub(exact.const(1 << 23), fraction), exact.shl(fraction, 1))
    segment = builder.cast(wires.cat(near, exact.bits(distance, 22, OFFSET_BITS)), exact.const(511).type)
    offset = exact.bits(distance, OFFSET_BITS - 1, 0)
    table = data.NATURAL if natural else data.BINARY
    part = exact.fit(evaluate(exact, table, segment, offset, OFFSET_BITS), (0, (1 << data.POINT) - 1))
    below = exact.less(k, exact.const(0))
    alone = exact.equal(k, exact.const(0))
    negative = wires.either(below, wires.both(alone, near))
    window = _window(exact, wires, part, k, wires.differ(below, near), natural)
    top = exact.select(alone, exact.const(_NEAR_TOP), exact.const(_SUM_TOP))
    magnitude = _rounded(exact, wires, form, window, top)
    return _specials(wires, form, fields, magnitude, negative)


def normalised(exact: Exact, wires: Wires, fields: Fields) -> tuple[Ref, Ref]:
    """Exponent and fraction as if subnormals had a hidden bit."""
    zeros = wires.leading_zeros(fields.fraction)
    moved = exact.bits(exact.variable_shl(fields.fraction, exact.fit(zeros, (0, 22))), 21, 0)
    small = fields.is_small
    fraction = exact.select(small, exact.shl(moved, 1), fields.fraction)
    return exact.select(small, exact.sub(exact.const(0), zeros), fields.exponent), fraction


def _window(exact: Exact, wires: Wires, part: Ref, k: Ref, opposed: Ref, natural: bool) -> Ref:
    """The upper bits of |log x|: of the part alone for k = 0, else of |k| ln 2 plus or minus it."""
    alone = exact.equal(k, exact.const(0))
    count = exact.fit(exact.negate_if(exact.less(k, exact.const(0)), k), (0, 149))
    if natural:
        high, low = exact.shr(count, 4), exact.bits(count, 3, 0)
        multiple = exact.add(exact.lookup(high, data.LN2_HIGH), exact.lookup(low, data.LN2_LOW))
    else:
        multiple = exact.shl(count, _SUM_POINT)
    aligned = exact.shr(part, data.POINT - _SUM_POINT)
    total = exact.add(multiple, exact.negate_if(opposed, aligned))
    width = _SUM_POINT + _SUM_TOP + 1
    total_window = exact.bits(total, width - 1, width - _WINDOW)
    part_window = exact.bits(part, data.POINT - 1, data.POINT - _WINDOW)
    return exact.select(alone, part_window, total_window)


def _rounded(exact: Exact, wires: Wires, form: Format, window: Ref, top: Ref) -> Ref:
    """Magnitude bits of a window whose highest bit weighs 2^top: 0, or far from subnormal."""
    window = wires.resize(window, _WINDOW)
    zeros = wires.leading_zeros(window)
    kept = exact.bits(wires.left(window, zeros), _WINDOW - 1, _WINDOW - 25)
    field = exact.sub(exact.add(top, exact.const(form.bias - 1)), zeros)
    field = exact.fit(field, (0, form.top))  # wrong for 0 alone, which is chosen below
    rounded = exact.shr(exact.add(kept, exact.const(1)), 1)
    magnitude = exact.bits(exact.add(exact.shl(field, form.fraction_bits), rounded), form.width - 2, 0)
    return exact.select(wires.none(window), exact.const(0), magnitude)


def _specials(wires: Wires, form: Format, fields: Fields, magnitude: Ref, negative: Ref) -> Ref:
    """The word, with log 0 = -infinity, log infinity = infinity and NaN below 0."""
    infinity = wires.const(form.infinity, form.width - 1)
    nan = wires.either(fields.is_nan, wires.unless(fields.sign, fields.is_zero))
    result = wires.resize(magnitude, form.width - 1)
    result = wires.select(wires.either(fields.is_zero, fields.is_infinite), infinity, result)
    result = wires.select(nan, wires.const(form.nan, form.width - 1), result)
    minus = wires.either(negative, fields.is_zero)
    minus = wires.unless(wires.unless(minus, nan), fields.is_top)
    return wires.cat(minus, result)
