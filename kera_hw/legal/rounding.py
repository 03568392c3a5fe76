"""Rounding to odd, which leaves what a later rounding to nearest needs to know.

A number rounded to odd is itself if the format holds it, and else the neighbour whose last bit is set.
Rounding that to nearest in a format of at least two bits less gives what rounding the number itself gives,
below the normal range too, where the wider format's least number is at most a quarter of the other's
(S. Boldo and G. Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to
odd", 2008). So it is for f32 to f16 and bf16 (24 digits to 11 and 8, 2^-149 to 2^-24 and 2^-133) and for f64
to all of them.
"""
from __future__ import annotations

from dataclasses import replace

from kera_hw.legal.emitter import NativeEmitter
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
    apart = emit.differing(emit.bits(total), emit.bits(error))
    assert isinstance(apart.type, IntType)
    outside = emit.is_less(emit.as_type(apart, replace(apart.type, signed=True)), 0)
    return _odd(emit, total, inexact, emit.both(inexact, outside))


def _odd(emit: NativeEmitter, nearest: Operand, inexact: Operand, outside: Operand) -> Operand:
    """What was rounded to nearest as rounded to odd: one step inwards where it lies too far out, and with its
    last bit set where it is not the number itself."""
    kind = nearest.type
    assert isinstance(kind, FloatType)
    bits = emit.bits(nearest)
    zero = emit.number(bits.type, 0)
    inner = emit.add(bits, emit.choose(outside, -1, zero))
    return emit.floating(emit.either(inner, emit.choose(inexact, 1, zero)), kind)


def to_odd(emit: NativeEmitter, x: Operand) -> Operand:
    """An f64 as f32 rounded to odd; beyond its range the greatest number, a NaN stays one."""
    nearest = emit.cast(x, F32)
    back, size = emit.abs(emit.cast(nearest, F64)), emit.abs(x)
    return _odd(emit, nearest, emit.is_other(back, size), emit.is_greater(back, size))
