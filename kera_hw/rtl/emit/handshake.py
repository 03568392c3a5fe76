"""The control around a datapath, as an Amaranth design: valid chain, stall, admission every II cycles, reset.

The pipeline stalls as a whole by clock enable: it moves when its last stage is empty or its item is taken.
That gives full throughput under any stall pattern and holds the data while they are offered; ``out_valid``
comes from a register and depends on no ready. An item is admitted when the pipeline moves, ``rst`` is low
and, for an initiation interval above 1, the counter has come round.
"""
from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from amaranth.back import rtlil
from amaranth.hdl import Cat, ClockDomain, Const, Elaboratable, Instance, Module, Signal, Value

from kera_hw.rtl.emit.pipeline import Control
from kera_hw.rtl.toolchain.process import scratch
from kera_hw.rtl.toolchain.yosys import run_script

# Registers with their enable and reset become single statements; what is left are the names given here.
_TIDY = (
    "read_rtlil shell.il", "proc", "opt_clean", "opt_dff", "opt_clean",
    "write_verilog -norename -noattr shell.v",
)

_SHORT = 4
"""Intervals up to this are counted by a bit for each cycle, longer ones in binary."""

_INITIAL = re.compile(r"^(\s*)(reg (?:\[\d+:0\] )?)(\w+) = ([^;]+);$")


@dataclass(frozen=True, slots=True)
class ShellSpec:
    """What the control must know of its datapath: module name, latency N, II, data buses, control inputs."""

    datapath: str
    latency_cycles: int
    initiation_interval: int
    inputs: tuple[tuple[str, int], ...]
    outputs: tuple[tuple[str, int], ...]
    control: Control


class _Shell(Elaboratable):
    """Common part: the data buses and the datapath's instance."""

    def __init__(self, spec: ShellSpec) -> None:
        self.spec = spec
        self.wait: Signal | None = None
        self.clk, self.rst = Signal(name="clk"), Signal(name="rst")
        self.inputs = [Signal(width, name=bus) for bus, width in spec.inputs]
        self.outputs = [Signal(width, name=bus) for bus, width in spec.outputs]

    def instance(self, **control: Value) -> Instance:
        """The datapath with its control inputs given by keyword."""
        ports: dict[str, Value] = {"i_clk": self.clk}
        ports |= {f"i_{name}": value for name, value in control.items()}
        ports |= {f"i_{signal.name}": signal for signal in self.inputs}
        ports |= {f"o_{signal.name}": signal for signal in self.outputs}
        return Instance(self.spec.datapath, **ports)

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

    def __init__(self, spec: ShellSpec) -> None:
        super().__init__(spec)
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
        m.domains.sync = sync = ClockDomain("sync")
        sync.clk, sync.rst = self.clk, self.rst
        count = self.spec.latency_cycles
        # Bit t - 1: stage t holds an item; in a single stage that is the offer itself.
        holds = Signal(count, name="holds") if count > 1 else self.out_valid
        advance, admitted = Signal(name="advance"), self.in_valid
        if self.spec.initiation_interval > 1:
            admitted = Signal(name="admitted")
        due = self.admission(m, admitted, advance)
        m.d.comb += [
            advance.eq(~self.out_valid | self.out_ready),
            self.in_ready.eq(advance & due & ~self.rst),
        ]
        if count > 1:
            m.d.comb += self.out_valid.eq(holds[-1])
        if admitted is not self.in_valid:
            m.d.comb += admitted.eq(self.in_valid & due)
        with m.If(advance):
            m.d.sync += holds.eq(Cat(admitted, holds[:-1]))
        chain = Cat(admitted, holds)
        control = self.spec.control
        wires: dict[str, Value] = {f"valid_stage{stage}": chain[stage] for stage in control.valid_stages}
        if control.advance:
            wires["advance"] = advance
        if control.reset:
            wires["rst"] = self.rst
        m.submodules.datapath = self.instance(**wires)
        return m


class BareShell(_Shell):
    """No handshake: an item every II cycles from power-up; state ignores what was before the first."""

    def ports(self) -> list[Signal]:
        """All ports in the order of the Verilog module."""
        return [self.clk, *self.inputs, *self.outputs]

    def elaborate(self, platform: object) -> Module:
        """Called by Amaranth."""
        m = Module()
        m.domains.sync = sync = ClockDomain("sync", reset_less=True)
        sync.clk = self.clk
        admitted = self.admission(m, None, Const(1))
        stages = self.spec.control.valid_stages
        if self.wait is not None and not self.spec.control.stateful:
            # Items come on time and nothing lasts beyond one: the counter says which stages hold an item.
            interval = self.spec.initiation_interval
            due = {f"valid_stage{t}": self.wait == (interval - t) % interval for t in stages}
            m.submodules.datapath = self.instance(**due)
            return m
        holds = Signal(max(stages, default=0), name="holds")  # bit t - 1: stage t holds an item
        m.d.sync += holds.eq(Cat(admitted, holds))
        chain = Cat(admitted, holds)
        m.submodules.datapath = self.instance(**{f"valid_stage{stage}": chain[stage] for stage in stages})
        return m


def needs_shell(interface: str, control: Control) -> bool:
    """Without a handshake and without state there is nothing to control."""
    return interface != "none" or bool(control.valid_stages)


def shell_verilog(name: str, interface: str, spec: ShellSpec) -> str:
    """Verilog of the control module ``name``, written by Amaranth and Yosys."""
    shell = BareShell(spec) if interface == "none" else StreamShell(spec)
    return module_verilog(shell, name, shell.ports())


def module_verilog(design: Elaboratable, name: str, ports: Sequence[Signal]) -> str:
    """Tidy Verilog of an Amaranth design as module ``name``."""
    text = rtlil.convert(design, name=name, ports=ports, emit_src=False)
    with scratch("shell") as work:
        (work / "shell.il").write_text(text, encoding="utf-8")
        run_script(_TIDY, work)
        lines = (work / "shell.v").read_text("utf-8").splitlines()
    kept = (line for line in lines if line and not line.startswith("/* Generated by"))
    # An initial value apart from the declaration is what linters accept for a clocked register.
    return "\n".join(_INITIAL.sub(r"\1\2\3;\n\1initial \3 = \4;", line) for line in kept) + "\n"
