"""Loops whose rounds write elements of what they carry and never look at it: which these are, and what they
write.

Such rounds know nothing of each other, so that all of them can be evaluated as lanes; what they write is put
in its place in their order. A loop within that carries the same tensors on is taken apart in the same way.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np

from kera_hw.graph.node import Node, Ref, Region
from kera_hw.numerics.tensors import clamped_array
from kera_hw.ops.spec import Array
from kera_hw.support import toposort
from kera_hw.types import IntType, numpy_dtype, shape_of

MOST_ELEMENTS = 1 << 20
"""Of a value in all lanes that are evaluated at once."""
CACHED_REGIONS = 4096


@dataclass(frozen=True, slots=True)
class Update:
    """A window of a tensor replaced, of one element or more. ``value`` and ``starts`` are among what a round
    needs, by number."""

    shape: tuple[int, ...]
    window: tuple[int, ...]
    value: int
    starts: tuple[int, ...]

    @property
    def elements(self) -> int:
        return prod(self.window)

    def places(self, starts: Sequence[Array], lanes: int) -> Array:
        """Of shape (lanes, elements): where elements go, row-major. Starts clamp as the registry says."""
        rank = len(self.shape)
        found = np.zeros((lanes, *self.window), np.intp)
        stride = 1
        for axis in reversed(range(rank)):
            extent, size = self.shape[axis], self.window[axis]
            first = clamped_array(starts[axis], extent - size).reshape(-1, *(1,) * rank)
            steps = np.arange(size).reshape(1, *(size if k == axis else 1 for k in range(rank)))
            found += (first + steps) * stride
            stride *= extent
        return found.reshape(lanes, -1)


@dataclass(frozen=True, slots=True)
class Inner:
    """A loop within, which carries the tensor on as its ``number``-th. ``captures`` are among what a round
    needs, by number."""

    loop: Loop
    number: int
    captures: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """A loop taken apart. ``needed``: all that its rounds compute for what they write; ``chains``: for each
    tensor carried, what becomes of it in a round, in order. ``size``: elements of a round's largest value.
    """

    counters: Array
    needed: tuple[Ref, ...]
    chains: tuple[tuple[Update | Inner, ...], ...]
    size: int

    @property
    def count(self) -> int:
        return len(self.counters)


def taken_apart(node: Node) -> Loop | None:
    """None where a round looks at what it carries, or does something else with it than to write to it."""
    region, carried, count = node.attr("region"), node.attr("carried"), node.attr("count")
    start, step, kind = node.attr("start"), node.attr("step"), node.attr("index_type")
    assert isinstance(region, Region) and isinstance(carried, int) and isinstance(count, int)
    assert isinstance(start, int) and isinstance(step, int) and isinstance(kind, IntType)
    found = _parted(region, carried)
    if found is None or not count:
        return None
    counters = np.array([start + k * step for k in range(count)], numpy_dtype(kind))
    return Loop(counters, *found)


@lru_cache(maxsize=CACHED_REGIONS)
def _parted(
    region: Region, carried: int
) -> tuple[tuple[Ref, ...], tuple[tuple[Update | Inner, ...], ...], int] | None:
    """What rounds need, the chains, and how large a round is; regions are compared by identity."""
    nodes = toposort([ref.node for ref in region.results], lambda node: [ref.node for ref in node.inputs])
    params = {node.attr("index"): node.out() for node in nodes if node.opcode == "core.param"}
    users: dict[Ref, list[Node]] = {}
    for node in nodes:
        for ref in node.inputs:
            users.setdefault(ref, []).append(node)
    search = _Search(region, users)
    chains: list[tuple[Update | Inner, ...]] = []
    for number in range(carried):
        chain = search.chain(params.get(number + 1), region.results[number])
        if chain is None:
            return None
        chains.append(chain)
    if any(len(taken) != want for taken, want in search.inner.values()):
        return None  # a loop carries something else beside
    written = sum(link.elements if isinstance(link, Update) else 0 for chain in chains for link in chain)
    loops = [link.loop for chain in chains for link in chain if isinstance(link, Inner)]
    inside = [loop.count * loop.size for loop in loops]
    others = (node for node in nodes if node not in search.links and node.opcode != "core.param")
    kinds = [kind for node in others for kind in node.types]
    size = max([written, *inside, *(prod(shape_of(kind)) for kind in kinds)], default=0)
    return tuple(search.needed), tuple(chains), size


class _Search:
    def __init__(self, region: Region, users: dict[Ref, list[Node]]) -> None:
        self._region, self._users = region, users
        self.needed: dict[Ref, int] = {}
        self.links: set[Node] = set()
        self.inner: dict[Node, tuple[set[int], int]] = {}
        """Of loops within: which of what they carry is on a chain, and how much they carry."""

    def chain(self, first: Ref | None, last: Ref) -> tuple[Update | Inner, ...] | None:
        """From what is carried into a round to what it gives, if nothing else looks at it on its way."""
        found: list[Update | Inner] = []
        current = first
        if current is None:
            return None
        while current != last:
            using = self._users.get(current, [])
            if len(using) != 1 or current in self._region.results:
                return None
            link, after = self._link(using[0], current)
            if link is None or after is None:
                return None
            self.links.add(using[0])
            found.append(link)
            current = after
        looked_at = self._users.get(last) or list(self._region.results).count(last) != 1
        return None if looked_at else tuple(found)

    def _link(self, node: Node, current: Ref) -> tuple[Update | Inner | None, Ref | None]:
        inputs = node.inputs
        if node.opcode in ("tensor.update", "tensor.update_slice") and inputs[0] == current:
            shape, value = shape_of(current.type), inputs[1]
            window = shape_of(value.type) if node.opcode == "tensor.update_slice" else (1,) * len(shape)
            starts = tuple(map(self._need, inputs[2:]))
            if 0 in shape:
                return None, None
            return Update(shape, window, self._need(value), starts), node.out()
        carried = node.attr("carried") if node.opcode == "control.loop" else 0
        assert isinstance(carried, int)
        if current not in inputs[:carried]:
            return None, None
        loop, number = taken_apart(node), inputs.index(current)
        if loop is None or loop.count * loop.size > MOST_ELEMENTS:
            return None, None
        self.inner.setdefault(node, (set(), carried))[0].add(number)
        return Inner(loop, number, tuple(map(self._need, inputs[carried:]))), node.out(number)

    def _need(self, ref: Ref) -> int:
        return self.needed.setdefault(ref, len(self.needed))
