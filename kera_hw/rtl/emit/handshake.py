"""The control around a datapath, as an Amaranth design: valid chain, stall, admission every II cycles, reset.

The pipeline stalls as a whole by clock enable: it moves when its last stage is empty or its item is taken.
That gives full throughput under any stall pattern and holds the data while they are offered; ``out_valid``
comes from a register and depends on no ready. An item is admitted when the pipeline moves, ``rst`` is low
and, for an initiation interval above 1, the counter has come round. After a reset memories are initialised,
word by word, before items are.
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
from kera_hw.schedule.fpga.resource_model import SHORT_INITIATION_INTERVAL, counter_spans

MOST_DATA_BITS = 65_530
"""Bits of all inputs, or of all outputs, that Amaranth takes in one design besides clock and control."""


@dataclass(frozen=True, slots=True)
class Connections:
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

    build: Callable[[Connections], Elaboratable | Instance]
    latency_cycles: int
    initiation_interval: int
    inputs: tuple[tuple[str, int], ...]
    outputs: tuple[tuple[str, int], ...]
    control: Control


def instantiated(module: str) -> Callable[[Connections], Instance]:
    """The datapath as a Verilog module of that name."""

    def build(wires: Connections) -> Instance:
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
        self.pause: Signal | None = None
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

    def buses(self) -> tuple[list[Signal], list[Signal]]:
        """All inputs and outputs of the datapath; those of the shell, if there are no others."""
        return self.inputs, self.outputs

    def datapath(self, module: Module, control: dict[str, Value]) -> None:
        """The datapath, its control inputs given by name."""
        given: dict[str, Signal] = {}
        for name, value in control.items():
            if isinstance(value, Signal):
                given[name] = value
            else:
                given[name] = Signal(name=name)
                module.d.comb += given[name].eq(value)
        inputs, outputs = self.buses()
        wires = Connections(given, tuple(inputs), tuple(outputs))
        module.submodules.datapath = self.spec.build(wires)

    def control_inputs(self, holds: Callable[[int], Value]) -> dict[str, Value]:
        """The datapath's control inputs; ``holds`` says whether a stage holds an item."""
        control = self.spec.control
        wires = {valid_name(stage): holds(stage) for stage in control.valid_stages}
        if control.reset:
            wires["rst"] = self.rst if self.top else ResetSignal(allow_reset_less=True)
        return wires

    def clearing(self, module: Module) -> tuple[Value, dict[str, Value]]:
        """Whether memories are initialised after a reset, and the datapath's control inputs for that."""
        control = self.spec.control
        if not control.clear_cycles:
            return Const(0), {}
        # At power-up the words are there: only a reset starts the counter.
        clearing = Signal(name="clearing", reset_less=True)
        count = Signal(range(control.reset_cycles), name="clear_count", reset_less=True)
        with module.If(ResetSignal(allow_reset_less=True)):
            module.d.sync += [clearing.eq(1), count.eq(0)]
        with module.Elif(clearing):
            module.d.sync += count.eq(count + 1)
            with module.If(count == control.reset_cycles - 1):
                module.d.sync += clearing.eq(0)
        clear = clearing
        if control.reset_cycles > control.clear_cycles:
            clear = clearing & (count != control.clear_cycles)
        address = Signal(control.clear_bits, name="clear_address")
        module.d.comb += address.eq(count)
        return clearing, {"clear": clear, "clear_address": address}

    def admission(self, module: Module, admitted: Value, moves: Value) -> Value:
        """Whether the interval since the last admitted item has passed (always, at II = 1)."""
        initiation_interval = self.spec.initiation_interval
        if initiation_interval == 1:
            return Const(1)
        due = Signal(name="due")
        if initiation_interval <= SHORT_INITIATION_INTERVAL:
            # Bit k: an item was admitted k + 1 moves ago.
            recent = Signal(initiation_interval - 1, name="recent")
            module.d.comb += due.eq(~recent.any())
            with module.If(moves):
                module.d.sync += recent.eq(Cat(admitted, recent[:-1]))
            return due
        # Moves until the next item may be admitted.
        self.pause = pause = Signal(range(initiation_interval), name="pause")
        module.d.comb += due.eq(~pause.any())
        with module.If(moves):
            with module.If(~due):
                module.d.sync += pause.eq(pause - 1)
            with module.Elif(admitted):
                module.d.sync += pause.eq(initiation_interval - 1)
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
        clearing, clears = self.clearing(m)
        # Bit t - 1: stage t holds an item; in a single stage that is the offer itself.
        holds = Signal(count, name="holds") if count > 1 else self.out_valid
        advance, admitted = Signal(name="advance"), self.in_valid
        if self.spec.initiation_interval > 1 or clears:
            admitted = Signal(name="admitted")
        due = self.admission(m, admitted, advance)
        due = due & ~clearing if clears else due
        m.d.comb += [
            advance.eq(~self.out_valid | self.out_ready),
            self.in_ready.eq(advance & due & ~ResetSignal(allow_reset_less=True)),
        ]
        if count > 1:
            m.d.comb += self.out_valid.eq(holds[-1])
        if admitted is not self.in_valid:
            m.d.comb += admitted.eq(self.in_valid & due)
        with m.If(advance):
            m.d.sync += holds.eq(Cat(admitted, holds[:-1]))
        chain = Cat(admitted, holds)
        self.datapath(m, {**self.control_inputs(lambda stage: chain[stage]), "advance": advance, **clears})
        return m


