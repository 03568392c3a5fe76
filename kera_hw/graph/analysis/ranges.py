"""Forward interval analysis of integers: which raw values can an output take?

Sound over every input of the region: parameters have their type's whole range, an operation without a row
here gives its result type's whole range, and a sum that may wrap does too. Tensors have one interval for all
their elements; fixed-point values are their raw integers; floats have none.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from kera_hw.graph.node import Node, Ref, Region
from kera_hw.types import (
    BoolType,
    FixType,
    IntType,
    Type,
    element_type,
    numpy_dtype,
    shape_of,
)


@dataclass(frozen=True, slots=True)
class Interval:
    """All integers from ``low`` to ``high``, both included."""

    low: int
    high: int

    def hull(self, other: Interval) -> Interval:
        return Interval(min(self.low, other.low), max(self.high, other.high))

    def within(self, other: Interval) -> bool:
        return other.low <= self.low and self.high <= other.high


def type_range(kind: Type) -> Interval | None:
    """The raw range of a type's elements; None for floats and tokens."""
    kind = element_type(kind)
    if isinstance(kind, BoolType):
        return Interval(0, 1)
    if isinstance(kind, FixType):
        kind = kind.raw
    return Interval(kind.min, kind.max) if isinstance(kind, IntType) else None


Transfer = Callable[[Sequence[Interval], Node], Interval | None]


class RegionRanges:
    """Intervals of one region's outputs, computed on first use in topological order."""

    def __init__(self, region: Region) -> None:
        self._known: dict[Node, Interval | None] = {}
        for node in region.nodes():
            self._known[node] = self._transfer(node) if len(node.types) == 1 else None

    def of(self, ref: Ref) -> Interval | None:
        """The interval of an output; None where the type has no integer range."""
        return self._known.get(ref.node) or type_range(ref.type)

    def _transfer(self, node: Node) -> Interval | None:
        full = type_range(node.types[0])
        rule = _RULES.get(node.opcode)
        if full is None or rule is None:
            return full
        inputs = [self.of(ref) for ref in node.inputs]
        known = [item for item in inputs if item is not None]
        if len(known) != len(inputs):
            return full
        result = rule(known, node)
        return result if result is not None and result.within(full) else full


def _constant(_: Sequence[Interval], node: Node) -> Interval | None:
    kind, data = node.attr("type"), node.attr("value")
    assert isinstance(kind, Type) and isinstance(data, bytes)
    if 0 in shape_of(kind):
        return None
    values = np.frombuffer(data, numpy_dtype(kind).newbyteorder("<"))
    return Interval(int(values.min()), int(values.max()))


def _corners(function: Callable[[int, int], int]) -> Transfer:
    """For functions monotone in each operand: the extremes lie at the corners."""

    def rule(inputs: Sequence[Interval], _: Node) -> Interval:
        a, b = inputs
        values = [function(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
        return Interval(min(values), max(values))

    return rule


def _and(inputs: Sequence[Interval], _: Node) -> Interval | None:
    a, b = inputs
    if a.low >= 0 and b.low >= 0:
        return Interval(0, min(a.high, b.high))
    if a.low >= 0 or b.low >= 0:
        return Interval(0, a.high if a.low >= 0 else b.high)
    return None


def _or_xor(inputs: Sequence[Interval], _: Node) -> Interval | None:
    a, b = inputs
    if a.low < 0 or b.low < 0:
        return None
    return Interval(0, (1 << max(a.high.bit_length(), b.high.bit_length())) - 1)


def _shr(inputs: Sequence[Interval], _: Node) -> Interval:
    a, s = inputs
    values = [x >> min(k, 64) for x in (a.low, a.high) for k in (s.low, s.high)]
    return Interval(min(values), max(values))


def _shl(inputs: Sequence[Interval], _: Node) -> Interval | None:
    a, s = inputs
    if s.low < 0 or s.high > 64:
        return None
    values = [x << k for x in (a.low, a.high) for k in (s.low, s.high)]
    return Interval(min(values), max(values))


def _div(inputs: Sequence[Interval], _: Node) -> Interval | None:
    a, b = inputs
    if a.low < 0 or b.low <= 0:
        return None  # signs and division by zero: leave the whole range
    return Interval(a.low // b.high, a.high // b.low)


def _rem(inputs: Sequence[Interval], _: Node) -> Interval | None:
    a, b = inputs
    if a.low < 0 or b.low <= 0:
        return None
    return Interval(a.low, a.high) if a.high < b.low else Interval(0, min(a.high, b.high - 1))


def _abs(inputs: Sequence[Interval], _: Node) -> Interval | None:
    (a,) = inputs
    if a.low >= 0:
        return a
    return Interval(0 if a.high >= 0 else -a.high, max(a.high, -a.low))


def _neg(inputs: Sequence[Interval], _: Node) -> Interval:
    (a,) = inputs
    return Interval(-a.high, -a.low)


def _keep(inputs: Sequence[Interval], _: Node) -> Interval:
    return inputs[0]


def _hull(inputs: Sequence[Interval], _: Node) -> Interval | None:
    if not inputs:
        return None
    result = inputs[0]
    for item in inputs[1:]:
        result = result.hull(item)
    return result


def _cast(inputs: Sequence[Interval], node: Node) -> Interval | None:
    source, target = element_type(node.inputs[0].type), element_type(node.types[0])
    plain = isinstance(source, (IntType, BoolType)) and isinstance(target, IntType)
    return inputs[0] if plain else None


_RULES: dict[str, Transfer] = {
    "core.constant": _constant,
    "integer.add": _corners(lambda a, b: a + b),
    "integer.sub": _corners(lambda a, b: a - b),
    "integer.mul": _corners(lambda a, b: a * b),
    "integer.mul_wide": _corners(lambda a, b: a * b),
    "integer.min": _corners(min),
    "integer.max": _corners(max),
    "integer.div": _div,
    "integer.rem": _rem,
    "integer.abs": _abs,
    "integer.neg": _neg,
    "fixed.add": _corners(lambda a, b: a + b),
    "fixed.sub": _corners(lambda a, b: a - b),
    "fixed.mul": _corners(lambda a, b: a * b),
    "fixed.min": _corners(min),
    "fixed.max": _corners(max),
    "fixed.abs": _abs,
    "fixed.neg": _neg,
    "bits.and": _and,
    "bits.or": _or_xor,
    "bits.xor": _or_xor,
    "bits.shr": _shr,
    "bits.shl": _shl,
    "bits.popcount": lambda i, n: Interval(0, _operand_width(n)),
    "bits.clz": lambda i, n: Interval(0, _operand_width(n)),
    "bits.ctz": lambda i, n: Interval(0, _operand_width(n)),
    "control.select": lambda i, n: i[1].hull(i[2]),
    "convert.cast": _cast,
    "tensor.index": _keep,
    "tensor.slice": _keep,
    "tensor.reshape": _keep,
    "tensor.permute": _keep,
    "tensor.broadcast": _keep,
    "tensor.reverse": _keep,
    "tensor.gather": _keep,
    "tensor.update": lambda i, n: i[0].hull(i[1]),
    "tensor.update_slice": lambda i, n: i[0].hull(i[1]),
    "tensor.shift_in": lambda i, n: i[0].hull(i[1]),
    "tensor.pad": lambda i, n: i[0].hull(i[1]),
    "tensor.stack": _hull,
    "tensor.concat": _hull,
    "reduce.min": _keep,
    "reduce.max": _keep,
}


def _operand_width(node: Node) -> int:
    kind = element_type(node.inputs[0].type)
    assert isinstance(kind, IntType)
    return kind.width_bits
