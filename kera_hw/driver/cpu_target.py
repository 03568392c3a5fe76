"""This processor as a target: machine code of our own, called in this process."""

from __future__ import annotations

from kera_hw.cpu_gpu.engine import Instance, compile_export, missing_features
from kera_hw.driver.session import identity
from kera_hw.driver.software import SoftwareExecutor, to_compile
from kera_hw.graph import Export, Graph
from kera_hw.support import Diagnostic, KeraError


def cpu_executor(graph: Graph, export: Export) -> SoftwareExecutor:
    """Compiles an export. Raises KeraError: K0701, and K0706 on a processor that lacks what the code uses."""
    missing = missing_features()
    if missing:
        message = f"The target `cpu` is x86-64 with AVX2; this processor lacks {', '.join(missing)}."
        raise KeraError([Diagnostic("K0706", message)])
    function = compile_export(to_compile(graph, export))
    plan = {
        "function": export.name,
        "target": "cpu",
        "isa": "x86-64-avx2",
        **identity(graph, export),
        "code_bytes": len(function.machine.code),
        "vector_loops": function.vector_loops,
        "spilled": function.machine.slots,
    }
    return SoftwareExecutor(export, function.params, Instance(function), plan)
