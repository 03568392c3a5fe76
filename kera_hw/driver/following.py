"""Which regions of an item start before those ahead have ended, and how much of a memory they then need.

A region that nothing stalls reaches each element of a memory in a cycle that is known, counted from its
start. The next one may start as soon as none of its reads comes before the write it waits for, and none of
its writes before a read of what was there. Elements that are written in order and read in nearly the same
order, as through a window, are then alive for a few cycles each: the memory is a FIFO or a line buffer of as
many words as are alive at once, addressed by the low bits.

The distance of starts is the schedule of Feautrier, "Some efficient solutions to the affine scheduling
problem" (1992), for given orders of rounds; folded storage is De Greef, Catthoor, De Man, "Memory size
reduction through storage order optimization" (1997).
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from kera_hw.loops.program import Buffer
from kera_hw.ops.spec import Array
from kera_hw.rtl.emit.layout import StoragePlace
from kera_hw.rtl.emit.process import RegionPart
from kera_hw.rtl.machine.accesses import Accesses, accesses_of
from kera_hw.rtl.machine.nests import Regions

_WORTH = 8
"""Cycles that starting earlier has to save: a counter is what it costs."""
_NEVER = np.iinfo(np.int64).max // 4


@dataclass(frozen=True, slots=True)
class Following:
    """By region the cycles from the start of the one ahead to its own, None where that has to end; and by
    memory the words that do, a power of two, where they are fewer than it has.
    """

    after: tuple[int | None, ...]
    words: Mapping[str, int]


def following(parts: Sequence[RegionPart], regions: Regions) -> Following:
    """When regions start, and what their memories need."""
    return _Following(parts, regions).found()


class _Following:
    def __init__(self, parts: Sequence[RegionPart], regions: Regions) -> None:
        self._parts, self._regions = parts, regions
        self._buffers = {buffer.name: buffer for buffer in regions.memories if not buffer.storage.banks}
        self._runs = list(range(len(parts)))  # by region the first of those that it overlaps with
        self._begins = [0] * len(parts)
        self._accesses = cache(self._counted)

    def found(self) -> Following:
        after: list[int | None] = [None] * len(self._parts)
        for number in range(1, len(self._parts)):
            run = self._runs[number - 1]
            if self._regions.around(number) != self._regions.around(number - 1):
                continue
            ahead = range(run, number)
            begin = max(self._begins[one] + self._apart(one, number) for one in ahead)
            begin = max(begin, self._begins[number - 1])
            ends = max(self._ends(one) for one in ahead)
            begin = max(begin, ends - self._parts[number].cycles)  # the last of them ends last
            if begin + _WORTH <= ends:
                self._runs[number], self._begins[number] = run, begin
                after[number] = begin - self._begins[number - 1]
        return Following(tuple(after), self._words())

    def _ends(self, number: int) -> int:
        return self._begins[number] + self._parts[number].cycles

    def _place(self, number: int, memory: str) -> StoragePlace | None:
        return next((one for one in self._parts[number].storages if one.storage.name == memory), None)

    def _counted(self, number: int, memory: str) -> list[Accesses] | None:
        """What a region's rounds reach of a memory."""
        buffer = self._buffers.get(memory)
        nest = self._regions.nests[number]
        if buffer is None or nest.rests:  # whose rounds are not those that its loops count
            return None
        return accesses_of([level.loop for level in nest.levels], buffer, nest.before)

    # When

    def _times(self, number: int, memory: str, stores: bool, last: bool) -> Array | None:
        """By element of a memory the first or last cycle from the region's start that reaches it."""
        place, found = self._place(number, memory), self._accesses(number, memory)
        buffer: Buffer | None = self._buffers.get(memory)
        if place is None or found is None or buffer is None:
            return None
        plan = self._parts[number].plan
        calls = place.writes if stores else [call for port in place.reads for call in port]
        stages = [plan.stage[call] for call in calls] or [0]
        at = 1 + (max(stages) if last else min(stages))
        times = np.full(max(1, buffer.size), -_NEVER if last else _NEVER, np.int64)
        reach = np.maximum if last else np.minimum
        for access in found:
            if access.stores == stores:
                reach.at(times, access.elements, access.rounds * plan.initiation_interval + at)
        return times

    def _apart(self, first: int, second: int) -> int:
        """Cycles from the start of a region to that of one behind it."""
        one, two = self._parts[first], self._parts[second]
        given = {out.bus for out in one.netlist.outputs} - {"done"}
        if one.takes is not None or two.takes is not None or given & {bus for bus, _ in two.netlist.inputs}:
            return one.cycles
        apart = 0
        for place in one.storages:
            memory = place.storage.name
            other = self._place(second, memory)
            if other is None:
                continue
            if (place.writes and other.writes) or (place.reads and other.reads):
                return one.cycles  # a port is one's at a time
            stores = bool(place.writes)
            early = self._times(first, memory, stores, last=True)
            late = self._times(second, memory, not stores, last=False)
            if early is None or late is None:
                return one.cycles
            both = (early > -_NEVER) & (late < _NEVER)
            if both.any():
                apart = max(apart, int((early - late)[both].max()) + 1)
        return min(apart, one.cycles)

    # How much

    def _words(self) -> dict[str, int]:
        """Of memories between regions that overlap: words that do."""
        found: dict[str, int] = {}
        for memory, buffer in self._buffers.items():
            users = [k for k in range(len(self._parts)) if self._place(k, memory) is not None]
            alone = buffer.kind == "temp" and len(users) > 1 and len({self._runs[k] for k in users}) == 1
            words = self._enough(memory, buffer, users) if alone else buffer.size
            if words < buffer.size:
                found[memory] = words
        return found

    def _enough(self, memory: str, buffer: Buffer, users: Sequence[int]) -> int:
        writer, *readers = users
        places = {k: self._place(k, memory) for k in users}
        storage = next(place.storage for place in places.values() if place is not None)
        writes = [bool(place is not None and place.writes) for place in places.values()]
        reads = [bool(place is not None and place.reads) for place in places.values()]
        if writes != [True] + [False] * len(readers) or reads[0]:
            return buffer.size
        stored = [item for item in self._accesses(writer, memory) or () if item.stores]
        elements = np.concatenate([item.elements for item in stored]) if stored else np.zeros(0, np.int64)
        begins, wanted = (self._times(writer, memory, True, last) for last in (False, True))
        if begins is None or wanted is None or len(elements) != len(np.unique(elements)):
            return buffer.size
        begins, until = begins + self._begins[writer], wanted + self._begins[writer]
        for reader in readers:
            read = self._times(reader, memory, False, last=True)
            if read is None or (begins[read > -_NEVER] == _NEVER).any():
                return buffer.size  # reads what nobody has written
            until = np.maximum(until, read + self._begins[reader])
        there = np.flatnonzero(begins < _NEVER)
        there = there[np.argsort(begins[there], kind="stable")]
        begins, until = begins[there], until[there] + storage.read_latency_cycles
        for bits in range(1, (buffer.size - 1).bit_length()):
            order = np.argsort(there % (1 << bits), kind="stable")  # by cell, and there by time
            same = np.diff(there[order] % (1 << bits)) == 0
            if not (same & (until[order][:-1] >= begins[order][1:])).any():
                return 1 << bits
        return buffer.size
