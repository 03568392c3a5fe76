"""A function on several threads: items of a batch, or rounds of its loops, divided among them."""
from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from kera_hw.cpu_gpu.doorway import Doorway, Keywords, Leaf
from kera_hw.cpu_gpu.engine import (
    Array,
    CpuFunction,
    Instance,
    blocks_of,
    compile_program,
    new_arena,
    program_of,
)
from kera_hw.cpu_gpu.machine.level import Level
from kera_hw.cpu_gpu.memory import CodeMemory
from kera_hw.cpu_gpu.pool import pool
from kera_hw.graph import Export
from kera_hw.loops.program import Buffer
from kera_hw.schedule.software.dividing import LEAST_WORK, Division, divide, work_of
from kera_hw.schedule.software.layout import native_dtype
from kera_hw.support import deep_recursion

Call = Callable[[int, Any, int], None]
_KIND = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p)


@dataclass(frozen=True, slots=True)
class _Phase:
    """Code that does some rounds of ``count``, or all there is to do where that is None; ``grain``: of which
    the beginnings of a thread's rounds are multiples."""

    call: Call
    code: CodeMemory
    arenas: tuple[Array, ...]
    count: int | None
    grain: int

    def shares(self, threads: int) -> list[tuple[int, int]]:
        """Who does which rounds."""
        assert self.count is not None
        each = -(-self.count // (threads * self.grain)) * self.grain
        return [(first, min(first + each, self.count)) for first in range(0, self.count, each)]


class Divided:
    """A function whose items come one after another, each on several threads, phase by phase."""

    def __init__(
        self, whole: CpuFunction, phases: Sequence[CpuFunction], division: Division, threads: int
    ) -> None:
        self._threads = threads
        self._sizes = _item_bytes(whole)
        self._shared = [_shared(buffer) for buffer in division.shared]
        self._phases: list[_Phase] = []
        for function, phase in zip(phases, division.phases):
            code = CodeMemory(function.machine.code)
            many = 1 if phase.loop is None else threads
            arenas = tuple(new_arena(function.layout) for _ in range(many))
            count = None if phase.loop is None else phase.loop.count
            self._phases.append(_Phase(_KIND(code.address), code, arenas, count, function.grain))

    def run(self, items: int, places: Any, memory: int) -> None:
        """As machine code is called, with the addresses of leaves; ``memory`` is its own."""
        del memory
        shared = [one.ctypes.data for one in self._shared]
        for k in range(items):
            ports = [*_moved(places, self._sizes, k), *shared]
            for phase in self._phases:
                self._run(phase, ports)

    def _run(self, phase: _Phase, places: Sequence[int]) -> None:
        table = ctypes.c_void_p * (len(places) + 2)
        if phase.count is None:
            phase.call(1, table(*places, 0, 0), phase.arenas[0].ctypes.data)
            return
        pool().run([
            partial(phase.call, 1, table(*places, first, end), arena.ctypes.data)
            for (first, end), arena in zip(phase.shares(self._threads), phase.arenas)
        ])


def _shared(buffer: Buffer) -> Array:
    dtype = native_dtype(buffer.element)
    return np.frombuffer(buffer.data, np.uint8) if buffer.kind == "const" else np.zeros(buffer.size, dtype)


class Threaded:
    """An instance that divides what is worth it: batches by items, and single items by their loops.

    ``whole`` does what is not. A stream keeps its order: its items are not divided.
    """

    def __init__(
        self, whole: Instance, one: Divided | None, threads: int, work: int, least_work: int
    ) -> None:
        self._whole, self._one, self._threads = whole, one, threads
        self._work, self._least_work = work, least_work
        self._others: list[Array] = []
        self.code_address = whole.code_address

    @property
    def entry(self) -> tuple[Call, int]:
        return self._whole.entry if self._one is None else (self._one.run, 0)

    def doorway(
        self, leaves: Sequence[Leaf], keywords: Keywords | None = None, enters: bool = True
    ) -> Doorway | None:
        return self._whole.doorway(leaves, keywords, enters) if self._one is None else None

    def reset(self) -> None:
        self._whole.reset()

    def run(self, params: Sequence[Array], items: int) -> list[Array]:
        """As of an instance."""
        function = self._whole.function
        if self._one is not None and items < self._threads:
            return _called(function, params, items, self._one.run)
        least = max(1, self._least_work // max(self._work, 1))
        threads = min(self._threads, items // least)
        if threads < 2 or function.layout.resets:
            return self._whole.run(params, items)
        return _called(function, params, items, partial(self._by_items, threads))

    def _by_items(self, threads: int, items: int, places: Any, memory: int) -> None:
        del memory
        call, own = self._whole.entry
        function = self._whole.function
        while len(self._others) < threads - 1:
            self._others.append(new_arena(function.layout))
        memories = [own, *(arena.ctypes.data for arena in self._others)]
        sizes = _item_bytes(function)
        table, each = ctypes.c_void_p * len(sizes), -(-items // threads)
        pool().run([
            partial(call, min(each, items - first), table(*_moved(places, sizes, first)), memory)
            for first, memory in zip(range(0, items, each), memories)
        ])


def _moved(places: Iterable[int], sizes: Sequence[int], items: int) -> list[int]:
    """Where leaves are so many items further."""
    return [place + items * size for place, size in zip(places, sizes)]


def _item_bytes(function: CpuFunction) -> list[int]:
    """Of each leaf, in the order of ports."""
    leaves = (*function.params, *function.results)
    return [one.size * native_dtype(one.element).itemsize for one in leaves]


def _called(function: CpuFunction, params: Sequence[Array], items: int, call: Call) -> list[Array]:
    given = [np.ascontiguousarray(param) for param in params]
    results = [np.empty((items, *one.shape), native_dtype(one.element)) for one in function.results]
    call(items, [one.ctypes.data for one in (*given, *results)], 0)
    return results


@dataclass(frozen=True, slots=True)
class ThreadedFunction:
    """What an export is compiled to, for any number of threads."""

    whole: CpuFunction
    phases: tuple[CpuFunction, ...]
    division: Division | None
    work: int
    least_work: int

    @property
    def divided_loops(self) -> int:
        return 0 if self.division is None else sum(phase.loop is not None for phase in self.division.phases)

    def on(self, threads: int) -> Threaded:
        """An instance on so many threads."""
        one = None
        if self.division is not None and threads > 1:
            one = Divided(self.whole, self.phases, self.division, threads)
        return Threaded(Instance(self.whole), one, threads, self.work, self.least_work)


@deep_recursion()
def compile_threaded(
    export: Export, level: Level, least_work: int = LEAST_WORK, loops: bool = True
) -> ThreadedFunction:
    """An export for several threads, that divide batches and, with ``loops``, single items by their loops.

    Raises KeraError as ``compile_export`` does.
    """
    program = program_of(export, True, level)
    division = divide(program, least_work) if loops else None
    phases = () if division is None else division.phases
    compiled = tuple(compile_program(phase.program, level, divided=phase.loop) for phase in phases)
    whole = compile_program(program, level, blocks=blocks_of(export, level))
    return ThreadedFunction(whole, compiled, division, work_of(program), least_work)
