"""Conversions between integers, fixed point and bool, in operations on raw integers."""
from __future__ import annotations

from kera_hw.graph.node import Ref
from kera_hw.ops.intervals import raw_interval
from kera_hw.rtl.lower.builder import Builder, index_type, width_of
from kera_hw.types import BOOL, FixType, IntType, Type


def raw_of(builder: Builder, ref: Ref) -> Ref:
    """The raw integer of a fixed-point value; anything else itself."""
    kind = ref.type
    if not isinstance(kind, FixType):
        return ref
    if ref.node.opcode == "convert.bitcast" and ref.node.inputs[0].type == kind.raw:
        return ref.node.inputs[0]
    return builder.op("convert.bitcast", ref, type=kind.raw)


def of_raw(builder: Builder, ref: Ref, kind: Type) -> Ref:
    """A raw integer as the fixed-point value it stands for; other kinds unchanged."""
    return builder.op("convert.bitcast", ref, type=kind) if isinstance(kind, FixType) else ref


def _shift(builder: Builder, opcode: str, ref: Ref, amount: int) -> Ref:
    if amount == 0:
        return ref
    return builder.op(opcode, ref, builder.const(index_type(amount), amount))


def cast(builder: Builder, ref: Ref, target: Type) -> Ref:
    """``as``: floor to the target's fraction, then wrap."""
    source = ref.type
    raw = raw_of(builder, ref)
    source_fraction = source.fraction_bits if isinstance(source, FixType) else 0
    target_fraction = target.fraction_bits if isinstance(target, FixType) else 0
    inner = target.raw if isinstance(target, FixType) else target
    if target_fraction >= source_fraction:
        widened = builder.cast(raw, inner)
        scaled = _shift(builder, "bits.shl", widened, target_fraction - source_fraction)
        return of_raw(builder, scaled, target)
    floored = _shift(builder, "bits.shr", raw, source_fraction - target_fraction)
    return of_raw(builder, builder.cast(floored, inner), target)


def _increment(builder: Builder, raw: Ref, quotient: Ref, drop: int, mode: str) -> Ref:
    """Whether the floor must be raised by one, by the rounding mode; ``drop`` bits fall away."""
    kind = raw.type
    assert isinstance(kind, IntType)

    def any_below(count: int) -> Ref:
        if count == 0:
            return builder.const(BOOL, 0)
        low = builder.op("bits.extract", raw, high=count - 1, low=0)
        return builder.op("compare.ne", low, builder.const(low.type, 0))

    if mode == "trunc":
        negative = builder.op("compare.lt", raw, builder.const(kind, 0))
        return builder.op("bits.and", negative, any_below(drop))
    half = builder.op("bits.test", raw, index=drop - 1)
    if mode == "half_up":
        return half
    odd = builder.op("bits.test", quotient, index=0)
    return builder.op("bits.and", half, builder.op("bits.or", odd, any_below(drop - 1)))


def _saturate(builder: Builder, raw: Ref, low: int, high: int, otherwise: Ref, inner: Type) -> Ref:
    """``otherwise`` where raw lies in [low, high], else the target type's nearest bound."""
    source_low, source_high = raw_interval(raw.type)
    bottom, top = raw_interval(inner)
    result = otherwise
    if high < source_high:
        over = builder.op("compare.gt", raw, builder.const(raw.type, high))
        result = builder.select(over, builder.const(inner, top), result)
    if low > source_low:
        under = builder.op("compare.lt", raw, builder.const(raw.type, low))
        result = builder.select(under, builder.const(inner, bottom), result)
    return result


def round_to(builder: Builder, ref: Ref, target: Type, mode: str, overflow: str) -> Ref:
    """Round to the target's fraction by ``mode``, then wrap or saturate."""
    source = ref.type
    raw = raw_of(builder, ref)
    source_fraction = source.fraction_bits if isinstance(source, FixType) else 0
    target_fraction = target.fraction_bits if isinstance(target, FixType) else 0
    inner = target.raw if isinstance(target, FixType) else target
    drop = source_fraction - target_fraction
    if drop > 0:
        kind = raw.type
        assert isinstance(kind, IntType)
        raw = builder.cast(raw, IntType(max(2, width_of(kind)), kind.signed))
        quotient = _shift(builder, "bits.shr", raw, drop)
        if mode != "floor":
            up = _increment(builder, raw, quotient, drop, mode)
            quotient = builder.op("integer.add", quotient, builder.cast(up, quotient.type))
        raw, drop = quotient, 0
    result = _shift(builder, "bits.shl", builder.cast(raw, inner), -drop)
    if overflow == "saturate":
        bottom, top = raw_interval(inner)
        low, high = -((-bottom) >> -drop), top >> -drop
        result = _saturate(builder, raw, low, high, result, inner)
    return of_raw(builder, result, target)
