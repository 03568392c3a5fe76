"""Reductions and contractions as chains and trees of scalar operations, in the order that defines them."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce as fold
from typing import cast

import numpy as np

from kera_hw.graph.node import Node
from kera_hw.ops.spec import Array
from kera_hw.rtl.formal.blocks import Block, along
from kera_hw.rtl.formal.terms import Term
from kera_hw.support import Diagnostic
from kera_hw.target import Instance, Refusal
from kera_hw.types import U32, BoolType, FixType, FloatType, TensorType, Type, element_type, shape_of

# One scalar operation: its name, its operands, the type of the first, and of the result where it differs.
Apply = Callable[..., Term]
Join = Callable[[Term, Term], Term]

LANES, LANE_BLOCK = 64, 4096


class NoMeaning(Exception):
    """An operation that the solver's theories cannot say; carries what the table says of it."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic


class Scalars:
    """The scalar operations that reductions are made of, on elements of one type."""

    def __init__(self, apply: Apply, constant: Callable[[Type, int], Term], kind: Type) -> None:
        self.apply, self.constant, self.kind = apply, constant, kind
        self.family = "floating" if isinstance(kind, FloatType) else "integer"

    def op(self, verb: str, *args: Term) -> Term:
        kind = self.kind.raw if isinstance(self.kind, FixType) else self.kind
        return self.apply(f"{self.family}.{verb}", args, (kind,) * len(args), kind)

    def number(self, value: int) -> Term:
        """A small whole number as an element."""
        if isinstance(self.kind, FloatType):
            return self.apply("convert.cast", (self.constant(U32, value),), (U32,), self.kind)
        kind = self.kind.raw if isinstance(self.kind, FixType) else self.kind
        return self.constant(kind, value)

    def join(self, verb: str) -> Join:
        return lambda a, b: self.op(verb, a, b)


def balanced(items: Sequence[Term], join: Join) -> Term:
    """Pairs, then pairs of pairs; an odd last one waits."""
    level = list(items)
    while len(level) > 1:
        paired = [join(level[k], level[k + 1]) for k in range(0, len(level) - 1, 2)]
        level = [*paired, level[-1]] if len(level) % 2 else paired
    return level[0]


def _lanes(items: Sequence[Term], start: Callable[[Term], Term], step: Join, join: Join) -> Term:
    """64 lanes a block of 4096 folded by halves; blocks joined as a balanced tree."""
    results: list[Term] = []
    for first in range(0, len(items), LANE_BLOCK):
        block = items[first : first + LANE_BLOCK]
        width = min(LANES, len(block))
        lanes = [fold(step, block[k + LANES :: LANES], start(block[k])) for k in range(width)]
        half = LANES // 2
        while half:
            lanes = [
                join(lane, lanes[k + half]) if k + half < len(lanes) else lane
                for k, lane in enumerate(lanes[:half])
            ]
            half //= 2
        results.append(lanes[0])
    return balanced(results, join)


def ordered(items: Sequence[Term], join: Join, order: str) -> Term:
    """Items joined in a named order; "" where the order doesn't matter."""
    if order == "tree":
        return balanced(items, join)
    if order == "lanes":
        return _lanes(items, lambda item: item, join, join)
    assert order in ("", "sequential"), f"the order {order} is refused"
    return fold(join, items)


