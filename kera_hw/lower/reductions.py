"""Reductions, contractions and pooling as loops in their defined order."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import cast

from kera_hw.graph.node import Node
from kera_hw.loops.program import Affine, Literal, Operand, of_var
from kera_hw.lower.emitter import Emitter, literal
from kera_hw.lower.orders import Chain, Terms, best_place, family, folding, products, reduce, sequential
from kera_hw.lower.region import Lowering, Rule
from kera_hw.lower.views import Value, View
from kera_hw.types import BOOL, U32, FloatType, TensorType, Type, element_type

FoldAxis = Callable[[int, Terms], Operand]


def _view(value: Value) -> View:
    assert isinstance(value, View)
    return value


def _int(node: Node, name: str) -> int:
    return cast(int, node.attr(name))


def _over_axis(lower: Lowering, node: Node, source: View, fold: FoldAxis) -> list[Value]:
    """``fold`` over the axis, or over all elements row-major, for every element of the result."""
    axis = _int(node, "axis")
    if axis == -1 or len(source.shape) == 1:
        flat = _flattened(lower, source)
        return [fold(flat.size, lambda k: [lower.read(flat, [k])])]

    def element(index: list[Affine]) -> Operand:
        def term(k: Affine) -> list[Operand]:
            return [lower.read(source, [*index[:axis], k, *index[axis:]])]

        return fold(source.shape[axis], term)

    return [lower.fill(node.types[0], element)]


def _flattened(lower: Lowering, source: View) -> View:
    """One axis, row-major."""
    if len(source.shape) == 1:
        return source
    target = lower.new(TensorType(source.element, (source.size,)))
    with lower.emit.nest(source.shape) as variables:
        linear = Affine()
        for var, extent in zip(variables, source.shape):
            linear = linear * extent + of_var(var)
        lower.write(target, [linear], lower.read(source, [of_var(var) for var in variables]))
    return target


def _constant(emit: Emitter, kind: Type, value: int) -> Operand:
    """A count in the element type; floats round it."""
    if isinstance(kind, FloatType):
        return emit.cast(emit.count(value), kind)
    return literal(kind, value)


def _with_identity(verb: str, identity: int) -> Rule:
    def rule(lower: Lowering, node: Node, args: list[Value]) -> list[Value]:
        emit, source = lower.emit, _view(args[0])
        kind = source.element
        opcode = {"sum": f"{family(kind)}.add", "prod": f"{family(kind)}.mul"}.get(verb, f"bits.{verb}")
        order = dict(node.attrs).get("order") or "sequential"

        def fold(count: int, terms: Terms) -> Operand:
            if not count:
                return _constant(emit, kind, identity)
            return reduce(emit, folding(emit, kind, opcode), cast(str, order), count, terms)

        return _over_axis(lower, node, source, fold)

    return rule


def _extreme(verb: str) -> Rule:
    def rule(lower: Lowering, node: Node, args: list[Value]) -> list[Value]:
        source = _view(args[0])
        chain = folding(lower.emit, source.element, f"{family(source.element)}.{verb}")
        return _over_axis(
            lower, node, source, lambda count, terms: sequential(lower.emit, chain, count, terms)
        )

    return rule


def _position(better: str) -> Rule:
    """The first best element's place; zeros tie, the first NaN wins."""

    def rule(lower: Lowering, node: Node, args: list[Value]) -> list[Value]:
        emit, source = lower.emit, _view(args[0])
        is_float = isinstance(source.element, FloatType)

        def wins(value: Operand, best: Operand) -> Operand:
            """Whether a later element takes the place of the best before it."""
            found = emit.op(better, value, best)
            if not is_float:
                return found
            fresh = emit.op("bits.not", emit.op("floating.is_nan", best))
            nan = emit.op("bits.and", emit.op("floating.is_nan", value), fresh)
            return emit.op("bits.or", found, nan)

        def fold(count: int, terms: Terms) -> Operand:
            if emit.options.unrolled:
                return best_place(emit, source.element, wins, count, terms)
            (first,) = terms(Affine(0))
            with emit.loop(count - 1, [first, literal(U32, 0)]) as round_:
                best, place = round_.inner
                where = of_var(round_.index) + 1
                (value,) = terms(where)
                later = wins(value, best)
                here = emit.cast(emit.of_affine(where), U32)
                round_.next = [emit.select(later, value, best), emit.select(later, here, place)]
            return round_.results[1]

        return _over_axis(lower, node, source, fold)

    return rule


# Contractions


def _contract(emit: Emitter, chain: Chain, order: str, count: int, terms: Terms, kind: Type) -> Operand:
    if not count:
        return literal(kind, 0)
    return reduce(emit, chain, order, count, terms)


def _mul(node: Node) -> str:
    return cast(str, node.attr("mul"))


def dot(lower: Lowering, node: Node, args: list[Value]) -> list[Value]:
    a, b = (_view(arg) for arg in args)
    chain = products(lower.emit, a.element, _mul(node))
    order = cast(str, node.attr("order")) or "sequential"

    def terms(k: Affine) -> list[Operand]:
        return [lower.read(a, [k]), lower.read(b, [k])]

    return [_contract(lower.emit, chain, order, a.size, terms, a.element)]


