"""Polynomials in two chains: what is rewritten, what is left, and that it computes the same polynomial."""
from __future__ import annotations

import numpy as np
import pytest

from kera_hw.numerics import elementary, rounding
from kera_hw.numerics.elementary import FUNCTIONS
from kera_hw.numerics.elementary.balanced import balanced
from kera_hw.numerics.elementary.program import Real, Trace, polynomial, trace
from kera_hw.numerics.elementary.run import Runner
from kera_hw.numerics.floatbits import to_bits
from kera_hw.types import BF16, F16, F32, FloatType, numpy_dtype


def longest(program: Trace) -> int:
    """Sums and products of which each waits for the one before."""
    waits: list[int] = []
    for step in program.steps:
        before = max((waits[a] for a in step.arguments), default=0)
        waits.append(before + (step.verb in ("add", "mul")))
    return waits[program.result]


@pytest.mark.parametrize("terms", [2, 3, 4, 5, 8, 13])
def test_a_polynomial_waits_half_as_long(terms: int) -> None:
    whole = trace(lambda x: polynomial(tuple(range(1, terms + 1)), x))
    halves = balanced(whole)
    assert longest(whole) == 2 * (terms - 1)
    assert longest(halves) == (longest(whole) if terms < 4 else terms + 1)
    x = np.array([0.0, 1.0, -2.0, 3.0, 1024.0])  # small integers, so that sums are exact in any order
    assert Runner(halves)(x).tolist() == Runner(whole)(x).tolist()


def test_what_is_read_twice_is_kept() -> None:
    """A partial sum that something else reads ends a chain; another variable does too."""

    def read(x: Real) -> Real:
        low = polynomial((1.0, 2.0, 3.0, 4.0, 5.0), x)
        return low * x + 7.0 + low

    def mixed(x: Real) -> Real:
        return polynomial((1.0, 2.0), polynomial((3.0, 4.0, 5.0, 6.0), x))

    x = np.array([0.0, 1.0, -2.0, 3.0, 16.0])
    for whole in map(trace, (read, mixed)):
        assert Runner(balanced(whole))(x).tolist() == Runner(whole)(x).tolist()
        assert longest(balanced(whole)) < longest(whole)


@pytest.mark.parametrize("kind", [F16, BF16, F32], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_are_those_of_the_reference(name: str, kind: FloatType) -> None:
    words = np.random.default_rng(7).integers(0, 1 << kind.width_bits, 4096, np.uint32, endpoint=False)
    values = words.astype(f"u{kind.width_bits // 8}").view(numpy_dtype(kind))
    with np.errstate(all="ignore"):
        wide = rounding.widen(values, kind)
        found = rounding.narrow(Runner(elementary.machine_program(name, fused=False))(wide), kind)
    numbers = wide == wide  # what comes of a NaN has no meaning
    wanted = elementary.evaluate(name, values, kind)
    assert (to_bits(found) == to_bits(wanted))[numbers].all()