class Reducer:
    """Reductions of one node."""

    def __init__(self, apply: Apply, constant: Callable[[Type, int], Term], node: Node) -> None:
        self.node, self.attrs = node, dict(node.attrs)
        self.apply, self.constant = apply, constant
        self.kind = element_type(node.inputs[0].type)
        self.scalars = Scalars(apply, constant, self.kind)

    def run(self, args: Sequence[Block]) -> Block:
        verb = self.node.opcode.removeprefix("reduce.")
        if verb in _CONTRACTIONS:
            return _CONTRACTIONS[verb](self, args)
        shape, lines = along(args[0], self._int("axis"))
        return Block(shape, tuple(_FOLDS[verb](self, line) for line in lines))

    def _int(self, name: str) -> int:
        return cast(int, self.attrs[name])

    def _order(self) -> str:
        return str(self.attrs.get("order", ""))

    def total(self, items: Sequence[Term]) -> Term:
        if not items:
            return self.scalars.number(0)
        return ordered(items, self.scalars.join("add"), self._order())

    def prod(self, items: Sequence[Term]) -> Term:
        if not items:
            return self.scalars.number(1)
        return ordered(items, self.scalars.join("mul"), self._order())

    def mean(self, items: Sequence[Term]) -> Term:
        return self.scalars.op("div", self.total(items), self.scalars.number(len(items)))

    def least(self, items: Sequence[Term]) -> Term:
        return fold(self.scalars.join("min"), items)

    def greatest(self, items: Sequence[Term]) -> Term:
        return fold(self.scalars.join("max"), items)

    def logic(self, verb: str, empty: int) -> Callable[[Sequence[Term]], Term]:
        def join(a: Term, b: Term) -> Term:
            return self.apply(f"bits.{verb}", (a, b), (BoolType(), BoolType()), BoolType())

        return lambda items: fold(join, items, self.constant(BoolType(), empty))

    def arg_best(self, items: Sequence[Term], opcode: str) -> Term:
        """The first index of the best; a NaN is better than any number."""
        flag = BoolType()
        best, place = items[0], self.constant(U32, 0)
        for k, item in enumerate(items[1:], start=1):
            better = self.apply(opcode, (item, best), (self.kind, self.kind), flag)
            if isinstance(self.kind, FloatType):
                nan, done = (self.apply("floating.is_nan", (x,), (self.kind,), flag) for x in (item, best))
                open_ = self.apply("bits.not", (done,), (flag,), flag)
                better = self.apply("bits.or", (better, nan), (flag, flag), flag)
                better = self.apply("bits.and", (better, open_), (flag, flag), flag)
            choice = (flag, self.kind, self.kind)
            best = self.apply("control.select", (better, item, best), choice, self.kind)
            number = self.constant(U32, k)
            place = self.apply("control.select", (better, number, place), (flag, U32, U32), U32)
        return place

    # Contractions

    def dot(self, args: Sequence[Block]) -> Block:
        pairs = list(zip(args[0].items, args[1].items))
        if not pairs:
            return Block((), (self.scalars.number(0),))
        return Block((), (self._products(pairs, self._order() or "sequential"),))

    def _products(self, pairs: Sequence[tuple[Term, Term]], order: str) -> Term:
        """Sum of products: fused chains, or rounded products and sums; modulo 2^W on integers."""
        op, mul = self.scalars.op, str(self.attrs["mul"])
        fused = isinstance(self.kind, FloatType) and mul == "fused"
        assert mul != "wide", "products in another format are refused"
        if order == "tree" or not fused:
            products = [op("mul", a, b) for a, b in pairs]
            return ordered(products, self.scalars.join("add"), order)
        if order == "sequential":
            return self._fused(op("mul", *pairs[0]), pairs[1:])
        return self._fused_lanes(pairs)

    def _fused(self, start: Term, pairs: Sequence[tuple[Term, Term]]) -> Term:
        return fold(lambda total, pair: self.scalars.op("fma", *pair, total), pairs, start)

    def _fused_lanes(self, pairs: Sequence[tuple[Term, Term]]) -> Term:
        op, join = self.scalars.op, self.scalars.join("add")
        blocks: list[Term] = []
        for first in range(0, len(pairs), LANE_BLOCK):
            block = pairs[first : first + LANE_BLOCK]
            lanes = [
                self._fused(op("mul", *block[k]), block[k + LANES :: LANES])
                for k in range(min(LANES, len(block)))
            ]
            blocks.append(_lanes(lanes, lambda item: item, join, join))
        return balanced(blocks, join)

    def _chain(self, pairs: Sequence[tuple[Term, Term]]) -> Term:
        return self._products(pairs, "sequential") if pairs else self.scalars.number(0)

    def matmul(self, args: Sequence[Block]) -> Block:
        a, b = args
        rows, (inner, columns) = a.shape[0], b.shape
        items = [
            self._chain([(a.items[i * inner + k], b.items[k * columns + j]) for k in range(inner)])
            for i in range(rows)
            for j in range(columns)
        ]
        return Block((rows, columns), tuple(items))

    def conv2d(self, args: Sequence[Block]) -> Block:
        x, w = args
        outputs = w.shape[0]
        kernel = len(w.items) // outputs if outputs else 0
        items: list[Term] = []
        for o in range(outputs):
            weights = w.items[o * kernel : (o + 1) * kernel]
            for places in self._windows(x.shape, w.shape[2:]):
                taken = [(x.items[p], weights[k]) for k, p in enumerate(places) if p >= 0]
                items.append(self._chain(taken))
        return Block(shape_of(self.node.types[0]), tuple(items))

    def _windows(self, shape: tuple[int, ...], size: tuple[int, ...]) -> list[list[int]]:
        """For each place of the output: the positions in (channel, row, column) order, -1 for padding."""
        pad, stride, (height, width) = self._int("pad"), self._int("stride"), size
        numbers = np.arange(int(np.prod(shape))).reshape(shape)
        around: Array = np.pad(numbers, [(0, 0), (pad, pad), (pad, pad)], constant_values=-1)
        result = self.node.types[0]
        assert isinstance(result, TensorType)
        corners = [(i * stride, j * stride) for i in range(result.shape[1]) for j in range(result.shape[2])]
        return [
            [int(p) for p in around[:, row : row + height, column : column + width].ravel()]
            for row, column in corners
        ]

    def pool(self, args: Sequence[Block], join: Callable[[Sequence[Term]], Term]) -> Block:
        x = args[0]
        size = (self._int("size"), self._int("size"))
        area = x.shape[1] * x.shape[2]
        items: list[Term] = []
        for channel in range(x.shape[0]):
            plane = x.items[channel * area : (channel + 1) * area]
            windows = self._windows((1, *x.shape[1:]), size)
            items += [join([plane[p] for p in places if p >= 0]) for places in windows]
        return Block(shape_of(self.node.types[0]), tuple(items))


