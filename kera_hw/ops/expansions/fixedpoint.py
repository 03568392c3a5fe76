"""Fixed point: operations on the raw integers, and changes of format by shifts."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from kera_hw.ops.expansions.floats import fixed_of_float, float_of_fixed
from kera_hw.ops.expansions.parts import (
    cast,
    flag,
    fraction_bits,
    integer,
    is_negative,
    is_zero,
    raw,
    raw_type,
    reread,
    select,
    shifted,
)
from kera_hw.ops.spec import Attrs, Expansion, V, Writer
from kera_hw.types import FixType, FloatType, IntType

_ON_RAW = ("add", "sub", "neg", "abs", "min", "max", "saturating_add", "saturating_sub", "saturating_mul")


def _on_raw(opcode: str) -> Expansion:
    def rule(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V]:
        """That of the raw integers."""
        return (reread(to, to.op(opcode, *(raw(to, x) for x in args)), args[0].type),)

    return rule


def _raw_operands(opcode: str, keeps: bool) -> Expansion:
    def rule(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V] | None:
        """On fixed point, that of the raw integers."""
        if not isinstance(args[0].type, FixType):
            return None
        found = to.op(opcode, *(raw(to, x) for x in args))
        return (reread(to, found, args[0].type) if keeps else found,)

    return rule


def sign(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V]:
    """0, or by the sign the raw number of 1 or -1, or the bound nearest to it."""
    kind = args[0].type
    assert isinstance(kind, FixType)
    value, one = raw(to, args[0]), 1 << kind.fraction_bits
    positive = integer(to, kind.raw, min(one, kind.raw.max))
    result = select(to, is_zero(to, value), integer(to, kind.raw, 0), positive)
    negative = integer(to, kind.raw, max(-one, kind.raw.min))
    return (reread(to, select(to, is_negative(to, value), negative, result), kind),)


def mul(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V]:
    """The product of the raw integers in as many bits as both have together."""
    a, b = (x.type for x in args)
    assert isinstance(a, FixType) and isinstance(b, FixType)
    product = FixType(a.width_bits + b.width_bits, a.fraction_bits + b.fraction_bits, a.signed)
    factors = [cast(to, raw(to, x), product.raw) for x in args]
    return (reread(to, to.op("integer.mul", *factors), product),)


# Changes of format


def convert(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V] | None:
    """Fixed point: shifted, which floors, then wrapped; to and from floats by way of f64."""
    (x,) = args
    source, target = x.type, attrs["type"]
    if source == target:
        return (x,)
    if not isinstance(source, FixType) and not isinstance(target, FixType):
        return None
    if isinstance(source, FloatType):
        return (fixed_of_float(to, x, target),)
    if isinstance(target, FloatType):
        return (float_of_fixed(to, x, target),)
    change, inner = fraction_bits(target) - fraction_bits(source), raw_type(target)
    value = raw(to, x)
    if change >= 0:
        return (reread(to, shifted(to, "bits.shl", cast(to, value, inner), change), target),)
    return (reread(to, cast(to, shifted(to, "bits.shr", value, -change), inner), target),)


def round_to(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V]:
    """The floor of a shift, plus 1 where the mode and the bits that fell away say so; wrapped or clamped."""
    (x,) = args
    target = attrs["type"]
    assert isinstance(target, FixType)
    value, drop = raw(to, x), fraction_bits(x.type) - target.fraction_bits
    if drop > 0:
        given = raw_type(value.type)
        value = cast(to, value, IntType(max(2, given.width_bits), given.signed))  # holds the floor and one
        floor = shifted(to, "bits.shr", value, drop)
        if attrs["mode"] != "floor":
            up = _goes_up(to, value, floor, drop, attrs["mode"])
            floor = to.op("integer.add", floor, cast(to, up, floor.type))
        value, drop = floor, 0
    result = shifted(to, "bits.shl", cast(to, value, target.raw), -drop)
    if attrs["overflow"] == "saturate":
        result = _held(to, value, -drop, target.raw, result)
    return (reread(to, result, target),)


def _goes_up(to: Writer[V], value: V, floor: V, drop: int, mode: str) -> V:
    """Whether the floor is raised by one; ``drop`` bits fall away."""

    def any_below(count: int) -> V:
        if count == 0:
            return flag(to, False)
        low = to.op("bits.extract", value, high=count - 1, low=0)
        return to.op("compare.ne", low, integer(to, low.type, 0))

    if mode == "trunc":
        return to.op("bits.and", is_negative(to, value), any_below(drop))
    half = to.op("bits.test", value, index=drop - 1)
    if mode == "half_up":
        return half
    assert mode == "half_even", mode
    odd = to.op("bits.test", floor, index=0)
    return to.op("bits.and", half, to.op("bits.or", odd, any_below(drop - 1)))


def _held(to: Writer[V], value: V, shift: int, kind: IntType, otherwise: V) -> V:
    """``otherwise``, or the bound of the type that ``value << shift`` is beyond."""
    given = raw_type(value.type)
    low, high = -((-kind.min) >> shift), kind.max >> shift
    result = otherwise
    if high < given.max:
        over = to.op("compare.gt", value, integer(to, given, high))
        result = select(to, over, integer(to, kind, kind.max), result)
    if low > given.min:
        under = to.op("compare.lt", value, integer(to, given, low))
        result = select(to, under, integer(to, kind, kind.min), result)
    return result


EXPANSIONS: Mapping[str, Expansion] = {
    **{f"fixed.{verb}": _on_raw(f"integer.{verb}") for verb in _ON_RAW},
    "fixed.sign": sign,
    "fixed.mul": mul,
    "convert.cast": convert,
    "convert.round_to": round_to,
    **{f"bits.{verb}": _raw_operands(f"bits.{verb}", keeps=True) for verb in ("shl", "shr")},
    **{
        f"compare.{verb}": _raw_operands(f"compare.{verb}", keeps=False)
        for verb in ("eq", "ne", "lt", "le", "gt", "ge")
    },
}
