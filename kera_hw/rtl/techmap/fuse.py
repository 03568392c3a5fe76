"""What a carry cell can compute beside its addition.

An ECP5 carry cell adds ``a`` and a function of up to three further operands. Its carry generator sees only
the table's four rows where the last two operands are 0, so the function must be 0 there; with at most two
operands the spare input is tied to 1 and any function fits; with ``a`` constant 0 the carry needs no
generator and any function of three operands fits.
"""
from __future__ import annotations

from kera_hw.rtl.techmap import truth


def legal_order(table: int, count: int, a_is_zero: bool) -> tuple[int, ...] | None:
    """The order of operands that makes the function fit a carry cell (the free one first); None: it can't."""
    if count <= 2 or (a_is_zero and count <= 3):
        return tuple(range(count))
    if count > 3:
        return None
    for free in range(3):
        others = [k for k in range(3) if k != free]
        if all(not table >> (value << free) & 1 for value in (0, 1)):
            return (free, *others)
    return None


def reorder(table: int, order: tuple[int, ...]) -> int:
    """The table with operand ``order[k]`` moved to place k."""
    inner = tuple((0b10, (order.index(k),)) for k in range(len(order)))
    return truth.compose(table, inner, len(order))
