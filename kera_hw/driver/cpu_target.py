"""This processor as a target: machine code of our own, called in this process.

`cpu` is the level with the most that the processor has; each level is a target as well, by its name.
"""

from __future__ import annotations

from typing import Any

from kera_hw.cpu_gpu.architectures import LEVELS
from kera_hw.cpu_gpu.engine import CpuFunction, best_level, missing_features
from kera_hw.cpu_gpu.machine.level import Level
from kera_hw.cpu_gpu.pool import usable_cpus
from kera_hw.cpu_gpu.threaded import compile_threaded
from kera_hw.driver.perf_map import announce
from kera_hw.driver.session import identity
from kera_hw.driver.software import SoftwareExecutor, to_compile
from kera_hw.graph import Export, Graph
from kera_hw.support import Diagnostic, KeraError

BEST = "cpu"
_MOST_UNASKED = 8
"""Threads that divide a batch where nobody says how many."""


def level_of(target: str) -> Level:
    """The level that a target's code is for; of `cpu` this processor's, or the least if it has none."""
    if target == BEST:
        return best_level() or LEVELS[0]
    return next(level for level in LEVELS if level.name == target)


def cpu_executor(
    graph: Graph, export: Export, target: str = BEST, threads: int | None = None
) -> SoftwareExecutor:
    """Compiles an export. Raises KeraError: K0701, and K0706 on a processor that lacks what the code uses.

    Large batches are divided among ``threads``, by default as many as there are processors, up to 8. Loops of
    single items are where a number is given, since that takes more code.
    """
    level = level_of(target)
    missing = missing_features(level)
    if missing:
        what = f"`{target}`" if target == level.name else f"`{target}`, at least `{level.name}`,"
        message = f"The target {what} needs what this processor lacks: {', '.join(missing)}."
        raise KeraError([Diagnostic("K0706", message)])
    count = min(usable_cpus(), _MOST_UNASKED) if threads is None else threads
    made = compile_threaded(to_compile(graph, export), level, loops=threads is not None and threads > 1)
    function, instance = made.whole, made.on(count)
    plan = {
        **code_plan(graph, export, function, target), "threads": count, "divided_loops": made.divided_loops,
    }
    announce(export.name, instance.code_address, len(function.machine.code))
    return SoftwareExecutor(export, function.params, instance, plan)


def code_plan(graph: Graph, export: Export, function: CpuFunction, target: str) -> dict[str, Any]:
    """What was decided, as plain data."""
    return {
        "function": export.name,
        "target": target,
        "isa": function.level.name,
        **identity(graph, export),
        "code_bytes": len(function.machine.code),
        "vector_loops": function.vector_loops,
        "spilled": function.machine.slots,
        "stack_bytes": function.machine.stack_bytes,
    }
