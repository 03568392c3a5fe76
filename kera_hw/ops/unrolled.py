"""Reductions and contractions element by element, in the order that defines them.

For readers that have every element of a tensor in hand and no loops: circuits and solvers. ``numerics`` has
the same orders on arrays, ``lower`` as loops.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce as fold
from math import prod
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from kera_hw.numerics.arrays import Array
from kera_hw.numerics.orders import BLOCK, LANES
from kera_hw.ops.spec import Attrs
from kera_hw.types import BOOL, F64, U32, FixType, FloatType, Type, element_type

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Join = Callable[[T, T], T]
Term = Sequence[T]
"""What one element brings: a value, or the two factors of a product."""


class Elements(Protocol[T_co]):
    """A tensor's elements, row-major."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def items(self) -> tuple[T_co, ...]: ...


class Scalars(Protocol[T]):
    """Where scalar operations go. The types of values are those that whoever asks says."""

    def apply(self, opcode: str, kinds: tuple[Type, ...], result: Type, *args: T) -> T:
        """An operation without attributes, or a cast to ``result``."""
        ...

    def constant(self, kind: Type, value: int, /) -> T:
        """An integer or a raw fixed-point number."""
        ...

    def known(self, item: T) -> int | None:
        """The raw number of an integer or fixed-point constant; None for anything else."""
        ...


@dataclass(frozen=True, slots=True)
class Chain(Generic[T]):
    """How terms accumulate: what the first gives, what one more adds, how two accumulators join."""

    first: Callable[..., T]
    step: Callable[..., T]
    combine: Join[T]


# ---------------------------------------------------------------- orders


def tree(items: Sequence[T], join: Join[T]) -> T:
    """Neighbours in pairs, level by level; an odd last one moves up as it is."""
    level = list(items)
    while len(level) > 1:
        joined = [join(level[k], level[k + 1]) for k in range(0, len(level) - 1, 2)]
        level = joined + ([level[-1]] if len(level) % 2 else [])
    return level[0]


def sequential(chain: Chain[T], terms: Sequence[Term[T]]) -> T:
    """From the first term on, one after another."""
    return fold(lambda acc, term: chain.step(acc, *term), terms[1:], chain.first(*terms[0]))


def lanes(chain: Chain[T], terms: Sequence[Term[T]]) -> T:
    """64 lanes in blocks of 4096, lanes folded by halves, blocks combined as a tree."""
    blocks = [terms[low : low + BLOCK] for low in range(0, len(terms), BLOCK)]
    return tree([_block(chain, block) for block in blocks], chain.combine)


def _block(chain: Chain[T], terms: Sequence[Term[T]]) -> T:
    """Lane l takes terms l, l + 64, ...; then it is joined with l + 32, l + 16, ..., the lower one first."""
    found = [sequential(chain, terms[lane::LANES]) for lane in range(min(LANES, len(terms)))]
    half = LANES // 2
    while half:
        joined = [chain.combine(found[k], found[k + half]) for k in range(max(0, len(found) - half))]
        found = joined + found[len(joined) : half]
        half //= 2
    return found[0]


def folded(chain: Chain[T], order: str, terms: Sequence[Term[T]]) -> T:
    """One term or more in a named order; in any, here a tree, where all are the same ("")."""
    if order == "lanes":
        return lanes(chain, terms)
    if order == "sequential":
        return sequential(chain, terms)
    assert order in ("tree", ""), f"the order {order} is no order of steps"
    return tree([chain.first(*term) for term in terms], chain.combine)


# ---------------------------------------------------------------- places


def axis_lines(shape: tuple[int, ...], axis: int) -> Array:
    """The places of the elements along an axis (-1: of all), one line for each element of the result."""
    places = np.arange(prod(shape)).reshape(shape)
    if axis == -1:
        return places.reshape(1, -1)
    moved = np.moveaxis(places, axis, -1)
    return moved.reshape(prod(moved.shape[:-1]), shape[axis])


