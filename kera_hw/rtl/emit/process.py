"""A process: regions that run one after another on memories they share, channels that fill and empty these.

An item is loaded, worked on by every region in turn, and sent; while it is sent the next one is loaded. A
region starts a round every few cycles until its loops have run, and ends when the last one leaves its
pipeline. The pipelines never stall: what a region gives to others is kept in registers when it ends, and the
next one starts from a register a cycle later, so that no path leads through the control of two regions.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from amaranth.hdl import Cat, ClockSignal, Const, Instance, Module, Mux, ResetSignal, Signal, Value

from kera_hw.rtl.emit.banked import Digit, Places, Walk
from kera_hw.rtl.emit.channels import Endpoint, in_reset
from kera_hw.rtl.emit.layout import Control, StoragePlace, valid_name
from kera_hw.rtl.emit.ports import Channel, PortPlan
from kera_hw.rtl.emit.storages import StorageParameters
from kera_hw.schedule.fpga.netlist import Netlist
from kera_hw.schedule.fpga.units import Storage
from kera_hw.schedule.plan import Plan


@dataclass(frozen=True, slots=True)
class RegionPart:
    """A region's datapath in the process: its module, its loops' counts from the outside in, its memories."""

    module: str
    netlist: Netlist
    plan: Plan
    control: Control
    counts: tuple[int, ...]
    storages: tuple[StoragePlace, ...]
    takes: tuple[str, str] | None = None
    """A channel of which every round takes a beat, and the bus that it goes on."""
    after: int | None = None
    """Cycles from the start of the region ahead to its own; None where it starts when that ends."""
    rests: bool = False
    """Whether the innermost loop has a round more than are counted, whose number is 0."""

    @property
    def rounds(self) -> int:
        """Rounds of a run."""
        *outer, inner = self.counts or (1,)
        return reduce(lambda a, b: a * b, outer, inner + self.rests)

    @property
    def cycles(self) -> int:
        """From its start to that of the region behind it."""
        return (self.rounds - 1) * self.plan.initiation_interval + self.plan.latency_cycles + 1


@dataclass(frozen=True, slots=True)
class Repeat:
    """Regions ``first`` to ``last`` run ``count`` times; ``bus`` carries the number of the time."""

    bus: str
    count: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Overlap:
    """Stages that work on different items at once, each from one region to another, and the copies of
    memories that have several.
    """

    stages: tuple[tuple[int, int], ...]
    copies: Mapping[str, int]
    in_turn: bool = False
    """Whether there is one stage, and an item has left it before the next is begun."""
    prompt: frozenset[int] = frozenset()
    """Stages that take the next item when the last round has started, while that is still on its way."""

    @property
    def relays(self) -> bool:
        """Whether scalars are handed from stage to stage."""
        return len(self.stages) > 1


@dataclass(frozen=True, slots=True)
class ProcessPlan:
    """The whole: ``memories`` by name with what their module is told; ``channels`` that reach such."""

    regions: tuple[RegionPart, ...]
    repeats: tuple[Repeat, ...]
    memories: Mapping[str, StorageParameters]
    channels: Mapping[str, Places]
    ports: PortPlan
    overlap: Overlap | None = None
    """None where an item has left all regions before the next is begun."""

    @property
    def taken(self) -> dict[str, int]:
        """By channel whose beats a region takes as it works, the region's number."""
        return {region.takes[0]: k for k, region in enumerate(self.regions) if region.takes is not None}

    @property
    def run_cycles(self) -> int:
        """From the cycle before the first region's start to the end of the last."""
        return run_cycles(self.regions, self.repeats)

    def cycles_of(self, first: int, last: int, repeats: Sequence[Repeat]) -> int:
        """From the cycle before a region's start to the end of another, by way of these repeats."""
        return _cycles(self.regions, first, last, repeats)

    @property
    def served(self) -> set[str]:
        """The memories that channels reach."""
        return {bank for places in self.channels.values() for bank in places.banks}

    def memory_of(self, channel: str) -> str | None:
        """The memory that a channel reaches, or the first of its banks: where stages overlap there is one."""
        places = self.channels.get(channel)
        return None if places is None else next(bank for bank in places.banks if bank in self.memories)

    def reading(self, channel: str) -> int:
        """Cycles from an address to the word of a channel's memories."""
        places = self.channels.get(channel)
        banks = () if places is None else places.banks
        there = [self.memories[bank].latency_cycles for bank in banks if bank in self.memories]
        return max(there, default=0)


