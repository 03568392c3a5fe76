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
from kera_hw.rtl.lower.floats.elementary.exact import Exact
from kera_hw.rtl.lower.floats.elementary.nearest import round_positive
from kera_hw.rtl.lower.floats.fields import Fields, Format, Wires
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


def fixed_point(exact: Exact, wires: Wires, fields: Fields, last: int) -> Ref:
    """|x| with ``POINT`` fraction bits, for exponent fields up to ``last``; 0 below 2^-25."""
    significand = wires.cat(wires.flag(True), fields.fraction)
    lowest = TINY
    most = last - lowest
    tiny = exact.less(fields.exponent, exact.const(lowest))
    distance = exact.sub(fields.exponent, exact.const(lowest))
    amount = exact.bits(distance, most.bit_length() - 1, 0)
    width = most + 24
    moved = exact.bits(wires.left(wires.resize(significand, width), amount), width - 1, 0)
    return exact.select(tiny, exact.const(0), moved)


def reduce_natural(exact: Exact, argument: Ref) -> tuple[Ref, Ref]:
    """(n, r) of a signed fixed-point argument: r = x - n ln 2 in [0, 0.79)."""
    builder = exact.builder
    top = exact.shr(argument, POINT - 5)
    n = exact.shr(exact.sub(exact.mul(top, exact.const(1477)), exact.const(1638)), 15)
    positive = exact.bits(exact.add(n, exact.const(256)), 8, 0)
    high, low = exact.bits(positive, 8, 4), exact.bits(positive, 3, 0)
    kind = IntType(REST_POINT + 2, False)
    rest = exact.shl(builder.cast(argument, IntType(REST_POINT + 2 - 10, False)), REST_POINT - POINT)
    for table, index in ((data.LN2_HIGH, high), (data.LN2_LOW, low)):
        multiple = exact.lookup(index, [value & kind.max for value in table])
        rest = builder.op("integer.sub", builder.cast(rest, kind), builder.cast(multiple, kind))
    return n, exact.bits(rest, REST_POINT - 1, 0)


def power_of_rest(exact: Exact, rest: Ref, natural: bool) -> Ref:
    """e^r (2^r unless ``natural``) with ``VALUE_POINT`` fraction bits."""
    second_point = REST_POINT - _FIRST_BITS - _SECOND_BITS
    first = exact.bits(rest, REST_POINT - 1, REST_POINT - _FIRST_BITS)
    second = exact.bits(rest, REST_POINT - _FIRST_BITS - 1, second_point)
    low = exact.bits(rest, second_point - 1, 0)
    if not natural:  # 2^u = e^(u ln 2)
        factor = exact.const(data.LN2_SHORT)
        upper = exact.shr(exact.mul(exact.shr(low, 21), factor), 19)
        low = exact.add(upper, exact.shr(exact.mul(exact.bits(low, 20, 10), factor), 30))
    head = exact.lookup(first, data.FIRST_E if natural else data.FIRST_2)
    a = exact.lookup(second, data.SECOND_E if natural else data.SECOND_2)
    square_root = exact.shr(low, 21)
    square = exact.mul(square_root, square_root)
    b = exact.add(low, exact.shr(square, 17))
    a_high, a_low = exact.shr(a, 31), exact.bits(a, 30, 18)
    b_high, b_low = exact.shr(b, 22), exact.bits(b, 21, 9)
    small = exact.shr(exact.add(exact.mul(a_high, b_low), exact.mul(a_low, b_high)), 18)
    c = exact.add(a, b, exact.shr(exact.mul(a_high, b_high), 5), small)
    return _times_one_plus(exact, head, c)


def _times_one_plus(exact: Exact, head: Ref, c: Ref) -> Ref:
    """``head * (1 + c)``: head with 57 fraction bits, c below 2^-8 with 58."""
    high, middle, low = exact.shr(head, 41), exact.bits(head, 40, 23), exact.bits(head, 22, 5)
    c_high, c_middle, c_low = exact.shr(c, 32), exact.bits(c, 31, 14), exact.bits(c, 13, 0)
    last = exact.shr(exact.add(exact.mul(middle, c_middle), exact.mul(low, c_high)), 18)
    second = exact.add(
        exact.mul(high, c_middle), exact.mul(middle, c_high), exact.shr(exact.mul(high, c_low), 14), last,
    )
    first = exact.shl(exact.mul(high, c_high), 15)
    return exact.add(head, first, exact.shr(second, 3))


def lower_exp(builder: Builder, kind: FloatType, word: Ref) -> Ref:
    """exp, correctly rounded."""
    return _lower(builder, kind, word, True)


def lower_exp2(builder: Builder, kind: FloatType, word: Ref) -> Ref:
    """exp2, correctly rounded."""
    return _lower(builder, kind, word, False)


def _lower(builder: Builder, kind: FloatType, word: Ref, natural: bool) -> Ref:
    exact, wires, form = Exact(builder), Wires(builder), Format(kind)
    fields = Fields(wires, form, word)
    last = LAST_NATURAL if natural else LAST_BINARY
    argument = exact.negate_if(fields.sign, fixed_point(exact, wires, fields, last))
    if natural:
        n, rest = reduce_natural(exact, argument)
    else:
        n = exact.shr(argument, POINT)
        rest = exact.shl(exact.bits(argument, POINT - 1, 0), REST_POINT - POINT)
    field = exact.add(n, exact.const(form.bias))
    magnitude = round_positive(exact, power_of_rest(exact, rest, natural), VALUE_POINT, field)
    huge = exact.less(exact.const(last), fields.exponent)
    limit = exact.select(fields.sign, exact.const(0), exact.const(form.infinity))
    magnitude = exact.select(huge, limit, magnitude)
    magnitude = exact.select(fields.is_nan, exact.const(form.nan), magnitude)
    return builder.cast(magnitude, form.word)
