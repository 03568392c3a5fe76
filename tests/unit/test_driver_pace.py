"""Cycles and rates as people read them."""
from __future__ import annotations

import pytest

from kera_hw.driver.pace import cycles_text, interval_text, rate_text


@pytest.mark.parametrize(
    ("per_s", "what", "text"),
    [
        (1939.0, "items", "1.94 k items/s"), (548.0, "calls", "548 calls/s"), (84.1e6, "B", "84.1 MB/s"),
        (700.0, "B", "700 B/s"), (1.5e8, "", "150 M/s"), (50.0, "", "50/s"), (0.25, "items", "0.25 items/s"),
    ],
)  # fmt: skip
def test_a_rate_is_told_in_a_unit_that_suits_it(per_s: float, what: str, text: str) -> None:
    assert rate_text(per_s, what) == text


def test_many_cycles_are_told_in_groups_of_three_digits() -> None:
    assert cycles_text(77_361) == "77,361"
    assert cycles_text({"min": 4, "max": 2004}) == "4 to 2,004"
    assert [interval_text(n) for n in (1, 2, 77_361)] == [
        "an item every cycle", "an item every 2 cycles", "an item every 77,361 cycles",
    ]
