"""Neural composites by their documented expansions, every step rounded on its own."""
from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np

from kera_hw.graph.node import Node, Ref
from kera_hw.numerics.composites import inverse_root
from kera_hw.numerics.floatbits import to_bits
from kera_hw.rtl.lower import reductions as shapes
from kera_hw.rtl.lower.builder import Builder
from kera_hw.rtl.lower.floats.reductions import divided, fused_matmul, total
from kera_hw.rtl.lower.floats.table import apply
from kera_hw.rtl.lower.values import Tensor, Value
from kera_hw.types import FloatType, IntType, element_type

Row = Callable[[list[Ref]], list[Ref]]


def _kind(node: Node) -> FloatType:
    kind = element_type(node.types[0])
    assert isinstance(kind, FloatType)
    return kind


def _along(source: Tensor, axis: int, row: Row) -> Tensor:
    """``row`` applied to every line along an axis (-1: all elements as one), in place."""
    positions = source.indices()
    lines = positions.reshape(1, -1) if axis == -1 else np.moveaxis(positions, axis, -1)
    items = list(source.items)
    for line in lines.reshape(-1, lines.shape[-1]):
        for place, value in zip(line, row([source.items[int(i)] for i in line])):
            items[int(place)] = value
    return Tensor(source.shape, tuple(items))


def _softmax_row(builder: Builder, kind: FloatType, items: list[Ref]) -> list[Ref]:
    peak = shapes.tree(items, lambda a, b: apply(builder, "floating.max", kind, a, b))
    shifted = [apply(builder, "floating.sub", kind, item, peak) for item in items]
    powers = [apply(builder, "floating.exp", kind, item) for item in shifted]
    whole = total(builder, kind, powers)
    return [apply(builder, "floating.div", kind, power, whole) for power in powers]


def _softmax(builder: Builder, node: Node, args: list[Value]) -> list[Value]:
    source, kind = cast(Tensor, args[0]), _kind(node)
    axis = cast(int, node.attr("axis"))
    return [_along(source, axis, lambda items: _softmax_row(builder, kind, items))]


def _scaled(builder: Builder, kind: FloatType, items: list[Ref], epsilon: Ref) -> list[Ref]:
    """``x * rsqrt(sum(x * x) / n + eps)``."""
    squares = [apply(builder, "floating.mul", kind, item, item) for item in items]
    mean = divided(builder, kind, total(builder, kind, squares), len(items))
    factor = apply(builder, "floating.rsqrt", kind, apply(builder, "floating.add", kind, mean, epsilon))
    return [apply(builder, "floating.mul", kind, item, factor) for item in items]


def _norm(centred: bool) -> Callable[[Builder, Node, list[Value]], list[Value]]:
    def handler(builder: Builder, node: Node, args: list[Value]) -> list[Value]:
        source, epsilon, kind = cast(Tensor, args[0]), cast(Ref, args[1]), _kind(node)

        def row(items: list[Ref]) -> list[Ref]:
            if centred:
                mean = divided(builder, kind, total(builder, kind, items), len(items))
                items = [apply(builder, "floating.sub", kind, item, mean) for item in items]
            return _scaled(builder, kind, items, epsilon)

        return [_along(source, cast(int, node.attr("axis")), row)]

    return handler


def _attention(builder: Builder, node: Node, args: list[Value]) -> list[Value]:
    q, k, v = (cast(Tensor, arg) for arg in args)
    kind = _kind(node)
    scores = fused_matmul(builder, kind, q, k.take(k.indices().T))
    inverse = to_bits(inverse_root(q.shape[1], kind))
    scale = builder.const(IntType(kind.width_bits, False), int(inverse[0]))
    scaled = Tensor(
        scores.shape, tuple(apply(builder, "floating.mul", kind, item, scale) for item in scores.items)
    )
    weights = _along(scaled, 1, lambda items: _softmax_row(builder, kind, items))
    return [fused_matmul(builder, kind, weights, v)]


HANDLERS: dict[str, Callable[[Builder, Node, list[Value]], list[Value]]] = {
    "neural.softmax": _softmax,
    "neural.layer_norm": _norm(True),
    "neural.rms_norm": _norm(False),
    "neural.attention": _attention,
}
