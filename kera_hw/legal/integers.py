"""Integers of 1 to 64 bits in native ones: wrapping arithmetic, division, shifts, comparisons, selection.

Sums, differences, products, logic and left shifts of W bits depend on the lowest W bits of their operands
alone, so that the bits above may be anything until something looks. Where ranges show that nothing wraps,
the result of extended operands is extended.
"""
from __future__ import annotations

from collections.abc import Sequence

from kera_hw.legal.native import unsigned
from kera_hw.legal.values import Call, Value, container, is_odd, raw
from kera_hw.legal.writer import Rule, Writer
from kera_hw.loops.program import Literal, Operand
from kera_hw.ops.intervals import RULES as RANGES
from kera_hw.ops.intervals import Interval, MaybeInterval, OpShape, type_interval
from kera_hw.types import BoolType, IntType, Type


def stays_within(call: Call) -> bool:
    """Whether the exact result is one of the type, so that nothing wraps."""
    spans = [value.span for value in call.args]
    full = type_interval(call.type)
    known = [span for span in spans if span is not None and not span.empty]
    if full is None or len(known) != len(spans):
        return False
    exact = RANGES[call.opcode](known, OpShape(tuple(v.type for v in call.args), call.type, call.attrs))
    return exact is not None and exact.within(full)


def modular(to: Writer, call: Call) -> Sequence[Value]:
    """add, sub, mul, neg: modulo 2^W whatever stands above."""
    operands = [to.loose(value) for value in call.args]
    settled = all(value.settled for value in call.args) and stays_within(call)
    return (to.integer(call.type, to.emit.op(call.opcode, *operands), call, settled),)


def logic(to: Writer, call: Call) -> Sequence[Value]:
    a, b = call.args
    operand = to.emit.op(call.opcode, to.loose(a), to.loose(b))
    if isinstance(call.type, BoolType):
        return (Value(call.type, operand, call.span, True),)
    settled = a.settled and b.settled
    if call.verb == "and" and not settled:
        settled = any(v.settled and v.span is not None and v.span.low >= 0 for v in call.args)
    return (to.integer(call.type, operand, call, settled),)


def inverse(to: Writer, call: Call) -> Sequence[Value]:
    (a,) = call.args
    operand = to.emit.inverse(to.loose(a))
    if isinstance(call.type, BoolType):
        return (Value(call.type, operand, call.span, True),)
    return (to.integer(call.type, operand, call, a.settled and raw(call.type).signed),)


def least_or_most(to: Writer, call: Call) -> Sequence[Value]:
    operands = [to.settled(value) for value in call.args]
    return (to.integer(call.type, to.emit.op(call.opcode, *operands), call, True),)


def absolute(to: Writer, call: Call) -> Sequence[Value]:
    (a,) = call.args
    kind = raw(call.type)
    if not kind.signed:
        return (a,)
    exact = a.span is not None and a.span.low > kind.min
    return (to.integer(call.type, to.emit.abs(to.settled(a)), call, exact),)


# ---------------------------------------------------------------- division


def divide(to: Writer, call: Call) -> Sequence[Value]:
    """div and rem, in 32 or 64 bits, with a divisor that no machine stops at.

    The quotient by 0 has all bits set, the remainder by 0 is the dividend. MIN / -1 = MIN = MIN / 1, and
    MIN % -1 = 0 = MIN % 1: dividing by 1 gives both. Narrower integers have their MIN / -1 in 32 bits.
    """
    emit, (a, b) = to.emit, call.args
    kind = raw(call.type)
    word = IntType(32 if kind.width_bits <= 32 else 64, kind.signed)
    top, bottom = emit.cast(to.settled(a), word), emit.cast(to.settled(b), word)
    by_zero: Operand | None = None
    bad: Operand | None = None
    if isinstance(bottom, Literal) and not kind.signed and bottom.bits.bit_count() == 1:
        return (to.integer(call.type, _by_power(to, call.verb, to.settled(a), bottom.bits), call, True),)
    divisors, dividends = emit.range(bottom), emit.range(top)
    if _has(divisors, 0):
        by_zero = bad = emit.is_equal(bottom, 0)
    if word.signed and _has(divisors, -1) and _has(dividends, word.min):
        least = emit.both(emit.is_equal(top, word.min), emit.is_equal(bottom, -1))
        bad = least if bad is None else emit.either(bad, least)
    safe = bottom if bad is None else emit.choose(bad, 1, bottom)
    found = emit.op(call.opcode, top, safe)
    if by_zero is not None:
        found = emit.choose(by_zero, kind.wrap(-1) if call.verb == "div" else top, found)
    settled = call.verb == "rem" or not kind.signed or not (_has(b.span, -1) and _has(a.span, kind.min))
    return (to.integer(call.type, emit.cast(found, container(kind)), call, settled),)


def _by_power(to: Writer, verb: str, a: Operand, divisor: int) -> Operand:
    """By a power of two, unsigned: a shift or a mask."""
    if verb == "rem":
        return to.emit.both(a, divisor - 1)
    return to.emit.shr(a, divisor.bit_length() - 1) if divisor > 1 else a