def matmul(lower: Lowering, node: Node, args: list[Value]) -> list[Value]:
    a, b = (_view(arg) for arg in args)
    chain = products(lower.emit, a.element, _mul(node))

    def element(index: list[Affine]) -> Operand:
        row, column = index

        def terms(k: Affine) -> list[Operand]:
            return [lower.read(a, [row, k]), lower.read(b, [k, column])]

        return _contract(lower.emit, chain, "sequential", a.shape[1], terms, a.element)

    return [lower.fill(node.types[0], element)]


class Windows:
    """Windows of an image: which element stands where, and whether it is one at all."""

    def __init__(self, lower: Lowering, source: View, node: Node) -> None:
        self.lower = lower
        self.source = source
        self.stride, self.pad = _int(node, "stride"), _int(node, "pad")

    def read(self, channel: Affine, out: Sequence[Affine], at: Sequence[Affine]) -> tuple[Operand, Operand]:
        """The element at ``at`` of the window of ``out`` (any one where padded), and whether it is real."""
        places, inside = self.places(out, at)
        return self.lower.read(self.source, [channel, *places]), inside

    def places(self, out: Sequence[Affine], at: Sequence[Affine]) -> tuple[list[Affine], Operand]:
        """Where that is, held within the image, and whether it had to be."""
        emit, places, real = self.lower.emit, list[Affine](), literal(BOOL, 1)
        inside: Operand = real
        for where, step, extent in zip(out, at, self.source.shape[1:]):
            position = where * self.stride + step - self.pad
            span = emit.span(position)
            if span is not None and span.low >= 0 and span.high < extent:
                places.append(position)
                continue
            value = emit.of_affine(position)
            low = emit.op("compare.ge", value, emit.count(0))
            high = emit.op("compare.lt", value, emit.count(extent))
            both = emit.op("bits.and", low, high)
            inside = both if inside is real else emit.op("bits.and", inside, both)
            places.append(emit.clamped(value, extent - 1))
        return places, inside


def _accumulate(
    lower: Lowering, chain: Chain, extents: Sequence[int], zero: Operand,
    terms: Callable[[list[Affine]], tuple[Sequence[Operand], Operand]],
) -> tuple[Operand, Operand]:
    """Terms at all indices of ``extents`` in order, those that are real; and how many those were."""
    emit = lower.emit

    def nested(index: list[Affine], state: list[Operand]) -> list[Operand]:
        if len(index) == len(extents):
            return step(index, state)
        with emit.loop(extents[len(index)], state) as round_:
            round_.next = nested([*index, of_var(round_.index)], list(round_.inner))
        return round_.results

    def step(index: list[Affine], state: list[Operand]) -> list[Operand]:
        acc, seen = state
        values, real = terms(index)
        started = emit.op("compare.gt", seen, emit.count(0))
        added = emit.select(started, chain.step(acc, values), chain.first(values))
        more = emit.op("integer.add", seen, emit.count(1))
        if isinstance(real, Literal):
            return [added, more]
        return [emit.select(real, added, acc), emit.select(real, more, seen)]

    acc, seen = nested([], [zero, emit.count(0)])
    return acc, seen


def _apart(lower: Lowering, chain: Chain, x: View, w: View, out: Sequence[Affine], node: Node) -> Operand:
    """The products of an output beside each other, in the padding 0, and then their sum in any order."""
    emit, extents = lower.emit, w.shape[1:]
    if not prod(extents):
        return literal(chain.kind, 0)
    stride, (number, *place) = _int(node, "stride"), out
    found = lower.new(TensorType(chain.kind, (prod(extents),)))
    with emit.nest(extents) as variables:
        channel, *at = (of_var(var) for var in variables)
        linear = (channel * extents[1] + at[0]) * extents[2] + at[1]
        inside = [where * stride + step for where, step in zip(place, at)]
        values = [lower.read(x, [channel, *inside]), lower.read(w, [number, channel, *at])]
        lower.write(found, [linear], chain.first(values))
    adding = folding(emit, chain.kind, f"{family(chain.kind)}.add")
    return chain.finish(sequential(emit, adding, found.size, lambda k: [lower.read(found, [k])]))


def _padded(lower: Lowering, x: View, pad: int) -> View:
    """An image with zeros around it."""
    if not pad:
        return x
    channels, *extents = x.shape
    kind = TensorType(x.element, (channels, *(extent + 2 * pad for extent in extents)))
    target = lower.fill(kind, lambda _: literal(x.element, 0))
    lower.copy_into(target.window([Affine(), Affine(pad), Affine(pad)], x.shape), x)
    return target


