"""From channels to a circuit that takes whole items, and back: collectors in front, serialisers behind.

A collector shifts the beats of an item into registers. Alone, it hands the last beat on as it comes; where
several channels wait for each other, each keeps its whole item, so that a neighbour may fill them in any
order. A serialiser shows the first beat of a result as it comes and shifts the others out of registers; the
circuit behind is free again when every channel has begun. Both take a beat in every cycle, also from one
item to the next; valid follows from registers alone, and no channel's ready from another's valid.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from amaranth.hdl import Cat, ClockDomain, Const, Elaboratable, Module, Mux, ResetSignal, Signal, Value

from kera_hw.rtl.emit.handshake import StreamShell
from kera_hw.rtl.emit.ports import Bundle, Channel, PortPlan, Reset


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The signals of a channel inside a design; ``data`` holds its values or its beat, the first lowest."""

    channel: Channel
    valid: Signal
    ready: Signal
    data: Signal
    last: Signal

    @staticmethod
    def of(channel: Channel) -> Endpoint:
        """New signals for a channel."""
        name = channel.name
        return Endpoint(
            channel, Signal(name=f"{name}_offered"), Signal(name=f"{name}_wanted"),
            Signal(channel.beat_bits, name=f"{name}_beat"), Signal(name=f"{name}_ends"),
        )


def in_reset() -> Value:
    """Whether the design is being reset."""
    return ResetSignal(allow_reset_less=True)


class ChannelCore:
    """A circuit that takes whole items as one with channels; ``endpoints`` are in the port plan's order."""

    def __init__(self, core: StreamShell, plan: PortPlan) -> None:
        self.core, self.plan = core, plan
        self.endpoints = tuple(map(Endpoint.of, plan.channels))

    def build(self, module: Module) -> None:
        """Adds the circuit, as submodule ``core``, and what stands around it."""
        module.submodules.core = self.core
        inputs = [end for end in self.endpoints if end.channel.direction == "input"]
        outputs = [end for end in self.endpoints if end.channel.direction == "output"]
        if self.plan.collects_whole:
            self._collect_whole(module, inputs)
        else:
            self._collect(module, inputs[0])
        self._serialise(module, outputs)

    def _give(self, module: Module, channel: Channel, item: Value) -> None:
        """The collected bits of a channel to the circuit's buses."""
        buses, low = {signal.name: signal for signal in self.core.inputs}, 0
        for value in channel.values:
            module.d.comb += buses[value.bus].eq(item[low : low + value.width])
            low += value.width

    def _collect(self, module: Module, end: Endpoint) -> None:
        """One channel: the last beat goes into the circuit beside those kept."""
        beats = end.channel.beats
        kept = _registers(end.channel, beats - 1, "kept")
        have, at_last = Signal(range(beats), name="beats_kept"), Signal(name="at_last")
        taken = Signal(name="beat_taken")
        module.d.comb += [
            at_last.eq(have == beats - 1),
            end.ready.eq((~at_last | self.core.in_ready) & ~in_reset()),
            self.core.in_valid.eq(at_last & end.valid),
            taken.eq(end.valid & end.ready),
        ]
        self._give(module, end.channel, Cat(*kept, end.data))
        if kept:
            with module.If(taken):
                module.d.sync += have.eq(Mux(at_last, 0, have + 1))
                _shift(module, kept, end.data)

    def _collect_whole(self, module: Module, ends: list[Endpoint]) -> None:
        """Several channels: an item leaves when all have it; the next one's beats follow at once."""
        leaving = Signal(name="item_leaves")
        full: list[Value] = []
        for end in ends:
            beats, name = end.channel.beats, end.channel.name
            kept = _registers(end.channel, beats, "kept")
            have, whole = Signal(range(beats + 1), name=f"{name}_count"), Signal(name=f"{name}_whole")
            taken = Signal(name=f"{name}_taken")
            module.d.comb += [
                whole.eq(have == beats), end.ready.eq((~whole | leaving) & ~in_reset()),
                taken.eq(end.valid & end.ready),
            ]
            with module.If(leaving):
                module.d.sync += have.eq(taken)
            with module.Elif(taken):
                module.d.sync += have.eq((have + 1)[: len(have)])
            with module.If(taken):
                _shift(module, kept, end.data)
            self._give(module, end.channel, Cat(*kept))
            full.append(whole)
        module.d.comb += self.core.in_valid.eq(Cat(*full).all())
        module.d.comb += leaving.eq(self.core.in_valid & self.core.in_ready)

    def _serialise(self, module: Module, ends: list[Endpoint]) -> None:
        """Each channel shows the result's first beat when it is free and keeps the rest of it."""
        core, several = self.core, len(ends) > 1
        buses: Mapping[str, Signal] = {signal.name: signal for signal in core.outputs}
        leaving = Signal(name="result_leaves")
        begun: list[Value] = []
        for end in ends:
            name, beats, width = end.channel.name, end.channel.beats, end.channel.beat_bits
            bits = Cat(*(buses[value.bus] for value in end.channel.values))
            item = Cat(bits, Const(0, beats * width - len(bits)))
            rest = _registers(end.channel, beats - 1, "rest")
            left, free = Signal(range(beats), name=f"{name}_left"), Signal(name=f"{name}_free", init=1)
            shown, first = Signal(name=f"{name}_shown"), Signal(name=f"{name}_first")
            pending = core.out_valid & ~shown if several else core.out_valid
            module.d.comb += [
                end.valid.eq(~free | pending), first.eq(free & pending & end.ready),
                end.data.eq(Mux(free, item[:width], rest[0]) if rest else item),
                end.last.eq(left == 1 if rest else 1),
            ]
            if rest:
                with module.If(first):
                    module.d.sync += [left.eq(beats - 1), free.eq(0)]
                    for k, register in enumerate(rest, start=1):
                        module.d.sync += register.eq(item[k * width : (k + 1) * width])
                with module.Elif(~free & end.ready):
                    module.d.sync += [left.eq((left - 1)[: len(left)]), free.eq(left == 1)]
                    _shift(module, rest[:-1], rest[-1])
            if several:
                module.d.sync += shown.eq((shown | first) & ~leaving)
            begun.append(shown | (free & end.ready) if several else free & end.ready)
        module.d.comb += core.out_ready.eq(Cat(*begun).all())
        module.d.comb += leaving.eq(core.out_valid & core.out_ready)


