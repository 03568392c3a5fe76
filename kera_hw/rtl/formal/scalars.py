"""What integer, fixed-point, bit and comparison operations mean, in SMT-LIB's theory of bit-vectors.

Written from the registry's documentation, not from the lowering: products and sums that may leave their
type are made in more bits than they need, and then clamped or cut off.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from kera_hw.ops.spec import Attrs
from kera_hw.rtl.formal.terms import Term, Terms
from kera_hw.types import BoolType, FixType, FloatType, IntType, Type, bit_width


class Call(NamedTuple):
    """One scalar operation: the table of terms, operands with types, result types, attributes."""

    terms: Terms
    args: tuple[Term, ...]
    arg_types: tuple[Type, ...]
    types: tuple[Type, ...]
    attrs: Attrs


Rule = Callable[[Call], Sequence[Term]]


def raw(kind: Type) -> IntType:
    """The integer that carries a value of the type."""
    if isinstance(kind, IntType):
        return kind
    if isinstance(kind, FixType):
        return kind.raw
    assert isinstance(kind, BoolType), f"{kind} is carried by no integer"
    return IntType(1, False)


def _extended(call: Call, position: int, width: int) -> Term:
    return call.terms.resize(call.args[position], width, raw(call.arg_types[position]).signed)


def clamp(terms: Terms, wide: Term, kind: IntType) -> Term:
    """A signed number of more bits than the type, clamped to the type's range."""
    low, high = terms.const(kind.min, wide.width), terms.const(kind.max, wide.width)
    over, under = terms.less(high, wide, signed=True), terms.less(wide, low, signed=True)
    return terms.extract(terms.ite(over, high, terms.ite(under, low, wide)), 0, kind.width_bits)


def _arith(op: str) -> Rule:
    return lambda call: [call.terms.arith(op, *call.args)]


def _saturating(op: str) -> Rule:
    def rule(call: Call) -> Sequence[Term]:
        kind = raw(call.types[0])
        width = 2 * kind.width_bits + 2
        a, b = (_extended(call, k, width) for k in (0, 1))
        return [clamp(call.terms, call.terms.arith(op, a, b), kind)]

    return rule


def _negative(call: Call, position: int) -> Term:
    kind = raw(call.arg_types[position])
    if not kind.signed:
        return call.terms.const(0, 1)
    return call.terms.extract(call.args[position], kind.width_bits - 1, 1)


def _magnitude(call: Call, position: int) -> Term:
    """|x| as an unsigned number; that of the least number fits as well."""
    x = call.args[position]
    return call.terms.ite(_negative(call, position), call.terms.neg(x), x)


def _div(call: Call) -> Sequence[Term]:
    terms, (a, b) = call.terms, call.args
    quotient = terms.arith("udiv", _magnitude(call, 0), _magnitude(call, 1))
    differ = terms.bit_xor(_negative(call, 0), _negative(call, 1))
    result = terms.ite(differ, terms.neg(quotient), quotient)
    return [terms.ite(terms.eq(b, terms.const(0, b.width)), terms.const(-1, a.width), result)]


def _rem(call: Call) -> Sequence[Term]:
    terms, (a, b) = call.terms, call.args
    rest = terms.arith("urem", _magnitude(call, 0), _magnitude(call, 1))
    result = terms.ite(_negative(call, 0), terms.neg(rest), rest)
    return [terms.ite(terms.eq(b, terms.const(0, b.width)), a, result)]


def _sign(call: Call) -> Sequence[Term]:
    kind, result = raw(call.arg_types[0]), call.types[0]
    terms, x = call.terms, call.args[0]
    unit = 1 << result.fraction_bits if isinstance(result, FixType) else 1
    one = min(unit, kind.max) if isinstance(result, FixType) else unit
    minus = max(-unit, kind.min) if isinstance(result, FixType) else -unit
    zero = terms.eq(x, terms.const(0, x.width))
    signed = terms.ite(_negative(call, 0), terms.const(minus, x.width), terms.const(one, x.width))
    return [terms.ite(zero, terms.const(0, x.width), signed)]


def _extreme(greatest: bool) -> Rule:
    def rule(call: Call) -> Sequence[Term]:
        a, b = call.args
        below = call.terms.less(a, b, raw(call.arg_types[0]).signed)
        return [call.terms.ite(below, b, a) if greatest else call.terms.ite(below, a, b)]

    return rule


