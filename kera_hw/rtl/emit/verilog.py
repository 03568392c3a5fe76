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
from kera_hw.rtl.emit.axi_lite import AxiLiteShell
from kera_hw.rtl.emit.channels import BundleShell, ChannelCore, Served
from kera_hw.rtl.emit.convert import Inside, module_verilog
from kera_hw.rtl.emit.handshake import (
    MOST_DATA_BITS,
    Connections,
    Shell,
    ShellSpec,
    StreamShell,
    instantiated,
    shell_of,
)
from kera_hw.rtl.emit.layout import Control, Layout, control_of
from kera_hw.rtl.emit.naming import inner_name, module_name, with_own_helpers
from kera_hw.rtl.emit.overlap import OverlapCore
from kera_hw.rtl.emit.packaging import with_interface_attributes
from kera_hw.rtl.emit.pipeline import Datapath, write_datapath
from kera_hw.rtl.emit.portmap import MappedPort, map_lines, port_map
from kera_hw.rtl.emit.portplan import netlist_ports
from kera_hw.rtl.emit.ports import (
    Channel,
    Core,
    Interface,
    Pace,
    Port,
    PortPlan,
    Protocol,
)
from kera_hw.rtl.emit.process import ProcessCore, ProcessPlan
from kera_hw.rtl.emit.raster import RasterCore, RasterPlan
from kera_hw.rtl.emit.round_shell import RoundShell, UnitsShell
from kera_hw.rtl.emit.rounds import Rounds
from kera_hw.rtl.emit.styles import Style
from kera_hw.schedule.fpga.bits import bits_width
from kera_hw.schedule.fpga.netlist import Netlist
from kera_hw.schedule.plan import Plan

Emitter = Literal["text", "amaranth"]

# A result's unread bits are left for synthesis to drop, which a linter would rather not see.
_QUIET, _LOUD = "/* verilator lint_off UNUSEDSIGNAL */", "/* verilator lint_on UNUSEDSIGNAL */\n"

# Yosys leaves extensions and cuts to Verilog's own rules, where the linter wants each spelt out.
_UNCHECKED = _QUIET + "\n/* verilator lint_off WIDTH */"
_CHECKED = "/* verilator lint_on WIDTH */\n" + _LOUD

# Modules that instantiate vendor cells in synthesis (Yosys defines SYNTHESIS) and simulate without them.
LIBRARY = (
    "kera_memory", "kera_ram", "kera_delay", "kera_ecp5_ram", "kera_ecp5_add", "kera_ecp5_chain",
    "kera_ecp5_mul", "kera_ecp5_lut", "kera_ecp5_wide", "kera_ecp5_mux", "kera_ecp5_rom", "kera_ecp5_table",
)


@dataclass(frozen=True, slots=True)
class Emitted:
    """A design as Verilog text, with what a bench or a report must know of it.

    ``pace`` is that at the ports. ``core`` is what takes whole items inside; none where a circuit works on
    beats as they come. ``origins`` maps signal names of the datapath to source places; ``states`` are the
    signals of its state registers. ``register_bits`` counts the pipeline's registers as written; it equals
    the plan's. ``port_map`` says which bits of the ports are which values, where the types are known. For
    ``reset_cycles`` after a reset memories are initialised and no item is taken.
    """

    name: str
    verilog: str
    style: Style
    port_plan: PortPlan
    pace: Pace
    core: Core | None
    register_bits: int
    origins: dict[str, Origin]
    states: tuple[str, ...] = ()
    emitter: Emitter = "text"
    port_map: tuple[MappedPort, ...] = ()
    reset_cycles: int = 0

    def __repr__(self) -> str:
        lines = self.verilog.count("\n")
        return f"<Verilog of {self.name}: {lines} lines, interface {self.interface}, {self.emitter} emitter>"

    @property
    def interface(self) -> Interface:
        """How the ports are written down."""
        return self.port_plan.interface

    @property
    def protocol(self) -> Protocol:
        """How items come and go."""
        return self.port_plan.protocol

    @property
    def ports(self) -> tuple[Port, ...]:
        """All ports of the top module."""
        return self.port_plan.ports

    @property
    def latency_cycles(self) -> int:
        """From the first beat of an item to the first of its result."""
        return self.pace.latency_cycles

    @property
    def initiation_interval(self) -> int:
        """From an item to the next."""
        return self.pace.initiation_interval

    @property
    def own_pace(self) -> bool:
        """Whether each item has a latency of its own."""
        return self.core is not None and self.core.own_pace

    @property
    def control(self) -> tuple[Port, ...]:
        """The ports beside the data, the clock aside."""
        plan = self.port_plan
        data = {port.name for bundle in plan.bundles for port in bundle.payload}
        return tuple(port for port in plan.ports if port.name not in data and port.name != plan.clock)

    @property
    def data_inputs(self) -> tuple[Port, ...]:
        """The parameters as the bits of whole items, by bus; whether that is a port, the port plan says."""
        return _whole(self.port_plan.inputs)

    @property
    def data_outputs(self) -> tuple[Port, ...]:
        """The results in the same way."""
        return _whole(self.port_plan.outputs)


