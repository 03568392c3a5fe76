"""Operations taken apart: a node as the region of registry operations that its row says it is."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from kera_hw.graph.node import Node, Ref, Region
from kera_hw.graph.store import Store
from kera_hw.ops.registry import OPS
from kera_hw.ops.spec import AttrValue, Expansion, Trait
from kera_hw.types import TensorType, Type, element_type

Attributes = tuple[tuple[str, AttrValue], ...]


class Expander:
    """Regions of expansions, one for equal nodes; they are kept in a store of their own.

    ``own`` are expansions that a target takes in place of the rows'.
    """

    def __init__(self, own: Mapping[str, Expansion] | None = None) -> None:
        self._own = own or {}
        self._store = Store()
        self._found: dict[tuple[object, ...], Region | None] = {}

    def region_of(self, node: Node) -> Region | None:
        """The node's results from its inputs by its expansion; None where it has none on its types."""
        if OPS[node.opcode].expansion is None:
            return None
        kinds = tuple(ref.type for ref in node.inputs)
        key = (node.opcode, kinds, node.attrs)
        if key not in self._found:
            region = self._region(node.opcode, kinds, node.attrs)
            assert region is None or region.result_types == node.types, f"the expansion of {node.opcode}"
            self._found[key] = region
        return self._found[key]

    def _region(self, opcode: str, kinds: Sequence[Type], attrs: Attributes) -> Region | None:
        spec = OPS[opcode]
        if Trait.ELEMENTWISE in spec.traits and any(isinstance(kind, TensorType) for kind in kinds):
            return self._mapped(opcode, kinds, attrs)
        return self._written(opcode, kinds, range(len(kinds)), attrs)

    def _written(
        self, opcode: str, kinds: Sequence[Type], places: Sequence[int], attrs: Attributes
    ) -> Region | None:
        """The expansion's region; operand k is parameter ``places[k]``."""
        rule, store = self._own.get(opcode, OPS[opcode].expansion), self._store
        assert rule is not None
        params = [store.param(place, kind) for place, kind in zip(places, kinds)]
        results: Sequence[Ref] | None = rule(store, params, dict(attrs))
        if results is None:
            return None
        ordered = [kind for _, kind in sorted(zip(places, kinds), key=lambda pair: pair[0])]
        return store.region(ordered, results)

    def _mapped(self, opcode: str, kinds: Sequence[Type], attrs: Attributes) -> Region | None:
        """An element-wise operation of tensors: its expansion on scalars, at every element."""
        tensors = [k for k, kind in enumerate(kinds) if isinstance(kind, TensorType)]
        order = [*tensors, *(k for k in range(len(kinds)) if k not in tensors)]
        elements = [element_type(kind) for kind in kinds]
        region = self._written(opcode, elements, [order.index(k) for k in range(len(kinds))], attrs)
        if region is None:
            return None
        params = [self._store.param(k, kind) for k, kind in enumerate(kinds)]
        given = [params[k] for k in order]
        node = self._store.node("control.map", given, {"arity": len(tensors), "region": region})
        return self._store.region(kinds, [node.out(k) for k in range(len(node.types))])
