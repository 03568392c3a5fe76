"""Inlining, and structured control whose outcome is known."""
from __future__ import annotations

from collections.abc import Sequence

from kera_hw.graph import Graph, Ref, Region, Store, splice
from kera_hw.passes.constants import splat_value
from kera_hw.passes.rewrite import Candidate, Rewriter

# Bodies up to this many nodes are cheaper to see through than to keep apart.
MAX_INLINE_NODES = 256


def inline_calls(store: Store, graph: Graph) -> Graph:
    """Replaces calls of small regions by their bodies, and control with a known course by that course."""
    return Rewriter(store, _rule).graph(graph)


def _rule(node: Candidate) -> Sequence[Ref] | None:
    if node.opcode == "control.call":
        region = node.attrs["region"]
        assert isinstance(region, Region)
        return splice(node.store, region, node.inputs) if len(region.nodes()) <= MAX_INLINE_NODES else None
    if node.opcode == "control.branch":
        selector = splat_value(node.inputs[0])
        regions = node.attrs["regions"]
        if selector is not None:
            return splice(node.store, regions[min(selector, len(regions) - 1)], node.inputs[1:])
        if all(region is regions[0] for region in regions):
            return splice(node.store, regions[0], node.inputs[1:])
    if node.opcode == "control.loop":
        return _loop(node)
    return None


def _loop(node: Candidate) -> Sequence[Ref] | None:
    count, carried = node.attrs["count"], node.attrs["carried"]
    if count == 0:
        return node.inputs[:carried]
    if count == 1:
        index = node.store.constant(node.attrs["index_type"], node.attrs["start"])
        return splice(node.store, node.attrs["region"], (index, *node.inputs))
    return None
