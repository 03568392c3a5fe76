"""Reductions, products of tensors and poolings over integers, as trees of scalar operations."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import numpy as np

from kera_hw.graph.node import Node, Ref
from kera_hw.ops.spec import Array
from kera_hw.rtl.lower import scalars
from kera_hw.rtl.lower.builder import Builder
from kera_hw.rtl.lower.tensors import Handler
from kera_hw.rtl.lower.values import Tensor, Value
from kera_hw.types import BOOL, FixType, IntType, TensorType, Type, element_type

Fold = Callable[[Ref, Ref], Ref]


def tree(items: Sequence[Ref], join: Fold) -> Ref:
    """Balanced pairwise reduction, an odd last one carried up."""
    level = list(items)
    while len(level) > 1:
        joined = [join(level[i], level[i + 1]) for i in range(0, len(level) - 1, 2)]
        level = joined + ([level[-1]] if len(level) % 2 else [])
    return level[0]


def _rows(source: Tensor, axis: int) -> tuple[Array, tuple[int, ...]]:
    """Positions as (outputs, reduced), and the shape of the outputs."""
    if axis == -1:
        return source.indices().reshape(1, -1), ()
    moved = np.moveaxis(source.indices(), axis, -1)
    shape = moved.shape[:-1]
    return moved.reshape(int(np.prod(shape, dtype=np.int64)), source.shape[axis]), shape


def reduce_rows(node: Node, args: list[Value], finish: Callable[[list[Ref]], Ref]) -> list[Value]:
    """The reduced axis taken together by ``finish``, for every output element."""
    source = args[0]
    assert isinstance(source, Tensor)
    rows, shape = _rows(source, cast(int, node.attr("axis")))
    items = tuple(finish([source.items[int(i)] for i in row]) for row in rows)
    return [Tensor(shape, items) if isinstance(node.types[0], TensorType) else items[0]]


def _joiner(builder: Builder, opcode: str) -> Fold:
    """One step of a reduction."""
    def join(a: Ref, b: Ref) -> Ref:
        name = opcode.replace("integer.", "fixed.") if isinstance(a.type, FixType) else opcode
        return scalars.apply(builder, name, a, b)

    return join


def _with_identity(opcode: str, identity: int) -> Handler:
    def handler(builder: Builder, node: Node, args: list[Value]) -> list[Value]:
        empty = builder.const(element_type(node.types[0]), identity)
        join = _joiner(builder, opcode)
        return reduce_rows(node, args, lambda items: tree(items, join) if items else empty)

    return handler


def _ordered(opcode: str, bool_opcode: str) -> Handler:
    def handler(builder: Builder, node: Node, args: list[Value]) -> list[Value]:
        join = _joiner(builder, bool_opcode if element_type(node.types[0]) == BOOL else opcode)
        return reduce_rows(node, args, lambda items: tree(items, join))

    return handler


def _arg(want_low: bool) -> Handler:
    """Position of the first least (or greatest) element."""

    def handler(builder: Builder, node: Node, args: list[Value]) -> list[Value]:
        kind = element_type(node.types[0])

        def better(a: tuple[Ref, Ref], b: tuple[Ref, Ref]) -> tuple[Ref, Ref]:
            later = builder.op("compare.lt", *((b[0], a[0]) if want_low else (a[0], b[0])))
            return builder.select(later, b[0], a[0]), builder.select(later, b[1], a[1])

        def finish(items: list[Ref]) -> Ref:
            level = [(item, builder.const(kind, i)) for i, item in enumerate(items)]
            while len(level) > 1:
                joined = [better(level[i], level[i + 1]) for i in range(0, len(level) - 1, 2)]
                level = joined + ([level[-1]] if len(level) % 2 else [])
            return level[0][1]

        return reduce_rows(node, args, finish)

    return handler


def _products(builder: Builder, kind: Type, pairs: list[tuple[Ref, Ref]]) -> Ref:
    if not pairs:
        return builder.const(kind, 0)
    terms = [builder.op("integer.mul", a, b) for a, b in pairs]
    return tree(terms, _joiner(builder, "integer.add"))


def _dot(builder: Builder, node: Node, args: list[Value]) -> list[Value]:
    a, b = args
    assert isinstance(a, Tensor) and isinstance(b, Tensor)
    return [_products(builder, node.types[0], list(zip(a.items, b.items)))]


def _matmul(builder: Builder, node: Node, args: list[Value]) -> list[Value]:
    a, b = args
    assert isinstance(a, Tensor) and isinstance(b, Tensor)
    (rows, inner), columns = a.shape, b.shape[1]
    kind = element_type(node.types[0])
    items = [
        _products(builder, kind, [(a.items[i * inner + k], b.items[k * columns + j]) for k in range(inner)])
        for i in range(rows)
        for j in range(columns)
    ]
    return [Tensor((rows, columns), tuple(items))]


def _windows(source: Tensor, size: tuple[int, int], stride: int, pad: int) -> Array:
    """Positions (channel, y, x, row, column) of every window; -1 where padded."""
    padded = np.pad(source.indices(), ((0, 0), (pad, pad), (pad, pad)), constant_values=-1)
    views = np.lib.stride_tricks.sliding_window_view(padded, size, axis=(1, 2))
    return views[:, ::stride, ::stride]


def _conv2d(builder: Builder, node: Node, args: list[Value]) -> list[Value]:
    kind = element_type(node.types[0])
    return convolve(node, args, lambda pairs: _products(builder, kind, pairs))


def convolve(
    node: Node, args: list[Value], contract: Callable[[list[tuple[Ref, Ref]]], Ref]
) -> list[Value]:
    """Every output element from its (input, weight) pairs: channel, then row, then column; no padding."""
    x, w = args
    assert isinstance(x, Tensor) and isinstance(w, Tensor)
    stride, pad = cast(int, node.attr("stride")), cast(int, node.attr("pad"))
    outs, _channels, rows, columns = w.shape
    views = _windows(x, (rows, columns), stride, pad)
    items: list[Ref] = []
    for o in range(outs):
        weights = w.indices()[o].ravel()
        for y in range(views.shape[1]):
            for z in range(views.shape[2]):
                window = views[:, y, z].ravel()
                pairs = [(x.items[int(p)], w.items[int(q)]) for p, q in zip(window, weights) if p >= 0]
                items.append(contract(pairs))
    return [Tensor((outs, views.shape[1], views.shape[2]), tuple(items))]


def pool(node: Node, args: list[Value], finish: Callable[[list[Ref]], Ref]) -> list[Value]:
    """Every window's elements, row-major and without padding, taken together by ``finish``."""
    x = args[0]
    assert isinstance(x, Tensor)
    size, stride, pad = (cast(int, node.attr(name)) for name in ("size", "stride", "pad"))
    views = _windows(x, (size, size), stride, pad)
    items = [
        finish([x.items[int(p)] for p in views[c, y, z].ravel() if p >= 0])
        for c in range(views.shape[0])
        for y in range(views.shape[1])
        for z in range(views.shape[2])
    ]
    return [Tensor(views.shape[:3], tuple(items))]


