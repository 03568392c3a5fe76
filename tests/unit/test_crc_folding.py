"""A CRC by carry-less products, as the bench has it: sums of zlib, in lanes that stay in registers."""
from __future__ import annotations

import re
import zlib
from pathlib import Path

import numpy as np
import pytest

import kera_hw
from kera_hw.cpu_gpu.engine import compile_export, missing_features
from kera_hw.cpu_gpu.x86_64.machine import LEVELS, X86Level
from kera_hw.driver.software import to_compile

SOURCE = Path(__file__).parents[2] / "bench/data/cpu.kera"
ROWS = 9


def _program(tmp_path: Path) -> kera_hw.Program:
    """The kernel of the bench for few rows."""
    text = SOURCE.read_text(encoding="utf-8")
    start = text.index("/// Sums of words times powers of x")
    found = re.search(r"pub fn crc32\(.*?\n\}\n", text[start:], re.DOTALL)
    assert found is not None
    path = tmp_path / "crc.kera"
    path.write_text(text[start : start + found.end()].replace("16384", str(ROWS)), encoding="utf-8")
    return kera_hw.load(path)


@pytest.mark.parametrize("target", ["interp", *(level.name for level in LEVELS)])
def test_it_is_the_crc_of_zlib(target: str, tmp_path: Path) -> None:
    level = next((level for level in LEVELS if level.name == target), None)
    if level is not None and missing_features(level):
        pytest.skip("the processor lacks what the code uses")
    words = np.random.default_rng(5).integers(0, 1 << 64, (ROWS, 32), np.uint64)
    assert int(_program(tmp_path).function("crc32", target=target)(x=words)) == zlib.crc32(words.tobytes())


@pytest.mark.parametrize("level, length", [(LEVELS[1], 1), (LEVELS[2], 4)])
def test_sums_go_side_by_side(level: X86Level, length: int, tmp_path: Path) -> None:
    """The loop after them, which is not parallel, is not joined to theirs."""
    program = _program(tmp_path)
    export = next(item for item in program.graph.exports if item.name == "crc32")
    made = compile_export(to_compile(program.graph, export), level=level)
    products = [inst for _, inst in made.machine.instructions if inst.op.startswith("vpclmulqdq")]
    assert sum(inst.size_bits == 128 * length for inst in products) >= 16
