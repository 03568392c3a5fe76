"""How much a reference evaluation of constant work would compute, before anybody starts it.

An upper estimate in element operations: a loop counts its body as often as it may run. It is a bound for
deciding, not a forecast of seconds.
"""
from __future__ import annotations

from math import prod

from kera_hw.graph.node import Node, Region, regions_in_order, regions_of
from kera_hw.types import Type, shape_of


class Work:
    """Estimates of nodes and regions, each region measured once."""

    def __init__(self) -> None:
        self._regions: dict[Region, int] = {}

    def region(self, region: Region) -> int:
        """Element operations of one evaluation of the region."""
        for inner in regions_in_order([region], lambda region: region not in self._regions):
            self._regions[inner] = sum(self.node(node) for node in inner.nodes())
        return self._regions[region]

    def node(self, node: Node) -> int:
        """Element operations of one evaluation of the node: its own elements, and its bodies' each time."""
        own = sum(_elements(kind) for kind in (*node.types, *(ref.type for ref in node.inputs)))
        held = regions_of(node)
        return own + _times(node) * sum(map(self.region, held)) if held else own


def _elements(kind: Type) -> int:
    return prod(shape_of(kind))


def _times(node: Node) -> int:
    """How often the regions of a node run at the most."""
    for name in ("count", "max", "length"):
        if any(key == name for key, _ in node.attrs):
            times = node.attr(name)
            assert isinstance(times, int)
            return times
    return _elements(node.inputs[0].type) if node.opcode == "control.map" else 1
