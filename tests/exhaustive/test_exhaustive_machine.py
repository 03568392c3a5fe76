"""Elementary functions in machine code: all inputs of f16 and bf16, and the record of all of f32."""
from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from kera_hw.cpu_gpu.engine import best_level
from kera_hw.driver.session import load_program
from kera_hw.driver.software import to_compile
from kera_hw.graph import Export
from kera_hw.numerics import elementary
from kera_hw.numerics.elementary import FUNCTIONS
from kera_hw.numerics.floatbits import to_bits
from kera_hw.types import BF16, F16, F32, FloatType, numpy_dtype
from tests.emulated import PROCESSORS, Processor
from tests.exhaustive import machine, run

some_level = pytest.mark.skipif(best_level() is None, reason="the processor lacks what the code uses")


def check_every_input(kind: FloatType, tmp_path: Path, make: Callable[[Export], machine.Runs]) -> None:
    """Of 16 bits, to all functions, in what ``make`` makes of an export."""
    path = tmp_path / "f.kera"
    lines = [
        f"pub fn k_{name}(x: [{kind}; 4096]) -> [{kind}; 4096] {{ {name}(x) }}" for name in FUNCTIONS
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    loaded = load_program(path)
    assert loaded.graph is not None
    bits = np.arange(1 << 16, dtype=np.uint16)
    values = bits.view(numpy_dtype(kind))
    for export in loaded.graph.exports:
        instance = make(to_compile(loaded.graph, export))
        (found,) = instance.run([bits.reshape(16, 4096)], 16)
        wanted = to_bits(elementary.evaluate(export.name.removeprefix("k_"), values, kind))
        assert (found.reshape(-1) == wanted).all(), export.name


@pytest.mark.parametrize("processor", PROCESSORS, ids=lambda processor: processor.name)
@pytest.mark.parametrize("kind", [F16, BF16], ids=str)
def test_every_input_of_16_bits(processor: Processor, kind: FloatType, tmp_path: Path) -> None:
    processor.check()
    check_every_input(kind, tmp_path, lambda export: processor.instance(processor.compiled(export)))


@some_level
@pytest.mark.parametrize("name", ["exp", "exp2", "log"])
def test_the_sum_of_a_part_is_numpys(name: str) -> None:
    """Of 2^16 inputs around one that is patched."""
    first = 0x3B42_0000
    level = best_level()
    assert level is not None
    bits = np.arange(first, first + (1 << 16), dtype=np.uint32)
    results = to_bits(elementary.evaluate(name, bits.view(np.float32), F32))
    assert machine.total(machine.compiled(name, level), first, 1 << 16) == machine.terms(bits, results)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_record_has_every_input_and_the_sum_of_the_record_against_mpfr(name: str) -> None:
    record = json.loads(machine.RECORD.read_text())[name]
    assert record["inputs"] == 1 << 32 and record["equal"]
    assert record["program_sha256"] == run.program_digest(name)
    assert record["fused_sha256"] == machine.digest(name, fused=True)
    assert int(record["checksum"], 16) == machine.expected(name)


@pytest.mark.long
@some_level
@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_f32_input_differs(name: str) -> None:
    level = best_level()
    assert level is not None
    assert machine.check(name, level)["equal"]
