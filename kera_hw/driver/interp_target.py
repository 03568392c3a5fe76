"""The reference evaluator as a target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kera_hw.driver.session import identity
from kera_hw.graph import Export, Graph
from kera_hw.interp import Stepping, run_export


class InterpExecutor:
    """Evaluates the graph as lowered."""

    def __init__(self, graph: Graph, export: Export) -> None:
        self._export = export
        self.plan: Mapping[str, Any] = {"target": "interp", **identity(graph, export)}

    def run(self, inputs: Mapping[str, Any], batch: int) -> Any:
        return run_export(self._export, dict(inputs), batch)

    def stepper(self) -> Stepping:
        return Stepping(self._export)
