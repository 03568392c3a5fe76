"""Reductions and contractions as scalar operations on the elements that a design has side by side."""
from __future__ import annotations

from typing import cast

from kera_hw.graph.node import Node, Ref
from kera_hw.ops.unrolled import UNROLLED, unrolled
from kera_hw.rtl.lower.builder import Builder
from kera_hw.rtl.lower.floats.lowering import scalar
from kera_hw.rtl.lower.tensors import Handler
from kera_hw.rtl.lower.values import Tensor, Value
from kera_hw.types import TensorType, Type, shape_of


class _Circuit:
    """Scalar operations as they stand in a flat region, floats as their bits."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder

    def apply(self, opcode: str, kinds: tuple[Type, ...], result: Type, *args: Ref) -> Ref:
        return scalar(self._builder, opcode, kinds, result, *args)

    def constant(self, kind: Type, value: int) -> Ref:
        return self._builder.const(kind, value)

    def known(self, item: Ref) -> int | None:
        return self._builder.value(item)


def _reduce(builder: Builder, node: Node, args: list[Value]) -> list[Value]:
    kinds, (result,) = tuple(ref.type for ref in node.inputs), node.types
    attrs = dict(node.attrs)
    if attrs.get("order") == "exact":  # over so few elements that every order is that one
        attrs["order"] = "tree"
    items = unrolled(_Circuit(builder), node.opcode, kinds, result, attrs, cast("list[Tensor]", args))
    return [Tensor(shape_of(result), items) if isinstance(result, TensorType) else items[0]]


HANDLERS: dict[str, Handler] = dict.fromkeys(UNROLLED, _reduce)


_ONE_ROUNDING = {"reduce.sum": 2, "reduce.prod": 2, "reduce.dot": 1}
"""Elements up to which one rounding is all there is in the order ``exact``."""


def is_long(node: Node) -> bool:
    """Whether a node needs the long accumulator of its expansion."""
    attrs = dict(node.attrs)
    if node.opcode not in _ONE_ROUNDING or attrs["order"] != "exact":
        return False
    source, axis = node.inputs[0].type, cast(int, attrs.get("axis", -1))
    assert isinstance(source, TensorType)
    return (source.size if axis == -1 else source.shape[axis]) > _ONE_ROUNDING[node.opcode]
