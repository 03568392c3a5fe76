"""Modules of WebAssembly by themselves: batches in parts, limits, and that what is wrong is seen."""
from __future__ import annotations

import pytest

from kera_hw.interp.exports import run_leaves
from kera_hw.support import KeraError
from kera_hw.wasm import scalars
from kera_hw.wasm.compile import compile_export
from kera_hw.wasm.engine import Instance
from tests.differential.software import differing, fir, results
from tests.loop_programs import inputs_of, same_bits


def test_a_batch_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    export = fir()
    (samples,), _ = inputs_of(export, 50, 4)
    monkeypatch.setattr("kera_hw.wasm.engine._BATCH_BYTES", 40)
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
