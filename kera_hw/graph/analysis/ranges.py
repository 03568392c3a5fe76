"""Forward interval analysis of integers: which raw values can an output take?

Sound over every input of the region: parameters have their type's whole range, an operation without a rule
in ``kera_hw.ops.intervals`` gives its result type's whole range, and a sum that may wrap does too.
"""
from __future__ import annotations

from kera_hw.graph.node import Node, Ref
from kera_hw.ops.intervals import Interval, OpShape, apply_rule, type_interval
from kera_hw.support import toposort


class Ranges:
    """Intervals of outputs, each worked out when first asked for."""

    def __init__(self) -> None:
        self._known: dict[Node, Interval | None] = {}

    def of(self, ref: Ref) -> Interval | None:
        """The interval of an output; None where the type has no integer range."""
        if len(ref.node.types) > 1:
            return type_interval(ref.type)
        if ref.node not in self._known:
            for node in toposort([ref.node], self._unknown):
                if node not in self._known:
                    self._known[node] = self._transfer(node)
        return self._known[ref.node]

    def _unknown(self, node: Node) -> list[Node]:
        return [ref.node for ref in node.inputs if ref.node not in self._known]

    def _transfer(self, node: Node) -> Interval | None:
        if len(node.types) != 1:
            return None
        shape = OpShape(tuple(ref.type for ref in node.inputs), node.types[0], dict(node.attrs))
        return apply_rule(node.opcode, [self._of_input(ref) for ref in node.inputs], shape)

    def _of_input(self, ref: Ref) -> Interval | None:
        return type_interval(ref.type) if len(ref.node.types) > 1 else self._known[ref.node]
