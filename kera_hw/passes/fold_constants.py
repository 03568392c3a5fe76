"""Constant folding: an operation on constants is what the reference evaluator says it is."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kera_hw.graph import Graph, Ref, Store
from kera_hw.graph.analysis import Work
from kera_hw.interp import run_operation
from kera_hw.ops.registry import OPS
from kera_hw.ops.spec import Trait
from kera_hw.passes.constants import MAX_ELEMENTS, constant_array
from kera_hw.passes.rewrite import Candidate, Rewriter
from kera_hw.types import TensorType, TokenType

# More work than this belongs to a run, where it can be seen and stopped, not to a compiler pass.
MAX_STEPS = 1_000_000


def fold_constants(store: Store, graph: Graph) -> Graph:
    return _Folder(store).graph(graph)


class _Folder(Rewriter):
    """Knows what each region costs, so that a region held by many operations is measured once."""

    def __init__(self, store: Store) -> None:
        super().__init__(store, self._fold)
        self._work = Work()

    def _fold(self, node: Candidate) -> Sequence[Ref] | None:
        return _rule(node, self._work)


def _rule(node: Candidate, work: Work) -> Sequence[Ref] | None:
    spec = OPS[node.opcode]
    if spec.traits & {Trait.SOURCE, Trait.OBSERVES} or node.opcode == "memory.transfer":
        return None
    values = [constant_array(ref) for ref in node.inputs]
    known = [value[np.newaxis] for value in values if value is not None]
    if len(known) != len(values) or not _small(node):
        return None
    if work.node(node.store.node(node.opcode, node.inputs, node.attrs)) > MAX_STEPS:
        return None
    types, results = run_operation(node.opcode, known, tuple(ref.type for ref in node.inputs), node.attrs)
    return [
        node.store.constant(kind, np.asarray(value)[0])
        for kind, value in zip(types, results, strict=True)
    ]


def _small(node: Candidate) -> bool:
    for kind in node.original.types:
        if isinstance(kind, TokenType):
            return False
        if isinstance(kind, TensorType) and kind.size > MAX_ELEMENTS:
            return False
    return True