class ValidShell(_Shell):
    """``in_valid`` to ``out_valid`` around a datapath that never stalls.

    An item that comes before the interval has passed, or memories are initialised, is ignored: it changes
    nothing and has no result. Where the interval is long, a pipeline holds few items, and counters follow
    them.
    """

    def __init__(self, spec: ShellSpec, *, top: bool = True) -> None:
        super().__init__(spec, top=top)
        self.in_valid, self.out_valid = Signal(name="in_valid"), Signal(name="out_valid")

    def ports(self) -> list[Signal]:
        """All ports in the order of the Verilog module."""
        return [self.clk, self.rst, self.in_valid, *self.inputs, self.out_valid, *self.outputs]

    def elaborate(self, platform: object) -> Module:
        """Called by Amaranth."""
        m = Module()
        self.domain(m, reset=True)
        admitted = self.in_valid
        clearing, clears = self.clearing(m)
        if self.spec.initiation_interval > 1 or clears:
            admitted = Signal(name="admitted")
            m.d.comb += admitted.eq(self.in_valid & self.admission(m, admitted, Const(1)) & ~clearing)
        holds = self._chain(m, admitted) if self.pause is None else self._counters(m, self.pause)
        m.d.comb += self.out_valid.eq(holds(self.spec.latency_cycles))
        controls = self.control_inputs(lambda stage: admitted if stage == 0 else holds(stage))
        self.datapath(m, {**controls, **clears})
        return m

    def _chain(self, module: Module, admitted: Value) -> Callable[[int], Value]:
        """A bit for each stage but the first."""
        bits = Signal(self.spec.latency_cycles, name="holds")
        module.d.sync += bits.eq(Cat(admitted, bits[:-1]))
        return lambda stage: bits[stage - 1]

    def _counters(self, module: Module, pause: Signal) -> Callable[[int], Value]:
        """Counters down to 1, each started by the last cycle of the one before."""
        spans = counter_spans(self.spec.latency_cycles, self.spec.initiation_interval)
        counters = [(1, spans[0], pause)]
        for k, span in enumerate(spans[1:], start=1):
            first, before_span, before = counters[-1]
            left = Signal(range(span + 1), name=f"left_{k}")
            with module.If(before == 1):
                module.d.sync += left.eq(span)
            with module.Elif(left.any()):
                module.d.sync += left.eq(left - 1)
            counters.append((first + before_span, span, left))

        def holds(stage: int) -> Value:
            first, span, counter = next(item for item in reversed(counters) if item[0] <= stage)
            return counter == first + span - stage

        return holds


class BareDatapath(_Shell):
    """A datapath without handshake and state: nothing but the pipeline, a module of its own."""

    def elaborate(self, platform: object) -> Module:
        """Called by Amaranth."""
        m = Module()
        self.domain(m, reset=False)
        self.datapath(m, {})
        return m


Shell = StreamShell | ValidShell | BareDatapath


def shell_of(spec: ShellSpec, *, top: bool = True) -> Shell:
    """The control that a datapath needs."""
    shells = {"stream": StreamShell, "valid": ValidShell, "none": BareDatapath}
    return shells[spec.control.protocol](spec, top=top)
