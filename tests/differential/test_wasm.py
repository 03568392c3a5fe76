"""Modules of WebAssembly by themselves: batches in parts, limits, and that what is wrong is seen."""
from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from kera_hw.driver.session import load_program
from kera_hw.interp.exports import run_leaves
from kera_hw.support import KeraError
from kera_hw.wasm import scalars
from kera_hw.wasm.compile import compile_export
from kera_hw.wasm.engine import Instance
from tests.differential.software import differing, fir, results
from tests.loop_programs import inputs_of, same_bits
from tests.node import ABSENT, node
from tests.wasm_engines import NO_WABT, WABT, Modules, everywhere, faults_of


def test_a_batch_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    export = fir()
    (samples,), _ = inputs_of(export, 50, 4)
    monkeypatch.setattr("kera_hw.schedule.software.batches.BATCH_BYTES", 40)
    (found,) = results(compile_export(export), Instance, [samples], 50)
    assert same_bits(run_leaves(export, [samples], 50)[0], found)


def test_a_module_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kera_hw.wasm.program.MOST_CODE_BYTES", 100)
    with pytest.raises(KeraError) as caught:
        compile_export(fir())
    assert [item.code for item in caught.value.diagnostics] == ["K0705"]


def test_a_wrong_module_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """An addition made a subtraction."""
    rules = {**scalars.RULES, "integer.add": scalars.RULES["integer.sub"]}
    monkeypatch.setattr(scalars, "RULES", rules)
    assert differing(fir(), compile_export(fir()), Instance, 8, 0) == [0]


_CHOICES = """
pub fn chosen(a: [{kind}; 24], b: [{kind}; 24]) -> ([{kind}; 24], [{kind}; 24], [{kind}; 24], [{kind}; 24]) {{
    (select(a < b, a, b), select(a < b, b, a), select(a > b, a, b), select(a > b, b, a))
}}
pub fn masked(a: [{kind}; 24], b: [{kind}; 24]) -> ([{kind}; 24], [{kind}; 24], [u64; 24], [u64; 24]) {{
    let wide = [18446744073709551615u64; 24];
    let zero = [0u64; 24];
    (select(a < b, a, [0.0{kind}; 24]), select(a == b, a, [-0.0{kind}; 24]), select(a != b, wide, zero),
     select(a <= b, zero, wide))
}}
"""


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_selections_by_comparisons(kind: str, tmp_path: Path) -> None:
    """Of the operands themselves, in one instruction, and against zero, by the mask."""
    path = tmp_path / "f.kera"
    path.write_text(_CHOICES.format(kind=kind), encoding="utf-8")
    loaded = load_program(path)
    assert loaded.graph is not None, loaded.diagnostics
    some = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 3e-40], kind.replace("f", "float"))
    pairs = np.array([[x, y] for x in some for y in some]).reshape(-1, 8, 2)
    items = np.concatenate([pairs, pairs[::-1], pairs[:, ::-1]], axis=1)
    a, b = (np.ascontiguousarray(items[:, :, k]) for k in range(2))
    for export in loaded.graph.exports:
        module = compile_export(export)
        wanted = run_leaves(export, [a, b], len(a))
        found = results(module, Instance, [a, b], len(a))
        assert all(same_bits(*pair) for pair in zip(wanted, found, strict=True)), export.name
    least = {"f32": b"\xfd\xea\x01", "f64": b"\xfd\xf6\x01"}[kind]
    assert least in compile_export(loaded.graph.exports[0]).binary


def test_node_is_asked_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the tests of software targets run a module; a difference there is seen."""
    if node() is None:
        pytest.skip(ABSENT)
    made = Modules().compile(fir())
    rules = {**scalars.RULES, "integer.add": scalars.RULES["integer.sub"]}
    monkeypatch.setattr(scalars, "RULES", rules)
    wrong = Modules().compile(fir()).module
    assert differing(fir(), made, everywhere, 8, 0) == []
    both = everywhere(made)
    both.engines[0] = Instance(wrong)
    (samples,), _ = inputs_of(fir(), 8, 0)
    with pytest.raises(AssertionError, match="engines differ"):
        both.run([samples], 8)


def test_wabt_is_asked_too() -> None:
    if shutil.which(WABT) is None:
        pytest.skip(NO_WABT)
    binary = bytearray(compile_export(fir()).binary)
    assert faults_of([bytes(binary)] * 2) == ""
    binary[binary.rindex(b"\x0b\x0b")] = 0x1A  # a value dropped where a block ends
    assert "error" in faults_of([bytes(binary)])
