"""Truth tables as few gates: what factors out at the top, two inputs that act as one, else a choice.

Tables of ``count`` inputs are integers of 2^count bits; bit i is the value for the inputs that spell i.
"""
from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import combinations
from typing import cast

_AND, _XOR = 1, 2
Gate = tuple[int, int, int]
"""1 (AND) or 2 (XOR), and two literals: 0 the constant, then inputs, then gates in order, twice each."""
_TRIED = 4
"""Inputs up to which every split is tried."""
_Tree = tuple[object, ...]
"""("in", literal) | ("const", 0 or 1) | (1 or 2, tree, tree) | ("not", tree)"""


@dataclass(frozen=True, slots=True)
class Shape:
    """Gates over inputs, and the literal that is the result."""

    gates: tuple[Gate, ...]
    output: int


@cache
def masks(count: int) -> tuple[int, ...]:
    """For each input the table rows in which it is 1."""
    found: list[int] = []
    for k in range(count):
        block = ((1 << (1 << k)) - 1) << (1 << k)
        period = 2 << k
        table = 0
        for start in range(0, 1 << count, period):
            table |= block << start
        found.append(table)
    return tuple(found)


def low_half(table: int, k: int, count: int) -> int:
    """The table with input k at 0, spread over both values."""
    rows = table & ~masks(count)[k]
    return rows | rows << (1 << k)


def high_half(table: int, k: int, count: int) -> int:
    """The table with input k at 1, spread over both values."""
    rows = table & masks(count)[k]
    return rows | rows >> (1 << k)


def support(table: int, count: int) -> list[int]:
    """The inputs that matter."""
    return [k for k in range(count) if low_half(table, k, count) != high_half(table, k, count)]


@lru_cache(maxsize=1 << 16)
def shape(table: int, count: int) -> Shape:
    """Few gates for a table."""
    gates: list[Gate] = []
    memo: dict[Gate, int] = {}

    def emit(tree: _Tree) -> int:
        head = tree[0]
        if head == "in" or head == "const":
            assert isinstance(tree[1], int)
            return tree[1]
        if head == "not":
            return emit(_sub(tree, 1)) ^ 1
        assert isinstance(head, int)
        a, b = sorted((emit(_sub(tree, 1)), emit(_sub(tree, 2))))
        sign = 0
        if head == _XOR:
            sign = (a ^ b) & 1
            a, b = sorted((a & ~1, b & ~1))
        if a <= 1 or a >> 1 == b >> 1:
            return _trivial(head, a, b) ^ sign
        made = memo.get((head, a, b))
        if made is None:
            gates.append((head, a, b))
            made = memo[head, a, b] = 2 * (count + len(gates))
        return made ^ sign

    output = emit(_tree(table, count)[1])
    return Shape(tuple(gates), output)


def _trivial(head: int, a: int, b: int) -> int:
    if head == _XOR:
        return a ^ b if a <= 1 else (a ^ b) & 1
    if a > 1:
        return a if a == b else 0
    return b if a else 0


def _sub(tree: _Tree, k: int) -> _Tree:
    assert isinstance(tree[k], tuple)
    return cast("_Tree", tree[k])


@lru_cache(maxsize=1 << 17)
def _tree(table: int, count: int) -> tuple[int, _Tree]:
    """(gates, tree) of a table."""
    full = (1 << (1 << count)) - 1
    if table == 0 or table == full:
        return 0, ("const", int(table != 0))
    if table & 1:  # one form of each complementary pair
        cost, tree = _tree(full ^ table, count)
        return cost, ("not", tree)
    used = support(table, count)
    if len(used) == 1:
        return 0, ("in", 2 + 2 * used[0])
    found = _factored(table, count, used)
    if found is None:
        found = _paired(table, count, used)
    return _chosen(table, count, used) if found is None else found


