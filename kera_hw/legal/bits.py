"""Rotations, reversal, counting and bit fields as shifts and logic."""
from __future__ import annotations

from collections.abc import Sequence

from kera_hw.legal.integers import to_integer
from kera_hw.legal.native import unsigned
from kera_hw.legal.values import Call, Value, container, raw
from kera_hw.legal.writer import Rule, Writer
from kera_hw.loops.program import Operand
from kera_hw.ops.intervals import type_interval
from kera_hw.types import IntType, Type

_SWAPS = (
    (1, 0x5555_5555_5555_5555), (2, 0x3333_3333_3333_3333), (4, 0x0F0F_0F0F_0F0F_0F0F),
    (8, 0x00FF_00FF_00FF_00FF), (16, 0x0000_FFFF_0000_FFFF), (32, 0x0000_0000_FFFF_FFFF),
)


def _pattern(to: Writer, value: Value) -> Value:
    """The W bits as an unsigned number."""
    kind = unsigned(raw(value.type).width_bits)
    return value if value.type == kind else to.op("convert.bitcast", value, type=kind)


def _plain(kind: Type, operand: Operand, settled: bool = True) -> Value:
    return Value(kind, operand, type_interval(kind), settled)


def _as(to: Writer, value: Value, call: Call) -> Sequence[Value]:
    """A pattern as the result, which has its width."""
    return (to_integer(to, value, call.type, call.span),)


# ---------------------------------------------------------------- rotation and reversal


def rotate(to: Writer, call: Call) -> Sequence[Value]:
    """Left by n and right by W - n, both modulo W."""
    emit, (a, amount) = to.emit, call.args
    width_bits = raw(a.type).width_bits
    native = container(unsigned(width_bits))
    pattern = _pattern(to, a)
    if width_bits == native.width_bits:
        # Amounts count modulo a power of two, which cutting and extending them keeps.
        by = emit.cast(to.settled(amount), native)
        if emit.is_total(call.opcode, (native, native), native):
            return _as(to, _plain(native, emit.op(call.opcode, to.loose(pattern), by)), call)
        there = emit.both(by, width_bits - 1)
        back = emit.both(emit.neg(by), width_bits - 1)
        x = to.loose(pattern)
        up, down = (there, back) if call.verb == "rotl" else (back, there)
        return _as(to, _plain(native, emit.either(emit.shl(x, up), emit.shr(x, down))), call)
    assert amount.span is not None
    if amount.span.high >= width_bits:
        kind = raw(amount.type)
        modulus = unsigned(max(kind.width_bits, width_bits.bit_length()))
        wide = to.op("convert.cast", amount, type=modulus)
        amount = to.op("integer.rem", wide, to.number(modulus, width_bits))
    by = emit.cast(to.settled(amount), native)
    rest = emit.sub(emit.number(native, width_bits), by)
    x = to.settled(pattern)
    up, down = (by, rest) if call.verb == "rotl" else (rest, by)
    turned = emit.either(emit.shl(x, up), emit.shr(x, down))
    return _as(to, _plain(unsigned(width_bits), turned, settled=False), call)


def reverse(to: Writer, call: Call) -> Sequence[Value]:
    """Neighbours swapped, then neighbouring pairs, and so on; what stood above W bits falls out below."""
    emit, (a,) = to.emit, call.args
    width_bits = raw(a.type).width_bits
    native = container(unsigned(width_bits))
    x = emit.as_type(to.loose(a), native)
    first = 8 if call.verb == "reverse_bytes" else 1
    for distance, mask in _SWAPS:
        if first <= distance and 2 * distance < native.width_bits:
            keep = mask & native.max
            upper = emit.both(emit.shr(x, distance), keep)
            x = emit.either(upper, emit.shl(emit.both(x, keep), distance))
    half = native.width_bits // 2
    if first <= half:
        x = emit.either(emit.shr(x, half), emit.shl(x, half))
    spare_bits = native.width_bits - width_bits
    return _as(to, _plain(unsigned(width_bits), emit.shr(x, spare_bits) if spare_bits else x), call)


# ---------------------------------------------------------------- counting


def _word(to: Writer, a: Value) -> Value:
    """The bits, zero-extended to 32 or 64."""
    width_bits = 32 if raw(a.type).width_bits <= 32 else 64
    return to.op("convert.cast", _pattern(to, a), type=unsigned(width_bits))


def _counted(to: Writer, call: Call, count: Operand) -> Sequence[Value]:
    return (Value(call.type, to.emit.cast(count, call.type), call.span, True),)


def popcount(to: Writer, call: Call) -> Sequence[Value]:
    """Sums of neighbouring bits, pairs, nibbles; then all bytes by one product."""
    (a,) = call.args
    word = _word(to, a)
    if word.type != a.type:
        return _counted(to, call, to.settled(to.op("bits.popcount", word)))
    emit, x, kind = to.emit, to.settled(word), raw(a.type)
    ones, pairs, nibbles = (mask & kind.max for _, mask in _SWAPS[:3])
    x = emit.sub(x, emit.both(emit.shr(x, 1), ones))
    x = emit.add(emit.both(x, pairs), emit.both(emit.shr(x, 2), pairs))
    x = emit.both(emit.add(x, emit.shr(x, 4)), nibbles)
    total = emit.shr(emit.mul(x, 0x0101_0101_0101_0101 & kind.max), kind.width_bits - 8)
    return _counted(to, call, total)


