"""Sums of two f64 against exact rationals."""
from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from kera_hw.numerics.elementary import doubled
from kera_hw.numerics.elementary.doubled import Pair
from kera_hw.numerics.elementary.program import Real, trace
from kera_hw.numerics.elementary.run import Runner

# A program has one argument; these constants are the other operands.
OPERANDS = (3.0, -0.1, 1 / 3, 1e10 + 1e-5, -7.000000000000001, 2.0**-40 * 1.3)

Operation = Callable[[Pair, Pair], Pair]


def both_parts(operation: Operation, other: tuple[float, float], inputs: np.ndarray) -> list[Fraction]:
    """high + low of the operation on (x, x 2^-60) and the other pair, for every x."""

    def part(index: int) -> Callable[[Real], Real]:
        def algorithm(x: Real) -> Real:
            left = Pair(x, x * 2.0**-60)
            return operation(left, Pair(x.like(other[0]), x.like(other[1])))[index]

        return algorithm

    parts = [Runner(trace(part(index)))(inputs).tolist() for index in (0, 1)]
    return [Fraction(high) + Fraction(low) for high, low in zip(*parts)]


def inputs() -> np.ndarray:
    random = np.random.default_rng(3)
    values = random.normal(0, 1, 300) * np.exp2(random.integers(-30, 30, 300))
    return np.concatenate([values, np.array([1.0, -1.0, 0.1, 2.0**53 - 1, 134217729.0])])


def high_sum(x: Pair, y: Pair) -> Pair:
    return doubled.exact_sum(x.high, y.high)


def high_product(x: Pair, y: Pair) -> Pair:
    return doubled.exact_product(x.high, y.high)


@pytest.mark.parametrize("other", OPERANDS)
def test_sum_is_exact(other: float) -> None:
    for x, got in zip(inputs().tolist(), both_parts(high_sum, (other, 0.0), inputs())):
        assert got == Fraction(x) + Fraction(other)


@pytest.mark.parametrize("other", OPERANDS)
def test_product_is_exact_to_102_bits(other: float) -> None:
    for x, got in zip(inputs().tolist(), both_parts(high_product, (other, 0.0), inputs())):
        exact = Fraction(x) * Fraction(other)
        assert abs(got - exact) <= abs(exact) / 2**102


@pytest.mark.parametrize("other", OPERANDS)
@pytest.mark.parametrize("name", ["multiply", "divide", "add"])
def test_operations_on_pairs_are_good_to_100_bits(name: str, other: float) -> None:
    values = np.abs(inputs()) + abs(other) if name == "add" else inputs()
    other = abs(other) if name == "add" else other
    low = other * 2.0**-55
    results = both_parts(getattr(doubled, name), (other, low), values)
    for x, got in zip(values.tolist(), results):
        left, right = Fraction(x) + Fraction(x * 2.0**-60), Fraction(other) + Fraction(low)
        exact = {"multiply": left * right, "divide": left / right, "add": left + right}[name]
        assert abs(got - exact) <= abs(exact) / 2**100
