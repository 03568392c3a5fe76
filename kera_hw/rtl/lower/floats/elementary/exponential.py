"""exp and exp2 on f32: two tables and a quadratic: Tang's method with a second table for a second digit.

The argument becomes a fixed-point number, x = n ln 2 + r (exp) or x = n + r (exp2) with 0 <= r < 1. The
first 9 bits of r choose T1 = e^h1, the next 10 choose A = e^h2 - 1, and what remains, below 2^-19, needs
B = u + u^2 / 2. Then e^r = T1 + T1 (A + B + A B), and only products that reach the result's precision are
formed.
"""
from __future__ import annotations

from kera_hw.graph.node import Ref
from kera_hw.rtl.lower.builder import Builder
from kera_hw.rtl.lower.floats.elementary import exponential_data as data
from kera_hw.rtl.lower.floats.elementary.nearest import round_positive
from kera_hw.rtl.lower.floats.fields import Fields, Format
from kera_hw.rtl.lower.floats.wires import Wires
from kera_hw.types import FloatType, IntType

POINT = 48
"""Fraction bits of the fixed-point argument: smaller ones round to 1."""
TINY = 150 - POINT
"""The least exponent field of arguments that are not 0 in fixed point."""
REST_POINT = 58
"""Fraction bits of r."""
VALUE_POINT = 57
"""Fraction bits of e^r."""
_FIRST_BITS, _SECOND_BITS = 9, 10
LAST_NATURAL, LAST_BINARY = 133, 134
"""Exponent fields of arguments below 128 (exp) and 256 (exp2); further ones overflow or vanish."""


def fixed_point(wires: Wires, fields: Fields, last: int) -> Ref:
    """|x| with ``POINT`` fraction bits, for exponent fields up to ``last``; 0 below 2^-25."""
    significand = wires.cat(wires.flag(True), fields.fraction)
    lowest = TINY
    most = last - lowest
    tiny = wires.is_below(fields.exponent, wires.integer(lowest))
    distance = wires.difference(fields.exponent, wires.integer(lowest))
    amount = wires.piece(distance, most.bit_length() - 1, 0)
    width = most + 24
    moved = wires.piece(wires.left(wires.resize(significand, width), amount), width - 1, 0)
    return wires.choose(tiny, wires.integer(0), moved)


def reduce_natural(wires: Wires, argument: Ref) -> tuple[Ref, Ref]:
    """(n, r) of a signed fixed-point argument: r = x - n ln 2 in [0, 0.79)."""
    builder = wires.builder
    top = wires.lowered(argument, POINT - 5)
    n = wires.lowered(wires.difference(wires.times(top, wires.integer(1477)), wires.integer(1638)), 15)
    positive = wires.piece(wires.sum_of(n, wires.integer(256)), 8, 0)
    high, low = wires.piece(positive, 8, 4), wires.piece(positive, 3, 0)
    kind = IntType(REST_POINT + 2, False)
    rest = wires.raised(builder.cast(argument, IntType(REST_POINT + 2 - 10, False)), REST_POINT - POINT)
    for table, index in ((data.LN2_HIGH, high), (data.LN2_LOW, low)):
        multiple = wires.lookup(index, [value & kind.max for value in table])
        rest = builder.op("integer.sub", builder.cast(rest, kind), builder.cast(multiple, kind))
    return n, wires.piece(rest, REST_POINT - 1, 0)


def power_of_rest(wires: Wires, rest: Ref, natural: bool) -> Ref:
    """e^r (2^r unless ``natural``) with ``VALUE_POINT`` fraction bits."""
    second_point = REST_POINT - _FIRST_BITS - _SECOND_BITS
    first = wires.piece(rest, REST_POINT - 1, REST_POINT - _FIRST_BITS)
    second = wires.piece(rest, REST_POINT - _FIRST_BITS - 1, second_point)
    low = wires.piece(rest, second_point - 1, 0)
    if not natural:  # 2^u = e^(u ln 2)
        factor = wires.integer(data.LN2_SHORT)
        upper = wires.lowered(wires.times(wires.lowered(low, 21), factor), 19)
        low = wires.sum_of(upper, wires.lowered(wires.times(wires.piece(low, 20, 10), factor), 30))
    head = wires.lookup(first, data.FIRST_E if natural else data.FIRST_2)
    a = wires.lookup(second, data.SECOND_E if natural else data.SECOND_2)
    square_root = wires.lowered(low, 21)
    square = wires.times(square_root, square_root)
    b = wires.sum_of(low, wires.lowered(square, 17))
    a_high, a_low = wires.lowered(a, 31), wires.piece(a, 30, 18)
    b_high, b_low = wires.lowered(b, 22), wires.piece(b, 21, 9)
    small = wires.lowered(wires.sum_of(wires.times(a_high, b_low), wires.times(a_low, b_high)), 18)
    c = wires.sum_of(a, b, wires.lowered(wires.times(a_high, b_high), 5), small)
    return _times_one_plus(wires, head, c)


def _times_one_plus(wires: Wires, head: Ref, c: Ref) -> Ref:
    """``head * (1 + c)``: head with 57 fraction bits, c below 2^-8 with 58."""
    high, middle, low = wires.lowered(head, 41), wires.piece(head, 40, 23), wires.piece(head, 22, 5)
    c_high, c_middle, c_low = wires.lowered(c, 32), wires.piece(c, 31, 14), wires.piece(c, 13, 0)
    last = wires.lowered(wires.sum_of(wires.times(middle, c_middle), wires.times(low, c_high)), 18)
    lowest = wires.lowered(wires.times(high, c_low), 14)
    second = wires.sum_of(wires.times(high, c_middle), wires.times(middle, c_high), lowest, last)
    first = wires.raised(wires.times(high, c_high), 15)
    return wires.sum_of(head, first, wires.lowered(second, 3))


def lower_exp(builder: Builder, kind: FloatType, word: Ref) -> Ref:
    """exp, correctly rounded."""
    return _lower(builder, kind, word, True)


def lower_exp2(builder: Builder, kind: FloatType, word: Ref) -> Ref:
    """exp2, correctly rounded."""
    return _lower(builder, kind, word, False)


def _lower(builder: Builder, kind: FloatType, word: Ref, natural: bool) -> Ref:
    wires, form = Wires(builder), Format(kind)
    fields = Fields(wires, form, word)
    last = LAST_NATURAL if natural else LAST_BINARY
    argument = wires.negated_if(fields.sign, fixed_point(wires, fields, last))
    if natural:
        n, rest = reduce_natural(wires, argument)
    else:
        n = wires.lowered(argument, POINT)
        rest = wires.raised(wires.piece(argument, POINT - 1, 0), REST_POINT - POINT)
    field = wires.sum_of(n, wires.integer(form.bias))
    magnitude = round_positive(wires, power_of_rest(wires, rest, natural), VALUE_POINT, field)
    huge = wires.is_below(wires.integer(last), fields.exponent)
    limit = wires.choose(fields.sign, wires.integer(0), wires.integer(form.infinity))
    magnitude = wires.choose(huge, limit, magnitude)
    magnitude = wires.choose(fields.is_nan, wires.integer(form.nan), magnitude)
    return builder.cast(magnitude, form.word)
