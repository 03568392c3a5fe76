"""Every scalar operation, mapped to cells, against the interpreter on random and corner operands."""
from __future__ import annotations

import pytest

from kera_hw.graph.node import Ref
from kera_hw.graph.store import Store
from kera_hw.types import BOOL, IntType

from .hw_random import check

WIDTHS = [1, 2, 7, 8, 16, 31, 32, 33, 63, 64]
BINARY = [
    "integer.add", "integer.sub", "integer.mul", "integer.min", "integer.max", "integer.saturating_add",
    "integer.saturating_sub", "integer.saturating_mul", "bits.and", "bits.or", "bits.xor", "compare.eq",
    "compare.ne", "compare.lt", "compare.le", "compare.gt", "compare.ge", "integer.div", "integer.rem",
]
UNARY = [
    "integer.neg", "integer.abs", "integer.sign", "bits.not", "bits.reverse_bits", "bits.popcount",
    "bits.clz", "bits.ctz",
]
SHIFTS = ["bits.shl", "bits.shr", "bits.rotl", "bits.rotr"]
AMOUNTS = [IntType(width, False) for width in (3, 7, 32)]
CASES = [(width, "ecp5-85k") for width in WIDTHS] + [(width, "ice40-hx8k") for width in (1, 8, 33)]


@pytest.mark.parametrize("width,device", CASES)
@pytest.mark.parametrize("opcode", BINARY)
def test_binary(opcode: str, width: int, device: str) -> None:
    slow = opcode in ("integer.div", "integer.rem", "integer.mul", "integer.saturating_mul") and width > 31
    for signed in (False, True):
        kind = IntType(width, signed)
        store = Store()
        a, b = store.param(0, kind), store.param(1, kind)
        check(store, [kind, kind], [store.op(opcode, a, b)], count=8 if slow else 30, device=device)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("opcode", UNARY)
def test_unary(opcode: str, width: int) -> None:
    for signed in (False, True):
        kind = IntType(width, signed)
        store = Store()
        check(store, [kind], [store.op(opcode, store.param(0, kind))], count=40)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("opcode", SHIFTS)
def test_shifts(opcode: str, width: int) -> None:
    """By constants, and by one type of amount in turn; `test_hardware_ops` tries the edges of all."""
    for signed in (False, True):
        kind = IntType(width, signed)
        turn = WIDTHS.index(width) + SHIFTS.index(opcode) + signed
        for amount in AMOUNTS[turn % len(AMOUNTS) :: len(AMOUNTS)]:
            store = Store()
            a, b = store.param(0, kind), store.param(1, amount)
            check(store, [kind, amount], [store.op(opcode, a, b)], count=40)
        for fixed in (0, 1, width // 2, width - 1, width, width + 5):
            store = Store()
            b = store.constant(IntType(32, False), fixed)
            check(store, [kind], [store.op(opcode, store.param(0, kind), b)], count=20)


@pytest.mark.parametrize("width", WIDTHS)
def test_casts_and_parts(width: int) -> None:
    for signed in (False, True):
        kind = IntType(width, signed)
        store = Store()
        x = store.param(0, kind)
        results = [store.op("convert.cast", x, type=IntType(w, s)) for w in WIDTHS for s in (False, True)]
        results += [store.op("bits.extract", x, high=width - 1, low=width // 2)]
        results += [store.op("bits.test", x, index=k) for k in (0, width // 2, width - 1)]
        if width % 8 == 0:
            results.append(store.op("bits.reverse_bytes", x))
        check(store, [kind], results, count=30)


@pytest.mark.parametrize("width", WIDTHS)
def test_carry_and_select(width: int) -> None:
    for signed in (False, True):
        kind = IntType(width, signed)
        store = Store()
        a, b, c = store.param(0, kind), store.param(1, kind), store.param(2, BOOL)
        node = store.node("integer.add_carry", (a, b, c))
        results = [Ref(node, 0), Ref(node, 1), store.op("control.select", c, a, b)]
        if width <= 32:
            results.append(store.op("integer.mul_wide", a, b))
            results.append(store.op("bits.cat", a, b))
        check(store, [kind, kind, BOOL], results, count=40)


@pytest.mark.parametrize("divisor", [1, 2, 3, 5, 7, 8, 10, 64, 100, -1, -3, -8, 0])
def test_constant_divisors(divisor: int) -> None:
    for kind in (IntType(8, True), IntType(13, False), IntType(32, True)):
        store = Store()
        x, d = store.param(0, kind), store.constant(kind, kind.wrap(divisor))
        check(store, [kind], [store.op("integer.div", x, d), store.op("integer.rem", x, d)], count=40)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("narrow", [1, 3, 8])
def test_narrow_divisors(narrow: int, signed: bool) -> None:
    kind, small = IntType(16, signed), IntType(narrow, signed)
    store = Store()
    x, d = store.param(0, kind), store.op("convert.cast", store.param(1, small), type=kind)
    ops = [store.op("integer.div", x, d), store.op("integer.rem", x, d), store.op("integer.div", d, x)]
    check(store, [kind, small], [*ops, store.op("integer.rem", d, x)], count=60)


@pytest.mark.parametrize("bits", [2, 3, 4, 5, 9])
@pytest.mark.parametrize("weight", [1, 3])
def test_sums_of_single_bits(bits: int, weight: int) -> None:
    """Every term fits an adder's carry input, yet two of them must be its operands."""
    store = Store()
    wide = IntType(8, False)
    total: Ref | None = None
    for index in range(bits):
        term = store.op("convert.cast", store.param(index, BOOL), type=wide)
        term = store.op("integer.mul", term, store.constant(wide, weight)) if index % 2 else term
        total = term if total is None else store.op("integer.add", total, term)
    assert total is not None
    check(store, [BOOL] * bits, [total], count=40)
