"""What floating-point operations mean, in SMT-LIB's theory of IEEE 754 numbers, rounded to nearest even.

The theory has one NaN and knows no bit patterns, which suits the rule of one NaN: patterns become numbers by
``as_float``, and ``bits_of`` is the one pattern that the rule allows for a number.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from kera_hw.ops.expansions import elementary
from kera_hw.rtl.formal.scalars import Call, Rule, clamp, fraction_bits, raw
from kera_hw.rtl.formal.terms import FloatSort, Term, Terms
from kera_hw.target import Refusal
from kera_hw.types import FloatType, IntType, Type

_WIDE_EXPONENT_BITS = 15


def float_sort(kind: FloatType) -> FloatSort:
    """The theory's sort of a format."""
    return FloatSort(kind.exponent_bits, kind.fraction_bits + 1)


def canonical_nan(sort: FloatSort) -> int:
    """Pattern of the one NaN: sign 0, quiet, payload 0."""
    return ((1 << (sort.exponent_bits + 1)) - 1) << (sort.significand_bits - 2)


def is_nan(terms: Terms, x: Term) -> Term:
    return terms.float_op("fp.is_nan", (x,), 1)


def carries(terms: Terms, bits: Term, number: Term) -> Term:
    """Whether a pattern is the one that stands for a number: the NaN's must be canonical."""
    sort = number.sort
    assert isinstance(sort, FloatSort)
    nan = terms.eq(bits, terms.const(canonical_nan(sort), bits.width))
    same = terms.same_float(terms.as_float(bits, sort), number)
    return terms.ite(is_nan(terms, number), nan, same)


def bits_of(terms: Terms, number: Term) -> Term:
    """The pattern of a number, where needed as a fresh variable that ``carries`` defines."""
    sort = number.sort
    assert isinstance(sort, FloatSort)
    if number.op == "fp.from_bits":
        nan = terms.const(canonical_nan(sort), sort.width_bits)
        return terms.ite(is_nan(terms, number), nan, number.args[0])
    bits = terms.fresh("bits", sort.width_bits)
    terms.define(bits, carries(terms, bits, number))
    return bits


def constant(terms: Terms, bits: int, kind: FloatType) -> Term:
    """The number of a pattern."""
    return terms.as_float(terms.const(bits, kind.width_bits), float_sort(kind))


def power_of_two(terms: Terms, exponent: int, sort: FloatSort, negative: bool = False) -> Term | None:
    """±2^exponent, or None where no normal number of the format is that."""
    bias = (1 << (sort.exponent_bits - 1)) - 1
    if not 1 - bias <= exponent <= bias:
        return None
    fraction_width = sort.significand_bits - 1
    bits = (exponent + bias) << fraction_width | int(negative) << (sort.width_bits - 1)
    return terms.as_float(terms.const(bits, sort.width_bits), sort)


def _sort(call: Call) -> FloatSort:
    sort = call.args[0].sort
    assert isinstance(sort, FloatSort)
    return sort


def _rounded(op: str) -> Rule:
    return lambda call: [call.terms.float_op(op, call.args, _sort(call), "rne")]


def _integral(mode: str) -> Rule:
    return lambda call: [call.terms.float_op("fp.rti", call.args, _sort(call), mode)]


def _plain(op: str) -> Rule:
    return lambda call: [call.terms.float_op(op, call.args, _sort(call))]


def _one(terms: Terms, sort: FloatSort, negative: bool = False) -> Term:
    one = power_of_two(terms, 0, sort, negative)
    assert one is not None
    return one


def _sign(call: Call) -> Sequence[Term]:
    terms, x, sort = call.terms, call.args[0], _sort(call)
    kept = terms.bit_or(is_nan(terms, x), terms.float_op("fp.is_zero", (x,), 1))
    negative = terms.float_op("fp.is_neg", (x,), 1)
    return [terms.ite(kept, x, terms.ite(negative, _one(terms, sort, negative=True), _one(terms, sort)))]


