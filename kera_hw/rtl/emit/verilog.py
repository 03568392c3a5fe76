"""From a netlist and its plan to one Verilog file that simulates alone and synthesises to device cells."""
from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

from kera_hw.graph.node import Origin
from kera_hw.rtl.emit.cells import write_cell
from kera_hw.rtl.emit.ecp5 import write_ecp5_cell
from kera_hw.rtl.emit.handshake import ShellSpec, needs_shell, shell_verilog
from kera_hw.rtl.emit.pipeline import control_of, write_datapath
from kera_hw.schedule.netlist import Netlist, bits_width
from kera_hw.schedule.plan import Plan

Interface = Literal["stream", "none"]
Style = Literal["ecp5", "generic"]

# A result's unread bits are left for synthesis to drop, which a linter would rather not see.
_QUIET, _LOUD = "/* verilator lint_off UNUSEDSIGNAL */", "/* verilator lint_on UNUSEDSIGNAL */\n"

# Modules that instantiate vendor cells in synthesis (Yosys defines SYNTHESIS) and simulate without them.
_LIBRARY = ("kera_ecp5_add", "kera_ecp5_mul", "kera_ecp5_lut", "kera_ecp5_mux", "kera_ecp5_rom")


@dataclass(frozen=True, slots=True)
class Port:
    """One port of the top module; ``direction`` is "input" or "output"."""

    name: str
    direction: str
    width: int


@dataclass(frozen=True, slots=True)
class Emitted:
    """A design as Verilog text, with what a bench or a report must know of it.

    ``origins`` maps signal names of the datapath to source places; ``states`` are the signals of its state
    registers. ``register_bits`` counts the pipeline's registers as written; it equals the plan's.
    """

    name: str
    verilog: str
    interface: Interface
    style: Style
    ports: tuple[Port, ...]
    latency_cycles: int
    initiation_interval: int
    register_bits: int
    origins: dict[str, Origin]
    states: tuple[str, ...] = ()

    @property
    def data_inputs(self) -> tuple[Port, ...]:
        """The parameters' buses, in order."""
        return tuple(p for p in self.ports if p.direction == "input" and p.name not in _CONTROL_PORTS)

    @property
    def data_outputs(self) -> tuple[Port, ...]:
        """The results' buses, in order."""
        return tuple(p for p in self.ports if p.direction == "output" and p.name not in _CONTROL_PORTS)


_CONTROL_PORTS = frozenset({"clk", "rst", "in_valid", "in_ready", "out_valid", "out_ready"})


def emit_verilog(
    netlist: Netlist, plan: Plan, interface: Interface = "stream", style: Style = "generic",
) -> Emitted:
    """Write the scheduled netlist down as Verilog; the top module has the netlist's name."""
    control = control_of(netlist, plan, interface)
    shell = needs_shell(interface, control)
    name = netlist.name + "_datapath" if shell else netlist.name
    writer = write_ecp5_cell if style == "ecp5" else write_cell
    datapath = write_datapath(netlist, plan, name, control, writer)
    outputs = tuple((out.bus, bits_width(out.bits)) for out in netlist.outputs)
    parts = [_banner(netlist, plan, interface)]
    if shell:
        spec = ShellSpec(
            name, plan.latency_cycles, plan.initiation_interval, netlist.inputs, outputs, control,
        )
        parts.append(_QUIET + "\n" + shell_verilog(netlist.name, interface, spec) + _LOUD)
    parts += [_QUIET, datapath.text + _LOUD]
    parts += _library(datapath.text)
    parts.append("`default_nettype wire\n")
    return Emitted(
        netlist.name, "\n".join(parts), interface, style, _ports(netlist, outputs, interface),
        plan.latency_cycles, plan.initiation_interval, datapath.register_bits, datapath.origins,
        datapath.states,
    )


def _banner(netlist: Netlist, plan: Plan, interface: str) -> str:
    return (
        f"// {netlist.name}: {plan.latency_cycles} cycles of latency, an item every "
        f"{plan.initiation_interval} cycle(s), {plan.register_bits} pipeline register bits.\n"
        f"// Interface {interface}; planned for {plan.device} at {plan.clock_mhz:.1f} MHz.\n"
        "`default_nettype none\n"
    )


def _ports(netlist: Netlist, outputs: tuple[tuple[str, int], ...], interface: str) -> tuple[Port, ...]:
    stream = interface != "none"
    ports = [Port("clk", "input", 1)]
    if stream:
        ports += [Port("rst", "input", 1), Port("in_valid", "input", 1), Port("in_ready", "output", 1)]
    ports += [Port(bus, "input", width) for bus, width in netlist.inputs]
    if stream:
        ports += [Port("out_valid", "output", 1), Port("out_ready", "input", 1)]
    ports += [Port(bus, "output", width) for bus, width in outputs]
    return tuple(ports)


def _library(text: str) -> list[str]:
    """The helper modules that ``text`` instantiates."""
    return [model_text(module) for module in _LIBRARY if re.search(rf"\b{module}\b", text)]


@cache
def model_text(name: str) -> str:
    """The Verilog of one module kept with the compiler."""
    return resources.files("kera_hw.rtl.emit").joinpath("models", f"{name}.v").read_text("utf-8")
