"""What is known of addresses that states alone decide: the words they name, and when they come again.

A counter that no input moves runs through the same values after every reset, whatever the items are. Where
few bits of state decide an address, their values are followed from the initial ones until they repeat, which
gives every address there can be, and how many items lie between two that are equal: so a line buffer needs
neither a check of its index nor care for reads close behind a write. Other addresses may be anything.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from kera_hw.graph.node import Node, Ref, Region
from kera_hw.interp import run_region
from kera_hw.rtl.techmap.source import Source
from kera_hw.types import BoolType, FloatType, IntType, Type, numpy_dtype

MOST_BITS = 16
"""Bits of state that are followed: their values are computed all at once."""
_FAR = 1 << 30

_Integers = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class Course:
    """The values of an address, item by item: those before they repeat, then those that do."""

    values: tuple[int, ...]
    repeats_from: int


class Addresses:
    """The courses of a flat design's values."""

    def __init__(self, source: Source) -> None:
        self._flat = flat = source.flat
        self._held = source.held
        self._nexts = flat.region.results[len(flat.outputs) :]
        self._known: dict[Ref, Course | None] = {}

    def course(self, ref: Ref) -> Course | None:
        """The values of a scalar, if states of few bits alone decide it."""
        if ref not in self._known:
            self._known[ref] = self._follow(ref)
        return self._known[ref]

    def distance(self, one: Ref, other: Ref) -> int:
        """Items at the least from one address to an equal one, counted from the next item on; at least 1.

        Both are followed from their first item on, so their steps must be the same.
        """
        a, b = self.course(one), self.course(other)
        if a is None or b is None:
            return 1
        span = max(len(a.values), len(b.values)) * 2
        first, second = _unrolled(a, span), _unrolled(b, span)
        return min(_gap(first, second), _gap(second, first))

    def _follow(self, ref: Ref) -> Course | None:
        states = self._deciding(ref)
        if states is None:
            return None
        widths = [self._flat.states[k].width_bits for k in states]
        value, following = self._tables(ref, states, widths)
        at, position = 0, 0
        for k, width in zip(states, widths):
            at |= self._flat.states[k].initial << position
            position += width
        seen: dict[int, int] = {}
        values: list[int] = []
        while at not in seen:
            seen[at] = len(values)
            values.append(int(value[at]))
            at = int(following[at])
        return Course(tuple(values), seen[at])

    def _deciding(self, ref: Ref) -> list[int] | None:
        """The states that decide a value, and their own next ones; None for inputs, memories or many bits."""
        inputs, states = len(self._flat.inputs), len(self._flat.states)
        found: dict[int, None] = {}
        pending, visited = [ref.node], set[Node]()
        bits = 0
        while pending:
            node = pending.pop()
            if node in visited:
                continue
            visited.add(node)
            if node.opcode == "core.param":
                state = cast(int, node.attr("index")) - inputs
                if not 0 <= state < states or not _is_plain(self._flat.states[state].type):
                    return None
                found[state] = None
                bits += self._flat.states[state].width_bits
                if bits > MOST_BITS:
                    return None
                pending.append(self._nexts[state].node)
            pending.extend(item.node for item in node.inputs)
        return sorted(found)

    def _typed(self, raw: _Integers, state: int) -> np.ndarray[Any, np.dtype[Any]]:
        """Values of a state from its bits, which are as few as what it may hold takes."""
        kind, width = self._flat.states[state].type, self._flat.states[state].width_bits
        held = self._held[state] if self._held else None
        if isinstance(kind, IntType) and (kind.signed if held is None else held.low < 0):
            raw = raw - ((raw >> width - 1 & 1) << width)
        return raw.astype(numpy_dtype(kind))

    def _tables(
        self, ref: Ref, states: list[int], widths: list[int]
    ) -> tuple[_Integers, _Integers]:
        """The value, and the states after it, for all values of the states, joined with the first lowest."""
        total = sum(widths)
        everything = np.arange(1 << total, dtype=np.int64)
        region, inputs = self._flat.region, len(self._flat.inputs)
        wanted = Region(region.params, (ref, *(self._nexts[k] for k in states)))
        args = [np.zeros(1, dtype=numpy_dtype(_scalar(kind))) for kind in region.params]
        position = 0
        for k, width in zip(states, widths):
            raw = everything >> position & (1 << width) - 1
            args[inputs + k] = self._typed(raw, k)
            position += width
        value, *nexts = run_region(wanted, args, len(everything))
        following, position = np.zeros_like(everything), 0
        for found, width in zip(nexts, widths):
            raw = np.broadcast_to(np.asarray(found).astype(np.int64), everything.shape)
            following |= (raw & (1 << width) - 1) << position
            position += width
        return np.broadcast_to(np.asarray(value).astype(np.int64), everything.shape), following


def _is_plain(kind: Type) -> bool:
    return isinstance(kind, IntType | BoolType)


def _scalar(kind: Type) -> Type:
    element = getattr(kind, "element", kind)
    return IntType(element.width_bits, False) if isinstance(element, FloatType) else element


def _unrolled(course: Course, count: int) -> _Integers:
    """The first values of a course."""
    values, start = np.array(course.values, dtype=np.int64), course.repeats_from
    steps = np.arange(count)
    return values[np.where(steps < len(values), steps, start + (steps - start) % (len(values) - start))]


def _gap(first: _Integers, second: _Integers) -> int:
    """The least m >= 1 with second[k + m] == first[k] for some k; very many where there is none.

    Of all places in order, value by value, such two are neighbours: between others lies a closer pair.
    """
    count = len(first)
    value, place = np.concatenate([second, first]), np.tile(np.arange(count), 2)
    is_first = np.repeat([False, True], count)
    order = np.lexsort((is_first, place, value))
    value, place, is_first = value[order], place[order], is_first[order]
    pairs = is_first[:-1] & ~is_first[1:] & (value[:-1] == value[1:])
    return int((place[1:] - place[:-1])[pairs].min(initial=_FAR))
