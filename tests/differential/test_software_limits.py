"""Where software targets are pushed: threads, forks, deep nesting, memory that is not there."""
from __future__ import annotations

import multiprocessing
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kera_hw.cpu_gpu.engine import missing_features
from kera_hw.driver.api import Function, load
from kera_hw.support import KeraError
from kera_hw.wasm.compile import compile_export
from kera_hw.wasm.engine import Instance
from tests.differential.software import fir, results
from tests.loop_programs import inputs_of
from tests.tidy.repo import ROOT

FIR = ROOT / "examples" / "fir.kera"
CPU = pytest.param("cpu", marks=pytest.mark.skipif(bool(missing_features()), reason="no such processor"))
both = pytest.mark.parametrize("target", [CPU, "wasm"])
all_three = pytest.mark.parametrize("target", [CPU, "wasm", "ptx"])


def _samples(seed: int, count: int) -> Any:
    return np.random.default_rng(seed).integers(-3000, 3000, count).astype(np.int16)


@both
def test_threads_take_turns(target: str) -> None:
    """A function has one state and one memory; Python's other threads run while native code does."""
    function = load(FIR).function("fir", target=target)
    inputs = [_samples(seed, 100_000) for seed in range(3)]
    wanted = [function.batch(x=one) for one in inputs]
    right: list[bool] = []

    def call(k: int) -> None:
        right.extend(np.array_equal(function.batch(x=inputs[k]), wanted[k]) for _ in range(5))

    threads = [threading.Thread(target=call, args=(k,)) for k in range(len(inputs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert right == [True] * 15


def _compile_and_run(function: Function, target: str, answer: Any) -> None:
    again = load(FIR).function("fir", target=target)
    samples = _samples(1, 100)
    answer.put(np.array_equal(again.batch(x=samples), function.batch(x=samples)))


@all_three
def test_a_forked_process_compiles_and_runs(target: str) -> None:
    """No thread of a compiler, which a fork leaves behind, is waited for."""
    function = load(FIR).function("fir", target=target)
    context = multiprocessing.get_context("fork")
    answer = context.Queue()
    child = context.Process(target=_compile_and_run, args=(function, target, answer))
    child.start()
    try:
        assert answer.get(timeout=60) is True
    finally:
        child.kill()
        child.join()


def _branches(depth: int) -> str:
    heads = "".join(f"if s % {k + 2} != 1 {{ s = s * 3 + 1; " for k in range(depth))
    return f"pub fn f(x: u32) -> u32 {{ let mut s = x; {heads}{'}' * depth} s }}"


def _calls(depth: int) -> str:
    made = (
        f"fn f{k}(x: u32) -> u32 {{ let mut s = x; if s & {k} != 0 {{ s = f{k - 1}(s) + 1; }} s }}"
        for k in range(1, depth)
    )
    last = f"pub fn f(x: u32) -> u32 {{ f{depth - 1}(x) }}"
    return "\n".join(["fn f0(x: u32) -> u32 { x * 3 }", *made, last])


@all_three
def test_deep_branches(target: str, tmp_path: Path) -> None:
    path = tmp_path / "deep.kera"
    path.write_text(_branches(190), encoding="utf-8")
    program = load(path)
    values = np.arange(3, 5000, 37).astype(np.uint32)
    wanted = program.function("f").batch(x=values)
    assert np.array_equal(program.function("f", target=target).batch(x=values), wanted)


@pytest.mark.parametrize("target", [CPU, "wasm", "ptx", "rtl"])
def test_deeper_than_is_followed(target: str, tmp_path: Path) -> None:
    path = tmp_path / "deeper.kera"
    path.write_text(_calls(300), encoding="utf-8")
    with pytest.raises(KeraError) as caught:
        load(path).function("f", target=target)
    assert [item.code for item in caught.value.diagnostics] == ["K0702"]


def test_an_item_that_no_memory_holds_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kera_hw.wasm.program.MOST_BYTES_WITH_AN_ITEM", 300)
    with pytest.raises(KeraError) as caught:
        compile_export(fir())
    assert [item.code for item in caught.value.diagnostics] == ["K0705"]


def test_memory_that_does_not_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told as any lack of memory is."""

    def far(_size_bytes: int) -> int:
        return 1 << 33

    monkeypatch.setattr("kera_hw.wasm.engine.aligned", far)
    (samples,), _ = inputs_of(fir(), 3, 4)
    with pytest.raises(MemoryError):
        results(compile_export(fir()), Instance, [samples], 3)
