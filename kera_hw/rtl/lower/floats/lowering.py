"""Floats as bits at the edges of units: conversions, bit casts, and how values come in and go out."""
from __future__ import annotations

from kera_hw.graph.node import Ref
from kera_hw.rtl.lower import scalars
from kera_hw.rtl.lower.builder import Builder, carrier
from kera_hw.rtl.lower.floats import convert
from kera_hw.rtl.lower.floats.canonical import canonical, mark
from kera_hw.types import FixType, FloatType, Type


def converted(builder: Builder, source: Type, target: Type, value: Ref) -> Ref:
    """A value in another type, where one of the two is a float format."""
    if source == target:
        return value
    if isinstance(target, FloatType):
        if isinstance(source, FloatType):
            return mark(builder, target, convert.between(builder, source, target, value))
        raw = scalars.raw_of(builder, value)
        return mark(builder, target, convert.from_integer(builder, source, target, raw))
    assert isinstance(source, FloatType)
    found = convert.to_integer(builder, source, target, value)
    return scalars.of_raw(builder, found, target) if isinstance(target, FixType) else found


def bitcast(builder: Builder, source: Type, target: Type, value: Ref) -> Ref:
    """Bits read as another type: a NaN is made canonical where an integer would show it."""
    if isinstance(source, FloatType) and source != target:
        value = canonical(builder, source, value)
    return builder.op("convert.bitcast", value, type=carrier(target))


def entering(builder: Builder, kind: Type, ref: Ref) -> Ref:
    """A parameter as the flat region carries it."""
    return builder.op("convert.bitcast", ref, type=carrier(kind)) if isinstance(kind, FloatType) else ref


def leaving(builder: Builder, kind: Type, ref: Ref) -> Ref:
    """A result in its own type: bits that can be seen hold the canonical NaN only."""
    if not isinstance(kind, FloatType):
        return ref
    bits = canonical(builder, kind, ref)
    value = builder.value(bits)
    if value is None:
        return builder.op("convert.bitcast", bits, type=kind)
    return builder.store.op("core.constant", type=kind, value=value.to_bytes(kind.width_bits // 8, "little"))
