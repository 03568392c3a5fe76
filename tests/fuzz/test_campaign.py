"""The fuzz campaign: a short run always, the whole of it in `make check-long`."""
from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.campaign import run


def no_failure(cases: int, seed: int, keep: Path) -> None:
    tallies = run(cases, seed, keep)
    assert sum(tally.cases for tally in tallies.values()) == cases
    assert [line for tally in tallies.values() for line in tally.failures] == []
    # The campaign must reach both sides of every reader, or it would test nothing.
    assert tallies["mutated programs"].accepted and tallies["mutated programs"].refused


def test_short_campaign(tmp_path: Path) -> None:
    no_failure(600, 2, tmp_path)


@pytest.mark.long
def test_whole_campaign(tmp_path: Path) -> None:
    no_failure(100_000, 1, tmp_path)
