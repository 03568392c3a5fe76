"""Floats: signs by their bits, integral values by a number too large for a fraction, fixed point by f64."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from kera_hw.ops.expansions.parts import (
    bits_constant,
    cast,
    fraction_bits,
    integer,
    raw,
    raw_type,
    reread,
    select,
    shifted,
    unsigned,
)
from kera_hw.ops.spec import Attrs, Expansion, Typed, V, Writer
from kera_hw.types import F64, FixType, FloatType

_EXACT_BITS = F64.fraction_bits + 1
"""Integers of so many bits are numbers of f64."""


def _kind(x: Typed) -> FloatType:
    assert isinstance(x.type, FloatType)
    return x.type


def power_of_two(to: Writer[V], kind: FloatType, exponent: int) -> V:
    """2^exponent, a normal number of the format."""
    bias = (1 << (kind.exponent_bits - 1)) - 1
    assert 0 < exponent + bias <= 2 * bias
    return bits_constant(to, kind, (exponent + bias) << kind.fraction_bits)


def _zero(to: Writer[V], kind: FloatType) -> V:
    return bits_constant(to, kind, 0)


def _sign_bit(to: Writer[V], kind: FloatType) -> V:
    return integer(to, unsigned(kind.width_bits), 1 << (kind.width_bits - 1))


def _bits(to: Writer[V], x: V) -> V:
    return reread(to, x, unsigned(_kind(x).width_bits))


def neg(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V]:
    """The sign bit inverted."""
    kind = _kind(args[0])
    return (reread(to, to.op("bits.xor", _bits(to, args[0]), _sign_bit(to, kind)), kind),)


def _magnitude(to: Writer[V], x: V) -> V:
    return to.op("bits.and", _bits(to, x), to.op("bits.not", _sign_bit(to, _kind(x))))


def absolute(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V]:
    """The sign bit cleared."""
    return (reread(to, _magnitude(to, args[0]), args[0].type),)


def copysign(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V]:
    """The second's sign bit joined with the other bits of the first."""
    x, y = args
    sign = to.op("bits.and", _bits(to, y), _sign_bit(to, _kind(y)))
    return (reread(to, to.op("bits.or", _magnitude(to, x), sign), x.type),)


def sign(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V]:
    """A 1 with the sign of x, but x itself where it is 0 or NaN."""
    (x,) = args
    kind = _kind(x)
    kept = to.op("bits.or", to.op("compare.eq", x, _zero(to, kind)), to.op("floating.is_nan", x))
    one = to.op("floating.copysign", power_of_two(to, kind, 0), x)
    return (select(to, kept, x, one),)


def is_nan(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V]:
    """Whether x differs from itself."""
    return (to.op("compare.ne", args[0], args[0]),)


def is_finite(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V]:
    """Whether |x| is below infinity."""
    (x,) = args
    kind = _kind(x)
    infinity = bits_constant(to, kind, ((1 << kind.exponent_bits) - 1) << kind.fraction_bits)
    return (to.op("compare.lt", to.op("floating.abs", x), infinity),)


def _extreme(least: bool) -> Expansion:
    def rule(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V]:
        """By comparison; of equal ones the bits joined, which puts -0 below +0; a + b where one is NaN."""
        a, b = args
        low, high = (a, b) if least else (b, a)
        joined = to.op("bits.or" if least else "bits.and", _bits(to, a), _bits(to, b))
        same = select(
            to, to.op("compare.eq", a, b), reread(to, joined, a.type), to.op("floating.add", a, b)
        )
        above = to.op("compare.lt", b, a)
        return (select(to, to.op("compare.lt", a, b), low, select(to, above, high, same)),)

    return rule


def relu(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V]:
    """The maximum with +0."""
    return (to.op("floating.max", args[0], _zero(to, _kind(args[0]))),)


def recip(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V]:
    """1 divided by x."""
    return (to.op("floating.div", power_of_two(to, _kind(args[0]), 0), args[0]),)


# Integral values


def _nearest(to: Writer[V], x: V) -> V:
    """|x| to the nearest integer, ties to even; x has a fraction."""
    step = power_of_two(to, _kind(x), _kind(x).fraction_bits)
    return to.op("floating.sub", to.op("floating.add", to.op("floating.abs", x), step), step)


