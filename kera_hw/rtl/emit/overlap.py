"""The controller of a process whose stages overlap: tokens in place of one flag that is handed around.

A stage's scalars are taken over into registers of the next one when that starts. A memory of several copies
is one, with the number of the copy above the address; everybody counts copies for itself, in the order of
items. Where a stage and a sender read such a memory at once, each has a read port of its own; the sender
never stops it, and keeps what is on its way when the channel stalls.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value

from kera_hw.rtl.emit.channels import Endpoint, in_reset
from kera_hw.rtl.emit.layout import StoragePlace
from kera_hw.rtl.emit.ports import Channel
from kera_hw.rtl.emit.process import (
    MemoryPort,
    Overlap,
    ProcessBuild,
    ProcessCore,
    ProcessPlan,
    RegionPart,
)
from kera_hw.rtl.emit.stages import Place, places_of, relayed, stage_name, users_of
from kera_hw.rtl.emit.storages import StorageParameters
from kera_hw.schedule.fpga.units import Storage


class OverlapCore(ProcessCore):
    """A process whose stages overlap, between the endpoints of its ports."""

    def build(self, module: Module) -> None:
        """Adds everything to a module."""
        assert self.process.overlap is not None
        _Overlapped(module, self.process, self.endpoints, self.process.overlap).build()


def with_copies(given: StorageParameters, copies: int, reads: int) -> StorageParameters:
    """What a memory's module is told where it has several copies, and ports for all that read at once."""
    if copies == 1:
        return given
    more = (copies - 1).bit_length()
    entries = ((copies - 1) << given.address_bits) + given.entries
    return replace(given, entries=entries, address_bits=given.address_bits + more, reads=reads)


def read_ports(process: ProcessPlan, overlap: Overlap, memory: str) -> dict[str, tuple[int, int]]:
    """By node its first read port and how many it has: with one copy all take turns on the same ones."""
    found: dict[str, int] = {}
    for number in users_of(process, overlap.stages).get(memory, []):
        first, last = overlap.stages[number]
        most = max(
            (len(place.reads) for region in process.regions[first : last + 1] for place in region.storages
             if place.storage.name == memory), default=0,
        )
        if most:
            found[stage_name(number)] = most
    for channel in process.ports.outputs:
        if process.memory_of(channel.name) == memory:
            found[channel.name] = 1
    at, ports = 0, dict[str, tuple[int, int]]()
    for node, count in found.items():
        ports[node] = at, count
        at += count if overlap.copies.get(memory, 1) > 1 else 0
    return ports


def ports_needed(process: ProcessPlan, overlap: Overlap, memory: str) -> int:
    """Read ports of a memory in all."""
    return max((at + count for at, count in read_ports(process, overlap, memory).values()), default=1)


def memories_told(process: ProcessPlan, overlap: Overlap) -> dict[str, StorageParameters]:
    """What every memory's module is told."""
    return {
        name: with_copies(given, overlap.copies.get(name, 1), ports_needed(process, overlap, name))
        for name, given in process.memories.items()
    }


