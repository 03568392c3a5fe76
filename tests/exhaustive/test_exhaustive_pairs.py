"""Every pair of f16 and bf16 operands through the native programs of + - * /, and the record of that."""
from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from kera_hw.loops.parser import parse_program
from kera_hw.loops.printer import print_program
from kera_hw.numerics import floatbits
from kera_hw.types import BF16, F16, FloatType
from tests.exhaustive import pairs
from tests.legal_cases import case, reference
from tests.native_machine import run_native

native = pytest.mark.skipif(shutil.which("g++") is None, reason="the check is native code: it needs g++")
KINDS = pytest.mark.parametrize("kind", [F16, BF16], ids=str)
VERBS = pytest.mark.parametrize("verb", pairs.WANTED)
_FIRST = 0x3C01


def _checksum(results: np.ndarray) -> str:  # type: ignore[type-arg]
    """As ``pairs.cpp`` has it, of one first operand."""
    places = 2 * np.arange(1 << 16, dtype=np.uint64) + np.uint64(1)
    total = int(((results.astype(np.uint64) + np.uint64(1)) * places).sum(dtype=np.uint64))
    return f"{total * 0x9E3779B97F4A7C15 % (1 << 64):016x}"


@native
@KINDS
@VERBS
def test_native_code_numpy_and_the_registry_agree(verb: str, kind: FloatType, tmp_path: Path) -> None:
    """On all second operands beside one first: so the record speaks of what the registry says."""
    outcome = pairs.run(pairs.build(verb, kind, tmp_path), _FIRST, _FIRST)
    assert outcome.different == 0 and outcome.checked == 1 << 16
    second = np.arange(1 << 16, dtype=np.uint16)
    first = np.full_like(second, _FIRST)
    (found,), _ = run_native(pairs.program(verb, kind), [first, second], [], 1 << 16)
    assert _checksum(found) == outcome.checksum
    values = [floatbits.from_bits(bits, kind) for bits in (first, second)]
    (wanted,) = reference(case(f"floating.{verb}", (kind, kind)), values)
    assert _checksum(wanted.view(np.uint16)) == outcome.checksum


@native
def test_a_wrong_rounding_is_found(tmp_path: Path) -> None:
    """Half-way numbers up, where they go to even."""
    text = print_program(pairs.program("mul", BF16))
    wrong = parse_program(text.replace("0x7fff:u32", "0x8000:u32"))
    assert wrong != pairs.program("mul", BF16)
    outcome = pairs.run(pairs.build("mul", BF16, tmp_path, wrong), 0x3F81, 0x3F83)
    assert outcome.different > 0 and outcome.examples


@pytest.mark.long
@native
@KINDS
@VERBS
def test_no_pair_is_misrounded(verb: str, kind: FloatType) -> None:
    record = pairs.check(verb, kind)
    assert record["inputs"] == pairs.PAIRS and record["differences"] == 0, record["examples"]
    assert record["checksum"] == _committed(verb, kind)["checksum"]


@KINDS
@VERBS
def test_the_committed_record_covers_every_pair_without_a_difference(verb: str, kind: FloatType) -> None:
    """Of the program as it is now: whoever changes its steps has to run the check again."""
    record = _committed(verb, kind)
    assert record["inputs"] == pairs.PAIRS and record["differences"] == 0
    assert record["program_sha256"] == pairs.digest(verb, kind), f"stale: run {record['command']}"


def _committed(verb: str, kind: FloatType) -> dict[str, object]:
    rows: list[dict[str, object]] = json.loads(pairs.RECORD.read_text())
    (row,) = [row for row in rows if (row["op"], row["type"]) == (f"floating.{verb}", kind.name)]
    return row
