"""Bitwise logic, shifts, rotations, counting and bit fields."""
from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from kera_hw.numerics import bits
from kera_hw.numerics.arrays import Array, canonical
from kera_hw.ops.rules import (
    INT,
    Kinds,
    Types,
    check_count,
    check_kind,
    check_least,
    elementwise,
    fail,
    fixed_result_rule,
    int_element,
    joint_shape,
    like,
    same_type_rule,
    spread,
    title,
)
from kera_hw.ops.spec import Attrs, EvalCall, InferRule, OpSpec, Trait
from kera_hw.types import BOOL, U32, BoolType, FixType, IntType, element_type

E, C, A, L = Trait.ELEMENTWISE, Trait.COMMUTATIVE, Trait.ASSOCIATIVE, Trait.LOW_BITS
_LOGIC: Kinds = (IntType, BoolType)


def _raw(call: EvalCall) -> IntType:
    element = element_type(call.arg_types[0])
    if isinstance(element, FixType):
        return element.raw
    assert isinstance(element, IntType)
    return element


def _logic(verb: str, doc: str, function: Callable[[Array, Array], Array], *traits: Trait) -> OpSpec:
    def evaluate(call: EvalCall) -> Sequence[Array]:
        a, b = spread(call.args)
        return (function(a, b),)

    name = f"bits.{verb}"
    return OpSpec(name, doc, same_type_rule(name, 2, _LOGIC), evaluate, frozenset({E, C, A, L, *traits}))


def _not(call: EvalCall) -> Sequence[Array]:
    inverted = np.invert(call.args[0])
    return (inverted if inverted.dtype == np.bool_ else canonical(inverted, _raw(call)),)


def _amount_rule(op: str, kinds: Kinds) -> InferRule:
    def infer(types: Types, attrs: Attrs) -> Types:
        check_count(op, types, 2)
        element = check_kind(op, types[0], kinds)
        amount = int_element(op, types[1])
        if amount.signed:
            fail(f"{title(op)} takes an unsigned amount, but got {types[1]}.")
        return (like(joint_shape(op, types), element),)

    return infer


def _moving(
    verb: str, doc: str, function: Callable[[Array, Array, IntType], Array], kinds: Kinds
) -> OpSpec:
    def evaluate(call: EvalCall) -> Sequence[Array]:
        a, amount = spread(call.args)
        return (function(a, amount, _raw(call)),)

    name = f"bits.{verb}"
    return OpSpec(name, doc, _amount_rule(name, kinds), evaluate, frozenset({E}))


def _whole_bytes(types: Types, attrs: Attrs) -> Types:
    op = "bits.reverse_bytes"
    result = same_type_rule(op, 1, INT)(types, attrs)
    element = int_element(op, types[0])
    if element.width_bits % 8:
        fail(f"{title(op)} takes integers of whole bytes, but {element} has {element.width_bits} bits.")
    return result


def _unary(
    verb: str, doc: str, function: Callable[[Array, IntType], Array], infer: InferRule, *traits: Trait
) -> OpSpec:
    def evaluate(call: EvalCall) -> Sequence[Array]:
        return (function(call.args[0], _raw(call)),)

    return OpSpec(f"bits.{verb}", doc, infer, evaluate, frozenset({E, *traits}))


def _counting(verb: str, doc: str, function: Callable[[Array, IntType], Array]) -> OpSpec:
    return _unary(verb, doc, function, fixed_result_rule(f"bits.{verb}", 1, INT, U32))


def _infer_clmul(types: Types, attrs: Attrs) -> Types:
    op = "bits.clmul"
    _, model = elementwise(op, types, 2, INT)
    element = int_element(op, types[0])
    if element.signed:
        fail(f"{title(op)} takes unsigned operands, but got {element}.")
    return (like(model, IntType(min(2 * element.width_bits, 64), False)),)


def _clmul(call: EvalCall) -> Sequence[Array]:
    a, b = spread(call.args)
    result = element_type(call.types[0])
    assert isinstance(result, IntType)
    return (bits.carryless_mul(a, b, result),)


