"""Forward interval analysis of integers: which raw values can an output take?

Sound over every input of the region: parameters have their type's whole range, an operation without a rule
in ``kera_hw.ops.intervals`` gives its result type's whole range, and a sum that may wrap does too.
"""
from __future__ import annotations

import numpy as np

from kera_hw.graph.node import Node, Ref, Region
from kera_hw.ops.intervals import Interval, OpShape, apply_rule, type_interval
from kera_hw.types import Type, numpy_dtype, shape_of


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
        if node.opcode == "core.constant":
            return _constant(node)
        shape = OpShape(tuple(ref.type for ref in node.inputs), node.types[0], dict(node.attrs))
        return apply_rule(node.opcode, [self.of(ref) for ref in node.inputs], shape)


def _constant(node: Node) -> Interval | None:
    kind, data = node.attr("type"), node.attr("value")
    assert isinstance(kind, Type) and isinstance(data, bytes)
    full = type_interval(kind)
    if full is None or 0 in shape_of(kind):
        return full
    values = np.frombuffer(data, numpy_dtype(kind).newbyteorder("<"))
    return Interval(int(values.min()), int(values.max()))