def _add_carry(call: Call) -> Sequence[Term]:
    terms, (a, b, carry) = call.terms, call.args
    width = a.width + 1
    total = terms.arith("add", terms.zext(a, width), terms.zext(b, width))
    total = terms.arith("add", total, terms.zext(carry, width))
    return [terms.extract(total, 0, a.width), terms.extract(total, a.width, 1)]


def _mul_exact(call: Call) -> Sequence[Term]:
    width = bit_width(call.types[0])
    return [call.terms.arith("mul", _extended(call, 0, width), _extended(call, 1, width))]


# Bits


def _shift(call: Call) -> tuple[Term, Term, Term | None]:
    """Value and amount in one width, and whether the amount exceeds what that width can say."""
    terms, (x, amount) = call.terms, call.args
    if amount.width <= x.width:
        return x, terms.zext(amount, x.width), None
    beyond = terms.less(terms.const(x.width, amount.width), amount, signed=False, or_equal=True)
    return x, terms.extract(amount, 0, x.width), beyond


def _shl(call: Call) -> Sequence[Term]:
    x, amount, beyond = _shift(call)
    result = call.terms.arith("shl", x, amount)
    return [result if beyond is None else call.terms.ite(beyond, call.terms.const(0, x.width), result)]


def _shr(call: Call) -> Sequence[Term]:
    terms = call.terms
    x, amount, beyond = _shift(call)
    signed = raw(call.arg_types[0]).signed
    result = terms.arith("ashr" if signed else "lshr", x, amount)
    fill = terms.ite(_negative(call, 0), terms.const(-1, x.width), terms.const(0, x.width))
    return [result if beyond is None else terms.ite(beyond, fill, result)]


def _rotate(left: bool) -> Rule:
    """Both copies of x side by side, shifted: the turned word is one half of the outcome."""

    def rule(call: Call) -> Sequence[Term]:
        terms, (x, amount) = call.terms, call.args
        counting = max(amount.width, x.width.bit_length() + 1)
        turn = terms.arith("urem", terms.zext(amount, counting), terms.const(x.width, counting))
        both, width = terms.concat([x, x]), 2 * x.width
        by = terms.resize(turn, width, signed=False)
        if left:
            return [terms.extract(terms.arith("shl", both, by), x.width, x.width)]
        return [terms.extract(terms.arith("lshr", both, by), 0, x.width)]

    return rule


def _reversed(unit_bits: int) -> Rule:
    def rule(call: Call) -> Sequence[Term]:
        x = call.args[0]
        pieces = [call.terms.extract(x, low, unit_bits) for low in range(0, x.width, unit_bits)]
        return [call.terms.concat(pieces[::-1])]

    return rule


def _clmul(call: Call) -> Sequence[Term]:
    """Shifted copies of the one operand where the other has a bit, without carries between them."""
    terms, width = call.terms, bit_width(call.types[0])
    a, b = _extended(call, 0, width), call.args[1]
    total = terms.const(0, width)
    for k in range(b.width):
        copy = terms.arith("shl", a, terms.const(k, width))
        total = terms.bit_xor(total, terms.ite(terms.extract(b, k, 1), copy, terms.const(0, width)))
    return [total]


def _popcount(call: Call) -> Sequence[Term]:
    terms, x = call.terms, call.args[0]
    total = terms.const(0, 32)
    for k in range(x.width):
        total = terms.arith("add", total, terms.zext(terms.extract(x, k, 1), 32))
    return [total]


def _count_zeros(leading: bool) -> Rule:
    def rule(call: Call) -> Sequence[Term]:
        terms, x = call.terms, call.args[0]
        result = terms.const(x.width, 32)
        for count in reversed(range(x.width)):  # the first one seen decides
            place = x.width - 1 - count if leading else count
            result = terms.ite(terms.extract(x, place, 1), terms.const(count, 32), result)
        return [result]

    return rule


def _extract(call: Call) -> Sequence[Term]:
    low, high = call.attrs["low"], call.attrs["high"]
    return [call.terms.extract(call.args[0], low, high - low + 1)]


# Comparison, choice and conversion


def _compare(less: bool, swapped: bool) -> Rule:
    """a < b or a <= b, or the same of b and a."""

    def rule(call: Call) -> Sequence[Term]:
        a, b = reversed(call.args) if swapped else call.args
        return [call.terms.less(a, b, raw(call.arg_types[0]).signed, or_equal=not less)]

    return rule


def fraction_bits(kind: Type) -> int:
    """Fraction bits of a fixed-point format; none of an integer."""
    return kind.fraction_bits if isinstance(kind, FixType) else 0


