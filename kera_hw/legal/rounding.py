"""Rounding to odd, which leaves what a later rounding to nearest needs to know.

A number rounded to odd is itself if the format holds it, and else the neighbour whose last bit is set.
Rounding that to nearest in a format of at least two bits less gives what rounding the number itself gives,
below the normal range too, where the wider format's least number is at most a quarter of the other's
(S. Boldo and G. Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to
odd", 2008). So it is for f32 to f16 and bf16 (24 digits to 11 and 8, 2^-149 to 2^-24 and 2^-133) and for f64
to all of them.
"""
from __future__ import annotations

from kera_hw.legal.emitter import NativeEmitter, word_of
from kera_hw.loops.program import Operand
from kera_hw.types import F32, F64, FloatType, IntType


def two_sum(emit: NativeEmitter, a: Operand, b: Operand) -> tuple[Operand, Operand]:
    """Knuth's: the rounded sum and its exact error, where nothing overflows."""
    total = emit.add(a, b)
    moved = emit.sub(total, a)
    return total, emit.add(emit.sub(a, emit.sub(total, moved)), emit.sub(b, moved))


def sum_to_odd(emit: NativeEmitter, a: Operand, b: Operand) -> Operand:
    """The sum rounded to odd; an infinity or a NaN where the sum is one."""
    total, error = two_sum(emit, a, b)
    inexact = emit.is_greater(emit.abs(error), 0.0)  # not where the error is a NaN
    return _odd(emit, total, inexact, emit.differing(emit.bits(total), emit.bits(error)))


def _odd(emit: NativeEmitter, nearest: Operand, inexact: Operand, apart: Operand) -> Operand:
    """The neighbour with its last bit set: further from 0, or nearer where ``apart`` has its sign bit set."""
    kind = nearest.type
    assert isinstance(kind, FloatType)
    bits = emit.bits(nearest)
    signed = emit.as_type(apart, IntType(kind.width_bits, True))
    outward = emit.either(emit.shr(signed, kind.width_bits - 1), 1)  # 1 or -1
    step = emit.as_type(outward, word_of(kind))
    even = emit.is_equal(emit.both(bits, 1), 0)
    moved = emit.floating(emit.add(bits, step), kind)
    return emit.choose(emit.both(inexact, even), moved, nearest)


def to_odd(emit: NativeEmitter, x: Operand) -> Operand:
    """An f64 as f32 rounded to odd; beyond its range the greatest number, a NaN stays one."""
    nearest = emit.cast(x, F32)
    back = emit.cast(nearest, F64)
    inexact = emit.is_other(emit.abs(back), emit.abs(x))
    # Nearest lies too far out: one step inwards.
    inward = emit.is_greater(emit.abs(back), emit.abs(x))
    bits = emit.bits(nearest)
    step = emit.choose(inward, -1, emit.number(bits.type, 1))
    even = emit.is_equal(emit.both(bits, 1), 0)
    moved = emit.floating(emit.add(bits, step), F32)
    return emit.choose(emit.both(inexact, even), moved, nearest)
