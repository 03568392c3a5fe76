"""The campaign over loop programs: a short run, its record, and all of it in `make check-long`."""
from __future__ import annotations

import json
from dataclasses import replace

import pytest

from kera_hw.loops.program import LoopProgram
from kera_hw.loops.transforms import TRANSFORMS
from kera_hw.loops.transforms.reason import with_loop
from tests.fuzz import loops_campaign
from tests.fuzz.loops_campaign import RECORD, Tally, run


def no_failure(tally: Tally, cases: int) -> None:
    assert tally.failures == [] and tally.failed == 0 and tally.cases == cases
    assert tally.without_loops < 0.05 * cases


@pytest.mark.parametrize("chunk", range(3))
def test_short_campaign(chunk: int) -> None:
    tally = run(80, 50_000 + 80 * chunk)
    no_failure(tally, 80)
    assert {"fuse", "inline", "contract"} <= set(tally.planned_steps)
    assert len(tally.random_steps) > 10 and len(tally.refused) > 10


def test_the_recorded_campaign() -> None:
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    assert record["cases"] >= 20_000 and record["failed"] == 0 and record["failures"] == []
    assert record["not_reached"] == [] and record["without_loops"] < 0.05 * record["cases"]
    assert f"--cases {record['cases']}" in record["command"] and len(bytes.fromhex(record["code"])) == 8
    taken = record["transforms"]
    assert all(taken["refused"][name] for name in TRANSFORMS)
    assert [name for name in TRANSFORMS if not taken["random"][name] + taken["planned"][name]] == []


def test_a_wrong_transform_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that leaves out the last round of a loop, one that lies about a loop, and one that breaks down."""
    def shorter(program: LoopProgram, loop: str) -> LoopProgram:
        return with_loop(program, loop, lambda whole: [replace(whole, count=max(whole.count - 1, 1))])

    def at_once(program: LoopProgram, loop: str) -> LoopProgram:
        return with_loop(program, loop, lambda whole: [replace(whole, parallel=True)])

    def broken(program: LoopProgram, loop: str) -> LoopProgram:
        raise ZeroDivisionError(loop)

    for wrong in (shorter, at_once, broken):
        monkeypatch.setitem(TRANSFORMS, "unroll", wrong)
        assert any(run(20, 50_000 + 20 * part).failed for part in range(20)), wrong.__name__


@pytest.mark.long
def test_whole_campaign() -> None:
    cases = 20_000
    tally = run(cases, 0)
    no_failure(tally, cases)
    assert set(tally.random_steps) | set(tally.planned_steps) == set(TRANSFORMS)


def test_the_record_is_of_some_code() -> None:
    assert len(bytes.fromhex(loops_campaign.code_digest())) == 8
