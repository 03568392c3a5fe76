"""Copying a region's body into another place."""
from __future__ import annotations

from collections.abc import Sequence

from kera_hw.graph.node import Node, Ref, Region
from kera_hw.graph.store import Store


def splice(store: Store, region: Region, args: Sequence[Ref]) -> list[Ref]:
    """The region's body with ``args`` in place of its parameters: one reference per result."""
    outputs: dict[Node, Sequence[Ref]] = {}
    store.spliced += store.scopes.get(region, ())
    for node in region.nodes():
        if node.opcode == "core.param":
            index = node.attr("index")
            assert isinstance(index, int)
            outputs[node] = [args[index]]
            continue
        inputs = tuple(outputs[ref.node][ref.index] for ref in node.inputs)
        outer, store.origin = store.origin, store.origins.get(node, store.origin)
        copy = store.node(node.opcode, inputs, dict(node.attrs))
        store.origin = outer
        outputs[node] = [copy.out(i) for i in range(len(copy.types))]
    return [outputs[ref.node][ref.index] for ref in region.results]
