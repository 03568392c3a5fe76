"""Integer, bit and comparison operations against the big-integer model, at many widths, both signs."""
from __future__ import annotations

import operator

import numpy as np
import pytest

from kera_hw.ops.spec import TypeRuleError
from kera_hw.types import BOOL, IntType
from tests.unit import ops_oracle as model

TYPES = [IntType(width, signed) for width in model.WIDTHS for signed in (True, False)]
each_type = pytest.mark.parametrize("kind", TYPES, ids=str)


def _check(op: str, got: np.ndarray, wanted: list[int]) -> None:
    assert [int(value) for value in got] == wanted, op


@each_type
def test_binary_arithmetic(kind: IntType) -> None:
    a, b = model.pairs(kind, 1)
    args = [model.array_of(a, kind), model.array_of(b, kind)]
    for verb, rule in model.BINARY.items():
        got, = model.run_op(f"integer.{verb}", args, (kind, kind))
        _check(verb, got, [model.wrapped(rule(x, y, kind), kind) for x, y in zip(a, b)])


@each_type
def test_unary_arithmetic(kind: IntType) -> None:
    a = model.edge_values(kind, 2, 40)
    for verb, rule in model.UNARY.items():
        got, = model.run_op(f"integer.{verb}", [model.array_of(a, kind)], (kind,))
        _check(verb, got, [model.wrapped(rule(x, kind), kind) for x in a])


@each_type
def test_add_carry(kind: IntType) -> None:
    a, b = model.pairs(kind, 3)
    for carry in (False, True):
        args = [model.array_of(a, kind), model.array_of(b, kind), np.full(len(a), carry)]
        total, out = model.run_op("integer.add_carry", args, (kind, kind, BOOL))
        exact = [
            model.bits_of(x, kind.width_bits) + model.bits_of(y, kind.width_bits) + carry
            for x, y in zip(a, b)
        ]
        _check("add_carry", total, [model.wrapped(x, kind) for x in exact])
        assert out.tolist() == [x >> kind.width_bits == 1 for x in exact]


@each_type
def test_mul_wide(kind: IntType) -> None:
    if kind.width_bits > 32:
        with pytest.raises(TypeRuleError, match=r"needs \d+ bits"):
            model.run_op("integer.mul_wide", [], (kind, kind))
        return
    a, b = model.pairs(kind, 4)
    got, = model.run_op("integer.mul_wide", [model.array_of(a, kind), model.array_of(b, kind)], (kind, kind))
    _check("mul_wide", got, [x * y for x, y in zip(a, b)])


@each_type
def test_carry_less_products(kind: IntType) -> None:
    if kind.signed:
        with pytest.raises(TypeRuleError, match="takes unsigned operands"):
            model.run_op("bits.clmul", [], (kind, kind))
        return
    a, b = model.pairs(kind, 17)
    got, = model.run_op("bits.clmul", [model.array_of(a, kind), model.array_of(b, kind)], (kind, kind))
    _check("clmul", got, [model.polynomial_product(x, y) % 2**64 for x, y in zip(a, b)])


@pytest.mark.parametrize(("a", "b", "low"), [
    # Intel's paper on PCLMULQDQ and GCM: the four products of quadwords of its example, their low halves.
    (0x63746F725D53475D, 0x5B477565726F6E5D, 0x929633D5D36F0451),
    (0x7B5B546573745665, 0x5B477565726F6E5D, 0xBABF262DF4B7D5C9),
    (0x63746F725D53475D, 0x4869285368617929, 0x7FA540AC2A281315),
    (0x7B5B546573745665, 0x4869285368617929, 0xD66EE03E410FD4ED),
])
def test_carry_less_products_on_record(a: int, b: int, low: int) -> None:
    kind = IntType(64, False)
    got, = model.run_op("bits.clmul", [model.array_of([a], kind), model.array_of([b], kind)], (kind, kind))
    _check("clmul", got, [low])


@each_type
def test_logic(kind: IntType) -> None:
    a, b = model.pairs(kind, 5)
    args = [model.array_of(a, kind), model.array_of(b, kind)]
    for verb, rule in model.LOGIC.items():
        got, = model.run_op(f"bits.{verb}", args, (kind, kind))
        _check(verb, got, [rule(x, y) for x, y in zip(a, b)])
    got, = model.run_op("bits.not", args[:1], (kind,))
    _check("not", got, [model.wrapped(~x, kind) for x in a])


