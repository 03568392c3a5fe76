"""WebAssembly as a target: the module of an export, run in wasmtime."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kera_hw.driver.session import identity, optimise, single_export_graph
from kera_hw.graph import Export, Graph, without_probes
from kera_hw.interp.exports import flatten_inputs
from kera_hw.interp.values import unflatten_value
from kera_hw.schedule.software.layout import native_dtype
from kera_hw.types import element_type, leaf_types, numpy_dtype
from kera_hw.wasm.compile import compile_export
from kera_hw.wasm.engine import Instance
from kera_hw.wasm.program import WasmModule


def design_module(graph: Graph, export: Export) -> WasmModule:
    """The module of an export, which names its graph. Raises KeraError (K07xx)."""
    built = single_export_graph(graph, without_probes(export))
    names = identity(graph, export)
    return compile_export(optimise(built).graph.exports[0], fingerprint=names["fingerprint"])


def module_plan(graph: Graph, export: Export, module: WasmModule) -> dict[str, Any]:
    """What was decided, as plain data."""
    return {
        "function": export.name,
        "target": "wasm",
        **identity(graph, export),
        "module_bytes": len(module.binary),
        "vector_loops": module.vector_loops,
    }


class WasmExecutor:
    """Compiles when it is made; every run of a stream begins at reset."""

    def __init__(self, graph: Graph, export: Export) -> None:
        self._export = without_probes(export)
        self.module = design_module(graph, export)
        self._instance = Instance(self.module)
        self.plan: Mapping[str, Any] = module_plan(graph, export, self.module)

    def run(self, inputs: Mapping[str, Any], batch: int) -> Any:
        leaves = flatten_inputs(self._export, inputs, batch)
        params = [
            np.ascontiguousarray(leaf).view(native_dtype(buffer.element))
            for leaf, buffer in zip(leaves, self.module.params)
        ]
        self._instance.reset()
        found = self._instance.run(params, batch)
        kinds = leaf_types(self._export.result)
        results = [leaf.view(numpy_dtype(element_type(kind))) for leaf, kind in zip(found, kinds)]
        return unflatten_value(self._export.result, results)