def _whole(channels: Sequence[Channel]) -> tuple[Port, ...]:
    """Every value of the channels as one bus, in the order of the values."""
    values = [(value, channel.direction) for channel in channels for value in channel.values]
    values.sort(key=lambda item: item[0].position)
    return tuple(Port(value.bus, direction, value.width) for value, direction in values)


def emit_verilog(
    netlist: Netlist, plan: Plan, interface: Interface = "stream", style: Style = "generic",
    emitter: Emitter = "text", fingerprint: str | None = None, export: Export | None = None,
    lanes: int | None = None, rounds: Rounds | None = None,
) -> Emitted:
    """Write the scheduled netlist down as Verilog; the top module has the netlist's name, if that can be.

    ``fingerprint`` names the graph in the file's first lines. ``export`` says what its ports carry; without
    it each value has a bus. ``lanes`` are the elements a beat of a tensor, None for as many as keep up. With
    ``rounds`` the netlist is one round of a loop.

    The emitters write the same signals: ``text`` the datapath directly, ``amaranth`` by way of one Amaranth
    design of datapath and control.
    """
    control = control_of(netlist, plan, interface)
    ports = netlist_ports(netlist, plan, interface, export, lanes, rounds)
    design = _Design(netlist, plan, style, control, ports, rounds)
    body, layout = design.amaranth() if emitter == "amaranth" else design.text()
    name = module_name(netlist.name)
    parts = [*body, *_library("".join(body)), "`default_nettype wire\n"]
    mapped = () if export is None else port_map(export, ports)
    core = design.core()
    pace = ports.pace(core.latency_cycles, core.initiation_interval)
    banner = _banner(netlist, plan, pace, interface, fingerprint, mapped, rounds)
    text = with_own_helpers(name, "\n".join(parts))
    return Emitted(
        name, f"{banner}\n{text}", style, ports, pace, core,
        layout.register_bits, layout.origins, tuple(layout.states), emitter, mapped, plan.reset_cycles,
    )


def emit_process(
    process: ProcessPlan, name: str, style: Style, fingerprint: str, export: Export, pace: Pace,
    clock_mhz: float, device: str,
) -> Emitted:
    """Write a process down: its controller by way of Amaranth, the datapaths of its regions as text."""
    datapaths = [
        write_datapath(
            region.netlist, region.plan, region.module, region.control, style,
            frozenset(place.storage.name for place in region.storages),
        )
        for region in process.regions
    ]
    stages = 1 if process.overlap is None else len(process.overlap.stages)
    how = "regions in turn" if stages == 1 else f"regions in {stages} stages that overlap"
    about = f"{len(process.regions)} {how}", clock_mhz, device
    core = ProcessCore(process) if process.overlap is None else OverlapCore(process)
    return _served(core, datapaths, name, style, fingerprint, export, pace, *about)


def emit_raster(
    raster: RasterPlan, name: str, style: Style, fingerprint: str, export: Export, clock_mhz: float,
    device: str,
) -> Emitted:
    """Write stencils that run in step down, in the same way."""
    datapath = write_datapath(raster.netlist, raster.plan, raster.module, raster.control, style)
    about = "an element a round", clock_mhz, device
    return _served(
        RasterCore(raster), [datapath], name, style, fingerprint, export, raster.pace(), *about
    )


def _served(
    core: Served, datapaths: Sequence[Datapath], name: str, style: Style, fingerprint: str, export: Export,
    pace: Pace, about: str, clock_mhz: float, device: str,
) -> Emitted:
    """A controller that serves channels, around its datapaths."""
    ports = core.plan
    top = AxiLiteShell(core) if ports.interface == "axi-lite" else BundleShell(core)
    origins: dict[str, Origin] = {}
    for datapath in datapaths:
        origins |= datapath.layout.origins
    bits = sum(datapath.layout.register_bits for datapath in datapaths)
    shell = with_interface_attributes(module_verilog(top, name, top.ports()), name, ports)
    body = [f"{_UNCHECKED}\n{shell}{_CHECKED}", _QUIET, *(item.text for item in datapaths), _LOUD]
    mapped = port_map(export, ports)
    lines = "".join(f"//   {line}\n" for line in map_lines(mapped))
    banner = (
        f"// {name}: latency {pace.latency_cycles} cycles, an item every {pace.initiation_interval} cycles, "
        f"{about}.\n"
        f"// Interface {ports.interface}; planned for {device} at {clock_mhz:.1f} MHz.\n"
        f"// Graph {fingerprint}\n{lines}`default_nettype none\n"
    )
    parts = [*body, *_library("".join(body)), "`default_nettype wire\n"]
    text = with_own_helpers(name, "\n".join(parts))
    return Emitted(name, f"{banner}\n{text}", style, ports, pace, None, bits, origins, port_map=mapped)


def port_bits_to_spare(netlist: Netlist, plan: Plan, interface: Interface, emitter: Emitter) -> int:
    """How many more bits of inputs, or of outputs, Amaranth would take; negative where it takes no design."""
    if emitter == "text" and control_of(netlist, plan, interface).protocol == "none":
        return MOST_DATA_BITS
    inputs = sum(width for _, width in netlist.inputs)
    return MOST_DATA_BITS - max(inputs, sum(bits_width(out.bits) for out in netlist.outputs))


