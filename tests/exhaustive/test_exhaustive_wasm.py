"""Elementary functions in WebAssembly: all inputs of f16 and bf16, and the record of all of f32."""
from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from kera_hw.numerics import elementary
from kera_hw.numerics.elementary import FUNCTIONS
from kera_hw.numerics.floatbits import to_bits
from kera_hw.types import BF16, F16, F32, FloatType
from kera_hw.wasm.compile import compile_export
from kera_hw.wasm.engine import Instance
from tests.exhaustive import machine, run, wasm
from tests.exhaustive.test_exhaustive_machine import check_every_input


@pytest.mark.parametrize("kind", [F16, BF16], ids=str)
def test_every_input_of_16_bits(kind: FloatType, tmp_path: Path) -> None:
    check_every_input(kind, tmp_path, lambda export: Instance(compile_export(export)))


def test_the_sum_of_a_part_is_numpys() -> None:
    """Of 2^16 inputs around one that is patched."""
    first = 0x3B42_0000
    bits = np.arange(first, first + (1 << 16), dtype=np.uint32)
    results = to_bits(elementary.evaluate("exp2", bits.view(np.float32), F32))
    found = machine.total(Instance(wasm.module_of("exp2")), first, 1 << 16)
    assert found == machine.terms(bits, results)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_record_has_every_input_and_the_sum_of_the_record_against_mpfr(name: str) -> None:
    record = json.loads(wasm.RECORD.read_text())[name]
    assert record["inputs"] == 1 << 32 and record["equal"]
    assert record["program_sha256"] == run.program_digest(name)
    assert record["balanced_sha256"] == machine.digest(name, fused=False)
    assert int(record["checksum"], 16) == machine.expected(name)


@pytest.mark.long
@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_f32_input_differs(name: str) -> None:
    assert wasm.check(name)["equal"]
