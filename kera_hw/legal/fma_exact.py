"""a * b + c of f64 in integers of two words: exact for all numbers, with one rounding at the end."""
from __future__ import annotations

from typing import NamedTuple

from kera_hw.legal import wide
from kera_hw.legal.emitter import NativeEmitter, infinity_bits
from kera_hw.legal.writer import Writer
from kera_hw.loops.program import Operand
from kera_hw.types import F64, IntType

_SIGNED = IntType(64, True)
_FRACTION = 52
_NEVER = -(1 << 20)  # an exponent below that of all numbers


class _Fields(NamedTuple):
    """+-significand * 2^exponent; the leading bit of the significand is bit 52, unless it is 0."""

    negative: Operand
    significand: Operand
    exponent: Operand


def fused_exactly(to: Writer, a: Operand, b: Operand, c: Operand) -> Operand:
    """For finite operands of which ``a`` and ``b`` are not 0.

    The product has its leading bit at 124 or 125 of 128, the addend at 125. The one of the lesser exponent
    moves down, its last bit sticky: a product's bits get lost after 20 places and an addend's after 73, where
    at most one leading bit of the sum can cancel.
    """
    emit = to.emit
    x, y, z = (_fields(to, operand) for operand in (a, b, c))
    negative = emit.differing(x.negative, y.negative)
    high, low = _shifted_left(emit, wide.product(to, x.significand, y.significand), 20)
    exponent = emit.sub(emit.add(x.exponent, y.exponent), 20)
    high_c, low_c = emit.shl(z.significand, 9), emit.number(wide.WORD, 0)
    exponent_c = emit.choose(emit.is_equal(z.significand, 0), _NEVER, emit.sub(z.exponent, 73))

    distance = emit.sub(exponent, exponent_c)
    by_addend = emit.is_less(distance, 0)  # its exponent is the greater one
    one = emit.choose(by_addend, high_c, high), emit.choose(by_addend, low_c, low)
    two = emit.choose(by_addend, high, high_c), emit.choose(by_addend, low, low_c)
    two = _jammed(emit, two, emit.as_type(emit.abs(distance), wide.WORD))
    subtract = emit.differing(negative, z.negative)
    total, below = _sum(emit, one, two, subtract)
    sign = emit.differing(emit.choose(by_addend, z.negative, negative), below)
    exponent = emit.choose(by_addend, exponent_c, exponent)
    top, place = _leading_word(to, total)
    sign = emit.both(sign, emit.is_other(top, 0))  # numbers that cancel leave +0
    return _rounded(emit, sign, top, emit.add(exponent, place))


def _zeros(to: Writer, word: Operand) -> Operand:
    """Zeros above the leading bit, 64 of 0, as an i64."""
    return to.emit.cast(to.settled(to.op("bits.clz", wide.word(word))), _SIGNED)


def _fields(to: Writer, x: Operand) -> _Fields:
    emit = to.emit
    bits = emit.bits(x)
    biased = emit.both(emit.shr(bits, _FRACTION), 0x7FF)
    implied = emit.shl(emit.cast(emit.is_other(biased, 0), wide.WORD), _FRACTION)
    significand = emit.either(emit.both(bits, (1 << _FRACTION) - 1), implied)
    exponent = emit.sub(emit.as_type(emit.most(biased, 1), _SIGNED), 1023 + _FRACTION)
    left = emit.sub(_zeros(to, significand), 63 - _FRACTION)
    moved = emit.shl(significand, emit.as_type(left, wide.WORD))
    return _Fields(emit.is_other(emit.shr(bits, 63), 0), moved, emit.sub(exponent, left))


def _shifted_left(emit: NativeEmitter, x: wide.Wide, amount: int) -> wide.Wide:
    high, low = x
    return emit.either(emit.shl(high, amount), emit.shr(low, 64 - amount)), emit.shl(low, amount)


def _kept(emit: NativeEmitter, word: Operand, distance: Operand) -> tuple[Operand, Operand]:
    """A word shifted right by any distance, and whether bits fell out."""
    amount = emit.least(distance, 63)
    whole = emit.is_greater(distance, 63)
    kept = emit.choose(whole, 0, emit.shr(word, amount))
    back = emit.choose(whole, 0, emit.shl(kept, amount))
    return kept, emit.is_other(back, word)


