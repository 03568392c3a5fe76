"""The control around a datapath, as an Amaranth design: valid chain, stall, admission every II cycles, reset.

The pipeline stalls as a whole by clock enable: it moves when its last stage is empty or its item is taken.
That gives full throughput under any stall pattern and holds the data while they are offered; ``out_valid``
comes from a register and depends on no ready. An item is admitted when the pipeline moves, ``rst`` is low
and, for an initiation interval above 1, the counter has come round.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from amaranth.hdl import (
    Cat,
    ClockDomain,
    ClockSignal,
    Const,
    Elaboratable,
    Instance,
    Module,
    ResetSignal,
    Signal,
    Value,
)

from kera_hw.rtl.emit.layout import Control, valid_name

MOST_DATA_BITS = 65_530
"""Bits of all inputs, or of all outputs, that Amaranth takes in one design besides clock and control."""

_SHORT = 4
"""Intervals up to this are counted by a bit for each cycle, longer ones in binary."""


@dataclass(frozen=True, slots=True)
class Wires:
    """What a datapath is connected to: its control inputs by name, the data buses in the netlist's order."""

    control: dict[str, Signal]
    inputs: tuple[Signal, ...]
    outputs: tuple[Signal, ...]


@dataclass(frozen=True, slots=True)
class ShellSpec:
    """What the control must know of its datapath: latency N, II, data buses, control inputs.

    ``build`` makes the datapath, in the clock domain ``sync``: an Amaranth design, or an instance of one
    written in Verilog.
    """

    build: Callable[[Wires], Elaboratable | Instance]
    latency_cycles: int
    initiation_interval: int
    inputs: tuple[tuple[str, int], ...]
    outputs: tuple[tuple[str, int], ...]
    control: Control


def instantiated(module: str) -> Callable[[Wires], Instance]:
    """The datapath as a Verilog module of that name."""

    def build(wires: Wires) -> Instance:
        ports: dict[str, Value] = {"i_clk": ClockSignal()}
        ports |= {f"i_{name}": value for name, value in wires.control.items()}
        ports |= {f"i_{signal.name}": signal for signal in wires.inputs}
        ports |= {f"o_{signal.name}": signal for signal in wires.outputs}
        return Instance(module, **ports)

    return build


class _Shell(Elaboratable):
    """Common part: the data buses and the datapath.

    A shell stands in the clock domain ``sync`` of the design around it; ``top`` gives it one of its own, with
    ``clk`` and ``rst`` as ports.
    """

    def __init__(self, spec: ShellSpec, *, top: bool = True) -> None:
        self.spec, self.top = spec, top
        self.wait: Signal | None = None
        self.clk, self.rst = Signal(name="clk"), Signal(name="rst")
        self.inputs = [Signal(width, name=bus) for bus, width in spec.inputs]
        self.outputs = [Signal(width, name=bus) for bus, width in spec.outputs]

    def ports(self) -> list[Signal]:
        """All ports in the order of the Verilog module."""
        return [self.clk, *self.inputs, *self.outputs]

    def domain(self, module: Module, *, reset: bool) -> None:
        """The shell's own clock domain, at the top."""
        if self.top:
            module.domains.sync = sync = ClockDomain("sync", reset_less=not reset)
            sync.clk = self.clk
            if reset:
                sync.rst = self.rst

    def datapath(self, module: Module, control: dict[str, Value]) -> None:
        """The datapath, its control inputs given by name."""
        given: dict[str, Signal] = {}
        for name, value in control.items():
            if isinstance(value, Signal):
                given[name] = value
            else:
                given[name] = Signal(name=name)
                module.d.comb += given[name].eq(value)
        wires = Wires(given, tuple(self.inputs), tuple(self.outputs))
        module.submodules.datapath = self.spec.build(wires)

    def admission(self, module: Module, admitted: Value | None, moves: Value) -> Value:
        """Whether the interval since the last admitted item has passed (always, at II = 1).

        ``admitted`` is None where every due item is.
        """
        interval = self.spec.initiation_interval
        if interval == 1:
            return Const(1)
        due = Signal(name="due")
        taken = due if admitted is None else admitted
        if interval <= _SHORT:
            recent = Signal(interval - 1, name="recent")  # bit k: an item was admitted k + 1 moves ago
            module.d.comb += due.eq(~recent.any())
            with module.If(moves):
                module.d.sync += recent.eq(Cat(taken, recent[:-1]))
            return due
        self.wait = Signal(range(interval), name="pause")  # moves until the next item may be admitted
        module.d.comb += due.eq(~self.wait.any())
        with module.If(moves):
            with module.If(~due):
                module.d.sync += self.wait.eq(self.wait - 1)
            with module.Elif(taken):
                module.d.sync += self.wait.eq(interval - 1)
        return due


