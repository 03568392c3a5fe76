"""Distances between rounds, held against counting them out."""
from __future__ import annotations

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from kera_hw.loops.dependences import distances
from kera_hw.loops.program import COUNTER, Affine, Var, affine
from kera_hw.ops.intervals import Interval

I, A, B, OUTER = (Var(name, COUNTER) for name in ("i", "a", "b", "o"))
FACTORS = st.integers(-4, 4)
EXTENTS = st.integers(1, 4)


@st.composite
def indices(draw: st.DrawFn) -> Affine:
    """An index in the loop's counter, two of inner loops and one of a loop around."""
    terms = [(var, draw(FACTORS)) for var in (I, A, B, OUTER)]
    return affine(draw(st.integers(-6, 6)), terms)


def _value(index: Affine, at: dict[Var, int]) -> int:
    return index.constant + sum(factor * at[var] for var, factor in index.terms)


@settings(deadline=None)
@given(st.lists(st.tuples(indices(), indices()), min_size=1, max_size=2), st.integers(1, 5), EXTENTS, EXTENTS)
def test_no_distance_is_missed(pairs: list[tuple[Affine, Affine]], count: int, a: int, b: int) -> None:
    """Every two rounds that touch the same element lie at a distance that was said to be possible."""
    inner = {A: Interval(0, a - 1), B: Interval(0, b - 1)}
    first, second = (tuple(pair[k] for pair in pairs) for k in (0, 1))
    said = distances(first, second, I, I, count, inner)
    for i, j in product(range(count), repeat=2):
        if said.low <= j - i <= said.high:
            continue
        for one, two, three, four, outer in product(range(a), range(b), range(a), range(b), (0, 3)):
            here = {I: i, A: one, B: two, OUTER: outer}
            there = {I: j, A: three, B: four, OUTER: outer}
            assert any(_value(x, here) != _value(y, there) for x, y in pairs)


@settings(deadline=None)
@given(st.integers(1, 6), st.integers(-8, 8), st.integers(2, 9))
def test_a_shift_has_one_distance(step: int, shift: int, count: int) -> None:
    first, second = affine(shift, ((I, step),)), affine(0, ((I, step),))
    said = distances((first,), (second,), I, I, count, {})
    exact = [shift // step] if shift % step == 0 and abs(shift // step) < count else []
    assert [said.low, said.high] == exact * 2 if exact else said.empty


def test_steps_of_inner_loops_count() -> None:
    """6 * o + 3 * a + i with i as the loop in question: rounds never meet, though their ranges overlap."""
    index = affine(0, ((I, 1), (A, 3)))
    assert distances((index,), (index,), I, I, 3, {A: Interval(0, 3)}) == Interval(0, 0)
    assert distances((index,), (index,), I, I, 4, {A: Interval(0, 3)}) == Interval(-3, 3)
