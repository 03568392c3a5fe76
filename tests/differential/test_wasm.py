"""Modules of WebAssembly give the reference's bits: on random graphs for every operation, on programs."""
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from kera_hw.driver.session import load_program
from kera_hw.graph import Export, without_probes
from kera_hw.graph.generate import generatable_ops
from kera_hw.interp.exports import run_leaves
from kera_hw.numerics.arrays import Array
from kera_hw.schedule.software.layout import native_dtype
from kera_hw.support import KeraError
from kera_hw.wasm.compile import compile_export
from kera_hw.wasm.engine import Instance
from kera_hw.wasm.program import WasmModule
from tests.loop_programs import inputs_of, random_export, same_bits
from tests.tidy.repo import ROOT

PROGRAMS = sorted((ROOT / "tests" / "programs").rglob("*.kera"))
_CHUNKS = 8
_ITEMS = 13
"""More than any vector's lanes but not a multiple of them, so that rounds are left over; of bytes, fewer."""


def results(module: WasmModule, args: Sequence[Array], items: int) -> list[Array]:
    given = [arg.view(native_dtype(buffer.element)) for arg, buffer in zip(args, module.params)]
    return Instance(module).run(given, items)


def _differing(export: Export, module: WasmModule, items: int, seed: int) -> list[int]:
    args, _ = inputs_of(export, items, seed)
    wanted = run_leaves(export, args, items)
    found = results(module, args, items)
    return [k for k, pair in enumerate(zip(wanted, found, strict=True)) if not same_bits(*pair)]


def _checked(export: Export, items: int, seed: int) -> WasmModule | None:
    """The module, held against the reference with vectors and without; None for what is refused."""
    export = without_probes(export)
    try:
        module = compile_export(export)
    except KeraError as error:
        assert {item.code for item in error.diagnostics} == {"K0701"}
        return None
    assert _differing(export, module, items, seed) == []
    if module.vector_loops:
        assert _differing(export, compile_export(export, vectors=False), items, seed) == []
    return module


@pytest.mark.parametrize("chunk", range(_CHUNKS))
def test_random_graphs(chunk: int) -> None:
    """Three graphs for every operation; most have loops that run as vectors."""
    seeds = range(chunk, 3 * len(generatable_ops()), _CHUNKS)
    made = [_checked(random_export(seed), _ITEMS, seed) for seed in seeds]
    vectors = [module for module in made if module is not None and module.vector_loops]
    assert len(vectors) >= 0.4 * len(made)
    assert sum(module is not None for module in made) >= 0.9 * len(made)


@pytest.mark.long
def test_many_random_graphs() -> None:
    made = [_checked(random_export(seed), 21, seed) for seed in range(20_000)]
    assert sum(module is not None for module in made) > 0.95 * len(made)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_programs(path: Path) -> None:
    loaded = load_program(path)
    assert loaded.graph is not None
    for export in loaded.graph.exports:
        assert _checked(export, 7, 1) is not None, export.name


def _fir() -> Export:
    loaded = load_program(ROOT / "examples" / "fir.kera")
    assert loaded.graph is not None
    return without_probes(loaded.graph.exports[0])


def test_state_lives_from_call_to_call_until_reset() -> None:
    export = _fir()
    (samples,), _ = inputs_of(export, 40, 3)
    (wanted,) = run_leaves(export, [samples], 40)
    instance = Instance(compile_export(export))
    for _ in range(2):
        parts = [instance.run([samples[:17]], 17)[0], instance.run([samples[17:]], 23)[0]]
        assert same_bits(wanted, np.concatenate(parts))
        instance.reset()


def test_a_batch_of_none_and_one_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    export = _fir()
    (samples,), _ = inputs_of(export, 50, 4)
    module = compile_export(export)
    assert results(module, [samples[:0]], 0)[0].shape == (0,)
    monkeypatch.setattr("kera_hw.wasm.engine._BATCH_BYTES", 40)
    (found,) = results(module, [samples], 50)
    assert same_bits(run_leaves(export, [samples], 50)[0], found)


def test_a_module_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kera_hw.wasm.program.MOST_CODE_BYTES", 100)
    with pytest.raises(KeraError) as caught:
        compile_export(_fir())
    assert [item.code for item in caught.value.diagnostics] == ["K0705"]


def test_a_wrong_module_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """An addition made a subtraction."""
    from kera_hw.wasm import scalars

    rules = {**scalars.RULES, "integer.add": scalars.RULES["integer.sub"]}
    monkeypatch.setattr(scalars, "RULES", rules)
    export = _fir()
    assert _differing(export, compile_export(export), 8, 0) == [0]