def window_places(shape: tuple[int, ...], size: tuple[int, int], stride: int, pad: int) -> Array:
    """Places ``(OH, OW, C, KH, KW)`` in ``(C, H, W)`` of what each window covers; -1 in the padding."""
    places = np.arange(prod(shape)).reshape(shape)
    around = np.pad(places, ((0, 0), (pad, pad), (pad, pad)), constant_values=-1)
    views = np.lib.stride_tricks.sliding_window_view(around, size, axis=(1, 2))
    return views[:, ::stride, ::stride].transpose(1, 2, 0, 3, 4)


# ---------------------------------------------------------------- one node


class Unrolling(Generic[T]):
    """One reduction, written in scalar operations."""

    def __init__(self, to: Scalars[T], operands: Sequence[Type], result: Type, attrs: Attrs) -> None:
        self.to = to
        self.attrs = attrs
        self.kind = element_type(operands[0])
        self.result = result

    # Scalars

    @staticmethod
    def _family(kind: Type) -> str:
        if isinstance(kind, FloatType):
            return "floating"
        return "fixed" if isinstance(kind, FixType) else "integer"

    def op(self, verb: str, kind: Type) -> Callable[..., T]:
        """An operation of numbers of one type that gives one."""
        opcode = f"{self._family(kind)}.{verb}"
        return lambda *args: self.to.apply(opcode, (kind,) * len(args), kind, *args)

    def _cast(self, value: T, source: Type, target: Type) -> T:
        return value if source == target else self.to.apply("convert.cast", (source,), target, value)

    def _number(self, value: int) -> T:
        """A whole number as an element, rounded where it has to be."""
        if isinstance(self.kind, FloatType):
            return self._cast(self.to.constant(U32, value), U32, self.kind)
        return self.to.constant(self.kind, value)

    def _joined(self, join: Join[T]) -> Chain[T]:
        def itself(item: T) -> T:
            return item

        return Chain(itself, join, join)

    def flags(self, verb: str) -> Join[T]:
        return lambda a, b: self.to.apply(f"bits.{verb}", (BOOL, BOOL), BOOL, a, b)

    # Along an axis

    def accumulated(self, verb: str, empty: int) -> Callable[[Sequence[T]], T]:
        def finish(items: Sequence[T]) -> T:
            order = self.attrs["order"]
            if order == "":  # what changes nothing is left out, or a tree would be deeper than it has to be
                items = [item for item in items if self.to.known(item) != empty]
            if not items:
                return self._number(empty)
            return folded(self._joined(self.op(verb, self.kind)), order, [(item,) for item in items])

        return finish

    def extreme(self, join: Join[T], empty: int | None = None) -> Callable[[Sequence[T]], T]:
        """In any order, and each element once however often it occurs."""

        def finish(items: Sequence[T]) -> T:
            if not items and empty is not None:
                return self.to.constant(self.kind, empty)
            return tree(list(dict.fromkeys(items)), join)

        return finish

    def position(self, least: bool) -> Callable[[Sequence[T]], T]:
        """The first index of the best element: of two the earlier, unless the later is better."""
        to, place = self.to, element_type(self.result)

        def better(a: tuple[T, T], b: tuple[T, T]) -> tuple[T, T]:
            pair = (b[0], a[0]) if least else (a[0], b[0])
            later = to.apply("compare.lt", (self.kind, self.kind), BOOL, *pair)
            if isinstance(self.kind, FloatType):  # the first NaN wins
                first, second = (to.apply("floating.is_nan", (self.kind,), BOOL, x[0]) for x in (a, b))
                other = self.flags("and")(second, to.apply("bits.not", (BOOL,), BOOL, first))
                later = self.flags("or")(later, other)
            return self._chosen(later, self.kind, b[0], a[0]), self._chosen(later, place, b[1], a[1])

        def finish(items: Sequence[T]) -> T:
            return tree([(item, to.constant(place, k)) for k, item in enumerate(items)], better)[1]

        return finish

    def _chosen(self, condition: T, kind: Type, then: T, otherwise: T) -> T:
        return self.to.apply("control.select", (BOOL, kind, kind), kind, condition, then, otherwise)

    def along(self, finish: Callable[[Sequence[T]], T], args: Sequence[Elements[T]]) -> Iterator[T]:
        (source,) = args
        for line in axis_lines(source.shape, self.attrs["axis"]):
            yield finish([source.items[int(place)] for place in line])

    # Contractions

    def _products(self, kind: Type, mul: str) -> Chain[T]:
        add, times = self.op("add", kind), self.op("mul", kind)

        def unfused(acc: T, a: T, b: T) -> T:
            return add(acc, times(a, b))

        def fused(acc: T, a: T, b: T) -> T:
            return self.op("fma", kind)(a, b, acc)

        return Chain(times, fused if mul == "fused" else unfused, add)

    def contracted(self, order: str, pairs: Sequence[Term[T]]) -> T:
        """A sum of products: modulo 2^W on integers, on floats with the roundings that ``mul`` says."""
        if not pairs:
            return self._number(0)
        mul = self.attrs["mul"]
        if mul != "wide":
            return folded(self._products(self.kind, mul), order, pairs)
        wide = [[self._cast(item, self.kind, F64) for item in pair] for pair in pairs]
        return self._cast(folded(self._products(F64, mul), order, wide), F64, self.kind)

    @property
    def _chain_order(self) -> str:
        return "sequential" if isinstance(self.kind, FloatType) else ""

    def dot(self, args: Sequence[Elements[T]]) -> Iterator[T]:
        a, b = args
        yield self.contracted(self.attrs["order"], list(zip(a.items, b.items)))

    def matmul(self, args: Sequence[Elements[T]]) -> Iterator[T]:
        a, b = args
        (rows, inner), columns = a.shape, b.shape[1]
        for i in range(rows):
            for j in range(columns):
                pairs = [(a.items[i * inner + k], b.items[k * columns + j]) for k in range(inner)]
                yield self.contracted(self._chain_order, pairs)

    def conv2d(self, args: Sequence[Elements[T]]) -> Iterator[T]:
        """Channel, then row, then column; padding takes no part."""
        x, w = args
        outputs, channels, height, width = w.shape
        places = window_places(x.shape, (height, width), self.attrs["stride"], self.attrs["pad"])
        kernel = channels * height * width
        windows = places.reshape(places.shape[0] * places.shape[1], kernel)
        for o in range(outputs):
            weights = w.items[o * kernel : (o + 1) * kernel]
            for window in windows:
                pairs = [(x.items[int(p)], q) for p, q in zip(window, weights) if p >= 0]
                yield self.contracted(self._chain_order, pairs)


