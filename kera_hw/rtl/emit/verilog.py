"""From a netlist and its plan to one Verilog file that simulates alone and synthesises to device cells."""
from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

from amaranth.hdl import Elaboratable, Instance

from kera_hw.graph.node import Export, Origin
from kera_hw.rtl.emit.amaranth_datapath import AmaranthDatapath, place_of
from kera_hw.rtl.emit.convert import Inside, module_verilog
from kera_hw.rtl.emit.handshake import (
    MOST_DATA_BITS,
    Connections,
    ShellSpec,
    instantiated,
    shell_of,
)
from kera_hw.rtl.emit.layout import Control, Layout, Protocol, control_of
from kera_hw.rtl.emit.naming import inner_name, module_name, with_own_helpers
from kera_hw.rtl.emit.pipeline import write_datapath
from kera_hw.rtl.emit.portmap import MappedPort, map_lines, port_map
from kera_hw.rtl.emit.ports import Port
from kera_hw.rtl.emit.styles import TEXT_STYLES, Style
from kera_hw.schedule.fpga.bits import bits_width
from kera_hw.schedule.fpga.netlist import Netlist
from kera_hw.schedule.plan import Plan

Interface = Literal["stream", "none"]
Emitter = Literal["text", "amaranth"]

# A result's unread bits are left for synthesis to drop, which a linter would rather not see.
_QUIET, _LOUD = "/* verilator lint_off UNUSEDSIGNAL */", "/* verilator lint_on UNUSEDSIGNAL */\n"

# Yosys leaves extensions and cuts to Verilog's own rules, where the linter wants each spelt out.
_UNCHECKED = _QUIET + "\n/* verilator lint_off WIDTH */"
_CHECKED = "/* verilator lint_on WIDTH */\n" + _LOUD

# Modules that instantiate vendor cells in synthesis (Yosys defines SYNTHESIS) and simulate without them.
LIBRARY = (
    "kera_ecp5_add", "kera_ecp5_chain", "kera_ecp5_mul", "kera_ecp5_lut", "kera_ecp5_mux", "kera_ecp5_rom",
)


