"""Unevaluated sums of two f64, for results below one unit in the last place.

The exact sums are Knuth's and Dekker's (T. J. Dekker, "A floating-point technique for extending the available
precision", 1971), in additions and products alone.
"""
from __future__ import annotations

from typing import NamedTuple

from kera_hw.numerics.elementary.program import Flag, Real

# Keeps the sign, the exponent and the upper 25 of 52 fraction bits: the head of a number, 26 bits wide.
HEAD_MASK = 0xFFFF_FFFF_F800_0000


class Pair(NamedTuple):
    """high + low, with low at most a few units in the last place of high."""

    high: Real
    low: Real

    def rounded(self) -> Real:
        return self.high + self.low


def head(x: Real) -> Real:
    """x cut to 26 bits; x - head(x) is exact and fits in 27."""
    return (x.bits() & HEAD_MASK).real()


def fast_sum(a: Real, b: Real) -> Pair:
    """a + b exactly, for |a| >= |b| or a = 0."""
    total = a + b
    return Pair(total, b - (total - a))


def exact_sum(a: Real, b: Real) -> Pair:
    """a + b exactly."""
    total = a + b
    shadow = total - a
    return Pair(total, (a - (total - shadow)) + (b - shadow))


def exact_product(a: Real, b: Real) -> Pair:
    """a * b all but exactly, where neither overflow nor underflow is near: four products of heads and rests.

    The rests have 27 bits: the product of both may lose its last one, less than 2^-102 of a * b.
    """
    total = a * b
    a_head, b_head = head(a), head(b)
    a_rest, b_rest = a - a_head, b - b_head
    low = ((a_head * b_head - total) + a_head * b_rest + a_rest * b_head) + a_rest * b_rest
    return Pair(total, low)


def add(x: Pair, y: Pair) -> Pair:
    """x + y, for |x| >= |y|; the relative error is below 2^-100 where the signs agree."""
    total = exact_sum(x.high, y.high)
    return fast_sum(total.high, total.low + (x.low + y.low))


def multiply(x: Pair, y: Pair) -> Pair:
    """x * y; the relative error is below 2^-100."""
    product = exact_product(x.high, y.high)
    return fast_sum(product.high, product.low + (x.high * y.low + x.low * y.high))


def divide(x: Pair, y: Pair) -> Pair:
    """x / y; the relative error is below 2^-100."""
    quotient = x.high / y.high
    product = exact_product(quotient, y.high)
    rest = ((x.high - product.high) - product.low) + (x.low - quotient * y.low)
    return fast_sum(quotient, rest / y.high)


def negate(x: Pair) -> Pair:
    return Pair(-x.high, -x.low)


def choose(flag: Flag, yes: Pair, no: Pair) -> Pair:
    return Pair(flag.real(yes.high, no.high), flag.real(yes.low, no.low))