def _cast(call: Call) -> Sequence[Term]:
    """Floor, then wrap."""
    return [_rescaled(call, "floor", saturate=False)]


def _round_to(call: Call) -> Sequence[Term]:
    return [_rescaled(call, call.attrs["mode"], call.attrs["overflow"] == "saturate")]


def _rescaled(call: Call, mode: str, saturate: bool) -> Term:
    """The exact number in enough bits for any shift, rounded to the result's unit."""
    terms, target = call.terms, raw(call.types[0])
    shift = fraction_bits(call.types[0]) - fraction_bits(call.arg_types[0])
    width = bit_width(call.arg_types[0]) + target.width_bits + abs(shift) + 2
    x = _extended(call, 0, width)
    if shift >= 0:
        x = terms.arith("shl", x, terms.const(shift, width))
    else:
        x = _rounded(terms, x, -shift, mode)
    return clamp(terms, x, target) if saturate else terms.extract(x, 0, target.width_bits)


def _rounded(terms: Terms, x: Term, dropped: int, mode: str) -> Term:
    floor = terms.arith("ashr", x, terms.const(dropped, x.width))
    if mode == "floor":
        return floor
    rest, half = terms.extract(x, 0, dropped), terms.const(1 << (dropped - 1), dropped)
    if mode == "trunc":
        inexact = terms.bit_not(terms.eq(rest, terms.const(0, dropped)))
        up = terms.bit_and(inexact, terms.extract(x, x.width - 1, 1))
    else:
        up = terms.less(half, rest, signed=False, or_equal=True)
        if mode == "half_even":
            odd = terms.extract(floor, 0, 1)
            up = terms.bit_and(up, terms.bit_or(odd, terms.bit_not(terms.eq(rest, half))))
    return terms.arith("add", floor, terms.zext(up, x.width))


def is_float(*kinds: Type) -> bool:
    return any(isinstance(kind, FloatType) for kind in kinds)


_NUMERIC: Mapping[str, Rule] = {
    "add": _arith("add"),
    "sub": _arith("sub"),
    "neg": lambda call: [call.terms.neg(call.args[0])],
    "abs": lambda call: [_magnitude(call, 0)],
    "sign": _sign,
    "min": _extreme(greatest=False),
    "max": _extreme(greatest=True),
    "saturating_add": _saturating("add"),
    "saturating_sub": _saturating("sub"),
    "saturating_mul": _saturating("mul"),
}

RULES: Mapping[str, Rule] = {
    **{f"{family}.{verb}": rule for family in ("integer", "fixed") for verb, rule in _NUMERIC.items()},
    "integer.mul": _arith("mul"),
    "integer.div": _div,
    "integer.rem": _rem,
    "integer.add_carry": _add_carry,
    "integer.mul_wide": _mul_exact,
    "fixed.mul": _mul_exact,
    "bits.and": lambda call: [call.terms.bit_and(*call.args)],
    "bits.or": lambda call: [call.terms.bit_or(*call.args)],
    "bits.xor": lambda call: [call.terms.bit_xor(*call.args)],
    "bits.not": lambda call: [call.terms.bit_not(call.args[0])],
    "bits.shl": _shl,
    "bits.shr": _shr,
    "bits.rotl": _rotate(left=True),
    "bits.rotr": _rotate(left=False),
    "bits.reverse_bits": _reversed(1),
    "bits.reverse_bytes": _reversed(8),
    "bits.clmul": _clmul,
    "bits.popcount": _popcount,
    "bits.clz": _count_zeros(leading=True),
    "bits.ctz": _count_zeros(leading=False),
    "bits.extract": _extract,
    "bits.test": lambda call: [call.terms.extract(call.args[0], call.attrs["index"], 1)],
    "bits.cat": lambda call: [call.terms.concat(call.args[::-1])],
    "compare.eq": lambda call: [call.terms.eq(*call.args)],
    "compare.ne": lambda call: [call.terms.bit_not(call.terms.eq(*call.args))],
    "compare.lt": _compare(less=True, swapped=False),
    "compare.le": _compare(less=False, swapped=False),
    "compare.gt": _compare(less=True, swapped=True),
    "compare.ge": _compare(less=False, swapped=True),
    "control.select": lambda call: [call.terms.ite(*call.args)],
    "convert.cast": _cast,
    "convert.round_to": _round_to,
    "convert.bitcast": lambda call: [call.args[0]],
}
"""Rules by operation, for operands that are no floating-point numbers; values are their bit patterns."""
