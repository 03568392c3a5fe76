"""WebAssembly as a target: the module of an export, run in wasmtime."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kera_hw.driver.session import identity
from kera_hw.graph import Export, Graph, without_probes
from kera_hw.interp.exports import flatten_inputs
from kera_hw.interp.values import unflatten_value
from kera_hw.types import element_type, leaf_types, numpy_dtype
from kera_hw.wasm.compile import compile_export
from kera_hw.wasm.engine import Instance, native_dtype


class WasmExecutor:
    """Compiles when it is made; every run of a stream begins at reset."""

    def __init__(self, graph: Graph, export: Export) -> None:
        self._export = without_probes(export)
        self.module = compile_export(self._export)
        self._instance = Instance(self.module)
        self.plan: Mapping[str, Any] = {
            "target": "wasm",
            **identity(graph, export),
            "module_bytes": len(self.module.binary),
            "vector_loops": self.module.vector_loops,
        }

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
