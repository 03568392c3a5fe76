"""Integers of 1 to 64 bits: wrapping, saturating and widening arithmetic."""
from __future__ import annotations

from collections.abc import Sequence

from kera_hw.numerics import integers
from kera_hw.numerics.arrays import Array
from kera_hw.ops.arithmetic import Binary, Unary, binary_row, unary_row
from kera_hw.ops.rules import (
    INT,
    Types,
    check_count,
    elementwise,
    fail,
    int_element,
    joint_shape,
    like,
    raw_int,
    spread,
    title,
)
from kera_hw.ops.spec import Attrs, EvalCall, OpSpec, Trait
from kera_hw.types import BOOL, BoolType, IntType, element_type

E, C, A, L = Trait.ELEMENTWISE, Trait.COMMUTATIVE, Trait.ASSOCIATIVE, Trait.LOW_BITS


def _unary(verb: str, doc: str, function: Unary, *traits: Trait) -> OpSpec:
    return unary_row(f"integer.{verb}", INT, doc, function, *traits)


def _binary(verb: str, doc: str, function: Binary, *traits: Trait) -> OpSpec:
    return binary_row(f"integer.{verb}", INT, doc, function, *traits)


def _infer_add_carry(types: Types, attrs: Attrs) -> Types:
    op = "integer.add_carry"
    check_count(op, types, 3)
    element, _ = elementwise(op, types[:2], 2, INT)
    if not isinstance(element_type(types[2]), BoolType):
        fail(f"{title(op)} takes a bool as its carry, but got {types[2]}.")
    model = joint_shape(op, types)
    return like(model, element), like(model, BOOL)


def _add_carry(call: EvalCall) -> Sequence[Array]:
    a, b, carry = spread(call.args)
    return integers.add_carry(a, b, carry, raw_int(call.arg_types[0]))


def _infer_mul_wide(types: Types, attrs: Attrs) -> Types:
    op = "integer.mul_wide"
    _, model = elementwise(op, types, 2, INT)
    element = int_element(op, types[0])
    if element.width_bits > 32:
        fail(f"{title(op)} of two {element} needs {2 * element.width_bits} bits, but integers end at 64.")
    return (like(model, IntType(2 * element.width_bits, element.signed)),)


def _mul_wide(call: EvalCall) -> Sequence[Array]:
    a, b = spread(call.args)
    result = element_type(call.types[0])
    assert isinstance(result, IntType)
    return (integers.mul_wide(a, b, result),)


TABLE: tuple[OpSpec, ...] = (
    _binary("add", "Sum modulo 2^W.", integers.add, C, A, L),
    _binary("sub", "Difference modulo 2^W.", integers.sub, L),
    _binary("mul", "Product modulo 2^W.", integers.mul, C, A, L),
    _binary(
        "div", "Quotient truncated toward zero; x / 0 has all bits set and MIN / -1 is MIN.", integers.div
    ),
    _binary("rem", "Remainder with the dividend's sign; x % 0 is x and MIN % -1 is 0.", integers.rem),
    _unary("neg", "Negation modulo 2^W: the negative of MIN is MIN.", integers.neg, L, Trait.INVOLUTION),
    _unary("abs", "Absolute value; that of MIN is MIN.", integers.absolute),
    _unary("sign", "-1, 0 or 1 by the operand's sign.", integers.sign),
    _binary("min", "The lesser operand.", integers.minimum, C, A, Trait.IDEMPOTENT),
    _binary("max", "The greater operand.", integers.maximum, C, A, Trait.IDEMPOTENT),
    _binary("saturating_add", "Sum clamped to the type's range.", integers.saturating_add, C),
    _binary("saturating_sub", "Difference clamped to the type's range.", integers.saturating_sub),
    _binary("saturating_mul", "Product clamped to the type's range.", integers.saturating_mul, C),
    OpSpec(
        "integer.add_carry",
        "Sum of two W-bit patterns and a carry bit modulo 2^W, and the carry out of the top bit.",
        _infer_add_carry, _add_carry, frozenset({E}),
    ),
    OpSpec(
        "integer.mul_wide", "Exact product in an integer of twice the width, which is at most 64 bits.",
        _infer_mul_wide, _mul_wide, frozenset({E, C, L}),
    ),
)
