"""Proofs of float units: those on record count as proofs, and the quick ones are made again."""
from __future__ import annotations

import json

import pytest

from tests.conformance.formal import LEVELS, RESULTS, UNITS, prove_unit

ROWS = json.loads(RESULTS.read_text("utf-8"))["rows"]


def test_what_is_recorded_as_proved_refuted_its_planted_fault() -> None:
    proved = [row for row in ROWS if row["result"] == "proved"]
    assert {(row["unit"], row["level"]) for row in proved} >= {
        (f"{op}-{kind}", level) for op in ("add", "mul") for kind in ("f16", "bf16") for level in LEVELS
    }
    assert all(row["planted_fault"]["refuted"] and row["planted_fault"]["inputs"] for row in proved)


def test_nothing_is_recorded_as_refuted() -> None:
    assert [row["unit"] for row in ROWS if row["result"] not in ("proved", "unfinished")] == []
    assert {row["unit"] for row in ROWS} <= set(UNITS)


@pytest.mark.long
@pytest.mark.parametrize("unit", ("add-f16", "add-bf16", "mul-f16", "mul-bf16"))
def test_units_are_proved_again(unit: str) -> None:
    rows = prove_unit(unit, LEVELS, 1800)
    assert [row["result"] for row in rows] == ["proved", "proved"]