def extreme(terms: Terms, a: Term, b: Term, greatest: bool) -> Term:
    """IEEE 754-2019 minimum or maximum: NaN if either is, -0 below +0."""
    below, above = terms.float_op("fp.lt", (a, b), 1), terms.float_op("fp.lt", (b, a), 1)
    negative = terms.float_op("fp.is_neg", (a,), 1)
    equal = terms.ite(negative, b, a) if greatest else terms.ite(negative, a, b)
    first, second = (above, below) if greatest else (below, above)
    ordered = terms.ite(first, a, terms.ite(second, b, equal))
    return terms.ite(is_nan(terms, a), a, terms.ite(is_nan(terms, b), b, ordered))


def _extreme(greatest: bool) -> Rule:
    return lambda call: [extreme(call.terms, call.args[0], call.args[1], greatest)]


def _relu(call: Call) -> Sequence[Term]:
    sort = _sort(call)
    zero = call.terms.as_float(call.terms.const(0, sort.width_bits), sort)
    return [extreme(call.terms, call.args[0], zero, greatest=True)]


def _recip(call: Call) -> Sequence[Term]:
    sort = _sort(call)
    return [call.terms.float_op("fp.div", (_one(call.terms, sort), call.args[0]), sort, "rne")]


def _copysign(call: Call) -> Sequence[Term]:
    terms, (x, y), sort = call.terms, call.args, _sort(call)
    size = terms.float_op("fp.abs", (x,), sort)
    opposite = terms.float_op("fp.neg", (size,), sort)
    return [terms.ite(terms.float_op("fp.is_neg", (y,), 1), opposite, size)]


def _is_finite(call: Call) -> Sequence[Term]:
    terms, x = call.terms, call.args[0]
    infinite = terms.float_op("fp.is_inf", (x,), 1)
    return [terms.bit_not(terms.bit_or(infinite, is_nan(terms, x)))]


def _compare(op: str, swapped: bool = False, negated: bool = False) -> Rule:
    def rule(call: Call) -> Sequence[Term]:
        a, b = call.args
        result = call.terms.float_op(op, (b, a) if swapped else (a, b), 1)
        return [call.terms.bit_not(result) if negated else result]

    return rule


# Conversions


def _cast(call: Call) -> Sequence[Term]:
    source, target = call.arg_types[0], call.types[0]
    if isinstance(source, FloatType) and isinstance(target, FloatType):
        return [convert(call.terms, call.args[0], float_sort(target))]
    if isinstance(target, FloatType):
        return [_to_float(call, source, float_sort(target))]
    return [_from_float(call, target)]


def convert(terms: Terms, x: Term, sort: FloatSort) -> Term:
    """The number rounded to another format."""
    return x if x.sort == sort else terms.float_op("fp.from_fp", (x,), sort, "rne")


def _to_float(call: Call, source: Type, sort: FloatSort) -> Term:
    kind = raw(source)
    op = "fp.from_sbv" if kind.signed else "fp.from_ubv"
    shift = fraction_bits(source)
    if not shift:
        return call.terms.float_op(op, call.args, sort, "rne")
    wide = FloatSort(_WIDE_EXPONENT_BITS, kind.width_bits + 2)  # holds the number and its scaling exactly
    number = call.terms.float_op(op, call.args, wide, "rne")
    return convert(call.terms, _scaled(call.terms, number, -shift), sort)


def _scaled(terms: Terms, x: Term, exponent: int) -> Term:
    assert isinstance(x.sort, FloatSort)
    factor = power_of_two(terms, exponent, x.sort)
    assert factor is not None
    return terms.float_op("fp.mul", (x, factor), x.sort, "rne")


