"""Every f32 input of every elementary function against MPFR, and the committed records of that."""
from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from kera_hw.numerics.elementary import FUNCTIONS, narrow
from kera_hw.numerics.elementary.program import trace
from tests.exhaustive import run

native = pytest.mark.skipif(shutil.which("g++") is None, reason="the check is native code: it needs g++")


@native
def test_a_misrounded_input_is_found(tmp_path: Path) -> None:
    """exp2 without its patches is wrong at one known input of this range, and right at the others."""
    bare = trace(narrow.exp2)
    outcome = run.run(run.build("exp2", tmp_path, bare), 0x3B42_0000, 0x3B42_FFFF)
    assert outcome.checked == 1 << 16
    assert run.settle("exp2", outcome) == ["3b429d37: 3f804384, not 3f804385"]


@native
def test_a_result_far_off_is_found(tmp_path: Path) -> None:
    wrong = trace(lambda x: (x > 5.0).real(narrow.tanh(x) * (1 - 2.0**-24), narrow.tanh(x)))
    outcome = run.run(run.build("tanh", tmp_path, wrong), 0x409F_0000, 0x40A0_FFFF)
    assert len(run.settle("tanh", outcome)) > 30_000


@native
def test_the_native_program_equals_numpy(tmp_path: Path) -> None:
    assert run.same_as_numpy("gelu", run.build("gelu", tmp_path), 1 << 18) == 0


@pytest.mark.long
@native
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
    """Of the program as it is now: whoever changes a step or a constant has to run the check again."""
    record = json.loads((run.RESULTS / f"{name}.json").read_text())
    assert record["program_sha256"] == run.program_digest(name)
    assert record["inputs"] == 1 << 32
    assert record["differences"] == 0 and record["numpy_blocks_unlike_native"] == 0
