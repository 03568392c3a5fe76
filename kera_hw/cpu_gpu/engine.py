"""Compiles an export for this processor and runs it: a batch at a time, state kept until reset."""
from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kera_hw.cpu_gpu.architectures import ARCHITECTURES, LEVELS, host_architecture, host_features
from kera_hw.cpu_gpu.doorway import Door, Doorway, Keywords, Leaf, fields_are_known, named
from kera_hw.cpu_gpu.machine.finish import Machine
from kera_hw.cpu_gpu.machine.level import Level
from kera_hw.cpu_gpu.memory import CodeMemory
from kera_hw.cpu_gpu.select.streams import BlockCode
from kera_hw.cpu_gpu.x86_64.doorway import doorway_code
from kera_hw.graph import Export, Graph
from kera_hw.loops.program import Buffer, For, LoopProgram
from kera_hw.lower.export import TABLE as LOOPS
from kera_hw.schedule.software.blocks import Blocks
from kera_hw.schedule.software.interleaving import MOST_COPIES
from kera_hw.schedule.software.layout import Layout, aligned, lay_out, native_dtype
from kera_hw.schedule.software.native import native_blocks, native_program, rows_of
from kera_hw.schedule.software.tiling import Registers
from kera_hw.schedule.software.vector_loops import Plan, plan_vectors
from kera_hw.support import Diagnostic, KeraError, collection_put_off, deep_recursion
from kera_hw.target import TargetTable

Array = np.ndarray[Any, np.dtype[Any]]
MOST_STACK_BYTES = 1 << 20
"""Of the megabytes that a thread has."""
TABLE: TargetTable[object] = replace(LOOPS, name="cpu", noun="machine code")
"""Whatever has loops has machine code: native operations are all that is left of it."""


@dataclass(frozen=True, slots=True)
class CpuFunction:
    """Machine code and how to call it; ``vector_loops``: how many loops run several rounds at once.
    ``grain``: of which the first round is a multiple, where it does some rounds of a loop."""

    machine: Machine
    params: tuple[Buffer, ...]
    results: tuple[Buffer, ...]
    layout: Layout
    vector_loops: int
    level: Level
    grain: int = 1


@deep_recursion()
@collection_put_off()
def compile_export(
    export: Export, vectors: bool = True, level: Level | None = None, graph: Graph | None = None
) -> CpuFunction:
    """The function of an export without observations, for this processor unless a level is given.

    With the ``graph`` that the export is of, instructions know which source they are for.

    Raises KeraError (K0701, K0705).
    """
    level = level or best_level() or LEVELS[0]
    program = program_of(export, vectors, level, graph)
    blocks = blocks_of(export, level, graph) if vectors else None
    return compile_program(program, level, vectors, blocks=blocks)


def program_of(
    export: Export, vectors: bool, level: Level, graph: Graph | None = None
) -> LoopProgram:
    """The native program that code for a level is written from."""
    registers = Registers(level.vector_registers, level.vector_bits) if vectors else None
    return native_program(export, TABLE, rows_of(level.capabilities), registers, graph)


def blocks_of(export: Export, level: Level, graph: Graph | None = None) -> Blocks | None:
    """The same for blocks of a stream's items, where these need not go one by one."""
    registers = Registers(level.vector_registers, level.vector_bits)
    return native_blocks(export, rows_of(level.capabilities), registers, graph)


