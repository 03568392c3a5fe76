"""Elementary functions in WebAssembly: all inputs of f16 and bf16, and the record of many of f32."""
from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from kera_hw.cpu_gpu.engine import best_level
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
    """The first 2^16 inputs of those that the record is of."""
    bits = np.arange(1 << 16, dtype=np.uint32) * np.uint32(wasm.FACTOR)
    results = to_bits(elementary.evaluate("exp", bits.view(np.float32), F32))
    found = machine.total(Instance(wasm.module_of("exp")), 0, 1 << 16)
    assert found == machine.terms(bits, results)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_record_is_of_the_program_that_there_is(name: str) -> None:
    record = json.loads(wasm.RECORD.read_text())[name]
    assert record["inputs"] == 1 << 26 and record["equal"]
    assert record["program_sha256"] == run.program_digest(name)


@pytest.mark.long
@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_f32_input_differs(name: str) -> None:
    level = best_level()
    if level is None:
        pytest.skip("the processor has no machine code to compare with")
    assert wasm.check(name, level)["equal"]
