"""Small programs over the whole language, against plain Python that shares nothing with the compiler.

Beside each ``tests/programs/language/NAME.kera`` stands ``NAME.py`` with a function of the same name for each
exported item: it takes one item (a stream's: the list of items from reset) as Python values and gives the
result. Tensors are nested lists, structs dicts, tuples tuples, fixed point its raw integer.
"""

from __future__ import annotations

import functools
import importlib.util
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kera_hw
from kera_hw.driver.session import load_program
from kera_hw.driver.testing import run_program_tests
from kera_hw.graph import Export
from kera_hw.types import BoolType, FixType, IntType, StructType, TensorType, TupleType, Type, numpy_dtype

HOME = Path(__file__).resolve().parents[1] / "programs" / "language"
PROGRAMS = sorted(path.stem for path in HOME.glob("*.kera") if path.with_suffix(".py").is_file())
CIRCUITS = ("circuits",)  # simulated too; a circuit takes seconds to build
ITEMS = 60


@functools.cache
def _program(name: str) -> kera_hw.Program:
    return kera_hw.load(HOME / f"{name}.kera")


@functools.cache
def _oracles(name: str) -> dict[str, Callable[..., Any]]:
    spec = importlib.util.spec_from_file_location(f"kera_language_{name}", HOME / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {key: value for key, value in vars(module).items() if inspect.isfunction(value)}


def _cases() -> list[tuple[str, str]]:
    return [(name, key) for name in PROGRAMS for key in _oracles(name) if len(key) > 1 and key[0] != "_"]


def _draw(kind: Type, rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Values of a type, a third of them at or next to the ends of its range."""
    if isinstance(kind, TensorType):
        return _draw(kind.element, rng, shape + kind.shape)
    if isinstance(kind, StructType):
        return {name: _draw(item, rng, shape) for name, item in kind.fields}
    if isinstance(kind, TupleType):
        return tuple(_draw(item, rng, shape) for item in kind.items)
    if isinstance(kind, BoolType):
        return rng.integers(0, 2, shape).astype(np.bool_)
    assert isinstance(kind, (IntType, FixType))
    width, signed = kind.width_bits, kind.signed
    bits = rng.integers(0, (1 << width) - 1, shape, dtype=np.uint64, endpoint=True)
    # Small magnitudes as often as large ones: shift amounts, indices and divisors are mostly small.
    bits >>= rng.choice(np.array([0, 0, width // 2, max(width - 4, 0)], np.uint64), shape)
    top = 1 << (width - 1)
    last = (1 << width) - 1
    ends = np.array([0, 1, top - 1, top, last, (last - 1) & last], np.uint64)
    bits = np.where(rng.random(shape) < 0.3, ends[rng.integers(0, len(ends), shape)], bits)
    if not signed:
        return bits.astype(numpy_dtype(kind))
    shift = np.uint64(64 - width)
    return ((bits << shift).astype(np.int64) >> np.int64(64 - width)).astype(numpy_dtype(kind))


def _item(value: Any, index: int) -> Any:
    if isinstance(value, dict):
        return {key: _item(part, index) for key, part in value.items()}
    if isinstance(value, tuple):
        return tuple(_item(part, index) for part in value)
    return value[index].tolist()


def _dtypes(kind: Type, value: Any, name: str, shape: tuple[int, ...] = ()) -> None:
    """The result has the structure, the NumPy types and the extents the interface promises."""
    if isinstance(kind, TensorType):
        _dtypes(kind.element, value, name, shape + kind.shape)
    elif isinstance(kind, StructType):
        assert list(value) == [key for key, _ in kind.fields], name
        for key, item in kind.fields:
            _dtypes(item, value[key], f"{name}.{key}", shape)
    elif isinstance(kind, TupleType):
        assert isinstance(value, tuple) and len(value) == len(kind.items), name
        for i, item in enumerate(kind.items):
            _dtypes(item, value[i], f"{name}.{i}", shape)
    else:
        assert value.dtype == numpy_dtype(kind) and value.shape[1:] == shape, name


def _plain(value: Any) -> Any:
    """Oracle results with bools as 0 and 1 kept apart from integers, arrays as lists."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, tuple):
        return tuple(_plain(part) for part in value)
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


def _batched(value: Any) -> Any:
    """One result as a batch of one."""
    return tuple(map(_batched, value)) if isinstance(value, tuple) else np.asarray(value)[np.newaxis]


def _export(program: kera_hw.Program, name: str) -> Export:
    return next(export for export in program.graph.exports if export.name == name)


def _compare(name: str, function: str, target: str) -> None:
    program = _program(name)
    export = _export(program, function)
    rng = np.random.default_rng(len(function))
    count = ITEMS if export.params else 1
    inputs = {key: _draw(kind, rng, (count,)) for key, kind in export.params}
    callee = program.function(function, target=target)
    found = callee.batch(**inputs) if inputs else _batched(callee())
    _dtypes(export.result, found, function)
    oracle = _oracles(name)[function]
    items = [tuple(_item(value, i) for value in inputs.values()) for i in range(count)]
    wanted = oracle(items) if export.kind == "stream" else [oracle(*item) for item in items]
    for i, want in enumerate(wanted):
        assert _item(found, i) == _plain(want), f"item {i}: {dict(zip(inputs, items[i]))}"


@pytest.mark.parametrize(("name", "function"), _cases())
def test_function_equals_its_oracle(name: str, function: str) -> None:
    _compare(name, function, "interp")


@pytest.mark.parametrize(("name", "function"), [case for case in _cases() if case[0] in CIRCUITS])
def test_circuit_equals_its_oracle(name: str, function: str) -> None:
    _compare(name, function, "rtl")


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_export_has_an_oracle(name: str) -> None:
    assert set(_program(name).exports) <= set(_oracles(name))


@pytest.mark.parametrize("path", sorted(HOME.glob("*.kera")), ids=lambda path: path.stem)
def test_in_file_tests_pass(path: Path) -> None:
    loaded = load_program(path)
    assert not loaded.has_errors, loaded.diagnostics
    assert [result.name for result in run_program_tests(loaded) if not result.passed] == []
