"""a * b + c with one rounding, on machines without it.

f16 has its exact products in f32 (22 digits, 2^-48 and more), f32 and bf16 in f64; the sum with the addend is
rounded to odd and then to nearest (``rounding``). For f64, where no intermediate value leaves the range,
products and sums come with their exact errors (Boldo and Melquiond, as there, figure 4); elsewhere integers
of 128 bits decide, on a path of its own.
"""
from __future__ import annotations

from collections.abc import Sequence

from kera_hw.legal.emitter import NativeEmitter, infinity_bits
from kera_hw.legal.fma_exact import fused_exactly
from kera_hw.legal.rounding import sum_to_odd, to_odd, two_sum
from kera_hw.legal.writer import Writer
from kera_hw.loops.program import Literal, Operand
from kera_hw.types import F16, F32, F64, FloatType

_FACTOR, _ADDEND = 2.0**400, 2.0**900  # within these, products and their errors stay normal
_SPLITTER = 2.0**27 + 1


def fused(to: Writer, kind: FloatType, args: Sequence[Operand]) -> Operand:
    """In the working format; for f16 and bf16 an f32 that rounds to the result."""
    emit = to.emit
    if kind == F64:
        return _fused_f64(to, *args)
    if kind == F16:
        a, b, c = args
        return sum_to_odd(emit, emit.mul(a, b), c)
    a, b, c = (emit.cast(operand, F64) for operand in args)
    found = sum_to_odd(emit, emit.mul(a, b), c)
    return emit.cast(found, F32) if kind == F32 else to_odd(emit, found)


def _fused_f64(to: Writer, a: Operand, b: Operand, c: Operand) -> Operand:
    emit = to.emit
    usual = emit.both(_is_usual(emit, a, _FACTOR), _is_usual(emit, b, _FACTOR))
    addend = emit.either(_is_usual(emit, c, _ADDEND), emit.is_equal(c, 0.0))
    (found,) = emit.branch(
        emit.both(usual, addend), [F64],
        lambda: [_error_free(emit, a, b, c)],
        lambda: [_rarely(to, a, b, c)],
    )
    return found


def _is_usual(emit: NativeEmitter, x: Operand, greatest: float) -> Operand:
    size = emit.abs(x)
    return emit.both(emit.is_less(size, greatest), emit.is_greater(size, 1 / greatest))


def _error_free(emit: NativeEmitter, a: Operand, b: Operand, c: Operand) -> Operand:
    """Dekker's product of Veltkamp's halves, two of Knuth's sums; what they leave over is rounded to odd."""
    high = emit.mul(a, b)
    a_high, a_low = _halves(emit, a)
    b_high, b_low = _halves(emit, b)
    low = emit.add(emit.sub(emit.mul(a_high, b_high), high), emit.mul(a_high, b_low))
    low = emit.add(emit.add(low, emit.mul(a_low, b_high)), emit.mul(a_low, b_low))
    middle, rest_1 = two_sum(emit, c, low)
    top, rest_2 = two_sum(emit, high, middle)
    return emit.add(top, sum_to_odd(emit, rest_1, rest_2))


def _halves(emit: NativeEmitter, x: Operand) -> tuple[Operand, Operand]:
    """Two numbers of at most 26 bits with the sum ``x``."""
    scaled = emit.mul(x, _SPLITTER)
    high = emit.sub(scaled, emit.sub(scaled, x))
    return high, emit.sub(x, high)


def _rarely(to: Writer, a: Operand, b: Operand, c: Operand) -> Operand:
    """Numbers by integers; else, or with a zero product, what the machine gives.

    But an infinite addend decides where a product of numbers overflows.
    """
    emit = to.emit
    infinite = Literal(F64, infinity_bits(F64))
    finite = emit.both(emit.is_less(emit.abs(a), infinite), emit.is_less(emit.abs(b), infinite))
    plain = emit.add(emit.mul(a, b), c)
    decided = emit.both(finite, emit.is_equal(emit.abs(c), infinite))
    special = emit.choose(decided, c, plain)
    nonzero = emit.both(emit.is_other(a, 0.0), emit.is_other(b, 0.0))
    exact = emit.both(emit.both(finite, nonzero), emit.is_less(emit.abs(c), infinite))
    return emit.choose(exact, fused_exactly(to, a, b, c), special)
