"""Truth tables of functions of few bits: index bit k is operand k; and their way back to expressions."""
from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import cast

from kera_hw.schedule.fpga.expressions import BitExpr

NOT = 0b01
AND = 0b1000
OR = 0b1110
XOR = 0b0110
XNOR = 0b1001
AND_NOT = 0b0010  # a & ~b
MUX = 0b11001010  # operand 2 ? operand 1 : operand 0
XOR3 = 0b10010110
BOTH_SAME = 0b1001_0000_0000_1001  # operand 0 equals operand 1, and operand 2 operand 3


def mask(count: int) -> int:
    """The table that is always true."""
    return (1 << (1 << count)) - 1


@lru_cache(maxsize=4096)
def variable(k: int, count: int) -> int:
    """The table of operand k."""
    return sum(1 << i for i in range(1 << count) if i >> k & 1)


@lru_cache(maxsize=65536)
def cofactor(table: int, count: int, k: int, value: int) -> int:
    """The table of one operand less, with operand k fixed."""
    out = 0
    for i in range(1 << (count - 1)):
        full = (i >> k) << (k + 1) | value << k | i & ((1 << k) - 1)
        out |= (table >> full & 1) << i
    return out


@lru_cache(maxsize=65536)
def merge(table: int, count: int, k: int, j: int) -> int:
    """The table with operand k fed by operand j (k > j), one operand less."""
    out = 0
    for i in range(1 << (count - 1)):
        value = i >> j & 1
        full = (i >> k) << (k + 1) | value << k | i & ((1 << k) - 1)
        out |= (table >> full & 1) << i
    return out


@lru_cache(maxsize=65536)
def flip(table: int, count: int, k: int) -> int:
    """The table with operand k inverted."""
    high, step = variable(k, count), 1 << k
    return (table & high) >> step | (table & ~high) << step & high


def negated(table: int, operands: Sequence[object]) -> int:
    """The complement of a table over these operands."""
    return table ^ mask(len(operands))


def depends(table: int, count: int, k: int) -> bool:
    """Whether operand k matters."""
    return cofactor(table, count, k, 0) != cofactor(table, count, k, 1)


@lru_cache(maxsize=262144)
def compose(table: int, inner: tuple[tuple[int, tuple[int, ...]], ...], count: int) -> int:
    """The table over ``count`` leaves of ``table`` applied to functions ``(table, leaf of each operand)``."""
    out = 0
    for i in range(1 << count):
        index = 0
        for k, (sub, leaves) in enumerate(inner):
            sub_index = 0
            for m, leaf in enumerate(leaves):
                sub_index |= (i >> leaf & 1) << m
            index |= (sub >> sub_index & 1) << k
        out |= (table >> index & 1) << i
    return out


@lru_cache(maxsize=65536)
def expression(table: int, count: int) -> BitExpr:
    """A short expression of the table."""
    full = mask(count)
    if table in (0, full):
        return ("const", int(table != 0))
    for k in range(count):
        if table == variable(k, count):
            return ("in", k)
        if table == full ^ variable(k, count):
            return ("not", ("in", k))
    found = _associative(table, count)
    return found if found is not None else _shannon(table, count)


def _associative(table: int, count: int) -> BitExpr | None:
    """AND, OR or XOR of literals over all operands that matter."""
    used = [k for k in range(count) if depends(table, count, k)]
    parity = 0
    for k in used:
        parity ^= variable(k, count)
    leaves: list[BitExpr] = [("in", k) for k in used]
    if table == parity:
        return ("xor", *leaves)
    if table == mask(count) ^ parity:
        return ("not", ("xor", *leaves))
    for name, target in (("and", table), ("or", mask(count) ^ table)):
        literals: list[BitExpr] = []
        product = mask(count)
        for k in used:
            positive = cofactor(target, count, k, 0) == 0
            product &= variable(k, count) if positive else mask(count) ^ variable(k, count)
            literal: BitExpr = ("in", k)
            literals.append(literal if positive == (name == "and") else ("not", literal))
        if product == target:
            return (name, *literals)
    return None


def _lift(expr: BitExpr, k: int) -> BitExpr:
    """An expression over operands without k, renumbered to stand among all."""
    if expr[0] == "in":
        index = expr[1]
        assert isinstance(index, int)
        return ("in", index + (index >= k))
    if expr[0] == "const":
        return expr
    return (expr[0], *(_lift(item, k) for item in _parts(expr)))


def _size(expr: BitExpr) -> int:
    return 1 + sum(_size(item) for item in _parts(expr))


def _parts(expr: BitExpr) -> list[BitExpr]:
    return [cast(BitExpr, item) for item in expr[1:] if isinstance(item, tuple)]


def _shannon(table: int, count: int) -> BitExpr:
    """Split on the operand that gives the shortest expression."""
    best: BitExpr | None = None
    for k in range(count):
        low, high = cofactor(table, count, k, 0), cofactor(table, count, k, 1)
        if low == high:
            return _lift(expression(low, count - 1), k)
        found = _join(k, count, low, high)
        if best is None or _size(found) < _size(best):
            best = found
    assert best is not None
    return best


def _join(k: int, count: int, low: int, high: int) -> BitExpr:
    full = mask(count - 1)
    literal: BitExpr = ("in", k)

    def sub(table: int) -> BitExpr:
        return _lift(expression(table, count - 1), k)

    if low == 0:
        return ("and", literal, sub(high))
    if high == 0:
        return ("and", ("not", literal), sub(low))
    if low == full:
        return ("or", ("not", literal), sub(high))
    if high == full:
        return ("or", literal, sub(low))
    if high == full ^ low:
        return ("xor", literal, sub(low))
    return ("mux", literal, sub(high), sub(low))