def _infer_extract(types: Types, attrs: Attrs) -> Types:
    op = "bits.extract"
    check_count(op, types, 1)
    element, high, low = int_element(op, types[0]), attrs["high"], attrs["low"]
    if not 0 <= low <= high < element.width_bits:
        fail(
            f"{title(op)} takes bits {high} down to {low}, but {element} has bits "
            f"{element.width_bits - 1} down to 0."
        )
    return (like(joint_shape(op, types), IntType(high - low + 1, False)),)


def _extract(call: EvalCall) -> Sequence[Array]:
    result = element_type(call.types[0])
    assert isinstance(result, IntType)
    return (bits.extract(call.args[0], _raw(call), call.attrs["low"], result),)


def _infer_test(types: Types, attrs: Attrs) -> Types:
    op = "bits.test"
    check_count(op, types, 1)
    element, index = int_element(op, types[0]), attrs["index"]
    if not 0 <= index < element.width_bits:
        fail(f"{title(op)} takes bit {index}, but {element} has bits {element.width_bits - 1} down to 0.")
    return (like(joint_shape(op, types), BOOL),)


def _test(call: EvalCall) -> Sequence[Array]:
    return (bits.test(call.args[0], call.attrs["index"]),)


def _infer_cat(types: Types, attrs: Attrs) -> Types:
    op = "bits.cat"
    check_least(op, types, 1)
    width_bits = sum(int_element(op, kind).width_bits for kind in types)
    return (like(joint_shape(op, types), IntType(width_bits, False)),)


def _cat(call: EvalCall) -> Sequence[Array]:
    result = element_type(call.types[0])
    assert isinstance(result, IntType)
    widths = [int_element("bits.cat", kind).width_bits for kind in call.arg_types]
    return (bits.cat(spread(call.args), widths, result),)


TABLE: tuple[OpSpec, ...] = (
    _logic("and", "Bitwise and; logical on bool.", np.bitwise_and, Trait.IDEMPOTENT),
    _logic("or", "Bitwise or; logical on bool.", np.bitwise_or, Trait.IDEMPOTENT),
    _logic("xor", "Bitwise exclusive or; logical on bool.", np.bitwise_xor),
    OpSpec(
        "bits.not", "Every bit inverted; logical on bool.",
        same_type_rule("bits.not", 1, _LOGIC), _not, frozenset({E, L, Trait.INVOLUTION}),
    ),
    _moving("shl", "Left shift by an unsigned amount; 0 from W on.", bits.shl, (IntType, FixType)),
    _moving(
        "shr", "Right shift by an unsigned amount, arithmetic on signed types; 0 or the sign fill from W on.",
        bits.shr, (IntType, FixType),
    ),
    _moving("rotl", "Left rotation; the amount counts modulo W.", bits.rotate_left, INT),
    _moving("rotr", "Right rotation; the amount counts modulo W.", bits.rotate_right, INT),
    _unary(
        "reverse_bits", "The bits in the opposite order.", bits.reverse_bits,
        same_type_rule("bits.reverse_bits", 1, INT), Trait.INVOLUTION, Trait.STRUCTURAL,
    ),
    _unary(
        "reverse_bytes", "The bytes in the opposite order; the width is a multiple of 8.",
        bits.reverse_bytes, _whole_bytes, Trait.INVOLUTION, Trait.STRUCTURAL,
    ),
    OpSpec(
        "bits.clmul",
        "Carry-less product: bits multiplied as polynomials over GF(2), in an integer of twice the width; "
        "from 33 bits on, the low 64 bits of it.",
        _infer_clmul, _clmul, frozenset({E, C, L}),
    ),
    _counting("popcount", "How many bits are set.", bits.popcount),
    _counting("clz", "Zeros above the highest set bit; W for 0.", bits.count_leading_zeros),
    _counting("ctz", "Zeros below the lowest set bit; W for 0.", bits.count_trailing_zeros),
    OpSpec(
        "bits.extract", "Bits high down to low as an unsigned integer of that width.",
        _infer_extract, _extract, frozenset({E, Trait.STRUCTURAL}), attrs=("high", "low"),
    ),
    OpSpec(
        "bits.test", "Whether bit `index` is set.",
        _infer_test, _test, frozenset({E, Trait.STRUCTURAL}), attrs=("index",),
    ),
    OpSpec(
        "bits.cat", "The operands' bits joined into one unsigned integer, the first the most significant.",
        _infer_cat, _cat, frozenset({E, Trait.STRUCTURAL}),
    ),
)
