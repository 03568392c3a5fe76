"""Fixed point: arithmetic on the raw integers of one format; only the product changes format."""
from __future__ import annotations

from collections.abc import Sequence

from kera_hw.numerics import fixed, integers
from kera_hw.numerics.arrays import Array
from kera_hw.ops.arithmetic import Binary, Unary, binary_row, unary_row
from kera_hw.ops.rules import (
    FIX,
    Types,
    check_count,
    check_kind,
    fail,
    joint_shape,
    like,
    same_type_rule,
    spread,
    title,
)
from kera_hw.ops.spec import Attrs, EvalCall, OpSpec, Trait
from kera_hw.types import FixType, element_type

E, C, A, L = Trait.ELEMENTWISE, Trait.COMMUTATIVE, Trait.ASSOCIATIVE, Trait.LOW_BITS


def _format(call: EvalCall) -> FixType:
    element = element_type(call.arg_types[0])
    assert isinstance(element, FixType)
    return element


def _unary(verb: str, doc: str, function: Unary, *traits: Trait) -> OpSpec:
    return unary_row(f"fixed.{verb}", FIX, doc, function, *traits)


def _binary(verb: str, doc: str, function: Binary, *traits: Trait) -> OpSpec:
    return binary_row(f"fixed.{verb}", FIX, doc, function, *traits)


def _infer_mul(types: Types, attrs: Attrs) -> Types:
    op = "fixed.mul"
    check_count(op, types, 2)
    a, b = (check_kind(op, kind, FIX) for kind in types)
    assert isinstance(a, FixType) and isinstance(b, FixType)
    if a.signed != b.signed:
        fail(f"{title(op)} takes two signed or two unsigned formats, but got {a} and {b}.")
    width_bits = a.width_bits + b.width_bits
    if width_bits > 64:
        fail(f"The product of {a} and {b} needs {width_bits} bits, but fixed point ends at 64.")
    product = FixType(width_bits, a.fraction_bits + b.fraction_bits, a.signed)
    return (like(joint_shape(op, types), product),)


def _mul(call: EvalCall) -> Sequence[Array]:
    a, b = spread(call.args)
    product = element_type(call.types[0])
    assert isinstance(product, FixType)
    return (integers.mul_wide(a, b, product.raw),)


def _sign(call: EvalCall) -> Sequence[Array]:
    return (fixed.sign(call.args[0], _format(call)),)


TABLE: tuple[OpSpec, ...] = (
    _binary("add", "Sum of the raw integers modulo 2^W.", integers.add, C, A, L),
    _binary("sub", "Difference of the raw integers modulo 2^W.", integers.sub, L),
    OpSpec(
        "fixed.mul", "Exact product: fix<Wa, Fa> times fix<Wb, Fb> gives fix<Wa+Wb, Fa+Fb>.",
        _infer_mul, _mul, frozenset({E, C, L}),
    ),
    _unary("neg", "Negation of the raw integer modulo 2^W.", integers.neg, L, Trait.INVOLUTION),
    _unary("abs", "Absolute value of the raw integer; that of MIN is MIN.", integers.absolute),
    OpSpec(
        "fixed.sign",
        "-1, 0 or 1 as a value of the format; where it can't hold that value, the nearest one it has.",
        same_type_rule("fixed.sign", 1, FIX), _sign, frozenset({E}),
    ),
    _binary("min", "The lesser operand.", integers.minimum, C, A, Trait.IDEMPOTENT),
    _binary("max", "The greater operand.", integers.maximum, C, A, Trait.IDEMPOTENT),
    _binary("saturating_add", "Sum clamped to the format's range.", integers.saturating_add, C),
    _binary("saturating_sub", "Difference clamped to the format's range.", integers.saturating_sub),
    _binary(
        "saturating_mul", "Product of the raw integers clamped to the raw range, in the same format.",
        integers.saturating_mul, C,
    ),
)