def _registers(channel: Channel, count: int, what: str) -> list[Signal]:
    """A register for each of ``count`` beats."""
    return [
        Signal(channel.beat_bits, name=f"{channel.name}_{what}_{k}", reset_less=True) for k in range(count)
    ]


def _shift(module: Module, registers: list[Signal], last: Value) -> None:
    """Moves every register's bits to the one before, ``last`` into the last one."""
    for register, value in zip(registers, [*registers[1:], last]):
        module.d.sync += register.eq(value)


class Served(Protocol):
    """What stands behind the ports: it takes and gives by ``endpoints``, in the order of the channels."""

    plan: PortPlan
    endpoints: tuple[Endpoint, ...]

    def build(self, module: Module) -> None:
        """Adds it to a module."""
        ...


class BundleShell(Elaboratable):
    """The top module of a design with channels: the clock, the reset, and the ports of each bundle."""

    def __init__(self, core: Served) -> None:
        self.core, self.plan = core, core.plan
        self.signals = {port.name: Signal(port.width, name=port.name) for port in self.plan.ports}

    def ports(self) -> list[Signal]:
        """All ports in the order of the Verilog module."""
        return list(self.signals.values())

    def elaborate(self, platform: object) -> Module:
        """Called by Amaranth."""
        m = Module()
        own_domain(m, self.signals[self.plan.clock], self.plan.reset, self.signals)
        self.core.build(m)
        for bundle, end in zip(self.plan.bundles, self.core.endpoints, strict=True):
            assert bundle.valid is not None and bundle.ready is not None, "channels have a handshake"
            valid, ready = self.signals[bundle.valid], self.signals[bundle.ready]
            payload = Cat(*(self.signals[port.name] for port in bundle.payload))
            if bundle.channel.direction == "output":
                m.d.comb += [valid.eq(end.valid), end.ready.eq(ready), payload.eq(end.data)]
                if bundle.last is not None:
                    m.d.comb += self.signals[bundle.last].eq(end.last)
            elif self.plan.registered_ready:
                _skid(m, bundle, end, valid, ready, payload[: len(end.data)])
            else:
                m.d.comb += [end.valid.eq(valid), ready.eq(end.ready), end.data.eq(payload)]
        return m


def own_domain(module: Module, clock: Signal, reset: Reset | None, signals: Mapping[str, Signal]) -> None:
    """The domain ``sync`` of a top module, from its ports."""
    module.domains.sync = sync = ClockDomain("sync", reset_less=reset is None)
    sync.clk = clock
    if reset is not None and reset.active_low:
        sync.rst = rst = Signal(name="rst")
        module.d.comb += rst.eq(~signals[reset.name])
    elif reset is not None:
        sync.rst = signals[reset.name]


def _skid(module: Module, bundle: Bundle, end: Endpoint, valid: Signal, ready: Signal, data: Value) -> None:
    """Keeps a beat that the design did not take, so that ready comes from a register."""
    name = bundle.channel.name
    full = Signal(name=f"{name}_skid_full")
    kept = Signal(len(data), name=f"{name}_skid", reset_less=True)
    module.d.comb += [
        ready.eq(~full & ~in_reset()), end.valid.eq(full | valid), end.data.eq(Mux(full, kept, data)),
    ]
    module.d.sync += full.eq(end.valid & ~end.ready)
    with module.If(~full):
        module.d.sync += kept.eq(data)
