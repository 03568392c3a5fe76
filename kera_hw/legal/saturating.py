"""Saturating sums, differences and products of 1 to 64 bits."""
from __future__ import annotations

from collections.abc import Sequence

from kera_hw.legal import wide
from kera_hw.legal.native import unsigned
from kera_hw.legal.values import Call, Value, container, is_odd, raw
from kera_hw.legal.writer import Rule, Writer
from kera_hw.loops.program import Operand
from kera_hw.types import IntType


def _clamped(to: Writer, exact: Operand, kind: IntType, call: Call, least: int, most: int) -> Sequence[Value]:
    """An exact result between ``least`` and ``most``, in any native integer, held within the type."""
    if most > kind.max:
        exact = to.emit.least(exact, kind.max)
    if least < kind.min:
        exact = to.emit.most(exact, kind.min)
    return (Value(call.type, to.emit.cast(exact, container(kind)), call.span, True),)


def total(to: Writer, call: Call) -> Sequence[Value]:
    """saturating_add and saturating_sub: with a bit to spare by clamping, else by the sign of an overflow."""
    emit, kind = to.emit, raw(call.type)
    adds = call.verb == "saturating_add"
    a, b = (to.settled(value) for value in call.args)
    if is_odd(kind):
        # The difference of unsigned numbers may be negative: it is taken in the signed type.
        native = container(IntType(kind.width_bits, True))
        a, b = emit.as_type(a, native), emit.as_type(b, native)
        span = kind.max - kind.min
        if not adds:
            return _clamped(to, emit.sub(a, b), kind, call, -span, span)
        if not kind.signed and native.width_bits == kind.width_bits + 1:
            low = emit.as_type(emit.add(a, b), container(kind))  # fills the word: clamped as unsigned
            return _clamped(to, low, kind, call, 0, 2 * kind.max)
        return _clamped(to, emit.add(a, b), kind, call, 2 * kind.min, 2 * kind.max)
    if kind.signed:
        result = emit.add(a, b) if adds else emit.sub(a, b)
        # Overflow: the operands' signs agree (in a sum) or differ, and the result's is not the first's.
        other = emit.differing(b, result) if adds else emit.differing(a, b)
        over = emit.is_less(emit.both(emit.differing(a, result), other), 0)
        limit = emit.differing(emit.shr(a, kind.width_bits - 1), kind.max)
        found = emit.choose(over, limit, result)
    elif adds:
        result = emit.add(a, b)
        found = emit.choose(emit.is_less(result, a), kind.max, result)
    else:
        found = emit.sub(emit.most(a, b), b)
    return (to.integer(call.type, found, call, True),)


def product(to: Writer, call: Call) -> Sequence[Value]:
    """In twice the width and clamped; beyond 32 bits in magnitudes of two words."""
    emit, kind = to.emit, raw(call.type)
    a, b = (to.settled(value) for value in call.args)
    if kind.width_bits <= 32:
        double = container(IntType(2 * kind.width_bits, kind.signed))
        exact = emit.mul(emit.cast(a, double), emit.cast(b, double))
        ends = [x * y for x in (kind.min, kind.max) for y in (kind.min, kind.max)]
        return _clamped(to, exact, kind, call, min(ends), max(ends))
    word = unsigned(64)
    if not kind.signed:
        high, low = wide.product(emit, a, b)
        over = emit.either(emit.is_other(high, 0), emit.is_greater(low, kind.max))
        return (Value(call.type, emit.choose(over, kind.max, low), call.span, True),)
    high, low = wide.product(emit, emit.as_type(emit.abs(a), word), emit.as_type(emit.abs(b), word))
    negative = emit.is_less(emit.differing(a, b), 0)
    limit = emit.choose(negative, emit.number(word, -kind.min), kind.max)
    magnitude = emit.choose(emit.is_other(high, 0), limit, emit.least(low, limit))
    signed = emit.as_type(magnitude, container(kind))
    return (Value(call.type, emit.choose(negative, emit.neg(signed), signed), call.span, True),)


RULES: dict[str, Rule] = {
    "integer.saturating_add": total,
    "integer.saturating_sub": total,
    "integer.saturating_mul": product,
}
