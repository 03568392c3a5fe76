"""Forward interval analysis of integers: which raw values can an output take?

Sound over every input of the region: parameters have their type's whole range, an operation without a rule
in ``kera_hw.ops.intervals`` gives its result type's whole range, and a sum that may wrap does too.
"""
from __future__ import annotations

from kera_hw.graph.node import Node, Ref, Region
from kera_hw.ops.intervals import Interval, OpShape, apply_rule, type_interval


class RegionRanges:
    """Intervals of one region's outputs, computed once in topological order."""

    def __init__(self, region: Region) -> None:
        self._known: dict[Node, Interval | None] = {}
        for node in region.nodes():
            self._known[node] = self._transfer(node) if len(node.types) == 1 else None

    def of(self, ref: Ref) -> Interval | None:
        """The interval of an output; None where the type has no integer range."""
        return self._known.get(ref.node) or type_interval(ref.type)

    def _transfer(self, node: Node) -> Interval | None:
        shape = OpShape(tuple(ref.type for ref in node.inputs), node.types[0], dict(node.attrs))
        return apply_rule(node.opcode, [self.of(ref) for ref in node.inputs], shape)
