"""1/sqrt(x) rounded once."""
from __future__ import annotations

from collections.abc import Sequence

from kera_hw.legal import wide
from kera_hw.legal.emitter import NativeEmitter, infinity_bits
from kera_hw.legal.writer import Writer
from kera_hw.loops.program import Literal, Operand
from kera_hw.types import F32, F64, FloatType, IntType

_SIGNED = IntType(64, True)
_FRACTION = 52
_BIAS = 1023
_LEAST_NORMAL = 2.0**-1022
_LIFT = 54  # a subnormal number times 4^54 is normal


def reciprocal_root(to: Writer, kind: FloatType, args: Sequence[Operand]) -> Operand:
    """Below f64, the f64 quotient rounds to the result: shown for f32 on every significand and parity of the
    exponent (tests/unit/test_numerics_floats.py), for f16 and bf16 in f32 on every input
    (tests/unit/test_legal_small.py)."""
    emit, (x,) = to.emit, args
    if kind == F64:
        return _exact(to, x)
    if kind == F32:
        return emit.cast(_quotient(emit, emit.cast(x, F64)), F32)
    return _quotient(emit, x)


def _quotient(emit: NativeEmitter, x: Operand) -> Operand:
    """Two roundings; the right zeros, infinities and NaNs."""
    return emit.op("floating.div", emit.number(x.type, 1.0), emit.op("floating.sqrt", x))


def _exact(to: Writer, x: Operand) -> Operand:
    """``numerics.floats.rsqrt``: the quotient of a significand in [1, 4), put right by exact integers."""
    emit = to.emit
    little = emit.is_less(x, _LEAST_NORMAL)
    normal = emit.choose(little, emit.mul(x, 4.0**_LIFT), x)
    bits = emit.bits(normal)
    exponent = emit.sub(emit.as_type(emit.shr(bits, _FRACTION), _SIGNED), _BIAS)
    half = emit.shr(exponent, 1)
    odd = emit.as_type(emit.both(exponent, 1), wide.WORD)
    fraction = emit.both(bits, (1 << _FRACTION) - 1)
    scaled = emit.floating(emit.either(fraction, emit.shl(emit.add(odd, _BIAS), _FRACTION)), F64)
    significand = emit.shl(emit.either(fraction, 1 << _FRACTION), odd)
    estimate = emit.mul(_quotient(emit, scaled), 2.0 ** (_FRACTION + 1))
    root = emit.as_type(emit.cast(estimate, _SIGNED), wide.WORD)
    for _ in range(2):
        root = emit.add(root, emit.cast(_is_above(to, significand, root), wide.WORD))
        below = emit.inverse(_is_above(to, significand, emit.sub(root, 1)))
        root = emit.sub(root, emit.cast(below, wide.WORD))
    place = emit.sub(emit.number(_SIGNED, _BIAS - _FRACTION - 1), half)
    power = emit.floating(emit.shl(emit.as_type(place, wide.WORD), _FRACTION), F64)
    found = emit.mul(emit.cast(emit.as_type(root, _SIGNED), F64), power)
    found = emit.mul(found, emit.choose(little, 2.0**_LIFT, emit.number(F64, 1.0)))
    infinite = Literal(F64, infinity_bits(F64))
    usual = emit.both(emit.is_greater(x, 0.0), emit.is_less(x, infinite))
    return emit.choose(usual, found, _quotient(emit, x))


def _is_above(to: Writer, significand: Operand, root: Operand) -> Operand:
    """Whether 1/sqrt lies above the middle between root and root + 1."""
    emit = to.emit
    odd = emit.either(emit.shl(root, 1), 1)
    high, low = wide.product(to, odd, odd)
    carried, _ = wide.product(to, low, significand)
    return emit.is_other(emit.shr(emit.add(emit.mul(high, significand), carried), 63), 0)