@dataclass(frozen=True, slots=True)
class Emitted:
    """A design as Verilog text, with what a bench or a report must know of it.

    ``origins`` maps signal names of the datapath to source places; ``states`` are the signals of its state
    registers. ``register_bits`` counts the pipeline's registers as written; it equals the plan's.
    ``port_map`` says which bits of the ports are which values, where the types are known.
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
    emitter: Emitter = "text"
    port_map: tuple[MappedPort, ...] = ()

    def __repr__(self) -> str:
        lines = self.verilog.count("\n")
        return f"<Verilog of {self.name}: {lines} lines, interface {self.interface}, {self.emitter} emitter>"

    @property
    def protocol(self) -> Protocol:
        """How items come and go."""
        names = {port.name for port in self.ports}
        return "stream" if "in_ready" in names else "valid" if "in_valid" in names else "none"

    @property
    def control(self) -> tuple[Port, ...]:
        """The ports beside the data, the clock aside."""
        return tuple(p for p in self.ports if p.name in _CONTROL_PORTS and p.name != "clk")

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
    emitter: Emitter = "text", fingerprint: str | None = None, export: Export | None = None,
) -> Emitted:
    """Write the scheduled netlist down as Verilog; the top module has the netlist's name, if that can be.

    ``fingerprint`` names the graph in the file's first lines, ``export`` says what its ports carry.

    The emitters write the same signals: ``text`` the datapath directly, ``amaranth`` by way of one Amaranth
    design of datapath and control.
    """
    write = _write_amaranth if emitter == "amaranth" else _write_text
    control = control_of(netlist, plan, interface)
    outputs = tuple((out.bus, bits_width(out.bits)) for out in netlist.outputs)
    body, layout = write(netlist, plan, style, control)
    name = module_name(netlist.name)
    parts = [*body, *_library("".join(body)), "`default_nettype wire\n"]
    ports = _ports(netlist, outputs, control)
    mapped = () if export is None else port_map(export, ports)
    banner = _banner(netlist, plan, interface, fingerprint, mapped)
    text = with_own_helpers(name, "\n".join(parts))
    return Emitted(
        name, f"{banner}\n{text}", interface, style,
        ports, plan.latency_cycles, plan.initiation_interval,
        layout.register_bits, layout.origins, tuple(layout.states), emitter, mapped,
    )


def port_bits_to_spare(netlist: Netlist, plan: Plan, interface: Interface, emitter: Emitter) -> int:
    """How many more bits of inputs, or of outputs, Amaranth would take; negative where it takes no design."""
    if emitter == "text" and control_of(netlist, plan, interface).protocol == "none":
        return MOST_DATA_BITS
    inputs = sum(width for _, width in netlist.inputs)
    return MOST_DATA_BITS - max(inputs, sum(bits_width(out.bits) for out in netlist.outputs))


def _write_text(
    netlist: Netlist, plan: Plan, style: Style, control: Control,
) -> tuple[list[str], Layout]:
    """The control by way of Amaranth, the datapath as text."""
    shell = control.protocol != "none"
    top_name = module_name(netlist.name)
    name = inner_name(top_name, "datapath") if shell else top_name
    datapath = write_datapath(netlist, plan, name, control, TEXT_STYLES[style])
    parts: list[str] = []
    if shell:
        top = shell_of(shell_spec(netlist, plan, control, instantiated(name)))
        parts.append(_UNCHECKED + "\n" + module_verilog(top, top_name, top.ports()) + _CHECKED)
    return [*parts, _QUIET, datapath.text + _LOUD], datapath.layout


def _write_amaranth(
    netlist: Netlist, plan: Plan, style: Style, control: Control,
) -> tuple[list[str], Layout]:
    """Everything by way of Amaranth."""
    datapath = AmaranthDatapath(netlist, plan, control, style)
    layout = datapath.layout()
    spec = shell_spec(netlist, plan, control, datapath.build)
    top = shell_of(spec)
    places = {place_of(cell.origin) for cell in netlist.cells if cell.origin is not None}
    sources = frozenset(f"{path}:{line}" for path, line in places)
    inside = Inside(sources, frozenset(layout.states), len(netlist.cells))
    text = module_verilog(top, module_name(netlist.name), top.ports(), inside)
    return [_UNCHECKED + "\n" + text + _CHECKED], layout


def shell_spec(
    netlist: Netlist, plan: Plan, control: Control, build: Callable[[Connections], Elaboratable | Instance],
) -> ShellSpec:
    """What the control around a netlist's datapath must know."""
    outputs = tuple((out.bus, bits_width(out.bits)) for out in netlist.outputs)
    return ShellSpec(build, plan.latency_cycles, plan.initiation_interval, netlist.inputs, outputs, control)


def _banner(
    netlist: Netlist, plan: Plan, interface: str, fingerprint: str | None, ports: Sequence[MappedPort],
) -> str:
    mapped = "".join(f"//   {line}\n" for line in map_lines(ports))
    graph = f"// Graph {fingerprint}\n" if fingerprint is not None else ""
    latency, interval = plan.latency_cycles, plan.initiation_interval
    return (
        f"// {module_name(netlist.name)}: latency {latency} {'cycle' if latency == 1 else 'cycles'}, "
        f"an item every {'cycle' if interval == 1 else f'{interval} cycles'}, "
        f"{plan.register_bits} pipeline register bits.\n"
        f"// Interface {interface}; planned for {plan.device} at {plan.clock_mhz:.1f} MHz.\n"
        f"{graph}{mapped}"
        "`default_nettype none\n"
    )


def _ports(netlist: Netlist, outputs: tuple[tuple[str, int], ...], control: Control) -> tuple[Port, ...]:
    stream, strobed = control.protocol == "stream", control.protocol != "none"
    ports = [Port("clk", "input", 1)]
    if strobed:
        ports += [Port("rst", "input", 1), Port("in_valid", "input", 1)]
    if stream:
        ports.append(Port("in_ready", "output", 1))
    ports += [Port(bus, "input", width) for bus, width in netlist.inputs]
    if strobed:
        ports.append(Port("out_valid", "output", 1))
    if stream:
        ports.append(Port("out_ready", "input", 1))
    ports += [Port(bus, "output", width) for bus, width in outputs]
    return tuple(ports)


def _library(text: str) -> list[str]:
    """The helper modules that ``text`` instantiates."""
    return [model_text(module) for module in LIBRARY if re.search(rf"\b{module}\b", text)]


@cache
def model_text(name: str) -> str:
    """The Verilog of one module kept with the compiler."""
    return resources.files("kera_hw.rtl.emit").joinpath("models", f"{name}.v").read_text("utf-8")