def _factored(table: int, count: int, used: list[int]) -> tuple[int, _Tree] | None:
    """An input that stands alone beside a function of the rest."""
    full = (1 << (1 << count)) - 1
    for k in used:
        low, high = low_half(table, k, count), high_half(table, k, count)
        literal: _Tree = ("in", 2 + 2 * k)
        if low == 0:
            cost, rest = _tree(high, count)
            return cost + 1, (_AND, literal, rest)
        if high == 0:
            cost, rest = _tree(low, count)
            return cost + 1, (_AND, ("not", literal), rest)
        if low == full:
            cost, rest = _tree(full ^ high, count)
            return cost + 1, ("not", (_AND, literal, rest))
        if high == full:
            cost, rest = _tree(full ^ low, count)
            return cost + 1, ("not", (_AND, ("not", literal), rest))
        if high == full ^ low:
            cost, rest = _tree(low, count)
            return cost + 1, (_XOR, literal, rest)
    return None


_PAIRS = {
    0b1000: (_AND, 0, 0, 0), 0b0111: (_AND, 0, 0, 1), 0b0100: (_AND, 1, 0, 0), 0b1011: (_AND, 1, 0, 1),
    0b0010: (_AND, 0, 1, 0), 0b1101: (_AND, 0, 1, 1), 0b0001: (_AND, 1, 1, 0), 0b1110: (_AND, 1, 1, 1),
    0b0110: (_XOR, 0, 0, 0), 0b1001: (_XOR, 0, 0, 1),
}
"""Functions of two inputs: gate, whether each input and the output is inverted."""


def _paired(table: int, count: int, used: list[int]) -> tuple[int, _Tree] | None:
    """Two inputs that matter only through one function of them."""
    if len(used) < 3:
        return None
    for i, j in combinations(used, 2):
        rows = [
            half(half_j(table, j, count), i, count)
            for half_j in (low_half, high_half) for half in (low_half, high_half)
        ]
        kinds = list(dict.fromkeys(rows))
        if len(kinds) != 2:
            continue
        pattern = sum((row == kinds[1]) << place for place, row in enumerate(rows))
        head, invert_i, invert_j, invert = _PAIRS[pattern]
        # Input i becomes the pair's value; j does not matter any more.
        mask = masks(count)[i]
        zero, one = (kinds[1], kinds[0]) if invert else kinds
        cost, rest = _tree(zero & ~mask | one & mask, count)
        left: _Tree = ("in", 2 + 2 * i)
        right: _Tree = ("in", 2 + 2 * j)
        pair: _Tree = (head, ("not", left) if invert_i else left, ("not", right) if invert_j else right)
        return cost + 1, _replaced(rest, 2 + 2 * i, pair)
    return None


def _replaced(tree: _Tree, literal: int, by: _Tree) -> _Tree:
    if tree[0] == "in":
        return by if tree[1] == literal else tree
    if tree[0] == "const":
        return tree
    return (tree[0], *(_replaced(_sub(tree, k), literal, by) for k in range(1, len(tree))))


def _chosen(table: int, count: int, used: list[int]) -> tuple[int, _Tree]:
    """Split on the input that leaves least: a choice, or less where one branch implies the other."""
    best: tuple[int, _Tree] | None = None
    if len(used) > _TRIED:
        used = [min(used, key=lambda k: _spread(table, k, count))]
    for k in used:
        low, high = low_half(table, k, count), high_half(table, k, count)
        literal: _Tree = ("in", 2 + 2 * k)
        inverse: _Tree = ("not", literal)
        (low_cost, low_tree), (high_cost, high_tree) = _tree(low, count), _tree(high, count)
        if low & ~high == 0:
            found = (2 + low_cost + high_cost, _either(low_tree, (_AND, literal, high_tree)))
        elif high & ~low == 0:
            found = (2 + low_cost + high_cost, _either(high_tree, (_AND, inverse, low_tree)))
        else:
            choice = _either((_AND, literal, high_tree), (_AND, inverse, low_tree))
            found = (3 + low_cost + high_cost, choice)
            change_cost, change = _tree(low ^ high, count)
            if 2 + low_cost + change_cost < found[0]:
                found = (2 + low_cost + change_cost, (_XOR, low_tree, (_AND, literal, change)))
        if best is None or found[0] < best[0]:
            best = found
    assert best is not None
    return best


def _spread(table: int, k: int, count: int) -> int:
    """How much is left of a table once input k is known."""
    halves = (low_half(table, k, count), high_half(table, k, count))
    return sum(len(support(half, count)) for half in halves)


def _either(a: _Tree, b: _Tree) -> _Tree:
    return ("not", (_AND, ("not", a), ("not", b)))
