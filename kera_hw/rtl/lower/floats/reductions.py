"""Reductions, contractions and poolings of floats: the order of every rounding is part of the operation."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from kera_hw.graph.node import Node, Ref
from kera_hw.rtl.lower import reductions as shapes
from kera_hw.rtl.lower.builder import Builder
from kera_hw.rtl.lower.floats import convert
from kera_hw.rtl.lower.floats.fields import unpack
from kera_hw.rtl.lower.floats.table import apply
from kera_hw.rtl.lower.values import Tensor, Value
from kera_hw.types import F64, FloatType, IntType, TensorType, element_type

LANES = 64
BLOCK = 4096

Term = tuple[Ref, ...]
"""What one element brings: a value, or the pair of factors of a product."""


@dataclass(frozen=True, slots=True)
class Chain:
    """How terms accumulate: what the first gives, what one more adds, how two accumulators join."""

    first: Callable[..., Ref]
    step: Callable[..., Ref]
    combine: Callable[[Ref, Ref], Ref]


def _operation(builder: Builder, opcode: str, kind: FloatType) -> Callable[..., Ref]:
    return lambda *operands: apply(builder, opcode, kind, *operands)


def _itself(item: Ref) -> Ref:
    return item


def _plain(builder: Builder, opcode: str, kind: FloatType) -> Chain:
    join = _operation(builder, opcode, kind)
    return Chain(_itself, join, join)


def _products(builder: Builder, kind: FloatType, mul: str) -> Chain:
    add, times, fma = (_operation(builder, f"floating.{verb}", kind) for verb in ("add", "mul", "fma"))

    def unfused(acc: Ref, a: Ref, b: Ref) -> Ref:
        return add(acc, times(a, b))

    def fused(acc: Ref, a: Ref, b: Ref) -> Ref:
        return fma(a, b, acc)

    return Chain(times, unfused if mul == "unfused" else fused, add)


def _folded(chain: Chain, order: str, terms: Sequence[Term]) -> Ref:
    if order == "tree":
        return shapes.tree([chain.first(*term) for term in terms], chain.combine)
    if order == "sequential":
        return _sequence(chain, terms)
    blocks = [terms[low : low + BLOCK] for low in range(0, len(terms), BLOCK)]
    return shapes.tree([_block(chain, block) for block in blocks], chain.combine)


def _sequence(chain: Chain, terms: Sequence[Term]) -> Ref:
    accumulator = chain.first(*terms[0])
    for term in terms[1:]:
        accumulator = chain.step(accumulator, *term)
    return accumulator


def _block(chain: Chain, terms: Sequence[Term]) -> Ref:
    """Lane l takes elements l, l + 64, ...; then lanes fold by halves, the lower one on the left."""
    lanes = [_sequence(chain, terms[lane::LANES]) for lane in range(min(LANES, len(terms)))]
    half = LANES // 2
    while half:
        joined = [chain.combine(lanes[k], lanes[k + half]) for k in range(max(0, len(lanes) - half))]
        lanes = joined + lanes[len(joined) : half]
        half //= 2
    return lanes[0]


def _constant(builder: Builder, kind: FloatType, count: int) -> Ref:
    """An integer as a float constant."""
    source = IntType(64, False)
    return convert.from_integer(builder, source, kind, builder.const(source, count))


def _kind(node: Node) -> FloatType:
    kind = element_type(node.inputs[0].type)
    assert isinstance(kind, FloatType)
    return kind


def _fold(builder: Builder, node: Node, opcode: str, terms: Sequence[Term], empty: int) -> Ref:
    """A sum or product in the node's order; ``exact`` is that of any order where it is not refused."""
    kind, order = _kind(node), cast(str, node.attr("order"))
    if not terms:
        return _constant(builder, kind, empty)
    chain = _plain(builder, opcode, kind)
    return _folded(chain, "tree" if order == "exact" else order, terms)


def _reduced(opcode: str, empty: int) -> Callable[[Builder, Node, list[Value]], list[Value]]:
    def handler(builder: Builder, node: Node, args: list[Value]) -> list[Value]:
        return shapes.reduce_rows(
            node, args, lambda items: _fold(builder, node, opcode, [(i,) for i in items], empty)
        )

    return handler


def _word(kind: FloatType) -> IntType:
    return IntType(kind.width_bits, False)


def _extreme(opcode: str) -> Callable[[Builder, Node, list[Value]], list[Value]]:
    def handler(builder: Builder, node: Node, args: list[Value]) -> list[Value]:
        join = _operation(builder, opcode, _kind(node))
        return shapes.reduce_rows(node, args, lambda items: shapes.tree(items, join))

    return handler