def run_cycles(regions: Sequence[RegionPart], repeats: Sequence[Repeat]) -> int:
    """From the cycle before the first region's start to the end of the last, by way of these repeats."""
    return _cycles(regions, 0, len(regions) - 1, repeats)


def _cycles(regions: Sequence[RegionPart], first: int, last: int, repeats: Sequence[Repeat]) -> int:
    total, at, begun = 0, first, 0
    while at <= last:
        found = outermost(repeats, at)
        if found is None:
            after = regions[at].after
            begun = total if after is None or at == first else begun + after
            total, at = begun + regions[at].cycles, at + 1
            continue
        inner = _cycles(regions, found.first, found.last, [one for one in repeats if one is not found])
        total, at = total + found.count * inner, found.last + 1
    return total


def outermost(repeats: Sequence[Repeat], first: int) -> Repeat | None:
    """Of the repeats that begin with a region, that which lasts longest."""
    return max((one for one in repeats if one.first == first), key=lambda one: one.last, default=None)


class ProcessCore:
    """What stands between the endpoints of the ports."""

    def __init__(self, plan: ProcessPlan) -> None:
        self.process, self.plan = plan, plan.ports
        self.endpoints = tuple(map(Endpoint.of, plan.ports.channels))

    def build(self, module: Module) -> None:
        """Adds everything to a module."""
        ProcessBuild(module, self.process, self.endpoints).build()


@dataclass(frozen=True, slots=True)
class MemoryPort:
    """What drives a memory for a while: when, and its signals; None where it does not use them.

    ``first`` is the first of the read ports that it uses.
    """

    when: Value
    write: Value | None = None
    write_address: Value | None = None
    write_data: Value | None = None
    read_address: Value | None = None
    first: int = 0