def _max_pool(builder: Builder, node: Node, args: list[Value]) -> list[Value]:
    return pool(node, args, lambda items: tree(items, _joiner(builder, "integer.max")))


def _avg_pool(builder: Builder, node: Node, args: list[Value]) -> list[Value]:
    kind = element_type(node.types[0])

    def finish(items: list[Ref]) -> Ref:
        total = tree(items, _joiner(builder, "integer.add"))
        count = kind.wrap(len(items)) if isinstance(kind, IntType) else len(items)
        return builder.op("integer.div", total, builder.const(kind, count))

    return pool(node, args, finish)


HANDLERS: dict[str, Handler] = {
    "reduce.sum": _with_identity("integer.add", 0),
    "reduce.prod": _with_identity("integer.mul", 1),
    "reduce.any": _with_identity("bits.or", 0),
    "reduce.all": _with_identity("bits.and", 1),
    "reduce.min": _ordered("integer.min", "bits.and"),
    "reduce.max": _ordered("integer.max", "bits.or"),
    "reduce.argmin": _arg(True),
    "reduce.argmax": _arg(False),
    "reduce.dot": _dot,
    "reduce.matmul": _matmul,
    "reduce.conv2d": _conv2d,
    "reduce.max_pool2d": _max_pool,
    "reduce.avg_pool2d": _avg_pool,
}