def _position(want_low: bool) -> Callable[[Builder, Node, list[Value]], list[Value]]:
    """Position of the first least (or greatest) element by ``<``; a NaN wins over numbers, the first one."""

    def handler(builder: Builder, node: Node, args: list[Value]) -> list[Value]:
        kind, index = _kind(node), element_type(node.types[0])

        def better(a: tuple[Ref, Ref], b: tuple[Ref, Ref]) -> tuple[Ref, Ref]:
            less = apply(builder, "compare.lt", kind, *((b[0], a[0]) if want_low else (a[0], b[0])))
            x, y = unpack(builder, kind, a[0]), unpack(builder, kind, b[0])
            later = x.wires.either(less, x.wires.unless(y.is_nan, x.is_nan))
            return builder.select(later, b[0], a[0]), builder.select(later, b[1], a[1])

        def finish(items: list[Ref]) -> Ref:
            level = [(item, builder.const(index, i)) for i, item in enumerate(items)]
            while len(level) > 1:
                joined = [better(level[i], level[i + 1]) for i in range(0, len(level) - 1, 2)]
                level = joined + ([level[-1]] if len(level) % 2 else [])
            return level[0][1]

        return shapes.reduce_rows(node, args, finish)

    return handler


def _contracted(builder: Builder, node: Node, order: str, pairs: Sequence[Term]) -> Ref:
    """A sum of products in an order and with the roundings that ``mul`` says; +0 of none."""
    kind, mul = _kind(node), cast(str, node.attr("mul"))
    if not pairs:
        return builder.const(_word(kind), 0)
    order = "tree" if order == "exact" else order
    if mul != "wide" or kind == F64:
        return _folded(_products(builder, kind, mul), order, pairs)
    wide: list[Term] = [tuple(convert.between(builder, kind, F64, item) for item in pair) for pair in pairs]
    found = _folded(_products(builder, F64, "unfused"), order, wide)
    return convert.between(builder, F64, kind, found)


def _dot(builder: Builder, node: Node, args: list[Value]) -> list[Value]:
    a, b = args
    assert isinstance(a, Tensor) and isinstance(b, Tensor)
    return [_contracted(builder, node, cast(str, node.attr("order")), list(zip(a.items, b.items)))]


def matmul(a: Tensor, b: Tensor, chain: Callable[[list[Term]], Ref]) -> Tensor:
    """Every output element by one chain over the contraction index."""
    (rows, inner), columns = a.shape, b.shape[1]
    items = [
        chain([(a.items[i * inner + k], b.items[k * columns + j]) for k in range(inner)])
        for i in range(rows)
        for j in range(columns)
    ]
    return Tensor((rows, columns), tuple(items))


def _matmul(builder: Builder, node: Node, args: list[Value]) -> list[Value]:
    a, b = args
    assert isinstance(a, Tensor) and isinstance(b, Tensor)
    return [matmul(a, b, lambda pairs: _contracted(builder, node, "sequential", pairs))]


def _conv2d(builder: Builder, node: Node, args: list[Value]) -> list[Value]:
    return shapes.convolve(node, args, lambda pairs: _contracted(builder, node, "sequential", pairs))


def _max_pool(builder: Builder, node: Node, args: list[Value]) -> list[Value]:
    join = _operation(builder, "floating.max", _kind(node))
    return shapes.pool(node, args, lambda items: shapes.tree(items, join))


def _avg_pool(builder: Builder, node: Node, args: list[Value]) -> list[Value]:
    """Row-major, sequentially, divided by how many positions take part."""
    kind = _kind(node)
    chain = _plain(builder, "floating.add", kind)

    def finish(items: list[Ref]) -> Ref:
        return apply(
            builder, "floating.div", kind, _sequence(chain, [(item,) for item in items]),
            _constant(builder, kind, len(items)),
        )

    return shapes.pool(node, args, finish)


HANDLERS: dict[str, Callable[[Builder, Node, list[Value]], list[Value]]] = {
    "reduce.sum": _reduced("floating.add", 0),
    "reduce.prod": _reduced("floating.mul", 1),
    "reduce.min": _extreme("floating.min"),
    "reduce.max": _extreme("floating.max"),
    "reduce.argmin": _position(True),
    "reduce.argmax": _position(False),
    "reduce.dot": _dot,
    "reduce.matmul": _matmul,
    "reduce.conv2d": _conv2d,
    "reduce.max_pool2d": _max_pool,
    "reduce.avg_pool2d": _avg_pool,
}


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