class ProcessBuild:
    """Adds the controller, the regions and the memories to a module."""

    def __init__(self, module: Module, process: ProcessPlan, endpoints: Sequence[Endpoint]) -> None:
        self._m, self._process = module, process
        self._ends = endpoints
        self._drivers: dict[str, list[MemoryPort]] = {name: [] for name in process.memories}
        self._q = {
            name: Signal(given.width * given.reads, name=f"{_plain(name)}_q")
            for name, given in process.memories.items()
        }
        self._enables: dict[str, Value] = {}
        self._signals: dict[str, Signal] = {}  # of parameters in registers, and what regions give
        self._issues: dict[int, Value] = {}  # by region, whether the last round of a run starts

    def build(self) -> None:
        """Everything."""
        m = self._m
        busy, start, finished = Signal(name="busy"), Signal(name="start"), Signal(name="finished")
        full = [self._load(end, finished) for end in self.loaded()]
        process = self._process
        m.d.comb += finished.eq(self._sequence(0, len(process.regions) - 1, start, process.repeats))
        pending = [self._send(end, finished) for end in self._ends if end.channel.direction == "output"]
        m.d.comb += start.eq(Cat(Const(1), *full).all() & ~busy & ~Cat(*pending).any() & ~in_reset())
        with m.If(finished):
            m.d.sync += busy.eq(0)
        with m.Elif(start):
            m.d.sync += busy.eq(1)
        for name, given in self._process.memories.items():
            self._memory(name, given)

    # Channels

    def loaded(self) -> list[Endpoint]:
        """The channels that fill memories and registers before regions work on those."""
        taken = self._process.taken
        inputs = [end for end in self._ends if end.channel.direction == "input"]
        return [end for end in inputs if end.channel.name not in taken]

    def _load(self, end: Endpoint, finished: Signal) -> Signal:
        """Whether the channel has brought what an item needs."""
        m, channel = self._m, end.channel
        full, taken = Signal(name=f"{channel.name}_full"), Signal(name=f"{channel.name}_taken")
        m.d.comb += [end.ready.eq(~full & ~in_reset()), taken.eq(end.valid & end.ready)]
        last: Value = Const(1)
        if not channel.in_beats:
            low = 0
            for value in channel.values:
                kept = Signal(value.width, name=f"{value.bus}_kept", reset_less=True)
                with m.If(taken):
                    m.d.sync += kept.eq(end.data[low : low + value.width])
                self._signals[value.bus] = kept
                low += value.width
        else:
            places = self._process.channels.get(channel.name, _unread(channel))
            walk = Walk(m, channel, places, taken)
            last = walk.last
            for number, bank in enumerate(places.banks):
                if bank in self._drivers:  # something reads it
                    here = taken & (walk.bank == places.base_of(number))
                    width, lane = channel.values[0].element_bits, places.lane_of(number)
                    word = end.data[lane * width : (lane + 1) * width]
                    self._drives(bank, MemoryPort(taken, here, walk.address, word))
        with m.If(finished):
            m.d.sync += full.eq(0)
        with m.Elif(taken & last):
            m.d.sync += full.eq(1)
        return full

    def _send(self, end: Endpoint, finished: Signal) -> Signal:
        """Whether the channel has still to send."""
        m, channel = self._m, end.channel
        pending, done = Signal(name=f"{channel.name}_pending"), Signal(name=f"{channel.name}_done")
        with m.If(finished):
            m.d.sync += pending.eq(1)
        with m.Elif(done):
            m.d.sync += pending.eq(0)
        places = self._process.channels.get(channel.name)
        if places is None:
            m.d.comb += [
                end.valid.eq(pending), end.last.eq(1), done.eq(pending & end.ready),
                end.data.eq(Cat(*(self._signals[value.bus] for value in channel.values))),
            ]
            return pending
        asked, moves = Signal(name=f"{channel.name}_asked"), Signal(name=f"{channel.name}_moves")
        asking = pending & ~asked
        walk = Walk(m, channel, places, moves & asking)
        latency = self._process.reading(channel.name)
        shown, ends = _chain(m, channel.name, latency, moves, asking, asking & walk.last)
        m.d.comb += [
            moves.eq(~end.valid | end.ready), end.valid.eq(shown), end.last.eq(ends),
            end.data.eq(self._beat(channel, places, walk.bank, latency, moves)),
            done.eq(shown & ends & end.ready),
        ]
        with m.If(moves & asking):
            m.d.sync += asked.eq(walk.last)
        with m.If(done):
            m.d.sync += asked.eq(0)
        for bank in places.banks:
            if bank in self._drivers:
                self._drives(bank, MemoryPort(pending, read_address=walk.address))
                self._enables[bank] = ~pending | moves
        return pending

    def _beat(self, channel: Channel, places: Places, base: Value, latency: int, moves: Signal) -> Value:
        """What the banks of a beat show, ``latency`` cycles after it was asked for."""
        m, width = self._m, channel.values[0].element_bits
        bases = dict.fromkeys(places.base_of(number) for number in range(len(places.banks)))
        if len(bases) > 1:
            for stage in range(latency):
                kept = Signal(len(base), name=f"{channel.name}_bank{stage}")
                with m.If(moves):
                    m.d.sync += kept.eq(base)
                base = kept
        words = [self._word(bank, width, latency, moves) for bank in places.banks]
        beat = Signal(channel.beat_bits, name=f"{channel.name}_words")
        with m.Switch(base):
            for first in bases:
                numbers = [first + lane * places.lane_step for lane in range(places.lanes)]
                with m.Case(first) if len(bases) > 1 else m.Default():
                    m.d.comb += beat.eq(Cat(*(words[number] for number in numbers)))
        return beat

    def _word(self, bank: str, width: int, latency: int, moves: Signal) -> Value:
        """What the first port of a bank shows, ``latency`` cycles after it was asked for.

        Banks beside each other may be memories of two kinds, where there are not block RAMs for all.
        """
        if bank not in self._q:
            return Const(0, width)
        word: Value = self._q[bank][:width]
        for stage in range(self._process.memories[bank].latency_cycles, latency):
            kept = Signal(width, name=f"{_plain(bank)}_kept{stage}", reset_less=True)
            with self._m.If(moves):
                self._m.d.sync += kept.eq(word)
            word = kept
        return word

    # Regions

    def _sequence(self, first: int, last: int, begin: Value, repeats: Sequence[Repeat]) -> Value:
        """Whether the last of these regions ends, each begun in the cycle in which the one before ends."""
        at, begun = first, begin
        while at <= last:
            found = outermost(repeats, at)
            if found is None:
                after = self._process.regions[at].after
                begun = begin if after is None or at == first else self._later(f"region{at}", begun, after)
                begin, at = self._region(at, self._process.regions[at], begun), at + 1
                continue
            begin = self._repeat(found, begin, [one for one in repeats if one is not found])
            at = found.last + 1
        return begin

    def _later(self, stem: str, begin: Value, cycles: int) -> Value:
        """The same so many cycles later."""
        m = self._m
        if cycles == 0:
            return begin
        left = Signal(range(cycles + 1), name=f"{stem}_waits")
        with m.If(begin):
            m.d.sync += left.eq(cycles)
        with m.Elif(left.any()):
            m.d.sync += left.eq(left - 1)
        return left == 1

    def _repeat(self, repeat: Repeat, begin: Value, repeats: Sequence[Repeat]) -> Value:
        """Whether the regions have run for the last time."""
        m, name = self._m, repeat.bus
        number = Signal(range(max(2, repeat.count)), name=f"{name}_number")
        again = Signal(name=f"{name}_again")
        at_last = Signal(name=f"{name}_at_last", init=int(repeat.count == 1))
        self._signals[name] = number
        ended = self._sequence(repeat.first, repeat.last, begin | again, repeats)
        m.d.comb += again.eq(ended & ~at_last)
        if repeat.count > 1:
            with m.If(ended):
                m.d.sync += [
                    number.eq(Mux(at_last, 0, number + 1)),
                    at_last.eq(~at_last & (number == repeat.count - 2)),
                ]
        return ended & at_last

    def _region(self, number: int, region: RegionPart, begin: Value) -> Signal:
        """Whether the region ends in this cycle; it starts in the cycle after ``begin``."""
        m, plan, stem = self._m, region.plan, f"region{number}"
        start, running = Signal(name=f"{stem}_start"), Signal(name=f"{stem}_running")
        started, ended = Signal(name=f"{stem}_started"), Signal(name=f"{stem}_ended")
        holds = Signal(plan.latency_cycles, name=f"{stem}_holds")
        given = {bus: Signal(width, name=f"{stem}_{bus}") for bus, width in region.netlist.inputs}
        made: dict[str, Signal] = {}
        for out in region.netlist.outputs:
            width = sum(segment.width for segment in out.bits)
            made[out.bus] = Signal(width, name=f"{stem}_{out.bus}")
        left, at_last = self._count(m, stem, region, started, given)
        self._issues[number] = started & at_last
        due = _due(m, stem, plan.initiation_interval, started)
        first: Value = start
        if region.takes is not None:
            first, left, due = self._beats(stem, region.takes, given, begin, started, left, due)
        m.d.comb += [started.eq(first | (left & due)), ended.eq(holds[-1] & made["done"])]
        m.d.sync += [start.eq(begin), holds.eq(Cat(started, holds[:-1]))]
        with m.If(begin):
            m.d.sync += running.eq(1)
        with m.Elif(ended):
            m.d.sync += running.eq(0)
        for bus, signal in given.items():
            if bus in self._signals:
                m.d.comb += signal.eq(self._signals[bus])
        for bus, signal in made.items():
            if bus == "done":
                continue
            kept = Signal(len(signal), name=f"{stem}_{bus}_kept", reset_less=True)
            with m.If(ended):
                m.d.sync += kept.eq(signal)
            self._signals[bus] = kept
        self._instance(m, stem, region, given, made, Cat(started, holds), running)
        return ended

    def _beats(
        self, stem: str, takes: tuple[str, str], given: Mapping[str, Signal], begin: Value, started: Signal,
        left: Value, due: Value,
    ) -> tuple[Value, Value, Value]:
        """The first round, those left and their pace, each waiting for a beat of a channel."""
        m, (channel, bus) = self._m, takes
        end = next(item for item in self._ends if item.channel.name == channel)
        first = Signal(name=f"{stem}_first")
        with m.If(begin):
            m.d.sync += first.eq(1)
        with m.Elif(started):
            m.d.sync += first.eq(0)
        m.d.comb += end.ready.eq((first | (left & due)) & ~in_reset())
        if bus in given:
            m.d.comb += given[bus].eq(end.data)
        return first & end.valid, left & end.valid, due

    def _count(
        self, m: Module, stem: str, region: RegionPart, started: Signal,
        given: Mapping[str, Signal],
    ) -> tuple[Value, Value]:
        """Counters of the loops, and what a round is told of them; whether rounds are left, and whether this
        one is the last.
        """
        zeros: list[Value] = []
        lasts: list[Value] = []
        for k, count in enumerate(region.counts):
            if count == 1:
                zeros.append(Const(1))
                lasts.append(Const(1))
                continue
            zeros.append(Signal(name=f"{stem}_zero{k}", init=1))
            lasts.append(Signal(name=f"{stem}_last{k}_"))
        levels = range(len(region.counts))
        first = [_all(zeros[k:]) for k in levels]
        last = [_all(lasts[k:]) for k in levels]
        for k, count in enumerate(region.counts):
            if count > 1:
                counter = Signal(range(count), name=f"{stem}_count{k}_")
                steps = started & last[k + 1] if k + 1 < len(last) else started
                rests = region.rests and k + 1 == len(lasts)
                ends = counter == count - (1 if rests else 2)
                with m.If(steps):
                    m.d.sync += [
                        counter.eq(Mux(lasts[k] | ends if rests else lasts[k], 0, counter + 1)),
                        zeros[k].eq(lasts[k]), lasts[k].eq(~lasts[k] & ends),
                    ]
                if f"count{k}" in given:
                    m.d.comb += given[f"count{k}"].eq(counter)
            for what, values in (("first", first), ("last", last)):
                if f"{what}{k}" in given:
                    m.d.comb += given[f"{what}{k}"].eq(values[k])
        if region.rounds == 1:
            return Const(0), Const(1)
        left = Signal(name=f"{stem}_left")
        with m.If(started):
            m.d.sync += left.eq(~last[0])
        return left, last[0]

    def _instance(
        self, m: Module, stem: str, region: RegionPart, given: Mapping[str, Signal],
        made: Mapping[str, Signal], chain: Value, running: Signal,
    ) -> None:
        control = region.control
        ports: dict[str, Value] = {"i_clk": ClockSignal()}
        if control.reset:
            ports["i_rst"] = ResetSignal(allow_reset_less=True)
        ports |= {f"i_{valid_name(stage)}": chain[stage] for stage in control.valid_stages}
        ports |= {f"i_{bus}": signal for bus, signal in given.items()}
        ports |= {f"o_{bus}": signal for bus, signal in made.items()}
        for place in region.storages:
            storage, reads = place.storage, max(1, len(place.reads))
            widths = {
                "_write": 1, "_write_address": storage.address_bits, "_write_data": storage.word_bits,
                "_read_address": storage.address_bits * reads,
            }
            wires = {
                suffix: Signal(width, name=f"{stem}_{place.stem}{suffix}") for suffix, width in widths.items()
            }
            ports |= {f"o_{place.stem}{suffix}": wire for suffix, wire in wires.items()}
            ports[f"i_{place.stem}_q"] = self._shown_by(storage, reads)
            whole = storage.address_bits
            bits = min(whole, self._process.memories[storage.name].address_bits)  # of what is alive at once
            address = Cat(*(wires["_read_address"][k * whole : k * whole + bits] for k in range(reads)))
            self._drives(storage.name, MemoryPort(
                running, wires["_write"] if place.writes else None, wires["_write_address"][:bits],
                wires["_write_data"], address if place.reads else None,
            ), (region, place))
        m.submodules[stem] = Instance(region.module, **ports)

    # Memories

    def _drives(
        self, memory: str, port: MemoryPort, by: tuple[RegionPart, StoragePlace] | None = None
    ) -> None:
        """Another driver of a memory; ``by``: of a region, and its signals there."""
        self._drivers[memory].append(port)

    def _shown_by(self, storage: Storage, reads: int) -> Value:
        """What the read ports of a region show."""
        return self._q[storage.name][: storage.word_bits * reads]

    def _turns(self, target: Value, drivers: Sequence[tuple[Value, Value]]) -> None:
        """A signal of whoever drives it, one at a time: others are 0 meanwhile, so that no order is built."""
        values = [value for _, value in drivers]
        if len(values) > 1:
            values = [Mux(when, value, 0) for when, value in drivers]
        if values:
            self._m.d.comb += target.eq(reduce(lambda one, two: one | two, values))

    def _memory(self, name: str, given: StorageParameters) -> None:
        m, stem, drivers = self._m, _plain(name), self._drivers[name]
        write = Signal(name=f"{stem}_write")
        address = Signal(given.address_bits, name=f"{stem}_write_address")
        data, reads = Signal(given.width, name=f"{stem}_write_data"), given.address_bits * given.reads
        read = Signal(reads, name=f"{stem}_read_address")
        writers = [driver for driver in drivers if driver.write is not None]
        readers = [driver for driver in drivers if driver.read_address is not None]
        m.d.comb += write.eq(Cat(*(_known(driver.write) for driver in writers)).any())
        self._turns(address, [(driver.when, _known(driver.write_address)) for driver in writers])
        self._turns(data, [(driver.when, _known(driver.write_data)) for driver in writers])
        for first in sorted({driver.first for driver in readers}):
            those = [driver for driver in readers if driver.first == first]
            values = [(driver.when, _known(driver.read_address)) for driver in those]
            low = first * given.address_bits
            self._turns(read[low : low + max(len(value) for _, value in values)], values)
        enable = Signal(name=f"{stem}_enable")
        m.d.comb += enable.eq(self._enables.get(name, Const(1)))
        m.submodules[stem] = Instance(
            "kera_memory", p_WIDTH=given.width, p_ENTRIES=given.entries, p_ADDRESS=given.address_bits,
            p_READS=given.reads, p_LATENCY=given.latency_cycles, p_FORWARD=int(given.forwards),
            p_BLOCKS=int(given.blocks), i_clk=ClockSignal(), i_ce=enable, i_clear=Const(0),
            i_clear_address=Const(0, given.address_bits), i_write=write, i_write_address=address,
            i_write_data=data, i_read_address=read, o_q=self._q[name],
        )


