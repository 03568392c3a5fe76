"""Conversions between scalar types, element by element: by value, by rounding mode, by bit pattern."""
from __future__ import annotations

from collections.abc import Sequence

from kera_hw.numerics import fixed, floatbits, floats
from kera_hw.numerics.arrays import Array, unsigned_bits, wrap
from kera_hw.ops.rules import SCALAR, Types, check_count, check_format, check_kind, fail, title
from kera_hw.ops.spec import Attrs, EvalCall, OpSpec, Trait
from kera_hw.types import (
    BoolType,
    FixType,
    FloatType,
    IntType,
    Type,
    bit_width,
    element_type,
    is_scalar,
    with_element,
)

MODES = ("floor", "trunc", "half_up", "half_even")
OVERFLOWS = ("wrap", "saturate")


def _raw(kind: Type) -> IntType:
    """The integer type behind an integer, fixed-point or bool element."""
    if isinstance(kind, FixType):
        return kind.raw
    if isinstance(kind, BoolType):
        return IntType(1, False)
    assert isinstance(kind, IntType)
    return kind


def _fraction_bits(kind: Type) -> int:
    return kind.fraction_bits if isinstance(kind, FixType) else 0


def _target(op: str, attrs: Attrs) -> Type:
    target = attrs["type"]
    if not (isinstance(target, (BoolType, IntType, FixType, FloatType)) and is_scalar(target)):
        fail(f"{title(op)} converts to scalar types, and {target} is none.")
    check_format(op, target)
    return target


def _infer_cast(types: Types, attrs: Attrs) -> Types:
    op = "convert.cast"
    check_count(op, types, 1)
    source, target = check_kind(op, types[0], SCALAR), _target(op, attrs)
    if isinstance(target, BoolType) and not isinstance(source, BoolType):
        fail(f"A value of type {source} does not convert to bool; compare it, as in `x != 0`.")
    if isinstance(source, BoolType) and not isinstance(target, (BoolType, IntType)):
        fail(f"A bool converts to integers only, not to {target}; convert it to an integer first.")
    return (with_element(types[0], target),)


def _cast(call: EvalCall) -> Sequence[Array]:
    source, target = element_type(call.arg_types[0]), element_type(call.types[0])
    if source == target:
        return call.args
    if isinstance(source, FloatType) or isinstance(target, FloatType):
        return (_cast_float(call.args[0], source, target),)
    shift_bits = _fraction_bits(target) - _fraction_bits(source)
    if shift_bits == 0:
        return (wrap(call.args[0], _raw(target)),)
    return (fixed.rescale(call.args[0], shift_bits, _raw(target)),)


def _cast_float(values: Array, source: Type, target: Type) -> Array:
    """To, from and between floats."""
    if isinstance(target, FloatType):
        if isinstance(source, FloatType):
            return floats.convert(values, source, target)
        return floats.from_integer(values, target, _fraction_bits(source))
    assert isinstance(source, FloatType)
    raw = _raw(target)
    if isinstance(target, FixType):
        return wrap(floats.to_fixed(values, source, raw.min, raw.max, target.fraction_bits), raw)
    return wrap(floats.to_integer(values, source, raw.min, raw.max), raw)


def _infer_bitcast(types: Types, attrs: Attrs) -> Types:
    op = "convert.bitcast"
    check_count(op, types, 1)
    source, target = check_kind(op, types[0], SCALAR), _target(op, attrs)
    if bit_width(source) != bit_width(target):
        fail(
            f"{title(op)} keeps the bits, but {source} has {bit_width(source)} and {target} has "
            f"{bit_width(target)}."
        )
    return (with_element(types[0], target),)


def _bitcast(call: EvalCall) -> Sequence[Array]:
    source, target = element_type(call.arg_types[0]), element_type(call.types[0])
    values = call.args[0]
    if isinstance(source, FloatType):
        bits = floatbits.to_bits(values)
    elif isinstance(source, BoolType):
        bits = values.astype("u1")
    else:
        bits = unsigned_bits(values, bit_width(source))
    if isinstance(target, FloatType):
        return (floatbits.from_bits(bits, target),)
    if isinstance(target, BoolType):
        return (bits != 0,)
    return (wrap(bits, _raw(target)),)


def _infer_round_to(types: Types, attrs: Attrs) -> Types:
    op = "convert.round_to"
    check_count(op, types, 1)
    check_kind(op, types[0], (IntType, FixType))
    target = attrs["type"]
    if not isinstance(target, FixType):
        fail(f"{title(op)} rounds to a fixed-point format, and {target} is none.")
    if attrs["mode"] not in MODES:
        fail(f"{title(op)} knows the modes {', '.join(MODES)}, and `{attrs['mode']}` is none of them.")
    if attrs["overflow"] not in OVERFLOWS:
        fail(f"{title(op)} overflows by `wrap` or `saturate`, and `{attrs['overflow']}` is neither.")
    return (with_element(types[0], target),)


def _round_to(call: EvalCall) -> Sequence[Array]:
    source, target = element_type(call.arg_types[0]), call.attrs["type"]
    return (
        fixed.round_to(
            call.args[0], _fraction_bits(source), target, call.attrs["mode"], call.attrs["overflow"]
        ),
    )


_E = frozenset({Trait.ELEMENTWISE})

TABLE: tuple[OpSpec, ...] = (
    OpSpec(
        "convert.cast",
        "The value in another scalar type: integers truncate or extend, fixed point floors and wraps, "
        "int, fix and float to float round to nearest even; float to int truncates, float to fix rounds to "
        "nearest even, both saturate and give 0 for NaN.",
        _infer_cast, _cast, _E, attrs=("type",),
    ),
    OpSpec(
        "convert.bitcast",
        "The same bits as another type of equal width; a NaN becomes the canonical one.",
        _infer_bitcast, _bitcast, _E | {Trait.STRUCTURAL}, attrs=("type",),
    ),
    OpSpec(
        "convert.round_to",
        "An integer or fixed-point value rounded into a format by floor, trunc, half_up or half_even, "
        "then wrapped or saturated.",
        _infer_round_to, _round_to, _E, attrs=("mode", "overflow", "type"),
    ),
)
