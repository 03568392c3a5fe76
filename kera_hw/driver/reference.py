"""The reference over very many items: machine code, held against the interpreter on a share of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kera_hw.driver.options import Executor, Stepper
from kera_hw.driver.sampling import map_leaves
from kera_hw.driver.shrink import first_difference
from kera_hw.graph import Export, Graph
from kera_hw.support import KeraError

MANY_ITEMS = 100_000
"""From which on the processor's own code stands for the interpreter."""
SHARE = 16
"""The interpreter evaluates one item in so many."""


class SwiftReference:
    """The interpreter, for few items; for many, machine code that agrees with it on a share of them.

    Of a stream the share is its beginning, of a function every so many items. Where the two differ, or there
    is no machine code for the function, the interpreter does it all.
    """

    def __init__(self, graph: Graph, export: Export, exact: Executor) -> None:
        self._export, self._exact = export, exact
        self.checked = ""
        """What stood for what, for people; known after a run."""
        try:
            from kera_hw.driver.cpu_target import cpu_executor

            self._swift: Executor | None = cpu_executor(graph, export)
        except KeraError as refusal:
            self._swift = None
            self.checked = f"no machine code: {refusal.diagnostics[0].code}"

    @property
    def plan(self) -> Mapping[str, Any]:
        return self._exact.plan

    def stepper(self) -> Stepper:
        return self._exact.stepper()

    def run(self, inputs: Mapping[str, Any], batch: int) -> Any:
        """The results of the items. Raises KeraError for values that do not fit."""
        if self._swift is None or batch < MANY_ITEMS:
            return self._exact.run(inputs, batch)
        found = self._swift.run(inputs, batch)
        if self._export.state:
            count, chosen = batch // SHARE, slice(0, batch // SHARE)
        else:
            count, chosen = -(-batch // SHARE), slice(0, batch, SHARE)
        share = map_leaves(inputs, lambda leaf: leaf[chosen])
        wanted = self._exact.run(share, count)
        same = map_leaves(found, lambda leaf: leaf[chosen])
        if first_difference(self._export, wanted, same, count) is not None:
            self.checked = "cpu DIFFERS, so it is not used"
            return self._exact.run(inputs, batch)
        self.checked = f"on {count:,} items; beyond, cpu, which agrees on those"
        return found
