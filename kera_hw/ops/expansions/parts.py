"""Small pieces that expansions of scalar operations share."""
from __future__ import annotations

from kera_hw.ops.spec import V, Writer
from kera_hw.types import BOOL, BoolType, FixType, FloatType, IntType, Type


def unsigned(width_bits: int) -> IntType:
    return IntType(width_bits, False)


def raw_type(kind: Type) -> IntType:
    """The integer type that carries an integer, a fixed-point number or a bool."""
    if isinstance(kind, FixType):
        return kind.raw
    if isinstance(kind, BoolType):
        return unsigned(1)
    assert isinstance(kind, IntType), f"{kind} is carried by no integer"
    return kind


def fraction_bits(kind: Type) -> int:
    return kind.fraction_bits if isinstance(kind, FixType) else 0


def integer(to: Writer[V], kind: Type, value: int) -> V:
    """An integer or fixed-point constant by its raw number, modulo 2^W."""
    return to.constant(kind, raw_type(kind).wrap(value))


def bits_constant(to: Writer[V], kind: FloatType, bits: int) -> V:
    """A float constant by its pattern."""
    return reread(to, to.constant(unsigned(kind.width_bits), bits), kind)


def cast(to: Writer[V], value: V, kind: Type) -> V:
    return value if value.type == kind else to.op("convert.cast", value, type=kind)


def reread(to: Writer[V], value: V, kind: Type) -> V:
    """The same bits as another type."""
    return value if value.type == kind else to.op("convert.bitcast", value, type=kind)


def raw(to: Writer[V], value: V) -> V:
    """The raw integer of a fixed-point number; anything else as it is."""
    return reread(to, value, value.type.raw) if isinstance(value.type, FixType) else value


def pattern(to: Writer[V], value: V) -> V:
    """The W bits as an unsigned number."""
    return reread(to, value, unsigned(raw_type(value.type).width_bits))


def shifted(to: Writer[V], opcode: str, value: V, distance: int) -> V:
    """A shift by a constant."""
    if distance == 0:
        return value
    return to.op(opcode, value, to.constant(unsigned(distance.bit_length()), distance))


def select(to: Writer[V], condition: V, then: V, otherwise: V) -> V:
    return to.op("control.select", condition, then, otherwise)


def is_negative(to: Writer[V], value: V) -> V:
    return to.op("compare.lt", value, integer(to, value.type, 0))


def is_zero(to: Writer[V], value: V) -> V:
    return to.op("compare.eq", value, integer(to, value.type, 0))


def flag(to: Writer[V], value: bool) -> V:
    return to.constant(BOOL, value)