def _from_float(call: Call, target: Type) -> Term:
    """Saturating, NaN to 0; integers toward zero, fixed point to nearest even."""
    terms, x, sort = call.terms, call.args[0], _sort(call)
    kind, mode = raw(target), "rtz"
    if fraction_bits(target) or not isinstance(target, IntType):
        mode, sort = "rne", FloatSort(_WIDE_EXPONENT_BITS, sort.significand_bits)
        x = _scaled(terms, convert(terms, x, sort), fraction_bits(target))
    x = terms.float_op("fp.rti", (x,), sort, mode)
    width = kind.width_bits + 1  # one more, so that both bounds are numbers
    inside = terms.float_op("fp.to_sbv", (x,), width, "rtz")
    top = kind.width_bits - kind.signed
    above, below = _beyond(terms, x, sort, top), _beyond(terms, x, sort, top, negative=True)
    most, least = terms.const(kind.max, width), terms.const(kind.min, width)
    wide = terms.ite(above, most, terms.ite(below, least, inside))
    result = clamp(terms, wide, kind)
    return terms.ite(is_nan(terms, x), terms.const(0, kind.width_bits), result)


def _beyond(terms: Terms, x: Term, sort: FloatSort, exponent: int, negative: bool = False) -> Term:
    """Whether x is at least 2^exponent, or at most -2^exponent."""
    sign = terms.float_op("fp.is_neg", (x,), 1)
    side = sign if negative else terms.bit_not(sign)
    infinite = terms.bit_and(terms.float_op("fp.is_inf", (x,), 1), side)
    bound = power_of_two(terms, exponent, sort, negative)
    if bound is None:
        return infinite
    pair = (x, bound) if negative else (bound, x)
    return terms.bit_or(infinite, terms.float_op("fp.le", pair, 1))


def _bitcast(call: Call) -> Sequence[Term]:
    source, target = call.arg_types[0], call.types[0]
    bits = bits_of(call.terms, call.args[0]) if isinstance(source, FloatType) else call.args[0]
    return [call.terms.as_float(bits, float_sort(target)) if isinstance(target, FloatType) else bits]



RULES: Mapping[str, Rule] = {
    "floating.add": _rounded("fp.add"),
    "floating.sub": _rounded("fp.sub"),
    "floating.mul": _rounded("fp.mul"),
    "floating.div": _rounded("fp.div"),
    "floating.fma": _rounded("fp.fma"),
    "floating.sqrt": _rounded("fp.sqrt"),
    "floating.recip": _recip,
    "floating.neg": _plain("fp.neg"),
    "floating.abs": _plain("fp.abs"),
    "floating.sign": _sign,
    "floating.min": _extreme(greatest=False),
    "floating.max": _extreme(greatest=True),
    "floating.relu": _relu,
    "floating.floor": _integral("rtn"),
    "floating.ceil": _integral("rtp"),
    "floating.round": _integral("rne"),
    "floating.trunc": _integral("rtz"),
    "floating.copysign": _copysign,
    "floating.is_nan": lambda call: [is_nan(call.terms, call.args[0])],
    "floating.is_finite": _is_finite,
    "compare.eq": _compare("fp.eq"),
    "compare.ne": _compare("fp.eq", negated=True),
    "compare.lt": _compare("fp.lt"),
    "compare.le": _compare("fp.le"),
    "compare.gt": _compare("fp.lt", swapped=True),
    "compare.ge": _compare("fp.le", swapped=True),
    "control.select": lambda call: [call.terms.ite(*call.args)],
    "convert.cast": _cast,
    "convert.bitcast": _bitcast,
}
"""Rules by operation, for operations that take or give a floating-point number."""

_COMPARE = "Compare on many items instead, without --formal."
REFUSED: Mapping[str, tuple[Refusal, ...]] = {
    "floating.rsqrt": (
        Refusal("the theory of IEEE 754 numbers has no such function, rounded once", _COMPARE),
    ),
    **dict.fromkeys(
        elementary.EXPANSIONS,
        (Refusal("it is a program in f64, about which solvers come to no end", _COMPARE),),
    ),
}
