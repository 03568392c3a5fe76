"""Exact algebraic simplification of graphs: the laws of ``kera_hw.graph.laws``, and what ranges decide."""
from __future__ import annotations

from collections.abc import Sequence

from kera_hw.graph import Graph, Ref, Store
from kera_hw.graph.analysis import Ranges
from kera_hw.graph.laws import OF_PROGRAMS, decided
from kera_hw.ops.intervals import MaybeInterval, type_interval
from kera_hw.ops.registry import OPS
from kera_hw.ops.spec import AttrValue, Trait
from kera_hw.passes.constants import MAX_ELEMENTS, constant_of_bits, splat_value
from kera_hw.passes.rewrite import Candidate, Rewriter
from kera_hw.types import TensorType, Type

_NOT_COMPUTED = {Trait.SOURCE, Trait.OBSERVES, Trait.CONTROL}


def simplify(store: Store, graph: Graph) -> Graph:
    return _Simplifier(store).graph(graph)


class _Simplifier(Rewriter):
    """A view of a store for laws: what they make is simplified as it is made."""

    def __init__(self, store: Store) -> None:
        super().__init__(store, self._simpler)
        self._ranges = Ranges()

    def value(self, ref: Ref) -> int | None:
        return splat_value(ref)

    def range(self, ref: Ref) -> MaybeInterval:
        return self._ranges.of(ref)

    def op(self, opcode: str, /, *inputs: Ref, **attrs: AttrValue) -> Ref:
        found = OF_PROGRAMS.simpler(self, opcode, inputs, attrs)
        return found if found is not None else self.store.op(opcode, *inputs, **attrs)

    def const(self, kind: Type, value: int) -> Ref:
        return constant_of_bits(self.store, kind, value)

    def _simpler(self, node: Candidate) -> Sequence[Ref] | None:
        if len(node.original.types) != 1:
            return None
        found = OF_PROGRAMS.simpler(self, node.opcode, node.inputs, node.attrs)
        if found is None:
            found = self._decided(node)
        return None if found is None else [found]

    def _decided(self, node: Candidate) -> Ref | None:
        """The constant that the operation always gives."""
        kind = node.original.types[0]
        small = not isinstance(kind, TensorType) or 0 < kind.size <= MAX_ELEMENTS
        if not small or type_interval(kind) is None or OPS[node.opcode].traits & _NOT_COMPUTED:
            return None
        only = decided(self._ranges.of(self.store.op(node.opcode, *node.inputs, **node.attrs)))
        return None if only is None else self.const(kind, only)