def compile_program(
    program: LoopProgram, level: Level, vectors: bool = True, divided: For | None = None,
    blocks: Blocks | None = None,
) -> CpuFunction:
    """The function of a native program, or of some rounds of its loop that is ``divided``, for one item."""
    plan: Plan = plan_vectors(program, level.vector_bits) if vectors else {}
    if divided is not None:
        plan = {key: loop for key, loop in plan.items() if key != id(program)}
    private = frozenset(name for loop in plan.values() for name in loop.private)
    layout = lay_out(program, private, level.vector_bits // 8)
    code = None if blocks is None else _block_code(blocks, layout, level)
    machine = ARCHITECTURES[level.architecture].write(program, layout, plan, level, divided, code)
    if machine.stack_bytes > MOST_STACK_BYTES:
        needed = f"{machine.stack_bytes:,} bytes of stack"
        message = f"`{program.name}` needs {needed}; {MOST_STACK_BYTES:,} is the most."
        raise KeraError([Diagnostic("K0705", message)])
    params, results = program.of_kind("param"), program.of_kind("result")
    vector = None if divided is None else plan.get(id(divided))
    grain = 1 if vector is None else vector.count * MOST_COPIES
    loops = len(plan)
    if code is not None:
        layout, loops = layout.with_more(code.layout), loops + len(code.plan)
    return CpuFunction(machine, tuple(params), tuple(results), layout, loops, level, grain)


def _block_code(blocks: Blocks, layout: Layout, level: Level) -> BlockCode | None:
    """Where vectors gain from blocks."""
    plan = plan_vectors(blocks.program, level.vector_bits)
    if not plan:
        return None
    private = frozenset(name for loop in plan.values() for name in loop.private)
    first = aligned(layout.end)
    return BlockCode(blocks, lay_out(blocks.program, private, level.vector_bits // 8, first), plan)


class Instance:
    """One function with memory of its own."""

    def __init__(self, function: CpuFunction) -> None:
        self.function = function
        self._code = CodeMemory(function.machine.code)
        kind = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p)
        self._call = kind(self._code.address)
        self._arena = new_arena(function.layout)
        self._memory: int = self._arena.ctypes.data
        self.reset()

    @property
    def entry(self) -> tuple[Callable[[int, Any, int], None], int]:
        """The function and its memory: (items, addresses of leaves, memory)."""
        return self._call, self._memory

    def doorway(
        self, leaves: Sequence[Leaf], keywords: Keywords | None = None, enters: bool = True
    ) -> Doorway | None:
        """A way for Python to call it with one item in arrays, where there is one; or, if it does not enter,
        to find where they lie."""
        if self.function.level.architecture != "x86-64" or not fields_are_known():
            return None
        names = None if keywords is None else named(keywords)
        if keywords is not None and names is None:
            return None
        places = (ctypes.c_void_p * len(leaves))()
        kernel = self.code_address if enters else None
        door = Door(tuple(leaves), kernel, self._memory, ctypes.addressof(places), names)
        return Doorway(doorway_code(door), keywords is not None, places, self, keywords)

    @property
    def code_address(self) -> int:
        """Where the function begins, for debuggers and profilers."""
        return self._code.address

    def reset(self) -> None:
        """The state as it was at first."""
        for state, first, size_bytes in self.function.layout.resets:
            self._arena[state : state + size_bytes] = self._arena[first : first + size_bytes]

    def run(self, params: Sequence[Array], items: int) -> list[Array]:
        """Result leaves of shape (items, *shape) from parameter leaves of such a shape, in native types."""
        function = self.function
        given = [np.ascontiguousarray(param) for param in params]
        results = [np.empty((items, *one.shape), native_dtype(one.element)) for one in function.results]
        places = [one.ctypes.data for one in (*given, *results)]
        ports = (ctypes.c_void_p * len(places))(*places)
        self._call(items, ports, self._memory)
        return results


def new_arena(layout: Layout) -> Array:
    """Memory for one who calls a function, with its constants."""
    arena = np.zeros(layout.end, np.uint8)
    for data in layout.data:
        contents = np.frombuffer(data.contents, np.uint8)
        arena[data.address : data.address + len(contents)] = contents
    return arena


def missing_features(level: Level = LEVELS[0]) -> tuple[str, ...]:
    """What this machine lacks of a level; empty where code for it can run."""
    if host_architecture() != level.architecture:
        return (f"{level.architecture} under Linux",)
    return tuple(name for name in level.features if name not in host_features())


def best_level() -> Level | None:
    """The one with the most that this machine can run."""
    return next((level for level in reversed(LEVELS) if not missing_features(level)), None)