def leading_zeros(to: Writer, call: Call) -> Sequence[Value]:
    """The highest bit smeared downwards leaves a zero for each one above."""
    (a,) = call.args
    emit, word, kind = to.emit, _word(to, a), raw(a.type)
    if word.type != a.type:
        spare_bits = raw(word.type).width_bits - kind.width_bits
        count = to.settled(to.op("bits.clz", word))
        return _counted(to, call, emit.sub(count, spare_bits) if spare_bits else count)
    x, distance = to.settled(word), 1
    while distance < kind.width_bits:
        x, distance = emit.either(x, emit.shr(x, distance)), 2 * distance
    zeros = to.op("bits.popcount", _plain(kind, emit.inverse(x)))
    return _counted(to, call, to.settled(zeros))


def trailing_zeros(to: Writer, call: Call) -> Sequence[Value]:
    """The ones of ~x & (x - 1); a bit set above the width holds the count at W."""
    (a,) = call.args
    emit, word, kind = to.emit, _word(to, a), raw(a.type)
    if word.type != a.type:
        x = to.settled(word)
        if kind.width_bits < raw(word.type).width_bits:
            x = emit.either(x, 1 << kind.width_bits)
        return _counted(to, call, to.settled(to.op("bits.ctz", _plain(word.type, x))))
    x = to.settled(word)
    below = emit.both(emit.inverse(x), emit.sub(x, 1))
    return _counted(to, call, to.settled(to.op("bits.popcount", _plain(kind, below))))


# ---------------------------------------------------------------- fields


def extract(to: Writer, call: Call) -> Sequence[Value]:
    emit, (a,) = to.emit, call.args
    kind, high, low = raw(a.type), call.attrs["high"], call.attrs["low"]
    native = container(unsigned(kind.width_bits))
    x = emit.as_type(to.loose(a), native)
    field = emit.shr(x, low) if low else x
    whole = high == native.width_bits - 1 or (high == kind.width_bits - 1 and a.settled and not kind.signed)
    target = raw(call.type)
    return (to.integer(target, emit.cast(field, container(target)), call, whole),)


def test(to: Writer, call: Call) -> Sequence[Value]:
    x = to.loose(call.args[0])
    masked = to.emit.both(x, 1 << call.attrs["index"])
    return (Value(call.type, to.emit.is_other(masked, 0), call.span, True),)


def cat(to: Writer, call: Call) -> Sequence[Value]:
    emit, target = to.emit, raw(call.type)
    native = container(target)
    total: Operand | None = None
    place = target.width_bits
    for part in call.args:
        place -= raw(part.type).width_bits
        x = emit.cast(to.settled(_pattern(to, part)), native)
        x = emit.shl(x, place) if place else x
        total = x if total is None else emit.either(total, x)
    assert total is not None
    return (to.integer(target, total, call, True),)


# ---------------------------------------------------------------- sign, carries, wide products


def sign(to: Writer, call: Call) -> Sequence[Value]:
    """The number held within -1 and 1."""
    (a,) = call.args
    kind = raw(a.type)
    if kind.max == 0:
        return (a,)  # an i1 is its own sign
    least = to.op("integer.min", a, to.number(kind, 1))
    return (to.op("integer.max", least, to.number(kind, -1)) if kind.signed else least,)


def add_carry(to: Writer, call: Call) -> Sequence[Value]:
    """A sum of patterns with a bit to spare shows its carry; another one came out smaller than an operand."""
    emit = to.emit
    kind = raw(call.type)
    a, b = (to.settled(_pattern(to, value)) for value in call.args[:2])
    carry = emit.cast(to.settled(call.args[2]), a.type)
    part = emit.add(a, b)
    total = emit.add(part, carry)
    if kind.width_bits < container(kind).width_bits:
        out = emit.is_other(emit.shr(total, kind.width_bits), 0)
    else:
        out = emit.either(emit.is_less(part, a), emit.is_less(total, part))
    pattern = _plain(unsigned(kind.width_bits), total, settled=False)
    return (
        to_integer(to, pattern, call.type, type_interval(call.type)),
        Value(call.types[1], out, type_interval(call.types[1]), True),
    )


def mul_wide(to: Writer, call: Call) -> Sequence[Value]:
    kind = call.type
    assert isinstance(kind, IntType)
    a, b = (to.op("convert.cast", value, type=kind) for value in call.args)
    return (to.op("integer.mul", a, b),)


RULES: dict[str, Rule] = {
    **{f"bits.{verb}": rotate for verb in ("rotl", "rotr")},
    **{f"bits.{verb}": reverse for verb in ("reverse_bits", "reverse_bytes")},
    "bits.popcount": popcount,
    "bits.clz": leading_zeros,
    "bits.ctz": trailing_zeros,
    "bits.extract": extract,
    "bits.test": test,
    "bits.cat": cat,
    "integer.sign": sign,
    "integer.add_carry": add_carry,
    "integer.mul_wide": mul_wide,
}