@each_type
@pytest.mark.parametrize("amount_kind", [IntType(w, False) for w in (3, 8, 32, 64)], ids=str)
def test_shifts_and_rotations(kind: IntType, amount_kind: IntType) -> None:
    width = kind.width_bits
    values = model.edge_values(kind, 6, 8)
    wanted = [0, 1, 2, width // 2, width - 1, width, width + 1, 63, 64, 65, 127, 255, 1 << 32, (1 << 64) - 1]
    amounts = [n for n in wanted if n <= amount_kind.max]
    a = [x for x in values for _ in amounts]
    n = [y for _ in values for y in amounts]
    for verb, rule in model.MOVING.items():
        args = [model.array_of(a, kind), model.array_of(n, amount_kind)]
        got, = model.run_op(f"bits.{verb}", args, (kind, amount_kind))
        _check(verb, got, [model.wrapped(rule(x, y, kind), kind) for x, y in zip(a, n)])
        for amount in amounts:  # one amount in all lanes takes another path
            same = np.broadcast_to(model.array_of([amount], amount_kind), (len(values),))
            got, = model.run_op(f"bits.{verb}", [model.array_of(values, kind), same], (kind, amount_kind))
            _check(verb, got, [model.wrapped(rule(x, amount, kind), kind) for x in values])


@each_type
def test_counting_and_reversal(kind: IntType) -> None:
    a = model.edge_values(kind, 7, 40)
    args = [model.array_of(a, kind)]
    for verb, rule in model.COUNTING.items():
        got, = model.run_op(f"bits.{verb}", args, (kind,))
        _check(verb, got, [rule(x, kind) for x in a])
    width = kind.width_bits
    got, = model.run_op("bits.reverse_bits", args, (kind,))
    texts = [f"{model.bits_of(x, width):0{width}b}" for x in a]
    _check("reverse_bits", got, [model.wrapped(int(text[::-1], 2), kind) for text in texts])
    if width % 8 == 0:
        got, = model.run_op("bits.reverse_bytes", args, (kind,))
        swapped = [
            int.from_bytes(model.bits_of(x, width).to_bytes(width // 8, "little"), "big") for x in a
        ]
        _check("reverse_bytes", got, [model.wrapped(x, kind) for x in swapped])


@each_type
def test_bit_fields(kind: IntType) -> None:
    a = model.edge_values(kind, 8, 20)
    args = [model.array_of(a, kind)]
    width = kind.width_bits
    for low in {0, 1, width // 2, width - 1} - {width}:
        for high in {low, (low + width) // 2, width - 1} - {width}:
            got, = model.run_op("bits.extract", args, (kind,), high=high, low=low)
            _check("extract", got, [(x >> low) & ((1 << (high - low + 1)) - 1) for x in a])
        got, = model.run_op("bits.test", args, (kind,), index=low)
        assert got.tolist() == [bool(x >> low & 1) for x in a]


def test_cat_puts_the_first_operand_on_top() -> None:
    kinds = (IntType(5, True), IntType(13, False), IntType(1, True), IntType(45, True))
    columns = [model.edge_values(kind, 9, 30) for kind in kinds]
    columns = [[column[k % len(column)] for k in range(64)] for column in columns]
    got, = model.run_op("bits.cat", [model.array_of(c, k) for c, k in zip(columns, kinds)], kinds)
    for position, out in enumerate(got):
        parts = [(model.bits_of(c[position], k.width_bits), k.width_bits) for c, k in zip(columns, kinds)]
        assert int(out) == int("".join(f"{value:0{width}b}" for value, width in parts), 2)


@each_type
def test_comparisons(kind: IntType) -> None:
    a, b = model.pairs(kind, 10)
    args = [model.array_of(a, kind), model.array_of(b, kind)]
    for verb in ("eq", "ne", "lt", "le", "gt", "ge"):
        got, = model.run_op(f"compare.{verb}", args, (kind, kind))
        assert got.tolist() == [getattr(operator, verb)(x, y) for x, y in zip(a, b)], verb


def test_logic_and_order_on_bool() -> None:
    a, b = np.array([False, False, True, True]), np.array([False, True, False, True])
    wanted = {
        "bits.and": a & b, "bits.or": a | b, "bits.xor": a ^ b, "compare.lt": ~a & b, "compare.ge": a | ~b,
    }
    for op, expected in wanted.items():
        got, = model.run_op(op, [a, b], (BOOL, BOOL))
        assert got.tolist() == expected.tolist(), op
    got, = model.run_op("bits.not", [a], (BOOL,))
    assert got.tolist() == (~a).tolist()
