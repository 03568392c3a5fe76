"""Piecewise polynomials in fixed point: coefficients from tables, Horner's rule on a narrow offset.

All coefficients of a table count the same unit, 2^-point. The offset d inside a segment is a fraction of
its width, ``offset_bits`` below the point, at most as wide as a multiplier; so every step keeps the unit and
coefficients of higher powers are narrower words.
"""
from __future__ import annotations

from collections.abc import Sequence

from kera_hw.graph.node import Ref
from kera_hw.rtl.lower.floats.wires import Wires


def evaluate(
    wires: Wires, table: Sequence[Sequence[int]], segment: Ref, offset: Ref, offset_bits: int,
) -> Ref:
    """The polynomial of ``segment`` at ``offset``: ``table`` has one column per power, lowest first.

    Each step floors to the unit.
    """
    *columns, last = table
    value = wires.lookup(segment, last)
    for column in reversed(columns):
        value = wires.sum_of(wires.lookup(segment, column), wires.times_lowered(value, offset, offset_bits))
    return value
