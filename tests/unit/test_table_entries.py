"""Tables looked up by the low bits of a number, of which machines with permutations take no others."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kera_hw.cpu_gpu.engine import Instance, compile_export, missing_features
from kera_hw.cpu_gpu.x86_64.machine import AVX512, LEVELS, X86Level
from kera_hw.driver.session import load_program
from kera_hw.graph import Export
from kera_hw.interp.exports import run_leaves

COUNT = 77


def _export(tmp_path: Path, body: str, entries: int, kind: str) -> Export:
    path = tmp_path / "f.kera"
    rows = ", ".join(f"{(k * k * 0x9E37_79B9 + 5) % (1 << 32)}{kind}" for k in range(entries))
    path.write_text(
        f"const T: [{kind}; {entries}] = [{rows}];\n"
        f"pub fn f(x: [{kind}; {COUNT}]) -> [{kind}; {COUNT}] {{ map(x, |v| {body}) }}\n",
        encoding="utf-8",
    )
    loaded = load_program(path)
    assert loaded.graph is not None, loaded.diagnostics
    return loaded.graph.exports[0]


@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.name)
@pytest.mark.parametrize("kind", ["u32", "u64"])
@pytest.mark.parametrize("entries", [4, 8, 16, 32])
def test_entries_are_those_of_the_low_bits(level: X86Level, kind: str, entries: int, tmp_path: Path) -> None:
    if missing_features(level):
        pytest.skip("the processor lacks what the code uses")
    body = f"T[v & {entries - 1}] ^ T[(v >> 3) & {entries // 2 - 1}] ^ (v & {entries - 1})"
    export = _export(tmp_path, body, entries, kind)
    x = np.random.default_rng(entries).integers(0, 1 << 32, (2, COUNT), np.uint32)
    x = x.astype({"u32": np.uint32, "u64": np.uint64}[kind])
    (wanted,) = run_leaves(export, [x], 2)
    assert (Instance(compile_export(export, level=level)).run([x], 2)[0] == wanted).all()


def test_powers_are_looked_up_without_cutting_the_number_and_limits_are_short(tmp_path: Path) -> None:
    """In exp on f32: what only limits the argument works on as many lanes of 32 bits."""
    path = tmp_path / "f.kera"
    path.write_text("pub fn f(x: [f32; 64]) -> [f32; 64] { exp(x) }", encoding="utf-8")
    loaded = load_program(path)
    assert loaded.graph is not None
    made = compile_export(loaded.graph.exports[0], level=AVX512)
    names = [inst.op.removesuffix(".z") for _, inst in made.machine.instructions]
    assert "vpermi2q" in names and "vminps" in names
    assert not {"vpand", "vminpd", "vmaxpd"} & set(names)
