"""Constant folding: an operation on constants is what the reference evaluator says it is."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kera_hw.graph import Graph, Ref, Store
from kera_hw.graph.analysis import Work
from kera_hw.interp import run_region, unsupported_ops
from kera_hw.ops.registry import OPS
from kera_hw.ops.spec import Trait
from kera_hw.passes.constants import constant_array
from kera_hw.passes.rewrite import Candidate, Rewriter
from kera_hw.types import TensorType, TokenType

# A folded tensor larger than this would make the file larger than the program that computes it.
MAX_ELEMENTS = 4096
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
    if any(value is None for value in values) or not _small(node):
        return None
    rebuilt = node.store.node(node.opcode, node.inputs, node.attrs)
    if work.node(rebuilt) > MAX_STEPS:
        return None
    region = node.store.region((), [rebuilt.out(i) for i in range(len(rebuilt.types))])
    if unsupported_ops(region):
        return None
    results = run_region(region, [], 1)
    return [
        node.store.constant(kind, np.asarray(value)[0])
        for kind, value in zip(rebuilt.types, results, strict=True)
    ]


def _small(node: Candidate) -> bool:
    for kind in node.original.types:
        if isinstance(kind, TokenType):
            return False
        if isinstance(kind, TensorType) and kind.size > MAX_ELEMENTS:
            return False
    return True
