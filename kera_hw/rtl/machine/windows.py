"""Indices of stencils: which element of a tensor an access names, relative to the round's own.

An index is a symbolic sum of the round's counters. It is followed through the arithmetic that computed it, as
long as nothing wraps on the way; where it is held within an axis, the few elements of the border that this
changes are told one by one.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kera_hw.graph.node import Ref
from kera_hw.ops.intervals import Interval, raw_interval
from kera_hw.rtl.lower.builder import Builder
from kera_hw.rtl.lower.places import Held, Sum
from kera_hw.rtl.machine.raster import NoRaster
from kera_hw.types import BOOL, IntType

MOST_BORDER = 8
"""Elements of a border that an index may be held at."""


@dataclass(frozen=True, slots=True)
class Counter:
    """A counter of a stage: the axis it counts along, and how often."""

    axis: int
    count: int


@dataclass(frozen=True, slots=True)
class Line:
    """Along an axis, ``factor * counter + offset``; ``held`` has what it is for single counts instead."""

    factor: int
    offset: int
    held: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class _Linear:
    factor: int  # of the one counter that is in it, None for a constant
    offset: int
    counter: Counter | None

    def span(self) -> Interval:
        last = 0 if self.counter is None else self.factor * (self.counter.count - 1)
        return Interval(self.offset + min(0, last), self.offset + max(0, last))


class Lines:
    """Reads indices, given what refers to a stage's counters."""

    def __init__(self, builder: Builder, counters: Mapping[Ref, Counter]) -> None:
        self._builder, self._counters = builder, counters

    def line(self, index: Sum, axis: int) -> Line:
        """An index along an axis. Raises NoRaster where it isn't of that axis' counter alone."""
        total = _Linear(0, index.constant, None)
        for value, step in index.terms:
            term, low, high = self._bounded(value)
            if low is not None or high is not None:
                if len(index.terms) > 1:
                    raise NoRaster("An index adds to what is held within an axis.")
                return self._held(term, low, high, step, index.constant, axis)
            total = _sum(total, _times(term, step))
        return self._plain(total, axis)

    def _plain(self, total: _Linear, axis: int) -> Line:
        if total.counter is None or total.factor == 0:
            return Line(0, total.offset)
        if total.counter.axis != axis or total.factor < 0:
            raise NoRaster("An index runs along another axis, or backwards.")
        return Line(total.factor, total.offset)

    def _held(
        self, term: _Linear, low: int | None, high: int | None, step: int, constant: int, axis: int
    ) -> Line:
        """``step`` times a value within bounds, and a constant."""
        whole = self._plain(_sum(_times(term, step), _Linear(0, constant, None)), axis)
        if term.counter is None:
            value = _within(term.offset, low, high)
            return Line(0, step * value + constant)
        cases: list[tuple[int, int]] = []
        for count in _ends(term.counter.count):
            value = term.factor * count + term.offset
            bound = _within(value, low, high)
            if bound != value:
                cases.append((count, step * bound + constant))
        for count in range(MOST_BORDER, term.counter.count - MOST_BORDER):
            value = term.factor * count + term.offset
            if _within(value, low, high) != value:
                raise NoRaster("An index is held at the border of an axis for too long.")
        return Line(whole.factor, whole.offset, tuple(cases))

    def _bounded(self, value: Ref | Held) -> tuple[_Linear, int | None, int | None]:
        """A value as a sum, and the bounds that it is held within: min(max(sum, low), high)."""
        low = high = None
        if isinstance(value, Held):
            value, low, high = value.source, value.low, value.high
            if low is not None and high is not None and low > high:
                raise NoRaster("An index is held within bounds that cross.")
        while value not in self._counters:
            node = value.node
            if node.opcode == "convert.cast":
                inner = self._builder.range(node.inputs[0])
                kind = raw_interval(value.type)
                if not (kind.low <= inner.low and inner.high <= kind.high):
                    break
                value = node.inputs[0]
            elif node.opcode in ("integer.min", "integer.max"):
                value, limit = _constant_last(self._builder, node.inputs)
                if node.opcode == "integer.min":
                    high = limit if high is None else min(high, limit)
                else:
                    low = limit if low is None else max(low, limit)
                if low is not None and high is not None and low > high:
                    raise NoRaster("An index is held within bounds that cross.")
            else:
                break
        return self._arithmetic(value), low, high

    def _arithmetic(self, ref: Ref) -> _Linear:
        counter, value = self._counters.get(ref), self._builder.value(ref)
        if counter is not None:
            return _Linear(1, 0, counter)
        if value is not None:
            return _Linear(0, value, None)
        node = ref.node
        if node.opcode not in _ARITHMETIC:
            raise NoRaster("An index hangs on data.")
        parts = [self._arithmetic(item) for item in node.inputs]
        match node.opcode:
            case "convert.cast":
                found = parts[0]
            case "integer.add":
                found = _sum(parts[0], parts[1])
            case "integer.sub":
                found = _sum(parts[0], _times(parts[1], -1))
            case "bits.shl":
                found = _times(parts[0], 1 << _known(parts[1]))
            case _:
                constant, other = (parts[0], parts[1]) if parts[0].counter is None else (parts[1], parts[0])
                found = _times(other, _known(constant))
        kind = node.types[0]
        if not isinstance(kind, IntType):
            raise NoRaster("An index hangs on data.")
        limits, span = raw_interval(kind), found.span()
        if span.low < limits.low or span.high > limits.high:
            raise NoRaster("An index wraps around.")
        return found


_ARITHMETIC = frozenset({"convert.cast", "integer.add", "integer.sub", "integer.mul", "bits.shl"})


def _known(part: _Linear) -> int:
    if part.counter is not None:
        raise NoRaster("An index is a product of counters.")
    return part.offset


def _constant_last(builder: Builder, inputs: Sequence[Ref]) -> tuple[Ref, int]:
    one, two = inputs
    for inner, limit in ((one, two), (two, one)):
        value = builder.value(limit)
        if value is not None:
            return inner, value
    raise NoRaster("An index hangs on data.")


def _sum(one: _Linear, two: _Linear) -> _Linear:
    if one.counter is not None and two.counter is not None and one.counter != two.counter:
        raise NoRaster("An index is a sum of several counters.")
    return _Linear(one.factor + two.factor, one.offset + two.offset, one.counter or two.counter)


def _times(one: _Linear, factor: int) -> _Linear:
    return _Linear(one.factor * factor, one.offset * factor, one.counter)


def _within(value: int, low: int | None, high: int | None) -> int:
    value = value if high is None else min(value, high)
    return value if low is None else max(value, low)


def _ends(count: int) -> list[int]:
    """The counts at both ends that may be held."""
    return [k for k in range(count) if k < MOST_BORDER or k >= count - MOST_BORDER]


def in_range(builder: Builder, value: Ref, first: int, last: int) -> Ref:
    """Whether an unsigned value lies between two numbers."""
    found, span = builder.const(BOOL, 1), builder.range(value)
    for verb, limit, matters in (("ge", first, span.low < first), ("le", last, span.high > last)):
        if matters:
            holds = builder.op(f"compare.{verb}", value, builder.const(value.type, limit))
            found = builder.op("bits.and", found, holds)
    return found
