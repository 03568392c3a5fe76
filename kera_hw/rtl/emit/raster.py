"""The controller of stencils that run in step: a round a cycle, beats straight in and out.

A round starts when the elements that it takes are there, and everything stands still while an element that
leaves is not taken. The counters run from one item into the next, so that an item takes as many cycles as it
has rounds. Where elements come on several channels each is kept for a cycle, so that no channel's ready hangs
on another's valid.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from amaranth.hdl import Cat, ClockSignal, Const, Instance, Module, Mux, ResetSignal, Signal, Value

from kera_hw.rtl.emit.channels import Endpoint, in_reset
from kera_hw.rtl.emit.layout import Control, valid_name
from kera_hw.rtl.emit.ports import Pace, PortPlan
from kera_hw.rtl.lower.ports import Beats
from kera_hw.schedule.fpga.bits import bits_width
from kera_hw.schedule.fpga.netlist import Netlist
from kera_hw.schedule.plan import Plan


@dataclass(frozen=True, slots=True)
class RasterPlan:
    """What the controller is made from; ``counters`` are the buses that tell a round its place."""

    module: str
    netlist: Netlist
    plan: Plan
    control: Control
    counts: tuple[int, ...]
    counters: tuple[str, ...]
    takes: tuple[Beats, ...]
    gives: tuple[Beats, ...]
    ports: PortPlan

    @property
    def rounds(self) -> int:
        """Rounds of an item."""
        return prod(self.counts)

    @property
    def keeps_beats(self) -> bool:
        """Whether elements are kept for a cycle before a round takes them."""
        return len(self.ports.inputs) > 1

    def number(self, place: Sequence[int]) -> int:
        """Which round it is, from its place along the axes."""
        total = 0
        for count, part in zip(self.counts, place):
            total = total * count + part
        return total

    def pace(self) -> Pace:
        """Cycles of an item, nothing stalling; the first round takes an element."""
        interval, waits = self.plan.initiation_interval, self.plan.latency_cycles + self.keeps_beats
        first = min(self.number([low for low, _ in give.spans]) for give in self.gives)
        last = max(self.number([high for _, high in give.spans]) for give in self.gives)
        return Pace(first * interval + waits, last * interval + waits, self.rounds * interval)


class RasterCore:
    """What stands between the endpoints of the ports."""

    def __init__(self, raster: RasterPlan) -> None:
        self.raster, self.plan = raster, raster.ports
        self.endpoints = tuple(map(Endpoint.of, raster.ports.channels))

    def build(self, module: Module) -> None:
        """Adds everything to a module."""
        _Build(module, self.raster, self.endpoints).build()


class _Build:
    def __init__(self, module: Module, raster: RasterPlan, endpoints: Sequence[Endpoint]) -> None:
        self._m, self._raster, self._ends = module, raster, endpoints
        self._started, self._advance = Signal(name="started"), Signal(name="advance")
        self._lasts: list[Value] = []
        self._steps: list[Value] = []
        self._places: list[Signal] = []
        netlist = raster.netlist
        self._given = {bus: Signal(width, name=f"round_{bus}") for bus, width in netlist.inputs}
        self._made = {out.bus: Signal(bits_width(out.bits), name=f"round_{out.bus}")
                      for out in netlist.outputs}

    def build(self) -> None:
        m, raster = self._m, self._raster
        self._count()
        due = self._due()
        waiting = [
            self._take(end, due) if end.channel.in_beats else self._group(end)
            for end in self._ends if end.channel.direction == "input"
        ]
        stages = raster.plan.latency_cycles
        holds = Signal(stages, name="holds")
        blocked = [self._give(end, holds[-1]) for end in self._ends if end.channel.direction == "output"]
        m.d.comb += [
            self._advance.eq(~Cat(*blocked).any()),
            self._started.eq(self._advance & due & ~Cat(*waiting).any() & ~in_reset()),
        ]
        with m.If(self._advance):
            m.d.sync += holds.eq(Cat(self._started, holds[:-1]))
        chain, control = Cat(self._started, holds), raster.control
        ports: dict[str, Value] = {"i_clk": ClockSignal(), "i_advance": self._advance}
        if control.reset:
            ports["i_rst"] = ResetSignal(allow_reset_less=True)
        ports |= {f"i_{valid_name(stage)}": chain[stage] for stage in control.valid_stages}
        ports |= {f"i_{bus}": signal for bus, signal in self._given.items()}
        ports |= {f"o_{bus}": signal for bus, signal in self._made.items()}
        m.submodules.rounds = Instance(raster.module, **ports)

    def _count(self) -> None:
        """Where the next round is; along each axis it goes on when the axes inside are at their end."""
        m, raster = self._m, self._raster
        lasts = self._lasts
        self._places = [
            Signal(range(max(2, count)), name=f"place{axis}") for axis, count in enumerate(raster.counts)
        ]
        for axis, count in enumerate(raster.counts):
            at_last = Signal(name=f"at_last{axis}", init=int(count == 1))
            lasts.append(at_last if count > 1 else Const(1))
        self._steps = [self._started & Cat(Const(1), *lasts[k + 1 :]).all() for k in range(len(lasts))]
        for axis, count in enumerate(raster.counts):
            place, last = self._places[axis], lasts[axis]
            if count > 1:
                assert isinstance(last, Signal)
                with m.If(self._steps[axis]):
                    m.d.sync += [place.eq(Mux(last, 0, place + 1)), last.eq(~last & (place == count - 2))]
            bus = raster.counters[axis]
            if bus in self._given:
                m.d.comb += self._given[bus].eq(place)

    def _due(self) -> Value:
        """Whether a round may start, enough cycles after the one before."""
        m, interval = self._m, self._raster.plan.initiation_interval
        if interval == 1:
            return Const(1)
        pause = Signal(range(interval), name="pause")
        with m.If(self._started):
            m.d.sync += pause.eq(interval - 1)
        with m.Elif(self._advance & pause.any()):
            m.d.sync += pause.eq((pause - 1)[: len(pause)])
        return ~pause.any()

    def _wanted(self, beats: Beats, name: str) -> Value:
        """Whether the next round takes an element."""
        found: list[Value] = []
        for axis, ((first, last), count) in enumerate(zip(beats.spans, self._raster.counts)):
            if (first, last) == (0, count - 1):
                continue
            inside = Signal(name=f"{name}_inside{axis}", init=int(first == 0))
            with self._m.If(self._steps[axis]):
                with self._m.If(self._lasts[axis]):
                    self._m.d.sync += inside.eq(int(first == 0))
                if first:
                    with self._m.Elif(self._places[axis] == first - 1):
                        self._m.d.sync += inside.eq(1)
                if last < count - 1:
                    with self._m.Elif(self._places[axis] == last):
                        self._m.d.sync += inside.eq(0)
            found.append(inside)
        return Cat(*found).all() if found else Const(1)

    def _take(self, end: Endpoint, due: Value) -> Value:
        """Whether the next round waits for the channel."""
        m, name = self._m, end.channel.name
        beats = next(item for item in self._raster.takes if item.port == end.channel.values[0].bus)
        wanted = Signal(name=f"{name}_needed")
        m.d.comb += wanted.eq(self._wanted(beats, name))
        if not self._raster.keeps_beats:
            m.d.comb += end.ready.eq(wanted & self._advance & due & ~in_reset())
            self._element(beats, end.data)
            return wanted & ~end.valid
        full, kept = Signal(name=f"{name}_full"), Signal(len(end.data), name=f"{name}_kept", reset_less=True)
        m.d.comb += end.ready.eq((~full | (self._started & wanted)) & ~in_reset())
        with m.If(end.valid & end.ready):
            m.d.sync += [kept.eq(end.data), full.eq(1)]
        with m.Elif(self._started & wanted):
            m.d.sync += full.eq(0)
        self._element(beats, kept)
        return wanted & ~full

    def _element(self, beats: Beats, data: Value) -> None:
        if beats.bus in self._given:  # something reads it
            self._m.d.comb += self._given[beats.bus].eq(data)

    def _group(self, end: Endpoint) -> Value:
        """Whether the next round waits for parameters that come in one beat; kept until its last round."""
        m, name, low = self._m, end.channel.name, 0
        full, taken, over = Signal(name=f"{name}_full"), Signal(name=f"{name}_taken"), Signal(name="over")
        m.d.comb += [
            over.eq(self._started & Cat(*self._lasts).all()),
            end.ready.eq((~full | over) & ~in_reset()), taken.eq(end.valid & end.ready),
        ]
        with m.If(taken):
            m.d.sync += full.eq(1)
        with m.Elif(over):
            m.d.sync += full.eq(0)
        for value in end.channel.values:
            kept = Signal(value.width, name=f"{value.bus}_kept", reset_less=True)
            with m.If(taken):
                m.d.sync += kept.eq(end.data[low : low + value.width])
            if value.bus in self._given:
                m.d.comb += self._given[value.bus].eq(kept)
            low += value.width
        return ~full

    def _give(self, end: Endpoint, holds: Value) -> Value:
        """Whether the round that leaves the pipeline waits for the channel."""
        m, name, made = self._m, end.channel.name, self._made
        beats = next(item for item in self._raster.gives if item.port == end.channel.values[0].bus)
        offers: Value = holds & made[beats.there]
        if len(self._raster.gives) > 1:
            sent = Signal(name=f"{name}_sent")
            offers = offers & ~sent
            with m.If(self._advance):
                m.d.sync += sent.eq(0)
            with m.Elif(end.valid & end.ready):
                m.d.sync += sent.eq(1)
        m.d.comb += [end.valid.eq(offers), end.last.eq(made[beats.ends]), end.data.eq(made[beats.bus])]
        return offers & ~end.ready
