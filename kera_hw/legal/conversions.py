"""Conversions between floats, integers and fixed point, by value and by bits.

A machine converts to an integer that holds the integer part, and gives any value elsewhere: what lies beyond
is chosen by comparison, with bounds that are powers of two and so numbers of every format. Scaling by a power
of two is exact, but where it leads below the normal range; no raw integer of 64 bits does in f32 or f64.
"""
from __future__ import annotations

from collections.abc import Sequence

from kera_hw.legal.emitter import NativeEmitter
from kera_hw.legal.integers import to_integer
from kera_hw.legal.native import unsigned
from kera_hw.legal.rounding import to_odd
from kera_hw.legal.values import Call, Value, container, raw
from kera_hw.legal.writer import Rule, Writer
from kera_hw.loops.program import Literal, Operand
from kera_hw.ops.expansions.parts import fraction_bits
from kera_hw.ops.intervals import Interval, type_interval
from kera_hw.types import F32, F64, BoolType, FixType, FloatType, IntType, bit_width

_I32, _I64, _U64 = IntType(32, True), IntType(64, True), unsigned(64)


def cast(to: Writer, call: Call) -> Sequence[Value]:
    """By value."""
    (a,) = call.args
    source, target = a.type, call.type
    if source == target:
        return (a,)
    if isinstance(target, FloatType):
        if isinstance(source, FloatType):
            return (_between_floats(to, a, target),)
        return (_from_integer(to, a, target),)
    if isinstance(source, FloatType):
        return (_to_integer(to, a, call),)
    if isinstance(target, BoolType):
        return (a,)
    if isinstance(source, FixType) or isinstance(target, FixType):
        return to.expanded(call)
    return (to_integer(to, a, target, call.span),)


def bitcast(to: Writer, call: Call) -> Sequence[Value]:
    """By bits: of a float those of the canonical NaN, into a float as they are."""
    (a,) = call.args
    source, target = a.type, call.type
    if source == target:
        return (a,)
    if isinstance(a.operand, Literal) and isinstance(source, IntType) and isinstance(target, FloatType):
        return (to.literal(Literal(target, a.operand.bits & ((1 << target.width_bits) - 1))),)
    if isinstance(source, FloatType):
        kind = unsigned(source.width_bits)
        bits = Value(kind, to.word(a), type_interval(kind), True)
    elif isinstance(source, BoolType):
        kind = unsigned(1)
        bits = Value(kind, to.emit.cast(a.operand, container(kind)), Interval(0, 1), True)
    else:
        bits = to.retyped(a, raw(source))
    if isinstance(target, BoolType):
        return (Value(target, to.emit.is_other(to.settled(bits), 0), call.span, True),)
    if not isinstance(target, FloatType):
        return (to_integer(to, bits, target, call.span),)
    word = to_integer(to, bits, unsigned(target.width_bits), None).operand
    if to.forms.is_small(target):
        return (Value(target, word, None, False, packed=True),)
    return (Value(target, to.emit.floating(word, target), None, False),)


# ---------------------------------------------------------------- between floats


def _between_floats(to: Writer, a: Value, target: FloatType) -> Value:
    """To a wider format as it is; an f32 is already what rounds to an f16 or bf16."""
    emit, source = to.emit, a.type
    operand = to.settled(a) if to.forms.is_small(source) else to.loose(a)
    if bit_width(operand.type) < 32:  # on a machine that has the format
        operand = emit.cast(operand, F32)
    if to.forms.is_small(target):
        return Value(target, to_odd(emit, operand) if operand.type == F64 else operand, None, False)
    if target.width_bits < 32 and operand.type == F64:
        operand = to_odd(emit, operand)
    return Value(target, emit.cast(operand, target), None, False)


# ---------------------------------------------------------------- integers to floats


