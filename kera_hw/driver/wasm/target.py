"""WebAssembly as a target: the module of an export, run in wasmtime."""

from __future__ import annotations

from typing import Any

from kera_hw.driver.session import identity
from kera_hw.driver.software import SoftwareExecutor, graph_to_compile
from kera_hw.graph import Export, Graph
from kera_hw.wasm.compile import compile_export
from kera_hw.wasm.engine import Instance
from kera_hw.wasm.program import WasmModule


def design_module(graph: Graph, export: Export) -> WasmModule:
    """The module of an export, which names its graph. Raises KeraError (K07xx)."""
    made = graph_to_compile(graph, export)
    return compile_export(made.exports[0], True, identity(graph, export)["fingerprint"], made)


def module_plan(graph: Graph, export: Export, module: WasmModule) -> dict[str, Any]:
    """What was decided, as plain data."""
    return {
        "function": export.name,
        "target": "wasm",
        **identity(graph, export),
        "module_bytes": len(module.binary),
        "vector_loops": module.vector_loops,
    }


def wasm_executor(graph: Graph, export: Export) -> SoftwareExecutor:
    """Compiles an export. Raises KeraError (K07xx)."""
    module = design_module(graph, export)
    return SoftwareExecutor(export, module.params, Instance(module), module_plan(graph, export, module))