Finish = Callable[[Sequence[Any]], Any]

_ALONG: Mapping[str, Callable[[Unrolling[Any]], Finish]] = {
    "reduce.sum": lambda node: node.accumulated("add", 0),
    "reduce.prod": lambda node: node.accumulated("mul", 1),
    "reduce.min": lambda node: node.extreme(node.op("min", node.kind)),
    "reduce.max": lambda node: node.extreme(node.op("max", node.kind)),
    "reduce.any": lambda node: node.extreme(node.flags("or"), 0),
    "reduce.all": lambda node: node.extreme(node.flags("and"), 1),
    "reduce.argmin": lambda node: node.position(least=True),
    "reduce.argmax": lambda node: node.position(least=False),
}
_CONTRACTIONS: Mapping[str, Callable[[Unrolling[Any], Sequence[Elements[Any]]], Iterator[Any]]] = {
    "reduce.dot": lambda node, args: node.dot(args),
    "reduce.matmul": lambda node, args: node.matmul(args),
    "reduce.conv2d": lambda node, args: node.conv2d(args),
}

UNROLLED = (*_ALONG, *_CONTRACTIONS)
"""What ``unrolled`` writes. The order ``exact`` of floats is none of steps: sums in it are expansions."""


def unrolled(
    to: Scalars[T], opcode: str, operands: Sequence[Type], result: Type, attrs: Attrs,
    args: Sequence[Elements[T]],
) -> tuple[T, ...]:
    """The elements of a reduction's result, row-major."""
    node = Unrolling(to, operands, result, attrs)
    contraction = _CONTRACTIONS.get(opcode)
    if contraction is not None:
        return tuple(contraction(node, args))
    return tuple(node.along(_ALONG[opcode](node), args))