def _has(span: MaybeInterval, number: int) -> bool:
    return span is None or span.low <= number <= span.high


# ---------------------------------------------------------------- shifts


def shift(to: Writer, call: Call) -> Sequence[Value]:
    """shl and shr by any unsigned amount: 0, or the sign, from the width on.

    Up to the native width the native shift gives that for W bits too: to the left nobody looks at the bits
    above, to the right extended operands bring in what is wanted.
    """
    emit, (a, amount) = to.emit, call.args
    kind = raw(call.type)
    native = container(kind)
    left = call.verb == "shl"
    operand = to.loose(a) if left else to.settled(a)
    settled = not left or (a.settled and _exact_shift(call))
    by, span = to.settled(amount), amount.span
    assert span is not None
    width_bits = native.width_bits
    if isinstance(by, Literal):
        return (to.integer(call.type, _by_constant(to, call.verb, operand, span.low), call, settled),)
    if span.high < width_bits:
        return (to.integer(call.type, emit.op(call.opcode, operand, _amount(to, by, native)), call, settled),)
    if not left and kind.signed:
        held = _amount(to, emit.least(by, width_bits - 1), native)
        return (to.integer(call.type, emit.op(call.opcode, operand, held), call, True),)
    inside = emit.is_less(by, width_bits)
    moved = emit.op(call.opcode, operand, _amount(to, by, native))
    return (to.integer(call.type, emit.choose(inside, moved, 0), call, settled),)


def _exact_shift(call: Call) -> bool:
    amount = call.args[1].span
    return amount is not None and amount.high <= 64 and stays_within(call)


def _by_constant(to: Writer, verb: str, operand: Operand, amount: int) -> Operand:
    kind = operand.type
    assert isinstance(kind, IntType)
    if amount == 0:
        return operand
    if amount < kind.width_bits:
        return to.emit.shl(operand, amount) if verb == "shl" else to.emit.shr(operand, amount)
    if verb == "shr" and kind.signed:
        return to.emit.shr(operand, kind.width_bits - 1)
    return to.emit.number(kind, 0)


def _amount(to: Writer, by: Operand, kind: IntType) -> Operand:
    """An amount in the unsigned type beside the shifted one; those beyond the width may become any other."""
    return to.emit.cast(by, unsigned(kind.width_bits))


# ---------------------------------------------------------------- comparison and choice


def compare(to: Writer, call: Call) -> Sequence[Value]:
    """Of integers, fixed-point numbers and bools, false below true."""
    emit, (a, b) = to.emit, [to.settled(value) for value in call.args]
    if not isinstance(call.args[0].type, BoolType):
        return (Value(call.type, emit.op(call.opcode, a, b), call.span, True),)
    match call.verb:
        case "eq":
            found = emit.inverse(emit.differing(a, b))
        case "ne":
            found = emit.differing(a, b)
        case "lt":
            found = emit.both(emit.inverse(a), b)
        case "gt":
            found = emit.both(a, emit.inverse(b))
        case "le":
            found = emit.either(emit.inverse(a), b)
        case _:
            found = emit.either(a, emit.inverse(b))
    return (Value(call.type, found, call.span, True),)


def select(to: Writer, call: Call) -> Sequence[Value]:
    """Of any type: a selection moves whatever its operands are."""
    condition, a, b = call.args
    packed = a.packed and b.packed
    operands = [value.operand if packed else to.loose(value) for value in (a, b)]
    settled = a.settled and b.settled
    found = to.emit.select(to.settled(condition), *operands)
    return (Value(call.type, found, call.span, settled, packed),)


# ---------------------------------------------------------------- conversion among integers


def to_integer(to: Writer, value: Value, target: Type, span: MaybeInterval) -> Value:
    """An integer or bool modulo 2^W of the target."""
    kind = raw(target)
    if isinstance(value.type, BoolType):
        operand, settled, known = to.settled(value), True, Interval(0, 1)
    else:
        narrower = kind.width_bits <= raw(value.type).width_bits
        operand = to.loose(value) if narrower else to.settled(value)
        settled, known = value.settled, value.span
    full = type_interval(target)
    assert full is not None
    fits = known is not None and known.within(full)
    found = to.emit.cast(operand, container(kind))
    return Value(target, found, span, (settled and fits) or not is_odd(kind))


RULES: dict[str, Rule] = {
    **{f"integer.{verb}": modular for verb in ("add", "sub", "mul", "neg")},
    **{f"integer.{verb}": least_or_most for verb in ("min", "max")},
    **{f"integer.{verb}": divide for verb in ("div", "rem")},
    "integer.abs": absolute,
    **{f"bits.{verb}": logic for verb in ("and", "or", "xor")},
    "bits.not": inverse,
    **{f"bits.{verb}": shift for verb in ("shl", "shr")},
    "control.select": select,
}
