"""Sums and inner products of floats in the order ``exact``: a long accumulator of digits, rounded once.

The accumulator is U. Kulisch's ("Computer Arithmetic and Validity", 2008): fixed point from the least bit of
the format to beyond its greatest number. Here it is a row of 32-bit digits, each the sum of what the terms
put there, as a signed number of 64 bits: so the terms are added digit by digit in any order, up to 2^31 of
them, and carries move once, at the end, as in R. M. Neal's small superaccumulator ("Fast exact summation
using small and large superaccumulators", 2015).
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from kera_hw.ops.expansions import exact_product
from kera_hw.ops.expansions.exact_product import is_exact, of_nothing
from kera_hw.ops.expansions.long import (
    DIGIT_BITS,
    MASK,
    SIGNED,
    WORD,
    Term,
    add,
    decided,
    either,
    fields,
    high,
    leading,
    low,
    rounded,
    word_of,
)
from kera_hw.ops.expansions.parts import integer, select, shifted, unsigned
from kera_hw.ops.spec import Attrs, Expansion, V, Writer
from kera_hw.types import FloatType, TensorType, element_type


def _digits(to: Writer[V], significand: V, kind: FloatType) -> list[V]:
    if kind.fraction_bits < DIGIT_BITS:
        return [significand]
    return [low(to, significand), high(to, significand)]


def _multiplied(to: Writer[V], first: Sequence[V], second: Sequence[V]) -> list[V]:
    """Digits of a product."""
    columns: list[list[V]] = [[] for _ in range(len(first) + len(second))]
    for i, x in enumerate(first):
        for j, y in enumerate(second):
            whole = to.op("integer.mul", x, y)
            columns[i + j].append(low(to, whole))
            columns[i + j + 1].append(high(to, whole))
    digits: list[V] = []
    carry: list[V] = []
    for column in columns:
        total = add(to, *column, *carry)
        digits.append(low(to, total))
        carry = [high(to, total)]
    return digits


def _joined(to: Writer[V], a: Term[V], b: Term[V], kind: FloatType) -> Term[V]:
    """An exact product, in units of the square of the format's least number."""
    wide = unsigned(kind.exponent_bits + 2)
    position = add(to, *(to.op("convert.cast", term.position, type=wide) for term in (a, b)))
    nothing, infinite = either(to, a.zero, b.zero), either(to, a.infinite, b.infinite)
    nan = either(to, a.nan, b.nan, to.op("bits.and", nothing, infinite))
    zero = to.op("bits.and", nothing, to.op("bits.not", nan))
    return Term(to.op("bits.xor", a.negative, b.negative), position, a.most + b.most, nan, infinite, zero)


def _moved(to: Writer[V], term: Term[V], digits: Sequence[V]) -> tuple[V, list[V]]:
    """Number of the first digit that a term reaches, and what it adds there and above, signed."""
    width = term.most.bit_length()
    position = to.op("convert.cast", term.position, type=unsigned(max(width, 6)))
    first = shifted(to, "bits.shr", position, 5)
    distance = to.op("convert.cast", position, type=unsigned(5))
    parts: list[list[V]] = [[] for _ in range(len(digits) + 1)]
    for k, digit in enumerate(digits):
        whole = to.op("bits.shl", digit, distance)
        parts[k].append(low(to, whole))
        parts[k + 1].append(high(to, whole))
    signed: list[V] = []
    for part in parts:
        amount = to.op("convert.cast", add(to, *part), type=SIGNED)
        other = to.op("integer.sub", integer(to, SIGNED, 0), amount)
        signed.append(select(to, term.negative, other, amount))
    return first, signed


def _collected(to: Writer[V], term: Term[V], significand: Sequence[V], axis: int) -> list[V]:
    """The digits of the sum over an axis, signed, least first; one more than can be reached."""
    first, parts = _moved(to, term, significand)
    kind = element_type(first.type)
    last = term.most // DIGIT_BITS
    here = [to.op("compare.eq", first, integer(to, kind, k)) for k in range(last + 1)]
    nothing = integer(to, SIGNED, 0)
    digits: list[V] = []
    for k in range(last + len(parts)):
        amount = nothing
        for j, part in enumerate(parts):
            if 0 <= k - j <= last:
                amount = select(to, here[k - j], part, amount)
        digits.append(to.op("reduce.sum", amount, axis=axis, order=""))
    return digits


def _magnitude(to: Writer[V], digits: Sequence[V]) -> tuple[V, list[V]]:
    """Whether the number is negative, and its magnitude's digits below 2^32, with one for the carries."""
    carry: V | None = None
    plain: list[V] = []
    for digit in digits:
        total = digit if carry is None else add(to, digit, carry)
        plain.append(low(to, to.op("convert.cast", total, type=WORD)))
        carry = shifted(to, "bits.shr", total, DIGIT_BITS)
    assert carry is not None
    negative = to.op("compare.lt", carry, integer(to, SIGNED, 0))
    plain.append(low(to, to.op("convert.cast", carry, type=WORD)))
    flip = select(to, negative, word_of(to, MASK), word_of(to, 0))
    more = to.op("convert.cast", negative, type=WORD)
    found: list[V] = []
    for digit in plain:
        total = add(to, to.op("bits.xor", digit, flip), more)
        found.append(low(to, total))
        more = high(to, total)
    return negative, found


def _finished(
    to: Writer[V], kind: FloatType, term: Term[V], significand: Sequence[V], axis: int, units: int
) -> V:
    """The sum of terms in units of 2^-units of the format's least number, over an axis."""
    negative, digits = _magnitude(to, _collected(to, term, significand, axis))
    bits = rounded(to, kind, leading(to, digits), integer(to, SIGNED, -units))
    minus = to.op("reduce.all", to.op("bits.and", term.zero, term.negative), axis=axis)
    above, below = (
        to.op("reduce.any", to.op("bits.and", term.infinite, sign), axis=axis)
        for sign in (to.op("bits.not", term.negative), term.negative)
    )
    nan = to.op("bits.or", to.op("reduce.any", term.nan, axis=axis), to.op("bits.and", above, below))
    return decided(to, kind, bits, to.op("bits.or", negative, minus), nan, above, below)


def total(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V] | None:
    """The order `exact` on floats: 32-bit digits added apart, rounded once."""
    (x,), source, axis = args, args[0].type, int(attrs["axis"])
    if not is_exact(source, attrs):
        return None
    kind = element_type(source)
    assert isinstance(source, TensorType) and isinstance(kind, FloatType)
    if (source.size if axis == -1 else source.shape[axis]) == 0:
        return (of_nothing(to, kind, source, axis, 0),)
    term, significand = fields(to, x, kind)
    return (_finished(to, kind, term, _digits(to, significand, kind), axis, 0),)


def dot(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V] | None:
    """The order `exact` on floats: the 32-bit digits of exact products added apart, rounded once."""
    source = args[0].type
    if not is_exact(source, attrs):
        return None
    kind = element_type(source)
    assert isinstance(source, TensorType) and isinstance(kind, FloatType)
    if not source.size:
        return (of_nothing(to, kind, source, -1, 0),)
    (a, first), (b, second) = (fields(to, x, kind) for x in args)
    digits = _multiplied(to, _digits(to, first, kind), _digits(to, second, kind))
    units = (1 << (kind.exponent_bits - 1)) - 2 + kind.fraction_bits
    return (_finished(to, kind, _joined(to, a, b, kind), digits, -1, units),)


EXPANSIONS: Mapping[str, Expansion] = {
    "reduce.sum": total, "reduce.dot": dot, "reduce.prod": exact_product.product,
}
