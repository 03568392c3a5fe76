"""Exact algebraic simplification: identities that hold for every bit pattern.

Laws that are traits (commutative, idempotent, involution) come from the registry; the tables below hold
those that need a particular constant; those of floats are in ``float_laws``.
"""
from __future__ import annotations

from collections.abc import Sequence

from kera_hw.graph import Graph, Ref, Store
from kera_hw.ops.registry import OPS
from kera_hw.ops.spec import Trait
from kera_hw.passes.constants import all_ones, splat_value
from kera_hw.passes.float_laws import float_law
from kera_hw.passes.rewrite import Candidate, Rewriter
from kera_hw.types import FloatType, element_type, is_scalar, shape_of

# op(x, c) = x
_RIGHT_IDENTITY: dict[str, str] = {
    "integer.add": "zero", "integer.sub": "zero", "integer.mul": "one", "integer.div": "one",
    "integer.saturating_add": "zero", "integer.saturating_sub": "zero",
    "fixed.add": "zero", "fixed.sub": "zero", "fixed.saturating_add": "zero", "fixed.saturating_sub": "zero",
    "bits.or": "zero", "bits.xor": "zero", "bits.and": "ones",
    "bits.shl": "zero", "bits.shr": "zero", "bits.rotl": "zero", "bits.rotr": "zero",
}
# op(x, c) = c
_RIGHT_ABSORBING: dict[str, str] = {"integer.mul": "zero", "bits.and": "zero", "bits.or": "ones"}
# op(x, x) = constant
_SAME_OPERANDS: dict[str, int] = {
    "integer.sub": 0, "fixed.sub": 0, "bits.xor": 0,
    "compare.eq": 1, "compare.le": 1, "compare.ge": 1, "compare.ne": 0, "compare.lt": 0, "compare.gt": 0,
}


def simplify(store: Store, graph: Graph) -> Graph:
    return Rewriter(store, _rule).graph(graph)


def _rule(node: Candidate) -> Sequence[Ref] | None:
    if len(node.original.types) != 1:
        return None
    found = _scalar_laws(node) or _select(node) or _structural(node)
    # A scalar may stand where a tensor is due only after broadcasting: leave such cases.
    return [found] if found is not None and found.type == node.original.types[0] else None


def _scalar_laws(node: Candidate) -> Ref | None:
    traits = OPS[node.opcode].traits
    if any(isinstance(element_type(ref.type), FloatType) for ref in node.inputs):
        return float_law(node)
    if len(node.inputs) == 1:
        inner = node.inputs[0]
        # The same function twice: equal attributes too, or reversing along two axes would vanish.
        same = inner.node.opcode == node.opcode and dict(inner.node.attrs) == node.attrs
        if same and Trait.INVOLUTION in traits:
            return inner.node.inputs[0]
        return None
    if len(node.inputs) != 2:
        return None
    a, b = node.inputs
    if a == b:
        if Trait.IDEMPOTENT in traits:
            return a
        if node.opcode in _SAME_OPERANDS:
            return node.store.constant(node.original.types[0], _SAME_OPERANDS[node.opcode])
    constant = splat_value(b)
    if constant is None:
        if Trait.COMMUTATIVE in traits and splat_value(a) is not None and a.type == b.type:
            return node.store.op(node.opcode, b, a, **node.attrs)
        return None
    if constant == _named(_RIGHT_IDENTITY.get(node.opcode), b):
        return a
    if constant == _named(_RIGHT_ABSORBING.get(node.opcode), b):
        return node.store.constant(node.original.types[0], constant)
    return None


def _named(name: str | None, like: Ref) -> int | None:
    if name == "zero":
        return 0
    if name == "one":
        # i1 has no 1: its only non-zero value is -1
        kind = element_type(like.type)
        return 1 if str(kind) != "i1" else None
    return all_ones(like.type) if name == "ones" else None


def _select(node: Candidate) -> Ref | None:
    if node.opcode != "control.select":
        return None
    condition, then, otherwise = node.inputs
    if then == otherwise:
        return then
    known = splat_value(condition)
    if known is not None:
        return then if known else otherwise
    if condition.node.opcode == "bits.not":
        return node.store.op("control.select", condition.node.inputs[0], otherwise, then)
    return None


def _structural(node: Candidate) -> Ref | None:
    if node.opcode in ("convert.cast", "tensor.reshape", "tensor.broadcast"):
        source = node.inputs[0]
        if source.type == node.original.types[0]:
            return source
        if node.opcode == "tensor.reshape" and source.node.opcode == "tensor.reshape":
            return node.store.op("tensor.reshape", source.node.inputs[0], **node.attrs)
    if node.opcode == "tensor.permute":
        return _permute(node)
    if node.opcode == "tensor.index":
        return _index(node)
    return None


def _permute(node: Candidate) -> Ref | None:
    axes, source = node.attrs["axes"], node.inputs[0]
    if tuple(axes) == tuple(range(len(axes))):
        return source
    if source.node.opcode == "tensor.permute":
        inner = source.node.attr("axes")
        assert isinstance(inner, tuple)
        return node.store.op("tensor.permute", source.node.inputs[0], axes=tuple(inner[a] for a in axes))
    return None


def _index(node: Candidate) -> Ref | None:
    """A constant index into a tensor literal is the element; any index into a splat is its value."""
    source, indices = node.inputs[0], node.inputs[1:]
    if 0 in shape_of(source.type):
        return None  # an empty tensor gives zero, whatever was spread over none of its elements
    if source.node.opcode == "tensor.broadcast" and is_scalar(source.node.inputs[0].type):
        return source.node.inputs[0]
    if source.node.opcode == "tensor.stack" and len(indices) == 1 and source.node.inputs:
        position = splat_value(indices[0])
        if position is not None:
            return source.node.inputs[max(0, min(position, len(source.node.inputs) - 1))]
    return None
