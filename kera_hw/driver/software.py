"""What the executors of software targets share: values as leaves in native types, and back."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from kera_hw.driver.session import optimise, single_export_graph
from kera_hw.driver.values import Array
from kera_hw.graph import Export, Graph, without_probes
from kera_hw.interp.exports import flatten_inputs
from kera_hw.interp.values import unflatten_value
from kera_hw.loops.program import Buffer
from kera_hw.schedule.software.layout import native_dtype
from kera_hw.types import element_type, leaf_types, numpy_dtype


class Instance(Protocol):
    """Code with memory of its own; what a stream keeps lives there until ``reset``."""

    def reset(self) -> None: ...
    def run(self, params: Sequence[Array], items: int) -> list[Array]: ...


@dataclass(frozen=True, slots=True)
class Made:
    """What a build of a software target writes: files by name, `plan.json`, and a line for people."""

    files: Mapping[str, bytes]
    plan: dict[str, Any]
    summary: str


class SoftwareExecutor:
    """Runs an instance; every run of a stream begins at reset. Threads that call it take turns: there is one
    memory, and native code runs beside Python's other threads."""

    def __init__(
        self, export: Export, params: Sequence[Buffer], instance: Instance, plan: Mapping[str, Any]
    ) -> None:
        self._export = without_probes(export)
        self._params = params
        self._instance = instance
        self._turn = threading.Lock()
        self.plan = plan

    def run(self, inputs: Mapping[str, Any], batch: int) -> Any:
        with self._turn:
            self._instance.reset()
            return self.advance(inputs, batch)

    def stepper(self) -> SoftwareStepper:
        return SoftwareStepper(self, self._instance)

    def advance(self, inputs: Mapping[str, Any], batch: int) -> Any:
        """The results of further items, from the state as it is."""
        leaves = flatten_inputs(self._export, inputs, batch)
        params = [
            np.ascontiguousarray(leaf).view(native_dtype(buffer.element))
            for leaf, buffer in zip(leaves, self._params)
        ]
        found = self._instance.run(params, batch)
        kinds = leaf_types(self._export.result)
        results = [leaf.view(numpy_dtype(element_type(kind))) for leaf, kind in zip(found, kinds)]
        return unflatten_value(self._export.result, results)


class SoftwareStepper:
    """Native code item by item; the state is in its memory."""

    def __init__(self, executor: SoftwareExecutor, instance: Instance) -> None:
        self._executor, self._instance = executor, instance
        self.reset()

    def reset(self) -> None:
        self._instance.reset()

    def step(self, inputs: Mapping[str, Any]) -> Any:
        return self._executor.advance(inputs, 1)

    def close(self) -> None:
        """The memory goes with the object."""


def to_compile(graph: Graph, export: Export) -> Export:
    """What a software target starts from: the export optimised, without its observations."""
    return optimise(single_export_graph(graph, without_probes(export))).graph.exports[0]
