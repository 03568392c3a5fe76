"""Fused products of f32 in WebAssembly: by themselves, in loops that are done again, and of single numbers.

What hasty code could get wrong is rare, so arguments are made for it: sums next to the middle of two numbers,
below the normal range, of few digits, and everything special with everything special.
"""
from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kera_hw.driver.session import load_program
from kera_hw.graph import Export, without_probes
from kera_hw.interp.exports import run_leaves
from kera_hw.wasm import fused
from kera_hw.wasm.compile import compile_export
from kera_hw.wasm.engine import Instance
from tests.wasm_engines import Modules, everywhere

_LANES, _TERMS = 12, 5
_SOURCE = f"""
pub fn lanes(a: [f32; {_LANES}], b: [f32; {_LANES}], c: [f32; {_LANES}]) -> [f32; {_LANES}] {{ fma(a, b, c) }}
pub fn both(a: [f32; {_LANES}], b: [f32; {_LANES}], c: [f32; {_LANES}]) -> [f64; {_LANES}] {{
    fma(a, b, c) as f64
}}
pub fn chains(a: [f32; {_LANES}, {_TERMS}], b: [f32; {_TERMS}, {_LANES}]) -> [f32; {_LANES}, {_LANES}] {{
    matmul(a, b)
}}
pub stream single(a: f32, b: f32, c: f32) -> f32 {{
    state last: f32 = 0.0;
    last = fma(a, b, c);
    last
}}
"""
Triples = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]
_SPECIAL = np.array([
    0.0, 1.0, 1 + 2**-23, 1 - 2**-24, 3.0, 2.0**-126, 2.0**-126 - 2.0**-149, 2.0**-149, 3 * 2.0**-149,
    2.0**-75, 2.0**-63, 2.0**64, 2.0**127, float(np.finfo(np.float32).max), np.inf, np.nan,
], np.float32)  # fmt: skip


def _special(every: int) -> Triples:
    values = np.concatenate([_SPECIAL, -_SPECIAL])
    all_ = np.array(list(product(values, repeat=3))[::every], np.float32)
    return all_[:, 0], all_[:, 1], all_[:, 2]


def triples(random: np.random.Generator, count: int) -> Iterator[Triples]:
    """Arguments of one kind after another."""
    def bits() -> np.ndarray[Any, Any]:
        return random.integers(0, 1 << 32, count, np.uint32).view(np.float32)

    def powers(low: int, high: int) -> np.ndarray[Any, Any]:
        return np.ldexp(1.0, random.integers(low, high, count))

    def signs() -> np.ndarray[Any, Any]:
        return random.choice([-1.0, 1.0], count)

    def steps(most: int) -> np.ndarray[Any, Any]:
        return random.integers(-most, most + 1, count) * 2.0**-23

    yield bits(), bits(), bits()
    few = [random.integers(-(1 << 9), 1 << 9, count) * powers(-8, 8) for _ in range(2)]
    wide = random.integers(-(1 << 24), 1 << 24, count) * powers(-8, 8)
    yield _f32(few[0], few[1], wide)  # sums of few digits, often in the middle
    # A product next to half of the last digit of the addend, or next to an odd number of halves.
    for low, high in ((-100, 100), (-149, -120)):
        scale = powers(low, high)
        c = scale * (1 + random.integers(0, 1 << 23, count) * 2.0**-23) * signs()
        split = powers(-40, 40)
        half = scale * 2.0**-24 * (2 * random.integers(0, 4, count) + 1)
        yield _f32((1 + steps(2)) * split * signs(), half / split * (1 + steps(2)), c)
    # Results below the normal range, from products of full length.
    x, y = (
        powers(-80, -60) * (1 + random.integers(0, 1 << 23, count) * 2.0**-23) * signs() for _ in range(2)
    )
    yield _f32(x, y, random.integers(-(1 << 23), 1 << 23, count) * 2.0**-149)
    near = 2.0**-75 * (1 + steps(3))
    c = random.choice([2.0**-127, 2.0**-126, 2.0**-128, 2.0**-140], count)
    yield _f32(near, 2.0**-75 * (1 + steps(3)) * signs(), c + random.integers(-3, 4, count) * 2.0**-149)


