"""What the executors of software targets share: values as leaves in native types, and back."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from kera_hw.driver.direct import Call, OpenDoor, direct_of
from kera_hw.driver.session import optimise, single_export_graph
from kera_hw.driver.values import Array
from kera_hw.graph import Export, Graph, without_probes
from kera_hw.interp.exports import flatten_inputs
from kera_hw.interp.values import unflatten_value
from kera_hw.loops.program import Buffer
from kera_hw.schedule.software.layout import native_dtype
from kera_hw.types import (
    FixType,
    FloatType,
    IntType,
    Type,
    element_type,
    flatten_type,
    leaf_types,
    numpy_dtype,
)


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
    memory, and native code runs beside Python's other threads, but for calls with little data."""

    def __init__(
        self, export: Export, params: Sequence[Buffer], instance: Instance, plan: Mapping[str, Any]
    ) -> None:
        self._export = without_probes(export)
        self._params = params
        self._instance = instance
        self._turn = threading.Lock()
        _executors.add(self)
        self.plan = plan
        entry: tuple[Call, int] | None = getattr(instance, "entry", None)
        door: OpenDoor | None = getattr(instance, "doorway", None)
        self._straight = None if entry is None else direct_of(self._export, *entry, door)

    def direct(self, inputs: Mapping[str, Any], out: Any) -> Any:
        """One item's result where arguments are as the code takes them; NotImplemented for others."""
        if self._straight is None:
            return NotImplemented
        with self._turn:
            return self._straight.call(inputs, out)

    def quick(self, otherwise: Callable[..., Any]) -> Callable[..., Any] | None:
        """What to call for one item by name, where there is something shorter; ``otherwise`` is what it calls
        itself where arguments are not as the code takes them."""
        return None if self._straight is None else self._straight.quick(self._turn, otherwise)

    def run(self, inputs: Mapping[str, Any], batch: int) -> Any:
        with self._turn:
            self._instance.reset()
            return self.advance(inputs, batch)

    def renew_turn(self) -> None:
        """After a fork: the thread whose turn it was is not in the child."""
        getattr(self._turn, "_at_fork_reinit")()  # noqa: B009 - as the standard library's locks; no public way

    def stepper(self) -> SoftwareStepper:
        return SoftwareStepper(self, self._instance)

    def step(self, inputs: Mapping[str, Any]) -> Any:
        """The result of one more item, in turn."""
        with self._turn:
            return self.advance(inputs, 1)

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


_executors: weakref.WeakSet[SoftwareExecutor] = weakref.WeakSet()


def _after_fork() -> None:
    for executor in list(_executors):
        executor.renew_turn()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class SoftwareStepper:
    """Native code item by item; the state is in its memory."""

    def __init__(self, executor: SoftwareExecutor, instance: Instance) -> None:
        self._executor, self._instance = executor, instance
        self.reset()

    def reset(self) -> None:
        self._instance.reset()

    def step(self, inputs: Mapping[str, Any]) -> Any:
        return self._executor.step(inputs)

    def close(self) -> None:
        """The memory goes with the object."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """An array of a batch: ``name`` has a point before each field, ``type`` is held as ``dtype``."""

    name: str
    type: Type
    shape: tuple[int, ...]
    size: int
    dtype: np.dtype[Any]


def leaves_of(
    export: Export, params: Sequence[Buffer], results: Sequence[Buffer]
) -> tuple[list[Leaf], list[Leaf]]:
    """Parameter and result leaves by the names that other languages give them; results' begin with `out`."""
    given = [(".".join((name, *leaf.path)), leaf.type) for name, kind in export.params
             for leaf in flatten_type(kind)]
    made = [(".".join(("out", *leaf.path)), leaf.type) for leaf in flatten_type(export.result)]

    def named(pairs: Sequence[tuple[str, Type]], buffers: Sequence[Buffer]) -> list[Leaf]:
        return [
            Leaf(name, kind, buffer.shape, buffer.size, native_dtype(buffer.element))
            for (name, kind), buffer in zip(pairs, buffers, strict=True)
        ]

    return named(given, params), named(made, results)


def notes_on_leaves(export: Export) -> str:
    """What the types of arrays do not say."""
    wholes = (*(kind for _, kind in export.params), export.result)
    elements = [element_type(kind) for whole in wholes for kind in leaf_types(whole)]
    said: list[str] = []
    if any(isinstance(kind, FixType) for kind in elements):
        said.append("Fixed point is its raw integer.")
    if any(isinstance(kind, FloatType) and kind.width_bits == 16 for kind in elements):
        said.append("Floats of 16 bits are their bits.")
    if any(isinstance(kind, IntType) and kind.width_bits not in (8, 16, 32, 64) for kind in elements):
        said.append("Integers of other widths lie extended in the next of 8, 16, 32 and 64 bits.")
    return " ".join(said) or "Numbers are as they are."


def graph_to_compile(graph: Graph, export: Export) -> Graph:
    """What a software target starts from: the export optimised, without its observations, and its places."""
    return optimise(single_export_graph(graph, without_probes(export)))


def to_compile(graph: Graph, export: Export) -> Export:
    """The export of that graph alone."""
    return graph_to_compile(graph, export).exports[0]