def _integral(to: Writer[V], x: V, found: V) -> V:
    """``found`` with the sign of x, or x itself where its magnitude leaves no room for a fraction."""
    step = power_of_two(to, _kind(x), _kind(x).fraction_bits)
    small = to.op("compare.lt", to.op("floating.abs", x), step)
    return select(to, small, to.op("floating.copysign", found, x), x)


def _adjusted(to: Writer[V], found: V, too: V, opcode: str) -> V:
    """``found`` moved by 1 where it went too far."""
    return select(to, too, to.op(opcode, found, power_of_two(to, _kind(found), 0)), found)


def round_even(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V]:
    """(|x| + 2^f) - 2^f with the sign of x, where |x| < 2^f; f is how many bits a fraction has."""
    return (_integral(to, args[0], _nearest(to, args[0])),)


def trunc(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V]:
    """The nearest integer of |x|, less 1 where that is above it, with the sign of x."""
    (x,) = args
    found = _nearest(to, x)
    above = to.op("compare.lt", to.op("floating.abs", x), found)
    return (_integral(to, x, _adjusted(to, found, above, "floating.sub")),)


def floor(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V]:
    """The nearest integer, less 1 where that is above x."""
    (x,) = args
    found = to.op("floating.round", x)
    return (_integral(to, x, _adjusted(to, found, to.op("compare.lt", x, found), "floating.sub")),)


def ceil(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V]:
    """The nearest integer, plus 1 where that is below x."""
    (x,) = args
    found = to.op("floating.round", x)
    return (_integral(to, x, _adjusted(to, found, to.op("compare.lt", found, x), "floating.add")),)


# Fixed point


def fixed_of_float(to: Writer[V], x: V, target: FixType) -> V:
    """x times 2^F in f64, which is exact or beyond every number; to the nearest even integer, saturating."""
    scaled = to.op("floating.mul", cast(to, x, F64), power_of_two(to, F64, target.fraction_bits))
    return reread(to, to.op("convert.cast", to.op("floating.round", scaled), type=target.raw), target)


def float_of_fixed(to: Writer[V], x: V, target: FloatType) -> V:
    """The raw integer in f64 times 2^-F, rounded once: into the target, or by f64 into f64."""
    value = raw(to, x)
    if target != F64:
        value = _within_f64(to, value)
    scale = power_of_two(to, F64, -fraction_bits(x.type))
    return cast(to, to.op("floating.mul", to.op("convert.cast", value, type=F64), scale), target)


def _within_f64(to: Writer[V], value: V) -> V:
    """An integer of f64 that rounds as ``value`` into every narrower format: large ones are rounded to odd.

    What falls away leaves a mark in the last bit that stays, and rounding that to fewer bits is rounding the
    exact number (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
    """
    kind = raw_type(value.type)
    excess = kind.width_bits - _EXACT_BITS
    if excess <= 0:
        return value
    low = to.op("bits.extract", value, high=excess - 1, low=0)
    mark = cast(to, to.op("compare.ne", low, integer(to, low.type, 0)), kind)
    odd = to.op("bits.or", shifted(to, "bits.shr", value, excess), mark)
    top = shifted(to, "bits.shr", value, _EXACT_BITS)
    large = to.op("compare.ne", top, integer(to, kind, 0))
    if kind.signed:
        large = to.op("bits.and", large, to.op("compare.ne", top, integer(to, kind, -1)))
    return select(to, large, shifted(to, "bits.shl", odd, excess), value)


EXPANSIONS: Mapping[str, Expansion] = {
    "floating.neg": neg,
    "floating.abs": absolute,
    "floating.copysign": copysign,
    "floating.sign": sign,
    "floating.is_nan": is_nan,
    "floating.is_finite": is_finite,
    "floating.min": _extreme(least=True),
    "floating.max": _extreme(least=False),
    "floating.relu": relu,
    "floating.recip": recip,
    "floating.round": round_even,
    "floating.trunc": trunc,
    "floating.floor": floor,
    "floating.ceil": ceil,
}