def _jammed(emit: NativeEmitter, x: wide.Wide, distance: Operand) -> wide.Wide:
    """Shifted right by any distance, the lowest bit sticky.

    Beyond 63 places the upper word, which is not 0, shows by itself that something is left.
    """
    far = emit.is_least(distance, 64)
    high, low = emit.choose(far, 0, x[0]), emit.choose(far, x[0], x[1])
    rest = emit.choose(far, emit.sub(distance, 64), distance)
    kept, fell = _kept(emit, low, rest)
    amount = emit.least(rest, 63)
    # The upper word's bits enter the lower one; in two steps, since a shift by 64 is none.
    entering = emit.shl(emit.shl(high, 1), emit.sub(emit.number(wide.WORD, 63), amount))
    sticky = emit.cast(fell, wide.WORD)
    return emit.shr(high, amount), emit.either(emit.either(kept, entering), sticky)


def _sum(
    emit: NativeEmitter, one: wide.Wide, two: wide.Wide, subtract: Operand
) -> tuple[wide.Wide, Operand]:
    """The magnitude of the sum or difference, and whether the difference was negative."""
    flip = emit.neg(emit.cast(subtract, wide.WORD))
    carry = emit.cast(subtract, wide.WORD)
    part = emit.add(one[1], emit.differing(two[1], flip))
    low = emit.add(part, carry)
    out = emit.either(emit.is_less(part, one[1]), emit.is_less(low, part))
    high = emit.add(emit.add(one[0], emit.differing(two[0], flip)), emit.cast(out, wide.WORD))
    below = emit.both(subtract, emit.is_other(emit.shr(high, 63), 0))
    positive = emit.neg(low)
    carried = emit.cast(emit.is_equal(positive, 0), wide.WORD)
    other = emit.add(emit.inverse(high), carried)
    return (emit.choose(below, other, high), emit.choose(below, positive, low)), below


def _leading_word(to: Writer, x: wide.Wide) -> tuple[Operand, Operand]:
    """The 64 bits from the leading one on, the last sticky, and their exponent beside the number's."""
    emit, (high, low) = to.emit, x
    empty = emit.is_equal(high, 0)
    first, second = emit.choose(empty, low, high), emit.choose(empty, 0, low)
    left = emit.least(emit.as_type(_zeros(to, first), wide.WORD), 63)
    entering = emit.shr(emit.shr(second, 1), emit.sub(emit.number(wide.WORD, 63), left))
    top = emit.either(emit.shl(first, left), entering)
    sticky = emit.cast(emit.is_other(emit.shl(second, left), 0), wide.WORD)
    place = emit.sub(emit.choose(empty, 0, emit.number(_SIGNED, 64)), emit.as_type(left, _SIGNED))
    return emit.either(top, sticky), place


def _rounded(emit: NativeEmitter, negative: Operand, top: Operand, exponent: Operand) -> Operand:
    """(-1)^negative * top * 2^exponent, to nearest even; ``top`` has its leading bit at 63, or is 0."""
    field = emit.add(exponent, 64 + 1023 - 1)  # the biased exponent of the leading bit
    short = emit.as_type(emit.most(emit.sub(emit.number(_SIGNED, 1), field), 0), wide.WORD)
    kept, fell = _kept(emit, top, short)
    aligned = emit.either(kept, emit.cast(fell, wide.WORD))
    field = emit.as_type(emit.least(emit.most(field, 1), 0x7FF), wide.WORD)
    dropped = 63 - _FRACTION
    significand = emit.shr(aligned, dropped)
    rest = emit.both(aligned, (1 << dropped) - 1)
    odd = emit.both(significand, 1)
    up = emit.is_greater(emit.add(rest, odd), 1 << (dropped - 1))
    bits = emit.add(emit.shl(emit.sub(field, 1), _FRACTION), significand)
    bits = emit.least(emit.add(bits, emit.cast(up, wide.WORD)), infinity_bits(F64))
    bits = emit.choose(emit.is_equal(top, 0), 0, bits)
    return emit.floating(emit.either(bits, emit.shl(emit.cast(negative, wide.WORD), 63)), F64)