def conv2d(lower: Lowering, node: Node, args: list[Value]) -> list[Value]:
    """Every output element: channel, then row, then column; padded positions take no part."""
    x, w = (_view(arg) for arg in args)
    chain = products(lower.emit, x.element, _mul(node))
    if lower.emit.options.unrolled and not isinstance(chain.kind, FloatType):
        around = _padded(lower, x, _int(node, "pad"))
        return [lower.fill(node.types[0], lambda index: _apart(lower, chain, around, w, index, node))]
    windows = Windows(lower, x, node)
    # Every window has some of the image.
    roomy = lower.emit.options.roomy and prod(w.shape[1:]) > 0 and windows.pad < min(w.shape[2:])
    around = _padded(lower, x, windows.pad) if roomy else x

    def element(index: list[Affine]) -> Operand:
        out, *place = index

        def terms(at: list[Affine]) -> tuple[list[Operand], Operand]:
            value, real = windows.read(at[0], place, at[1:])
            return [value, lower.read(w, [out, *at])], real

        def beside(at: list[Affine]) -> tuple[list[Operand], Operand]:
            inside = [where * windows.stride + step for where, step in zip(place, at[1:])]
            values = [lower.read(around, [at[0], *inside]), lower.read(w, [out, *at])]
            real = windows.places(place, at[1:])[1] if isinstance(chain.kind, FloatType) else literal(BOOL, 1)
            return values, real

        if roomy:
            return chain.finish(_added(lower, chain, w.shape[1:], beside))
        acc, _ = _accumulate(lower, chain, w.shape[1:], literal(chain.kind, 0), terms)
        return chain.finish(acc)

    return [lower.fill(node.types[0], element)]


def _added(
    lower: Lowering, chain: Chain, extents: Sequence[int],
    terms: Callable[[list[Affine]], tuple[Sequence[Operand], Operand]],
) -> Operand:
    """Terms at all indices in order, those that are real, one at least, added to what changes no sum: -0."""
    emit, kind = lower.emit, chain.kind
    nothing = literal(kind, 1 << (kind.width_bits - 1) if isinstance(kind, FloatType) else 0)

    def nested(index: list[Affine], acc: Operand) -> Operand:
        if len(index) < len(extents):
            with emit.loop(extents[len(index)], [acc]) as round_:
                round_.next = [nested([*index, of_var(round_.index)], round_.inner[0])]
            return round_.results[0]
        values, real = terms(index)
        added = chain.step(acc, values)
        return added if isinstance(real, Literal) else emit.select(real, added, acc)

    return nested([], nothing)


def _pool(
    lower: Lowering, node: Node, args: list[Value], chain: Chain,
    finish: Callable[[Operand, Operand], Operand],
) -> list[Value]:
    x, size = _view(args[0]), _int(node, "size")
    windows = Windows(lower, x, node)

    def element(index: list[Affine]) -> Operand:
        channel, *place = index

        def terms(at: list[Affine]) -> tuple[list[Operand], Operand]:
            value, real = windows.read(channel, place, at)
            return [value], real

        return finish(*_accumulate(lower, chain, (size, size), literal(chain.kind, 0), terms))

    return [lower.fill(node.types[0], element)]


def max_pool2d(lower: Lowering, node: Node, args: list[Value]) -> list[Value]:
    kind = element_type(node.types[0])
    chain = folding(lower.emit, kind, f"{family(kind)}.max")
    return _pool(lower, node, args, chain, lambda value, _: value)


def avg_pool2d(lower: Lowering, node: Node, args: list[Value]) -> list[Value]:
    """The sum divided by how many positions take part."""
    emit, kind = lower.emit, element_type(node.types[0])
    name = family(kind)
    chain = folding(emit, kind, f"{name}.add")

    def finish(total: Operand, count: Operand) -> Operand:
        return emit.op(f"{name}.div", total, emit.cast(count, kind))

    return _pool(lower, node, args, chain, finish)


_ONE_ROUNDING = {"reduce.sum": 2, "reduce.prod": 2, "reduce.dot": 1}
"""Elements up to which one rounding is all there is in the order ``exact``."""


def _is_long(node: Node) -> bool:
    """Whether a sum in the order ``exact`` is more than one rounding."""
    attrs = dict(node.attrs)
    if attrs["order"] != "exact":
        return False
    source, axis = node.inputs[0].type, cast(int, attrs.get("axis", -1))
    assert isinstance(source, TensorType)
    return (source.size if axis == -1 else source.shape[axis]) > _ONE_ROUNDING[node.opcode]


def _unless_exact(rule: Rule) -> Rule:
    """An order's loops; in the order ``exact`` those of the expansion, if roundings can differ from it."""

    def chosen(lower: Lowering, node: Node, args: list[Value]) -> list[Value]:
        return lower.expanded(node, args) if _is_long(node) else rule(lower, node, args)

    return chosen


RULES: dict[str, Rule] = {
    "reduce.sum": _unless_exact(_with_identity("sum", 0)),
    "reduce.prod": _unless_exact(_with_identity("prod", 1)),
    "reduce.any": _with_identity("or", 0), "reduce.all": _with_identity("and", 1),
    "reduce.min": _extreme("min"), "reduce.max": _extreme("max"),
    "reduce.argmin": _position("compare.lt"), "reduce.argmax": _position("compare.gt"),
    "reduce.dot": _unless_exact(dot), "reduce.matmul": matmul, "reduce.conv2d": conv2d,
    "reduce.max_pool2d": max_pool2d, "reduce.avg_pool2d": avg_pool2d,
}
