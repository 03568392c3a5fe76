"""The one way passes change graphs: rebuild each region bottom-up, asking a rule at every node.

A rule sees a node with its inputs and held regions already rewritten, and answers with replacement references
(one per output) or None to keep it. Regions are shared, so each is rewritten once.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kera_hw.graph import Export, Graph, Node, Ref, Region, Store, regions_in_order
from kera_hw.ops.spec import AttrValue

Attrs = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node about to be rebuilt: new inputs and attributes, and the node it stood for."""

    store: Store
    opcode: str
    inputs: tuple[Ref, ...]
    attrs: Attrs
    original: Node


Rule = Callable[[Candidate], Sequence[Ref] | None]


class Rewriter:
    """Applies one rule to whole graphs within one store; origins follow the nodes."""

    def __init__(self, store: Store, rule: Rule) -> None:
        self.store = store
        self.rule = rule
        self._regions: dict[Region, Region] = {}

    def graph(self, graph: Graph) -> Graph:
        self.store.origins.update({k: v for k, v in graph.origins.items() if k not in self.store.origins})
        self.store.scopes.update({k: v for k, v in graph.scopes.items() if k not in self.store.scopes})
        exports = [self._export(export) for export in graph.exports]
        return Graph(exports, self.store.origins, self.store.scopes)

    def _export(self, export: Export) -> Export:
        state = tuple(replace(var, initial=self._copy(var.initial)) for var in export.state)
        # Innermost first, so that ``region`` finds what a body holds already done and never goes deep.
        for region in regions_in_order([export.region], lambda region: region not in self._regions):
            self._regions[region] = self.rewrite(region)
        return replace(export, region=self.region(export.region), state=state)

    def _copy(self, ref: Ref) -> Ref:
        return self.store.node(ref.node.opcode, ref.node.inputs, dict(ref.node.attrs)).out(ref.index)

    def region(self, region: Region) -> Region:
        """The rewritten region, which is made once."""
        return self._regions[region]

    def rewrite(self, region: Region) -> Region:
        """Rebuilds one region whose held regions are done."""
        outputs: dict[Node, Sequence[Ref]] = {}
        self.store.spliced = ()
        for node in region.nodes():
            outputs[node] = self._node(node, outputs)
        made = self.store.region(region.params, tuple(outputs[ref.node][ref.index] for ref in region.results))
        self.store.add_scopes(made, (*self.store.scopes.get(region, ()), *self.store.spliced))
        return made

    def _node(self, node: Node, outputs: dict[Node, Sequence[Ref]]) -> Sequence[Ref]:
        inputs = tuple(outputs[ref.node][ref.index] for ref in node.inputs)
        attrs = {key: self._attr(value) for key, value in node.attrs}
        self.store.origin = self.store.origins.get(node)
        try:
            replaced = self.rule(Candidate(self.store, node.opcode, inputs, attrs, node))
            if replaced is None:
                rebuilt = self.store.node(node.opcode, inputs, attrs)
                replaced = [rebuilt.out(i) for i in range(len(rebuilt.types))]
        finally:
            self.store.origin = None
        assert len(replaced) == len(node.types), f"a rule changed the number of outputs of {node.opcode}"
        return replaced

    def _attr(self, value: AttrValue) -> AttrValue:
        if isinstance(value, Region):
            return self.region(value)
        if isinstance(value, tuple):
            return tuple(self._attr(item) for item in value)
        return value