def _unread(channel: Channel) -> Places:
    """Of a tensor that nothing reads its beats are counted alone."""
    return Places((), (Digit(channel.beats, 1, 0),))


def _all(bits: Sequence[Value]) -> Value:
    return bits[0] if len(bits) == 1 else Cat(*bits).all()


def _known(value: Value | None) -> Value:
    assert value is not None
    return value


def _due(m: Module, stem: str, interval: int, started: Signal) -> Value:
    """Whether the last round started long enough ago for another: a register."""
    if interval == 1:
        return Const(1)
    due = Signal(name=f"{stem}_due", init=1)
    pause = Signal(range(max(2, interval - 1)), name=f"{stem}_pause")
    with m.If(started):
        m.d.sync += [due.eq(0), pause.eq(interval - 2)]
    with m.Elif(~due):
        m.d.sync += [due.eq(~pause.any()), pause.eq((pause - 1)[: len(pause)])]
    return due


def _chain(
    m: Module, stem: str, stages: int, moves: Signal, valid: Value, last: Value
) -> tuple[Value, Value]:
    """Two bits that follow a word through a memory."""
    if not stages:
        return valid, last
    valids, lasts = Signal(stages, name=f"{stem}_shown"), Signal(stages, name=f"{stem}_ends_")
    with m.If(moves):
        m.d.sync += [valids.eq(Cat(valid, valids[:-1])), lasts.eq(Cat(last, lasts[:-1]))]
    return valids[-1], lasts[-1]


def _plain(name: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in name)