class StreamShell(_Shell):
    """``in_valid``/``in_ready`` to ``out_valid``/``out_ready`` around a stalling datapath."""

    def __init__(self, spec: ShellSpec, *, top: bool = True) -> None:
        super().__init__(spec, top=top)
        self.in_valid, self.in_ready = Signal(name="in_valid"), Signal(name="in_ready")
        self.out_valid, self.out_ready = Signal(name="out_valid"), Signal(name="out_ready")

    def ports(self) -> list[Signal]:
        """All ports in the order of the Verilog module."""
        return [
            self.clk, self.rst, self.in_valid, self.in_ready, *self.inputs,
            self.out_valid, self.out_ready, *self.outputs,
        ]

    def elaborate(self, platform: object) -> Module:
        """Called by Amaranth."""
        m = Module()
        self.domain(m, reset=True)
        count = self.spec.latency_cycles
        # Bit t - 1: stage t holds an item; in a single stage that is the offer itself.
        holds = Signal(count, name="holds") if count > 1 else self.out_valid
        advance, admitted = Signal(name="advance"), self.in_valid
        if self.spec.initiation_interval > 1:
            admitted = Signal(name="admitted")
        due = self.admission(m, admitted, advance)
        reset = ResetSignal(allow_reset_less=True)
        m.d.comb += [
            advance.eq(~self.out_valid | self.out_ready),
            self.in_ready.eq(advance & due & ~reset),
        ]
        if count > 1:
            m.d.comb += self.out_valid.eq(holds[-1])
        if admitted is not self.in_valid:
            m.d.comb += admitted.eq(self.in_valid & due)
        with m.If(advance):
            m.d.sync += holds.eq(Cat(admitted, holds[:-1]))
        chain = Cat(admitted, holds)
        control = self.spec.control
        wires: dict[str, Value] = {valid_name(stage): chain[stage] for stage in control.valid_stages}
        if control.advance:
            wires["advance"] = advance
        if control.reset:
            wires["rst"] = self.rst if self.top else reset
        self.datapath(m, wires)
        return m


class BareShell(_Shell):
    """No handshake: an item every II cycles from power-up; state ignores what was before the first."""

    def elaborate(self, platform: object) -> Module:
        """Called by Amaranth."""
        m = Module()
        self.domain(m, reset=False)
        admitted = self.admission(m, None, Const(1))
        stages = self.spec.control.valid_stages
        if self.wait is not None and not self.spec.control.stateful:
            # Items come on time and nothing lasts beyond one: the counter says which stages hold an item.
            interval = self.spec.initiation_interval
            self.datapath(m, {valid_name(t): self.wait == (interval - t) % interval for t in stages})
            return m
        holds = Signal(max(stages, default=0), name="holds")  # bit t - 1: stage t holds an item
        m.d.sync += holds.eq(Cat(admitted, holds))
        chain = Cat(admitted, holds)
        self.datapath(m, {valid_name(stage): chain[stage] for stage in stages})
        return m


class BareDatapath(_Shell):
    """A datapath without handshake and state: nothing but the pipeline, a module of its own."""

    def elaborate(self, platform: object) -> Module:
        """Called by Amaranth."""
        m = Module()
        self.domain(m, reset=False)
        self.datapath(m, {})
        return m


def needs_shell(interface: str, control: Control) -> bool:
    """Without a handshake and without state there is nothing to control."""
    return interface != "none" or bool(control.valid_stages)


def shell_of(
    interface: str, spec: ShellSpec, *, top: bool = True,
) -> StreamShell | BareShell | BareDatapath:
    """The control for an interface, as far as there is something to control."""
    if not needs_shell(interface, spec.control):
        return BareDatapath(spec, top=top)
    return BareShell(spec, top=top) if interface == "none" else StreamShell(spec, top=top)