@dataclass(frozen=True, slots=True)
class _Design:
    """What is written down: the datapath, its control, and the ports around."""

    netlist: Netlist
    plan: Plan
    style: Style
    control: Control
    ports: PortPlan
    rounds: Rounds | None

    @property
    def name(self) -> str:
        """The top module's name."""
        return module_name(self.netlist.name)

    def core(self) -> Core:
        """What takes whole items: the top module itself, unless its ports differ."""
        module = inner_name(self.name, "core") if self.ports.surrounds_core else self.name
        pace = self.plan.latency_cycles, self.plan.initiation_interval
        if self.rounds is None:
            return Core(module, *pace)
        latency, interval = self.rounds.latency_cycles(*pace), self.rounds.initiation_interval(*pace)
        return Core(module, latency, interval, self.rounds.kind == "until", self.rounds.units)

    def text(self) -> tuple[list[str], Layout]:
        """The control by way of Amaranth, the datapath as text."""
        shell = self.control.protocol != "none"
        name = inner_name(self.name, "datapath") if shell else self.name
        datapath = write_datapath(self.netlist, self.plan, name, self.control, self.style)
        parts: list[str] = []
        if shell:
            parts.append(self._shell(instantiated(name), None))
        return [*parts, _QUIET, datapath.text + _LOUD], datapath.layout

    def amaranth(self) -> tuple[list[str], Layout]:
        """Everything by way of Amaranth."""
        # Loaded where it is asked for: designs are written as text otherwise.
        from kera_hw.rtl.emit.amaranth_datapath import AmaranthDatapath, place_of

        datapath = AmaranthDatapath(self.netlist, self.plan, self.control, self.style)
        layout = datapath.layout()
        places = {place_of(cell.origin) for cell in self.netlist.cells if cell.origin is not None}
        sources = frozenset(f"{path}:{line}" for path, line in places)
        inside = Inside(sources, frozenset(layout.states), len(self.netlist.cells))
        return [self._shell(datapath.build, inside)], layout

    def _shell(self, build: Callable[[Connections], Elaboratable | Instance], inside: Inside | None) -> str:
        """Verilog of the top module and what it holds."""
        around = self.ports.surrounds_core
        spec = shell_spec(self.netlist, self.plan, self.control, build)
        core = (
            shell_of(spec, top=not around) if self.rounds is None
            else (UnitsShell if self.rounds.units > 1 else RoundShell)(spec, self.rounds, top=not around)
        )
        top: Shell | BundleShell | AxiLiteShell = core
        if around:
            assert isinstance(core, StreamShell), "channels have a handshake"
            channels = ChannelCore(core, self.ports)
            top = AxiLiteShell(channels) if self.ports.interface == "axi-lite" else BundleShell(channels)
        text = module_verilog(top, self.name, top.ports(), inside)
        return f"{_UNCHECKED}\n{with_interface_attributes(text, self.name, self.ports)}{_CHECKED}"


def shell_spec(
    netlist: Netlist, plan: Plan, control: Control, build: Callable[[Connections], Elaboratable | Instance],
) -> ShellSpec:
    """What the control around a netlist's datapath must know."""
    outputs = tuple((out.bus, bits_width(out.bits)) for out in netlist.outputs)
    return ShellSpec(build, plan.latency_cycles, plan.initiation_interval, netlist.inputs, outputs, control)


def _banner(
    netlist: Netlist, plan: Plan, pace: Pace, interface: str, fingerprint: str | None,
    ports: Sequence[MappedPort], rounds: Rounds | None,
) -> str:
    mapped = "".join(f"//   {line}\n" for line in map_lines(ports))
    graph = f"// Graph {fingerprint}\n" if fingerprint is not None else ""
    latency, interval = pace.latency_cycles, pace.initiation_interval
    loop = "" if rounds is None else (
        f"// Of {'' if rounds.kind == 'counted' else 'at most '}{rounds.count:,} rounds of a loop, one every "
        f"{plan.initiation_interval} cycles, {plan.latency_cycles} cycles each.\n"
    )
    return (
        f"// {module_name(netlist.name)}: latency {latency} {'cycle' if latency == 1 else 'cycles'}, "
        f"an item every {'cycle' if interval == 1 else f'{interval} cycles'}, "
        f"{plan.register_bits} pipeline register bits.\n"
        f"{loop}// Interface {interface}; planned for {plan.device} at {plan.clock_mhz:.1f} MHz.\n"
        f"{graph}{mapped}"
        "`default_nettype none\n"
    )


def _library(text: str) -> list[str]:
    """The helper modules that ``text`` instantiates, and those that they do."""
    found: list[str] = []
    for module in LIBRARY:
        if any(re.search(rf"\b{module} #", known) for known in (text, *found)):
            found.append(model_text(module))
    return found


@cache
def model_text(name: str) -> str:
    """The Verilog of one module kept with the compiler."""
    return resources.files("kera_hw.rtl.emit").joinpath("models", f"{name}.v").read_text("utf-8")
