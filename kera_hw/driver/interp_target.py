"""The reference evaluator as a target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kera_hw.driver.session import identity
from kera_hw.graph import Export, Graph, without_probes
from kera_hw.interp import run_export, unsupported_ops
from kera_hw.support import Diagnostic, KeraError


class InterpExecutor:
    """Evaluates the graph as lowered; refuses at planning time what has no reference meaning yet."""

    def __init__(self, graph: Graph, export: Export) -> None:
        refused = unsupported_ops(without_probes(export).region)
        if refused:
            op, kind = refused[0]
            message = f"The interpreter cannot evaluate {op} on {kind} yet, which `{export.name}` needs."
            raise KeraError([Diagnostic("K0701", message)])
        self._export = export
        self.plan: Mapping[str, Any] = {"target": "interp", **identity(graph, export)}

    def run(self, inputs: Mapping[str, Any], batch: int) -> Any:
        return run_export(self._export, dict(inputs), batch)
