"""Strength reduction: multiplication and unsigned division by powers of two become shifts and masks."""
from __future__ import annotations

from collections.abc import Sequence

from kera_hw.graph import Graph, Ref, Store
from kera_hw.passes.constants import splat_value
from kera_hw.passes.rewrite import Candidate, Rewriter
from kera_hw.types import U32, IntType, element_type


def reduce_strength(store: Store, graph: Graph) -> Graph:
    return Rewriter(store, _rule).graph(graph)


def _rule(node: Candidate) -> Sequence[Ref] | None:
    if node.opcode not in ("integer.mul", "integer.div", "integer.rem"):
        return None
    value, factor = node.inputs
    kind, constant = element_type(value.type), splat_value(factor)
    if not isinstance(kind, IntType) or constant is None or value.type != node.original.types[0]:
        return None
    if constant <= 1 or constant & (constant - 1):
        return None
    amount = node.store.constant(U32, constant.bit_length() - 1)
    if node.opcode == "integer.mul":
        return [node.store.op("bits.shl", value, amount)]
    if kind.signed:
        return None  # truncation toward zero is no arithmetic shift
    if node.opcode == "integer.div":
        return [node.store.op("bits.shr", value, amount)]
    return [node.store.op("bits.and", value, node.store.constant(kind, constant - 1))]
