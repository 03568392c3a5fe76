"""Whole programs, from source to simulated circuit, against oracles that share nothing with the compiler.

The programs of ``tests/programs`` are always there. Those of the project's shared folder come with a NumPy
reference of their own; they are used where that folder stands beside the checkout.
"""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kera_hw
from kera_hw.driver.session import load_program
from kera_hw.driver.testing import run_program_tests

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "tests" / "programs"
SHARED = ROOT.parent / "shared" / "programs"
ABSENT = f"{SHARED}/reference.py is not beside this checkout"


def _module(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"kera_tests_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


ORACLES = _module(PROGRAMS / "oracles.py").CASES

# Name in the reference, items in the simulated circuit. Items through a circuit are cheap, circuits are not.
CIRCUITS = {
    "fir": 500, "crc32": 200, "sha256": 20, "matmul_i8": 30, "dense_i8": 8, "isqrt": 208, "gcd": 204,
    "top_of_book": 400, "sin_cos": 100, "dot_tree": 200, "biquad": 200, "call_price": 100,
}
# State that feeds back through comparisons or float sums: at this clock an item takes several cycles.
RECURRENT = ("top_of_book", "biquad")
# Too large for the device unrolled, or a `while` that may end early: kept loops, an item takes their cycles.
KEPT_LOOPS = ("matmul_i8", "dense_i8", "isqrt", "gcd")
# As the default makes them these take the simulator a minute to compile: among the long checks.
LARGE = ("matmul_i8", "dense_i8", "call_price", "layer")
FLOATING = [
    "saxpy", "dot_lanes", "dot_tree", "sum_sequential", "matmul_f32", "biquad", "activations", "normalise",
    "mlp", "call_price",
]
EVALUATED = [*dict.fromkeys([*CIRCUITS, "sobel", "histogram", *FLOATING])]


@functools.cache
def _reference() -> dict[str, Any]:
    if not (SHARED / "reference.py").is_file():
        pytest.skip(ABSENT)
    return _module(SHARED / "reference.py").CASES


def _leaves(value: Any, name: str = "") -> list[tuple[str, np.ndarray]]:
    if isinstance(value, dict):
        return [leaf for key in value for leaf in _leaves(value[key], f"{name}.{key}")]
    if isinstance(value, tuple):
        return [leaf for i, item in enumerate(value) for leaf in _leaves(item, f"{name}.{i}")]
    return [(name, np.asarray(value))]


def _head(value: Any, items: int) -> Any:
    if isinstance(value, dict):
        return {key: _head(item, items) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(_head(item, items) for item in value)
    return value[:items]


_ONE_NAN = {np.dtype("float32"): np.uint32(0x7FC0_0000), np.dtype("float16"): np.uint16(0x7E00)}


def _assert_same(actual: Any, expected: Any) -> None:
    """Same structure, same dtypes, no differing bit."""
    ours, theirs = _leaves(actual), _leaves(expected)
    assert [name for name, _ in ours] == [name for name, _ in theirs]
    for (name, got), (_, want) in zip(ours, theirs):
        assert got.dtype == want.dtype, name
        if want.dtype in _ONE_NAN:  # bits: zeros have signs, and a NaN is the one NaN, whatever NumPy's
            nan = _ONE_NAN[want.dtype]
            got, want = got.view(nan.dtype), np.where(np.isnan(want), nan, want.view(nan.dtype))
        np.testing.assert_array_equal(got, want, err_msg=name)


@pytest.mark.parametrize(("target", "case"), [
    pytest.param(
        target, case, id=f"{target}-{case.function}",
        marks=pytest.mark.long if target == "rtl" and case.function in LARGE else (),
    )
    for target in ("interp", "rtl") for case in ORACLES
])  # fmt: skip
def test_own_programs_equal_their_oracles(case: Any, target: str) -> None:
    items = 1000 if target == "interp" else 400
    inputs = case.draw(np.random.default_rng(11), items)
    function = kera_hw.load(PROGRAMS / f"{case.program}.kera").function(case.function, target=target)
    # The rtl target fails by itself (K0910) where a cycle is not as the plan predicts.
    _assert_same(function.batch(**inputs), case.oracle(inputs))


@pytest.mark.parametrize("name", EVALUATED)
def test_reference_programs_on_the_interpreter(name: str) -> None:
    file, function, inputs, expected = _reference()[name]
    _assert_same(kera_hw.load(SHARED / file).function(function).batch(**inputs), expected)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", [
    pytest.param(name, marks=pytest.mark.long) if name in LARGE else name for name in CIRCUITS
])
def test_reference_programs_in_simulated_circuits(name: str) -> None:
    file, function, inputs, expected = _reference()[name]
    items = CIRCUITS[name]
    circuit = kera_hw.load(SHARED / file).function(function, target="rtl")
    _assert_same(circuit.batch(**_head(inputs, items)), _head(expected, items))
    one_a_cycle = circuit.plan["initiation_interval"] == 1
    assert one_a_cycle == (name not in KEPT_LOOPS) or name in RECURRENT


def _programs() -> list[Path]:
    return [*sorted(PROGRAMS.glob("*.kera")), *sorted((ROOT / "examples").glob("*.kera"))]


@pytest.mark.parametrize("path", _programs(), ids=lambda path: path.stem)
def test_in_file_tests_pass(path: Path) -> None:
    _assert_tests_pass(path)


@pytest.mark.parametrize("name", ["fir", "crc32", "matmul_i8"])
def test_in_file_tests_of_shared_programs_pass(name: str) -> None:
    _reference()
    _assert_tests_pass(SHARED / f"{name}.kera")


def _assert_tests_pass(path: Path) -> None:
    loaded = load_program(path)
    assert not loaded.diagnostics
    results = run_program_tests(loaded)
    assert results, "a program without tests"
    assert [result.name for result in results if not result.passed] == []