class _Overlapped(ProcessBuild):
    def __init__(
        self, module: Module, process: ProcessPlan, endpoints: Sequence[Endpoint], overlap: Overlap
    ) -> None:
        self._overlap = overlap
        self._told: Mapping[str, StorageParameters] = memories_told(process, overlap)
        super().__init__(module, replace(process, memories=self._told), endpoints)
        self._ports = {name: read_ports(process, overlap, name) for name in process.memories}
        self._starts: dict[str, Signal] = {}
        self._finishes: dict[str, Signal] = {}
        names = [*(channel.name for channel in process.ports.channels),
                 *map(stage_name, range(len(overlap.stages)))]
        for name in names:
            self._starts[name] = Signal(name=f"{name}_starts")
            self._finishes[name] = Signal(name=f"{name}_finishes")
        self._copy: dict[tuple[str, str], Value] = {}
        self._late_copy: dict[tuple[int, int], Value] = {}  # of the stage at hand, by copies and cycles
        self._passes: list[Signal] = []  # whether a last round is there, by cycles from its start
        self._prompt = False
        self._node = ""

    def build(self) -> None:
        m, process, overlap = self._m, self._process, self._overlap
        waits: dict[str, list[Value]] = {name: [] for name in self._starts}
        for number, place in enumerate(places_of(process, overlap)):
            waits[place.target].append(self._place(number, place))
        for end in self.loaded():
            self._node = end.channel.name
            self._load_when(end, Cat(*waits[self._node]).all())
        taken_over = relayed(process, overlap)
        for number, (first, last) in enumerate(overlap.stages):
            self._node = stage_name(number)
            start, ended = self._starts[self._node], self._finishes[self._node]
            self._prompt = number in overlap.prompt
            if self._prompt:
                self._late_copy, self._passes = {}, [Signal(name=f"{self._node}_issues")]
            for bus, width in taken_over[number].items():
                own = Signal(width, name=f"{self._node}_{bus}", reset_less=True)
                with m.If(start):
                    m.d.sync += own.eq(self._signals[bus])
                self._signals[bus] = own
            inside = [one for one in process.repeats if first <= one.first and one.last <= last]
            m.d.comb += ended.eq(self._sequence(first, last, start, inside))
            free = self._free(first, start, ended)
            m.d.comb += start.eq(Cat(Const(1), *waits[self._node]).all() & free & ~in_reset())
            self._prompt = False
        for end in self._ends:
            if end.channel.direction == "output":
                self._node = end.channel.name
                self._send_when(end, Cat(*waits[self._node]).all())
        for name, given in self._told.items():
            self._memory(name, given)

    def _free(self, region: int, start: Value, ended: Value) -> Value:
        """Whether the stage at hand may start."""
        m, busy = self._m, Signal(name=f"{self._node}_busy")
        free: Value = ~busy
        if self._prompt:
            m.d.comb += self._passes[0].eq(self._issues[region])
            interval = self._process.regions[region].plan.initiation_interval
            ended = self._passed(max(0, interval - 2))
            free = ~busy | ended if interval == 1 else ~busy
        with m.If(start):
            m.d.sync += busy.eq(1)
        with m.Elif(ended):
            m.d.sync += busy.eq(0)
        return free

    def _passed(self, cycles: int) -> Signal:
        """Whether the last round of the stage at hand started so many cycles ago."""
        while len(self._passes) <= cycles:
            later = Signal(name=f"{self._node}_issued{len(self._passes)}")
            self._m.d.sync += later.eq(self._passes[-1])
            self._passes.append(later)
        return self._passes[cycles]

    def _place(self, number: int, place: Place) -> Value:
        """Whether a place has a token."""
        m, overlap = self._m, self._overlap
        most = max([1, place.tokens, *overlap.copies.values()])
        count = Signal(range(most + 1), name=f"tokens{number}_{place.source}_{place.target}",
                       init=place.tokens)
        gives = self._starts[place.source] if place.early else self._finishes[place.source]
        stage = place.target in map(stage_name, range(len(overlap.stages)))
        takes = self._starts[place.target] if stage else self._finishes[place.target]
        with m.If(gives & ~takes):
            m.d.sync += count.eq((count + 1)[: len(count)])
        with m.Elif(takes & ~gives):
            m.d.sync += count.eq((count - 1)[: len(count)])
        return count.any() | gives if place.early and stage else count.any()

    # Channels

    def _load_when(self, end: Endpoint, free: Value) -> None:
        """Takes beats while there is a copy to be filled."""
        m, channel = self._m, end.channel
        taken, finishes = Signal(name=f"{channel.name}_taken"), self._finishes[channel.name]
        m.d.comb += [end.ready.eq(free & ~in_reset()), taken.eq(end.valid & end.ready)]
        if not channel.in_beats:
            m.d.comb += finishes.eq(taken)
            low = 0
            for value in channel.values:
                kept = Signal(value.width, name=f"{value.bus}_kept", reset_less=True)
                with m.If(taken):
                    m.d.sync += kept.eq(end.data[low : low + value.width])
                self._signals[value.bus] = kept
                low += value.width
            return
        address = Signal(range(max(2, channel.beats)), name=f"{channel.name}_address")
        last = address == channel.beats - 1
        m.d.comb += finishes.eq(taken & last)
        with m.If(taken):
            m.d.sync += address.eq(Mux(last, 0, address + 1))
        memory = self._process.memory_of(channel.name)
        if memory is not None:  # something reads it
            self._drives(memory, MemoryPort(taken, taken, address, end.data))

    def _send_when(self, end: Endpoint, pending: Value) -> None:
        """Sends while there is a result."""
        m, channel = self._m, end.channel
        finishes, memory = self._finishes[channel.name], self._process.memory_of(channel.name)
        if memory is None:
            m.d.comb += [
                end.valid.eq(pending), end.last.eq(1), finishes.eq(pending & end.ready),
                end.data.eq(Cat(*(self._signals[value.bus] for value in channel.values))),
            ]
            return
        address, asks = (
            Signal(range(max(2, channel.beats)), name=f"{channel.name}_address"),
            Signal(name=f"{channel.name}_asks"),
        )
        at_last = address == channel.beats - 1
        m.d.comb += finishes.eq(asks & at_last)  # what is on its way has left the memory
        with m.If(asks):
            m.d.sync += address.eq(Mux(at_last, 0, address + 1))
        self._drives(memory, MemoryPort(pending, read_address=address))
        given = self._told[memory]
        at, _ = self._ports[memory][channel.name]
        word = self._q[memory][at * given.width : (at + 1) * given.width]
        self._hand_out(end, channel, given, pending, asks, at_last, word)

    def _hand_out(
        self, end: Endpoint, channel: Channel, given: StorageParameters, wants: Value, asks: Signal,
        at_last: Value, word: Value,
    ) -> None:
        """Words as they come out of the memory, those that the channel does not take at once kept."""
        m, name, latency = self._m, channel.name, given.latency_cycles
        if latency == 0:
            m.d.comb += [
                end.valid.eq(wants), end.last.eq(at_last), end.data.eq(word), asks.eq(wants & end.ready),
            ]
            return
        room = latency + 1
        coming, lasts = Signal(latency, name=f"{name}_coming"), Signal(latency, name=f"{name}_lasts")
        m.d.sync += [coming.eq(Cat(asks, coming[:-1])), lasts.eq(Cat(at_last, lasts[:-1]))]
        under_way = Signal(range(room + 1), name=f"{name}_under_way")
        stored, takes = Signal(range(room + 1), name=f"{name}_stored"), Signal(name=f"{name}_takes")
        put, get = Signal(range(room), name=f"{name}_put"), Signal(range(room), name=f"{name}_get")
        kept = [Signal(given.width + 1, name=f"{name}_kept_{k}", reset_less=True) for k in range(room)]
        head = Signal(given.width + 1, name=f"{name}_head")
        arrives, waiting = coming[-1], stored.any()
        keeps = arrives & ~(takes & ~waiting)
        m.d.comb += [
            asks.eq(wants & (under_way != room)),
            head.eq(Mux(waiting, Array(kept)[get], Cat(word, lasts[-1]))),
            end.valid.eq(waiting | arrives), end.data.eq(head[: given.width]), end.last.eq(head[given.width]),
            takes.eq(end.valid & end.ready),
        ]
        m.d.sync += [
            under_way.eq((under_way + asks - takes)[: len(under_way)]),
            stored.eq((stored + keeps - (takes & waiting))[: len(stored)]),
        ]
        with m.If(keeps):
            m.d.sync += [Array(kept)[put].eq(Cat(word, lasts[-1])), put.eq(Mux(put == room - 1, 0, put + 1))]
        with m.If(takes & waiting):
            m.d.sync += get.eq(Mux(get == room - 1, 0, get + 1))

    # Memories

    def _copy_of(self, memory: str) -> Value:
        """The number of the copy that this node works on, above an address; no bit where there is one."""
        copies, node = self._overlap.copies.get(memory, 1), self._node
        if copies == 1:
            return Const(0, 0)
        found = self._copy.get((memory, node))
        if found is None:
            m, finishes = self._m, self._finishes[node]
            number = Signal(range(copies), name=f"{node}_copy{len(self._copy)}")
            with m.If(finishes):
                m.d.sync += number.eq(Mux(number == copies - 1, 0, number + 1))
            found = self._copy[memory, node] = number
        return found

    def _late_copy_of(self, memory: str, region: RegionPart, calls: Sequence[int]) -> Value:
        """The same in a stage that several items are in: of whichever reaches these calls."""
        m, copies = self._m, self._overlap.copies[memory]
        cycles = max(region.plan.stage[call] for call in calls)
        found = self._late_copy.get((copies, cycles))
        if found is None:
            number = Signal(range(copies), name=f"{self._node}_copy{copies}_at{cycles}")
            with m.If(self._passed(cycles)):
                m.d.sync += number.eq(Mux(number == copies - 1, 0, number + 1))
            found = self._late_copy[copies, cycles] = number
        return found

    def _drives(
        self, memory: str, port: MemoryPort, by: tuple[RegionPart, StoragePlace] | None = None
    ) -> None:
        """A driver, its addresses with the copy, its reads at the node's own ports."""
        own = self._process.memories[memory].address_bits
        writes = reads = None
        if by is not None and self._prompt:  # alone at its ports, where items follow each other
            region, place = by
            port = replace(port, when=Const(1))
            writes = self._late_copy_of(memory, region, place.writes) if place.writes else None
            reads = [self._late_copy_of(memory, region, calls) for calls in place.reads]
        else:
            writes = self._copy_of(memory)

        def placed(address: Value | None, copies: Sequence[Value]) -> Value | None:
            if address is None or not copies:
                return address
            bits = own - len(copies[0])
            count = max(1, -(-len(address) // bits))
            parts = [address[k * bits : (k + 1) * bits] for k in range(count)]
            return Cat(*(
                Cat(part, Const(0, bits - len(part)), copies[min(k, len(copies) - 1)])
                for k, part in enumerate(parts)
            ))

        at, _ = self._ports[memory].get(self._node, (0, 0))
        shown = [writes] if writes is not None else []
        self._drivers[memory].append(replace(
            port, write_address=placed(port.write_address, shown),
            read_address=placed(port.read_address, shown if reads is None else reads), first=at,
        ))

    def _shown_by(self, storage: Storage, reads: int) -> Value:
        at, _ = self._ports[storage.name].get(self._node, (0, 0))
        return self._q[storage.name][at * storage.word_bits : (at + reads) * storage.word_bits]
