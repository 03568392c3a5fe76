"""Residues: what a counter's step says. ``(m, r)`` is r modulo m, ``(0, r)`` r itself, ``(1, 0)`` anything.

A counter that goes up by 3 from 0 and is reset at 9 is never 10: its range alone would not tell.
"""
from __future__ import annotations

from math import gcd

from kera_hw.ops.intervals import Interval

Residue = tuple[int, int]

ANY: Residue = (1, 0)


def reduced(modulus: int, rest: int) -> Residue:
    """With the least rest that is not negative."""
    return (modulus, rest % modulus if modulus else rest)


def hull_residue(a: Residue, b: Residue) -> Residue:
    """What the values of either have in common."""
    return reduced(gcd(a[0], b[0], a[1] - b[1]), a[1])


def within_residue(interval: Interval, residue: Residue) -> Interval:
    """The ends drawn in to the nearest values of the residue; an empty interval stays one."""
    modulus, rest = residue
    if modulus == 0:
        return Interval(max(interval.low, rest), min(interval.high, rest))
    if modulus == 1:
        return interval
    return Interval(
        interval.low + (rest - interval.low) % modulus, interval.high - (interval.high - rest) % modulus
    )
