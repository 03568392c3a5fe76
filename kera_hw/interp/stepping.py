"""An export item by item: what a stream keeps is held from one call to the next."""
from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kera_hw.graph.nesting import check_nesting
from kera_hw.graph.node import Export
from kera_hw.graph.probes import without_probes
from kera_hw.interp.evaluator import Context, compile_region
from kera_hw.interp.exports import flatten_inputs
from kera_hw.interp.streams import initial_state
from kera_hw.interp.values import Value, unflatten_value
from kera_hw.numerics.arrays import Array


class Stepping:
    """Evaluates the region for one item a call; a ``fn`` keeps nothing."""

    def __init__(self, export: Export) -> None:
        self._export = without_probes(export)
        check_nesting(self._export)
        self._program, self._context = compile_region(self._export.region), Context(1)
        self._state: list[Array] = []
        self.reset()

    def reset(self) -> None:
        """The state as it was at first."""
        self._state = initial_state(self._export)

    def step(self, inputs: Mapping[str, Value]) -> Value:
        """The result of one item, both with a leading axis of one. Raises KeraError: K0911 to K0915."""
        args = flatten_inputs(self._export, inputs, 1)
        found = self._context.execute(self._program, [*args, *self._state])
        count = len(found) - len(self._state)
        self._state = found[count:]
        return unflatten_value(self._export.result, [np.array(leaf) for leaf in found[:count]])

    def close(self) -> None:
        """There is nothing to give back."""
