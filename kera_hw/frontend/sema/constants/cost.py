"""How much work evaluating a region takes, before it is done: what runs at compile time must end soon."""
from __future__ import annotations

from kera_hw.graph.node import Node, Region, regions_of
from kera_hw.types import TensorType

_TRIPS = {"control.loop": "count", "control.while": "max", "control.scan": "length"}


class RegionCost:
    """Upper bounds, memoised per region. ``overhead``: what a node costs beside its elements."""

    def __init__(self, overhead: int = 0) -> None:
        self._overhead = overhead
        self._work: dict[Region, int] = {}
        self._largest: dict[Region, int] = {}

    def work(self, region: Region) -> int:
        """Elements computed by one evaluation at most: every loop runs to its bound."""
        found = self._work.get(region)
        if found is None:
            found = sum(self._node_work(node) for node in region.nodes())
            self._work[region] = found
        return found

    def largest(self, region: Region) -> int:
        """Elements of the largest value held, in nested regions too."""
        found = self._largest.get(region)
        if found is None:
            nodes = region.nodes()
            own = max((_elements(node) for node in nodes), default=1)
            inner = (self.largest(child) * _lanes(node) for node in nodes for child in regions_of(node))
            found = max(own, *inner, 1)
            self._largest[region] = found
        return found

    def _node_work(self, node: Node) -> int:
        trips = node.attr(_TRIPS[node.opcode]) if node.opcode in _TRIPS else _lanes(node)
        assert isinstance(trips, int)
        return self._overhead + _elements(node) + trips * sum(self.work(child) for child in regions_of(node))


def _elements(node: Node) -> int:
    kinds = (*node.types, *(ref.type for ref in node.inputs))
    sizes = [kind.size for kind in kinds if isinstance(kind, TensorType)]
    return max(sizes, default=1)


def _lanes(node: Node) -> int:
    """How many times a map runs its body, side by side."""
    if node.opcode != "control.map" or not node.inputs:
        return 1
    kind = node.inputs[0].type
    return kind.size if isinstance(kind, TensorType) else 1
