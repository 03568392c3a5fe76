"""Every f32 input of every elementary function against MPFR, and the committed records of that."""
from __future__ import annotations

import json
import shutil

import pytest

from kera_hw.numerics.elementary import FUNCTIONS
from tests.exhaustive import run


@pytest.mark.long
@pytest.mark.skipif(shutil.which("g++") is None, reason="the check is native code: it needs g++")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_f32_input_is_misrounded(name: str) -> None:
    record = run.check(name)
    assert record["inputs"] == run.INPUTS
    assert record["differences"] == 0, record["misrounded"]
    assert record["numpy_blocks_unlike_native"] == 0
    committed = json.loads((run.RESULTS / f"{name}.json").read_text())
    assert record["checksum"] == committed["checksum"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_committed_record_covers_every_input_without_a_difference(name: str) -> None:
    record = json.loads((run.RESULTS / f"{name}.json").read_text())
    assert record["inputs"] == 1 << 32
    assert record["differences"] == 0 and record["numpy_blocks_unlike_native"] == 0
