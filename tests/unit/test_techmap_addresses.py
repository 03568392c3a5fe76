"""Courses of addresses: gaps between equal ones as a search of all pairs finds them."""
from __future__ import annotations

import random

import numpy as np

from kera_hw.rtl.techmap.addresses import Course, _gap, _unrolled  # pyright: ignore[reportPrivateUsage]


def test_the_least_gap_is_that_of_some_pair() -> None:
    rng = random.Random(5)
    for _ in range(300):
        count, kinds = rng.randint(1, 20), rng.randint(1, 12)
        first, second = ([rng.randrange(kinds) for _ in range(count)] for _ in range(2))
        pairs = [m - k for k in range(count) for m in range(k + 1, count) if second[m] == first[k]]
        found = _gap(np.array(first), np.array(second))
        assert found == min(pairs) if pairs else found > 1 << 20


def test_a_course_goes_round_behind_its_beginning() -> None:
    course = Course((7, 1, 2, 3), 1)
    assert _unrolled(course, 9).tolist() == [7, 1, 2, 3, 1, 2, 3, 1, 2]
