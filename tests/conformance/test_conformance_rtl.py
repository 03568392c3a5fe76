"""Every argument of the f32 elementary functions' circuits: hours together, part of ``make check-long``."""
from __future__ import annotations

import pytest

from kera_hw.rtl.lower.floats.elementary import FUNCTIONS_F32, exponential_data
from tests.conformance.exhaustive_rtl import run, settle, spans


@pytest.mark.long
@pytest.mark.parametrize("name", FUNCTIONS_F32)
def test_every_argument(name: str) -> None:
    *lines, total = run(name, spans(name, False))
    assert not [line for line in lines if line.startswith("wrong")]
    assert settle(name, lines) == 0
    assert total.startswith("count 4294967296 ")


def test_a_planted_fault_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """One unit in one row of a table is seen, so the check can fail."""
    rows = list(exponential_data.FIRST_E)
    rows[100] += 1 << 33
    monkeypatch.setattr(exponential_data, "FIRST_E", tuple(rows))
    lines = run("exp", [(0x3E48_0000, 0x3E48_7FFF, 1)])
    assert [line for line in lines if line.startswith("wrong")]


@pytest.mark.parametrize("name", FUNCTIONS_F32)
def test_spans_cover_every_argument(name: str) -> None:
    for quick in (False, True):
        covered = 0
        for first, last, _ in spans(name, quick):
            assert first <= covered
            covered = max(covered, last + 1)
        assert covered == 1 << 32
