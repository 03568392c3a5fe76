"""Floating-point operations in f32 and f64: what a machine has, and what it makes of that.

An f16 or bf16 operation works on f32 (``small``): arithmetic gives an f32 that rounds to the result,
everything else a number of the grid.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

from kera_hw.legal import fma, nans, roots
from kera_hw.legal.emitter import NativeEmitter, infinity_bits, sign_bit
from kera_hw.legal.native import Signature
from kera_hw.legal.values import Call, Value
from kera_hw.legal.writer import Rule, Writer
from kera_hw.loops.program import Literal, Operand
from kera_hw.types import F32, FloatType

Working = Callable[[Writer, FloatType, Sequence[Operand]], Operand]
"""Writes an operation of a format on operands in f32 or f64, where the machine has none."""


def arithmetic(to: Writer, call: Call) -> Sequence[Value]:
    """An operation of floats that gives one of their format."""
    kind = call.type
    assert isinstance(kind, FloatType)
    if to.forms.is_small(kind):
        return (_on_f32(to, call, kind),)
    operands = [to.loose(value) for value in call.args]
    if kind.width_bits < 32:  # the machine has arithmetic of the format, but not this
        operands = [to.emit.cast(operand, F32) for operand in operands]
    found = _written(to, call.verb, kind, operands)
    return (Value(kind, to.emit.cast(found, kind), None, False),)


def _on_f32(to: Writer, call: Call, kind: FloatType) -> Value:
    """An f16 or bf16 as f32: on the grid, or what rounds to the result."""
    if call.verb in ("neg", "abs"):  # rounding is the same on both sides of 0
        (a,) = call.args
        return Value(kind, to.emit.op(call.opcode, to.loose(a)), None, a.settled)
    operands = [to.settled(value) for value in call.args]
    return Value(kind, _written(to, call.verb, kind, operands), None, call.verb in _ON_GRID)


def _written(to: Writer, verb: str, kind: FloatType, operands: Sequence[Operand]) -> Operand:
    """In the operands' format. The machine's own fma rounds to it, which is once too often for another."""
    types = tuple(operand.type for operand in operands)
    if to.emit.is_total(f"floating.{verb}", types, types[0]) and not (verb == "fma" and kind != types[0]):
        return to.emit.op(f"floating.{verb}", *operands)
    return _WORKING[verb](to, kind, operands)


_PLAIN = ("add", "sub", "mul", "div", "sqrt", "neg", "abs", "floor", "ceil", "round", "trunc")
"""What every machine has in f32 and f64."""
_ON_GRID = frozenset({"floor", "ceil", "round", "trunc", "min", "max", "sign", "relu", "copysign"})
"""What gives a number of the grid for numbers of the grid: a whole number of a format's size is one too."""


# ---------------------------------------------------------------- minimum and maximum


def minimum(to: Writer, kind: FloatType, args: Sequence[Operand]) -> Operand:
    """The lesser asked for both ways round, and the bits of both answers joined.

    Of equal numbers, zeros of either sign, that gives -0; of a NaN and a number each way gives one, and their
    bits together are a NaN.
    """
    emit, (a, b) = to.emit, args
    bound = _bound(a, b)
    if bound is not None:
        x, limit = bound
        below = emit.is_most if _is_zero(limit, negative=True) else emit.is_less
        return emit.choose(below(limit, x), limit, x)
    one = emit.choose(emit.is_less(a, b), a, b)
    other = emit.choose(emit.is_less(b, a), b, a)
    return emit.floating(emit.either(emit.bits(one), emit.bits(other)), _format(a))


def maximum(to: Writer, kind: FloatType, args: Sequence[Operand]) -> Operand:
    """The negative of the lesser of both negatives."""
    emit, (a, b) = to.emit, args
    bound = _bound(a, b)
    if bound is not None:
        x, limit = bound
        above = emit.is_least if _is_zero(limit, negative=False) else emit.is_greater
        return emit.choose(above(limit, x), limit, x)
    return emit.neg(minimum(to, kind, [emit.neg(a), emit.neg(b)]))


def _bound(a: Operand, b: Operand) -> tuple[Operand, Literal] | None:
    """An operand and a constant that is no NaN: one comparison tells, and a NaN fails it and stays."""
    for x, limit in ((a, b), (b, a)):
        if isinstance(limit, Literal) and not isinstance(x, Literal):
            kind = _format(limit)
            if limit.bits & (sign_bit(kind) - 1) <= infinity_bits(kind):
                return x, limit
    return None


def _is_zero(limit: Literal, negative: bool) -> bool:
    """A zero that wins against the other zero, which is its equal."""
    return limit.bits == (sign_bit(_format(limit)) if negative else 0)


def _format(x: Operand) -> FloatType:
    assert isinstance(x.type, FloatType)
    return x.type


def relu(to: Writer, kind: FloatType, args: Sequence[Operand]) -> Operand:
    """+0 where the number is not above it; a NaN fails the comparison and stays."""
    (x,) = args
    return to.emit.choose(to.emit.is_most(x, 0.0), 0.0, x)


def sign(to: Writer, kind: FloatType, args: Sequence[Operand]) -> Operand:
    """Zeros and NaN pass both questions."""
    emit, (x,) = to.emit, args
    found = emit.choose(emit.is_greater(x, 0.0), 1.0, x)
    return emit.choose(emit.is_less(x, 0.0), -1.0, found)


# ---------------------------------------------------------------- signs and classes


def copysign(to: Writer, call: Call) -> Sequence[Value]:
    """The sign of a NaN is +: the operand that gives the sign has the canonical one."""
    emit, kind = to.emit, call.type
    assert isinstance(kind, FloatType)
    a, b = call.args
    magnitude = to.settled(a) if to.forms.is_small(kind) else to.loose(a)
    settled = to.settled(b)
    if to.forms.is_small(kind):
        settled = nans.canonical(emit, settled)
    found = _with_sign(emit, magnitude, settled)
    return (Value(kind, found, None, to.forms.is_small(kind)),)


def _with_sign(emit: NativeEmitter, a: Operand, b: Operand) -> Operand:
    if Signature("floating.copysign", (a.type, a.type), a.type) in emit.native:
        return emit.op("floating.copysign", a, b)
    kind, top = _format(a), sign_bit(_format(a))
    bits = emit.either(emit.both(emit.bits(a), top - 1), emit.both(emit.bits(b), top))
    return emit.floating(bits, kind)


def is_nan(to: Writer, call: Call) -> Sequence[Value]:
    x = to.loose(call.args[0])
    return (Value(call.type, to.emit.is_other(x, x), call.span, True),)


def compare(to: Writer, call: Call) -> Sequence[Value]:
    """Quiet comparisons of numbers, NaNs as they are."""
    small = to.forms.is_small(call.args[0].type)
    operands = [to.settled(value) if small else to.loose(value) for value in call.args]
    return (Value(call.type, to.emit.op(call.opcode, *operands), call.span, True),)


_WORKING: dict[str, Working] = {
    "min": minimum, "max": maximum, "relu": relu, "sign": sign,
    "fma": fma.fused, "rsqrt": roots.reciprocal_root,
}

RULES: dict[str, Rule] = {
    **{f"floating.{verb}": arithmetic for verb in (*_PLAIN, *_WORKING)},
    "floating.copysign": copysign,
    "floating.is_nan": is_nan,
}
