"""Where an access goes that depends on data: selectors with the places they name, and addresses.

An index that only chooses among elements is not computed where its own bits choose as well: neither the sum
``i + 1``, for then ``i`` chooses among the elements from 1 on, nor what holds it within an axis.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kera_hw.graph.node import Origin, Ref
from kera_hw.ops.intervals import Interval
from kera_hw.rtl.lower.builder import Builder
from kera_hw.types import BOOL, IntType


@dataclass(frozen=True, slots=True)
class Held:
    """An integer held within bounds: it is made only where more than an index needs it."""

    source: Ref
    low: int | None
    high: int | None
    origin: Origin | None

    def made(self, builder: Builder) -> Ref:
        """The value itself, credited to its own place."""
        found, kind, outside = self.source, self.source.type, builder.store.origin
        builder.store.origin = self.origin
        if self.high is not None:
            found = builder.op("integer.min", found, builder.const(kind, self.high))
        if self.low is not None:
            found = builder.op("integer.max", found, builder.const(kind, self.low))
        builder.store.origin = outside
        return found

    def range(self, builder: Builder) -> Interval:
        low, high = builder.range(self.source)
        if self.high is not None:
            low, high = min(low, self.high), min(high, self.high)
        if self.low is not None:
            low, high = max(low, self.low), max(high, self.low)
        return Interval(low, high)


Term = tuple[Ref | Held, int]


@dataclass(frozen=True, slots=True)
class Sum:
    """An index: a constant plus values that data decides, each times a coefficient."""

    constant: int
    terms: tuple[Term, ...] = ()

    def __add__(self, other: Sum) -> Sum:
        return Sum(self.constant + other.constant, self.terms + other.terms)

    def __mul__(self, factor: int) -> Sum:
        return Sum(self.constant * factor, tuple((value, k * factor) for value, k in self.terms))

    @property
    def known(self) -> int | None:
        return None if self.terms else self.constant

    def range(self, builder: Builder) -> Interval:
        low = high = self.constant
        for value, k in self.terms:
            span = range_of(builder, value)
            low, high = low + min(span.low * k, span.high * k), high + max(span.low * k, span.high * k)
        return Interval(low, high)


@dataclass(frozen=True, slots=True)
class Choice:
    """A selector and the places that its values from ``first`` on name; beyond them it names the nearest."""

    selector: Ref
    first: int
    places: Sequence[int]

    def pick(self, builder: Builder, items: Sequence[Ref]) -> Ref:
        """The item at the selector's place, given one item a place."""
        return builder.pick(self.selector, [items[0]] * self.first + list(items))

    def hits(self, builder: Builder) -> list[Ref]:
        """For each of the places, whether it is the one."""
        if len(self.places) == 1:
            return [builder.const(BOOL, 1)]
        low, high = builder.range(self.selector)
        last = self.first + len(self.places) - 1

        def hit(value: int) -> Ref:
            limit = builder.const(self.selector.type, value)
            if value == self.first and low < value:
                return builder.op("compare.le", self.selector, limit)
            if value == last and high > value:
                return builder.op("compare.ge", self.selector, limit)
            return builder.op("compare.eq", self.selector, limit)

        return [hit(value) for value in range(self.first, last + 1)]


def range_of(builder: Builder, value: Ref | Held) -> Interval:
    return value.range(builder) if isinstance(value, Held) else builder.range(value)


def choice_of(builder: Builder, index: Sum, extent: int) -> Choice:
    """The places along an axis that an index may name. It is known to lie within the axis."""
    if len(index.terms) == 1:
        ((value, step),) = index.terms
        low, high = range_of(builder, value)
        ends = (-index.constant, extent - 1 - index.constant)
        least, most = ends if step > 0 else ends[::-1]
        low, high = max(low, -(-least // step)), min(high, most // step)
        if 0 <= low <= high < extent:
            source = value.source if isinstance(value, Held) else value
            return Choice(source, low, range(index.constant + low * step, index.constant + high * step
                                             + (1 if step > 0 else -1), step))
    selector = exact(builder, index, extent)
    low, high = builder.range(selector)
    return Choice(selector, low, range(low, min(high, extent - 1) + 1))


def exact(builder: Builder, index: Sum, extent: int) -> Ref:
    """An index within an axis as an integer in no more bits than the axis needs.

    Sums may wrap on the way. What is times a power of two stands beside what lies below that.
    """
    kind = IntType.holding(0, max(extent - 1, 1))
    total = builder.const(kind, index.constant)
    below = Interval(index.constant, index.constant)
    for value, step in sorted(index.terms, key=lambda term: abs(term[1])):
        ref = value.made(builder) if isinstance(value, Held) else value
        term = _times(builder, ref, step, kind)
        total = _joined(builder, term, step, total, below)
        part = Sum(0, ((value, step),)).range(builder)
        below = Interval(below.low + part.low, below.high + part.high)
    return total


def _times(builder: Builder, value: Ref, step: int, kind: IntType) -> Ref:
    wide = builder.cast(value, kind)
    if step > 0 and step & (step - 1) == 0:
        shift = step.bit_length() - 1
        return builder.op("bits.shl", wide, builder.const(IntType.holding(0, max(shift, 1)), shift))
    return builder.op("integer.mul", wide, builder.const(kind, step))


def _joined(builder: Builder, term: Ref, step: int, total: Ref, below: Interval) -> Ref:
    """The sum of a multiple of ``step`` and what has been added so far."""
    apart = step > 0 and step & (step - 1) == 0 and 0 <= below.low <= below.high < step
    return builder.op("bits.or" if apart else "integer.add", term, total)