def _f32(*values: np.ndarray[Any, Any]) -> Triples:
    with np.errstate(over="ignore", under="ignore"):
        a, b, c = (value.astype(np.float32) for value in values)
    return a, b, c


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Export]:
    path: Path = tmp_path_factory.mktemp("fused") / "f.kera"
    path.write_text(_SOURCE, encoding="utf-8")
    loaded = load_program(path)
    assert loaded.graph is not None, loaded.diagnostics
    return {export.name: without_probes(export) for export in loaded.graph.exports}


def _libm() -> Callable[[float, float, float], float]:
    found = ctypes.util.find_library("m")
    if found is None:
        pytest.skip("there is no C library of functions")
    function: Any = ctypes.CDLL(found).fmaf
    function.argtypes, function.restype = (ctypes.c_float,) * 3, ctypes.c_float
    return function


def _given(name: str, some: Triples) -> list[np.ndarray[Any, Any]]:
    """Parameters of the function, as many items as there are arguments for. A product of matrices has each
    triple on its diagonal, in the midst of a sum."""
    if name == "single":
        return list(some)
    items = len(some[0]) // _LANES
    a, b, c = (one[: items * _LANES].reshape(items, _LANES) for one in some)
    if name != "chains":
        return [a, b, c]
    rows = np.zeros((items, _LANES, _TERMS), np.float32)
    columns = np.zeros((items, _TERMS, _LANES), np.float32)
    rows[:, :, 1], columns[:, 1] = 1.0, c
    rows[:, :, 3], columns[:, 3] = a, b
    return [rows, columns]


def _wrong(export: Export, made: Any, make: Callable[[Any], Any]) -> int:
    """How many results of all kinds of arguments are not the reference's."""
    random, wrong = np.random.default_rng(5), 0
    for some in (_special(23 if export.name == "chains" else 1), *triples(random, 1200)):
        given = _given(export.name, some)
        items = len(given[0])
        (wanted,), (found,) = run_leaves(export, given, items), make(made).run(given, items)
        size = f"u{found.dtype.itemsize}"
        wrong += int(np.count_nonzero(wanted.view(size) != found.view(size)))
    return wrong


@pytest.mark.parametrize("name", ["lanes", "both", "chains", "single"])
def test_the_same_bits(exports: dict[str, Export], name: str) -> None:
    modules = Modules()
    assert _wrong(exports[name], modules.compile(exports[name]), everywhere) == 0
    modules.check()


def test_the_c_library_has_them_too(exports: dict[str, Export]) -> None:
    function = _libm()
    export = exports["lanes"]
    instance = Instance(compile_export(export))
    for some in triples(np.random.default_rng(6), 240):
        given = _given("lanes", some)
        (found,) = instance.run(given, len(given[0]))
        wanted = [function(*map(float, one)) for one in zip(*(value.ravel() for value in given))]
        assert np.array_equal(np.array(wanted, np.float32), found.ravel(), equal_nan=True)


@pytest.mark.parametrize("name", ["lanes", "chains", "single"])
@pytest.mark.parametrize(("what", "value"), [("_LIMIT", 0), ("_DROPPED", 28)])
def test_what_is_not_asked_is_seen(
    exports: dict[str, Export], name: str, what: str, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of the two questions is needed, in each form."""
    monkeypatch.setattr(fused, what, value)
    monkeypatch.setattr(fused, "_SHIFT", 32 - fused._DROPPED)  # pyright: ignore[reportPrivateUsage]
    assert _wrong(exports[name], compile_export(exports[name]), Instance) > 0


def test_a_loop_is_done_again_as_a_whole(exports: dict[str, Export], monkeypatch: pytest.MonkeyPatch) -> None:
    """It asks once, after its rounds, and not in each, as what is in no such loop does."""
    def alone(_: object) -> None:
        raise AssertionError("asked by itself")

    monkeypatch.setattr(fused, "alone", alone)
    compile_export(exports["chains"])
    with pytest.raises(AssertionError, match="asked by itself"):
        compile_export(exports["lanes"])
