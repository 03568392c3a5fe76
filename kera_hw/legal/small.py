"""f16 and bf16 as f32: unpacked from their bits, rounded onto their grid, packed again.

An operation is carried out in f32 on values of the grid, and its result rounded once more, or kept until
something asks for the grid. That rounding twice is rounding once, for p = 11 (f16) and p = 8 (bf16) digits
within the 24 of f32:

- *Products* have 2p <= 24 digits and are exact in f32, unless they reach below its least number 2^-149. Those
  of f16 do not: they are multiples of 2^-48. Those of bf16, of 16 digits, do so only below 2^-134, half the
  least number of bf16; there f32 gives 2^-134 at most, which rounds to 0 as the product itself does.
- *Sums, quotients, roots* in the normal range of the format: 24 >= 2p + 2 (S. Figueroa, "When is double
  rounding innocuous?", 1995).
- *Sums below the normal range* are multiples of the least number of the format, so they are on its grid.
- *Quotients below it*: rounding twice errs only where f32 gives a number M * 2^k half-way between two
  neighbours (M < 2^p) for a quotient A / B beside it. Unequal, they differ by a relative 1 / (B M) at least,
  which is more than 2^-2p. For f16, f32 has all its digits there and errs by a relative 2^-24 at most, less
  than 2^-22. For bf16, f32 is below its own normal range and errs by 2^-150 at most. There k = -134; with
  A in units of 2^(k - t), t >= 0, they differ by 2^(k - t) / B at least, and by more than 2^-143, since
  B M 2^t is below 2 A < 2^9 where they are near each other. With A in greater units they differ by 2^k / B.
- *Roots* are never below the normal range.
- *Overflow*: f32 rounds to nearest as well, so that its result does not pass the format's limit unless the
  exact one does.

``tests/unit/test_legal_small.py`` holds this against numbers; ``tests/exhaustive`` keeps the record of trials
of every operand with every other.
"""
from __future__ import annotations

from kera_hw.legal.emitter import NativeEmitter
from kera_hw.legal.native import unsigned
from kera_hw.loops.program import Operand
from kera_hw.types import F16, F32, FloatType, IntType

_WORD = IntType(32, False)
_MAGNITUDE, _INFINITY = 0x7FFF_FFFF, 0x7F80_0000
_LEAST_NORMAL = 0x3880_0000  # 2^-14, the least normal number of f16, in f32
_REBIAS = (127 - 15) << 23  # between exponents of f16 and f32, in place
_HALF = 0x3F00_0000  # 0.5, whose last place in f32 is 2^-24, the least number of f16
_DROPPED = 23 - 10


def _converts(emit: NativeEmitter, kind: FloatType) -> bool:
    """Whether the machine rounds f32 to the format and back."""
    return emit.is_total("convert.cast", (F32,), kind) and emit.is_total("convert.cast", (kind,), F32)


def _nearest(emit: NativeEmitter, word: Operand, dropped_bits: int) -> Operand:
    """The word, so raised that cutting the bits rounds to nearest even."""
    last = emit.both(emit.shr(word, dropped_bits), 1)
    return emit.add(emit.add(word, (1 << (dropped_bits - 1)) - 1), last)


def on_grid(emit: NativeEmitter, x: Operand, kind: FloatType) -> Operand:
    """An f32 rounded to the nearest number of the format, as f32; a NaN stays one."""
    if _converts(emit, kind):
        return emit.cast(emit.cast(x, kind), F32)
    word = emit.bits(x)
    if kind != F16:
        rounded = emit.both(_nearest(emit, word, 16), 0xFFFF_0000)
        return emit.choose(emit.is_equal(x, x), emit.floating(rounded, F32), x)
    magnitude = emit.both(word, _MAGNITUDE)
    usual = emit.both(_nearest(emit, magnitude, _DROPPED), -1 << _DROPPED)
    # Between 0.5 and 1 the last place of f32 is the least number of f16: there the sum rounds to it.
    little = emit.bits(emit.sub(emit.add(emit.floating(magnitude, F32), 0.5), 0.5))
    found = emit.choose(emit.is_less(magnitude, _LEAST_NORMAL), little, usual)
    beyond = emit.is_least(usual, _LEAST_NORMAL + (30 << 23))  # 2^16, infinity, NaN
    found = emit.choose(beyond, emit.most(magnitude, _INFINITY), found)
    return emit.floating(emit.either(found, emit.differing(word, magnitude)), F32)


def unpacked(emit: NativeEmitter, word: Operand, kind: FloatType) -> Operand:
    """The f32 of the format's bits."""
    if _converts(emit, kind):
        return emit.cast(emit.floating(word, kind), F32)
    wide = emit.cast(word, _WORD)
    if kind != F16:
        return emit.floating(emit.shl(wide, 16), F32)
    # After F. Giesen, "half_to_float_fast5" (2012), which has no subnormal f32 as an operand.
    fields = emit.shl(emit.both(wide, 0x7FFF), _DROPPED)
    usual = emit.add(fields, _REBIAS)
    beyond = emit.choose(emit.is_least(fields, 31 << 23), emit.add(usual, _REBIAS), usual)
    little = emit.sub(emit.floating(emit.add(usual, 1 << 23), F32), 2.0**-14)
    found = emit.choose(emit.is_less(fields, 1 << 23), emit.bits(little), beyond)
    return emit.floating(emit.either(found, emit.shl(emit.both(wide, 0x8000), 16)), F32)


def packed(emit: NativeEmitter, x: Operand, kind: FloatType, settled: bool, is_packed: bool) -> Operand:
    """The format's bits as a u16 with the canonical NaN, of an f32, on the grid or not, or of bits."""
    if is_packed:
        if settled:
            return x
        magnitude = emit.both(x, 0x7FFF)
        infinity = ((1 << kind.exponent_bits) - 1) << kind.fraction_bits
        return emit.choose(emit.is_greater(magnitude, infinity), kind.canonical_nan, x)
    if _converts(emit, kind):
        bits = emit.op("convert.bitcast", emit.cast(x, kind), type=unsigned(16))
    elif kind == F16:
        bits = emit.cast(_half_bits(emit, emit.bits(x), settled), unsigned(16))
    else:
        word = emit.bits(x)
        bits = emit.cast(emit.shr(word if settled else _nearest(emit, word, 16), 16), unsigned(16))
    return emit.choose(emit.is_equal(x, x), bits, kind.canonical_nan)


def _half_bits(emit: NativeEmitter, word: Operand, settled: bool) -> Operand:
    """Of an f32's bits those of the nearest f16; anything for a NaN."""
    magnitude = emit.both(word, _MAGNITUDE)
    raised = magnitude if settled else _nearest(emit, magnitude, _DROPPED)
    usual = emit.shr(emit.sub(raised, _REBIAS), _DROPPED)
    little = emit.sub(emit.bits(emit.add(emit.floating(magnitude, F32), 0.5)), _HALF)
    found = emit.choose(emit.is_less(magnitude, _LEAST_NORMAL), little, usual)
    sign = emit.both(emit.shr(word, 16), 0x8000)
    return emit.either(emit.least(found, 0x7C00), sign)