Fold = Callable[[Reducer, Sequence[Term]], Term]

_FOLDS: Mapping[str, Fold] = {
    "sum": Reducer.total,
    "prod": Reducer.prod,
    "min": Reducer.least,
    "max": Reducer.greatest,
    "any": lambda self, items: self.logic("or", 0)(items),
    "all": lambda self, items: self.logic("and", 1)(items),
    "argmin": lambda self, items: self.arg_best(items, "compare.lt"),
    "argmax": lambda self, items: self.arg_best(items, "compare.gt"),
}
_CONTRACTIONS: Mapping[str, Callable[[Reducer, Sequence[Block]], Block]] = {
    "dot": Reducer.dot,
    "matmul": Reducer.matmul,
    "conv2d": Reducer.conv2d,
    "max_pool2d": lambda self, args: self.pool(args, self.greatest),
    "avg_pool2d": lambda self, args: self.pool(args, self.mean),
}

REDUCTIONS = tuple(f"reduce.{verb}" for verb in (*_FOLDS, *_CONTRACTIONS))


def _on_floats(name: str, value: str) -> Callable[[Instance], bool]:
    """Whether an attribute of an operation on floats has this value."""
    return lambda instance: isinstance(instance.kind, FloatType) and instance.attrs.get(name) == value


_COMPARE = "Compare on many items instead, without --formal."
_EXACT = Refusal(
    "exact sums and products are wider than the solver's numbers", _COMPARE, _on_floats("order", "exact")
)
_WIDE = Refusal("`wide` products are not translated", _COMPARE, _on_floats("mul", "wide"))

REFUSED: Mapping[str, tuple[Refusal, ...]] = {
    **dict.fromkeys(("reduce.sum", "reduce.prod"), (_EXACT,)),
    "reduce.dot": (_EXACT, _WIDE),
    "reduce.matmul": (_WIDE,),
    "reduce.conv2d": (_WIDE,),
}
