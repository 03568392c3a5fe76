"""log and log2 on f32: the exponent's multiple of ln 2 and a piecewise polynomial of the significand.

x = 2^k (1 + t) with -1/4 <= t < 1/2. The distance |t| is exact in 24 bits: its upper 9 choose a segment of
width 2^-9, the lower 15 are the offset in it. |log(1 + t)| is a polynomial of degree 5 there; in the two
segments that touch 0 it has no constant term, so that small logarithms keep their relative precision.
"""
from __future__ import annotations

from kera_hw.graph.node import Ref
from kera_hw.rtl.lower.builder import Builder
from kera_hw.rtl.lower.floats.elementary import logarithm_data as data
from kera_hw.rtl.lower.floats.elementary.polynomial import evaluate
from kera_hw.rtl.lower.floats.fields import Fields, Format
from kera_hw.rtl.lower.floats.wires import Wires
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
    wires, form = Wires(builder), Format(kind)
    fields = Fields(wires, form, word)
    exponent, fraction = normalised(wires, fields)
    near = wires.digit(fraction, 22)  # 1.5 and above: the next power of two is nearer
    k = wires.sum_of(exponent, wires.integer(-form.bias), near)
    rest = wires.difference(wires.integer(1 << 23), fraction)
    distance = wires.choose(near, rest, wires.raised(fraction, 1))
    segment = builder.cast(wires.cat(near, wires.piece(distance, 22, OFFSET_BITS)), wires.integer(511).type)
    offset = wires.piece(distance, OFFSET_BITS - 1, 0)
    table = data.NATURAL if natural else data.BINARY
    part = wires.fit(evaluate(wires, table, segment, offset, OFFSET_BITS), (0, (1 << data.POINT) - 1))
    below = wires.is_below(k, wires.integer(0))
    alone = wires.is_equal(k, wires.integer(0))
    negative = wires.either(below, wires.both(alone, near))
    window = _window(wires, part, k, wires.differ(below, near), natural)
    top = wires.choose(alone, wires.integer(_NEAR_TOP), wires.integer(_SUM_TOP))
    magnitude = _rounded(wires, form, window, top)
    return _specials(wires, form, fields, magnitude, negative)


def normalised(wires: Wires, fields: Fields) -> tuple[Ref, Ref]:
    """Exponent and fraction as if subnormals had a hidden bit."""
    zeros = wires.leading_zeros(fields.fraction)
    moved = wires.piece(wires.raised_by(fields.fraction, wires.fit(zeros, (0, 22))), 21, 0)
    small = fields.is_small
    fraction = wires.choose(small, wires.raised(moved, 1), fields.fraction)
    return wires.choose(small, wires.difference(wires.integer(0), zeros), fields.exponent), fraction


def _window(wires: Wires, part: Ref, k: Ref, opposed: Ref, natural: bool) -> Ref:
    """The upper bits of |log x|: of the part alone for k = 0, else of |k| ln 2 plus or minus it."""
    alone = wires.is_equal(k, wires.integer(0))
    count = wires.fit(wires.negated_if(wires.is_below(k, wires.integer(0)), k), (0, 149))
    if natural:
        high, low = wires.lowered(count, 4), wires.piece(count, 3, 0)
        multiple = wires.sum_of(wires.lookup(high, data.LN2_HIGH), wires.lookup(low, data.LN2_LOW))
    else:
        multiple = wires.raised(count, _SUM_POINT)
    aligned = wires.lowered(part, data.POINT - _SUM_POINT)
    total = wires.sum_of(multiple, wires.negated_if(opposed, aligned))
    width = _SUM_POINT + _SUM_TOP + 1
    total_window = wires.piece(total, width - 1, width - _WINDOW)
    part_window = wires.piece(part, data.POINT - 1, data.POINT - _WINDOW)
    return wires.choose(alone, part_window, total_window)


def _rounded(wires: Wires, form: Format, window: Ref, top: Ref) -> Ref:
    """Magnitude bits of a window whose highest bit weighs 2^top: 0, or far from subnormal."""
    window = wires.resize(window, _WINDOW)
    zeros = wires.leading_zeros(window)
    kept = wires.piece(wires.left(window, zeros), _WINDOW - 1, _WINDOW - 25)
    field = wires.difference(wires.sum_of(top, wires.integer(form.bias - 1)), zeros)
    field = wires.fit(field, (0, form.top))  # wrong for 0 alone, which is chosen below
    rounded = wires.lowered(wires.sum_of(kept, wires.integer(1)), 1)
    magnitude = wires.piece(wires.sum_of(wires.raised(field, form.fraction_bits), rounded), form.width - 2, 0)
    return wires.choose(wires.none(window), wires.integer(0), magnitude)


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