def _from_integer(to: Writer, a: Value, target: FloatType) -> Value:
    """An integer or fixed-point number to nearest."""
    emit, scale_bits = to.emit, fraction_bits(a.type)
    x, span = to.settled(a), a.span
    assert span is not None
    small = target.width_bits < 32
    if small and max(-span.low, span.high) <= 1 << 24:
        found = _nearest(emit, x, span, F32)
    elif small:
        found = _nearest(emit, _jammed(emit, x, span), span, F64)
    else:
        found = _nearest(emit, x, span, target)
    if scale_bits:
        found = emit.mul(found, 2.0**-scale_bits)
    if small and found.type == F64:
        found = to_odd(emit, found)
    if small and not to.forms.is_small(target):
        found = emit.cast(found, target)
    exact = small and not scale_bits and max(-span.low, span.high) <= 1 << (target.fraction_bits + 1)
    return Value(target, found, None, exact or not to.forms.is_small(target))


def _nearest(emit: NativeEmitter, x: Operand, span: Interval, target: FloatType) -> Operand:
    """A native integer rounded once."""
    kind = x.type
    assert isinstance(kind, IntType)
    if emit.is_total("convert.cast", (kind,), target):
        return emit.cast(x, target)
    if span.high < 1 << 63:
        word = _I32 if span.within(Interval(_I32.min, _I32.max)) else _I64
        return emit.cast(emit.cast(x, word), target)
    # Half of a great u64, its last bit sticky, has bits enough to round as the whole does.
    great = emit.is_least(x, 1 << 63)
    halved = emit.either(emit.shr(x, 1), emit.both(x, 1))
    found = emit.cast(emit.as_type(emit.choose(great, halved, x), _I64), target)
    return emit.mul(found, emit.choose(great, 2.0, emit.number(target, 1.0)))


def _jammed(emit: NativeEmitter, x: Operand, span: Interval) -> Operand:
    """A great integer rounded to odd, so that f64 holds it."""
    if max(-span.low, span.high) <= 1 << 53:
        return x
    kind = x.type
    assert isinstance(kind, IntType)
    lost = emit.cast(emit.is_other(emit.both(x, 0x7FF), 0), kind)
    jammed = emit.either(emit.both(x, -0x800), emit.shl(lost, 11))
    inside = emit.is_less(x, 1 << 53)
    if kind.signed:
        inside = emit.both(inside, emit.is_greater(x, -(1 << 53)))
    return emit.choose(inside, x, jammed)


# ---------------------------------------------------------------- floats to integers


def _to_integer(to: Writer, a: Value, call: Call) -> Value:
    """Toward zero into integers, to nearest even into fixed point; saturating, 0 for NaN."""
    emit, target = to.emit, call.type
    x = to.settled(a) if to.forms.is_small(a.type) else to.loose(a)
    if bit_width(x.type) < 32:
        x = emit.cast(x, F32)
    if isinstance(target, FixType):
        if target.fraction_bits:
            x = emit.mul(x, 2.0**target.fraction_bits)
        x = emit.op("floating.round", x)
    kind = raw(target)
    native = container(kind)
    if emit.is_total("convert.cast", (x.type,), native) and kind == native:
        found = emit.cast(x, native)
    elif kind.signed:
        found = _to_signed(emit, x, kind)
    else:
        found = _to_unsigned(emit, x, kind)
    return Value(target, emit.cast(found, native), call.span, True)


def _to_signed(emit: NativeEmitter, x: Operand, kind: IntType) -> Operand:
    word = _I32 if kind.width_bits <= 32 else _I64
    inside = emit.cast(x, word)
    end = 2.0 ** (kind.width_bits - 1)
    found = emit.choose(emit.is_least(x, end), kind.max, inside)
    found = emit.choose(emit.is_most(x, -end), kind.min, found)
    return emit.choose(emit.is_equal(x, x), found, 0)


def _to_unsigned(emit: NativeEmitter, x: Operand, kind: IntType) -> Operand:
    """A NaN is not above 0, as no negative number is."""
    end = 2.0**kind.width_bits
    if kind.width_bits < 64:
        inside = emit.cast(x, _I32 if kind.width_bits < 32 else _I64)
    else:
        great = emit.is_least(x, 2.0**63)
        low = emit.choose(great, emit.sub(x, 2.0**63), x)
        word = emit.as_type(emit.cast(low, _I64), _U64)
        inside = emit.choose(great, emit.differing(word, 1 << 63), word)
    found = emit.choose(emit.is_least(x, end), kind.max, inside)
    return emit.choose(emit.is_greater(x, 0.0), found, 0)


RULES: dict[str, Rule] = {"convert.cast": cast, "convert.bitcast": bitcast}
