"""The Python interface: load a program, take a function of it on a target, call it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kera_hw.driver.options import Executor, TargetOptions
from kera_hw.driver.session import Loaded, find_export, load_program
from kera_hw.driver.targets import make_executor
from kera_hw.graph import Export, Graph
from kera_hw.support import Diagnostic, KeraError


class Function:
    """One exported function on one target. Values travel as the project's API page says."""

    def __init__(self, export: Export, executor: Executor) -> None:
        self._export = export
        self._executor = executor

    @property
    def name(self) -> str:
        return self._export.name

    @property
    def plan(self) -> Mapping[str, Any]:
        """What the target decided, as plain data."""
        return self._executor.plan

    def __call__(self, **inputs: Any) -> Any:
        """One item; a stream's item is the first after reset. Raises KeraError for values that do not fit."""
        result = self._executor.run({name: _lift(value) for name, value in inputs.items()}, 1)
        return _drop_axis(result)

    def batch(self, **inputs: Any) -> Any:
        """Many items along the leading axis; for a stream they are one sequence from reset."""
        return self._executor.run(inputs, _batch_size(self._export, inputs))


class Program:
    """A compiled program: its fingerprint, its graph, its exported functions."""

    def __init__(self, loaded: Loaded, graph: Graph) -> None:
        self._loaded = loaded
        self.graph = graph

    @property
    def fingerprint(self) -> str:
        """``keg:sha3-256:<64 hex>``: the hash of the graph as lowered from source."""
        return self.graph.fingerprint

    @property
    def exports(self) -> tuple[str, ...]:
        return tuple(item.name for item in self.graph.exports)

    def function(
        self,
        name: str,
        target: str = "interp",
        *,
        device: str = "ecp5-85k",
        clock_mhz: float | None = None,
        latency: int | None = None,
    ) -> Function:
        """The named export on a target; raises KeraError when there is none or the target refuses it."""
        export = find_export(self._loaded, name)
        if isinstance(export, Diagnostic):
            raise KeraError([export])
        options = TargetOptions(device, clock_mhz, latency)
        return Function(export, make_executor(self.graph, export, target, options))


def load(path: str | os.PathLike[str]) -> Program:
    """Compiles a `.kera` file or reads a `.keg`. Raises KeraError with ``.diagnostics``."""
    loaded = load_program(Path(path))
    if loaded.graph is None or loaded.has_errors:
        raise KeraError(loaded.diagnostics)
    return Program(loaded, loaded.graph)


def _lift(value: Any) -> Any:
    """Adds the batch axis to every array in a value."""
    if isinstance(value, Mapping):
        return {key: _lift(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, tuple):
        return tuple(_lift(item) for item in value)  # pyright: ignore[reportUnknownVariableType]
    return np.asarray(value)[np.newaxis]


def _drop_axis(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _drop_axis(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, tuple):
        return tuple(_drop_axis(item) for item in value)  # pyright: ignore[reportUnknownVariableType]
    return value[0]


def _batch_size(export: Export, inputs: Mapping[str, Any]) -> int:
    sizes = {len(leaf) if leaf.ndim else -1 for value in inputs.values() for leaf in _leaves(value)}
    if not sizes:
        if export.params:
            return 1  # the executor names the missing parameters
        message = f"`{export.name}` takes no parameters, so a batch of it has no size; call it instead."
        raise KeraError([Diagnostic("K0904", message)])
    if len(sizes) != 1 or -1 in sizes:
        raise KeraError([Diagnostic("K0904", "The inputs of a batch do not all have the same leading axis.")])
    return sizes.pop()


def _leaves(value: Any) -> list[np.ndarray[Any, Any]]:
    if isinstance(value, Mapping):
        return [leaf for item in value.values() for leaf in _leaves(item)]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, tuple):
        return [leaf for item in value for leaf in _leaves(item)]  # pyright: ignore[reportUnknownVariableType]
    return [np.asarray(value)]
