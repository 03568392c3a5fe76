"""Leaves and widths of product types.

The graph holds no aggregates: a struct or tuple is the list of its leaves, and a tensor of structs is one
tensor per leaf whose shape is the outer shape followed by the leaf's own.
"""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kera_hw.types.dtypes import StructType, TensorType, TokenType, TupleType, Type, is_scalar


@dataclass(frozen=True, slots=True)
class Leaf:
    """One leaf: dotted path from the value's root (empty for a leaf value) and its scalar or tensor type."""

    path: tuple[str, ...]
    type: Type


def flatten_type(kind: Type) -> tuple[Leaf, ...]:
    """The leaves of a type, fields in declaration order, depth first."""
    if isinstance(kind, TupleType):
        return _product((str(i), item) for i, item in enumerate(kind.items))
    if isinstance(kind, StructType):
        return _product(iter(kind.fields))
    if isinstance(kind, TensorType) and not is_scalar(kind.element):
        return tuple(
            Leaf(leaf.path, TensorType.tensor(leaf.type, kind.shape, kind.space))
            for leaf in flatten_type(kind.element)
        )
    return (Leaf((), kind),)


def _product(fields: Iterable[tuple[str, Type]]) -> tuple[Leaf, ...]:
    leaves: list[Leaf] = []
    for name, item in fields:
        leaves.extend(Leaf((name, *leaf.path), leaf.type) for leaf in flatten_type(item))
    return tuple(leaves)


def leaf_types(kind: Type) -> tuple[Type, ...]:
    """Types of the leaves, in order."""
    if not isinstance(kind, (TupleType, StructType, TensorType)):
        return (kind,)
    return tuple([leaf.type for leaf in flatten_type(kind)])


def bit_width(kind: Type) -> int:
    """Packed width in bits, without padding; bool is one bit, a token none."""
    if isinstance(kind, TensorType):
        return kind.size * bit_width(kind.element)
    if isinstance(kind, TupleType):
        return sum(bit_width(item) for item in kind.items)
    if isinstance(kind, StructType):
        return sum(bit_width(item) for _, item in kind.fields)
    if isinstance(kind, TokenType):
        return 0
    return getattr(kind, "width_bits", 1)
