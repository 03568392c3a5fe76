"""The campaign over instruction sets: seconds of it, what it would see, and an hour in `make check-long`."""
from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from kera_hw.cpu_gpu.engine import best_level
from kera_hw.cpu_gpu.x86_64 import scalars
from tests.fuzz import isa_campaign
from tests.fuzz.isa_campaign import KINDS, available, main, run

pytestmark = pytest.mark.skipif(best_level() is None, reason="the processor lacks what the code uses")


def test_seconds_of_it(tmp_path: Path) -> None:
    out = tmp_path / "isas.json"
    assert main(["--seconds", "0.01", "--seed", "8", "--part", "2", "-o", str(out)]) == 0
    found = json.loads(out.read_text(encoding="utf-8"))
    assert found["failures"] == [] and found["cases"] == dict.fromkeys(KINDS, 2)
    assert {processor.name for processor in available()} <= set(found["compared"])
    assert found["compared"]["threads"] == 6 and found["refused"] == {} and found["seeds"] == [8, 10]


def test_wrong_code_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code that computes something else, that breaks down while it is made, and that ends the process."""
    rules = {**scalars.RULES, "integer.add": scalars.RULES["integer.sub"]}
    with monkeypatch.context() as patch:
        patch.setattr(scalars, "RULES", rules)
        assert any("other bits" in found for seed in range(20) for found in run([seed], ["loop"]).failures)
    with monkeypatch.context() as patch:
        patch.setattr(isa_campaign, "compile_threaded", lambda *_, **__: 1 // 0)
        assert "ZeroDivisionError" in run([1], ["loop"]).failures[0]
    monkeypatch.setattr(isa_campaign, "compile_threaded", lambda *_, **__: os.abort())
    assert run([1], ["loop"]).failures == ["('loop', 1): the process ended with -6"]


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_an_hour_of_it(tmp_path: Path) -> None:
    assert main(["--seconds", "3600", "--seed", "1000000", "-o", str(tmp_path / "isas.json")]) == 0
