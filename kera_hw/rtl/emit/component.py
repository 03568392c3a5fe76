"""A kernel as an Amaranth component, so that an Amaranth design can hold it like any other part.

The component's ports are Amaranth's own streams (``amaranth.lib.stream``). Inside is the design that ``kera
build`` writes out: as Amaranth throughout, which Amaranth's simulator runs, or as an instance of its Verilog,
which goes along with the platform's files, for large kernels, where Amaranth is slow.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from amaranth.hdl import ClockSignal, Instance, Module, ResetSignal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from kera_hw.rtl.emit.amaranth_datapath import AmaranthDatapath
from kera_hw.rtl.emit.handshake import StreamShell, shell_of
from kera_hw.rtl.emit.layout import control_of
from kera_hw.rtl.emit.verilog import LIBRARY, Emitted, Interface, Port, Style, model_text, shell_spec
from kera_hw.schedule.netlist import Netlist, bits_width
from kera_hw.schedule.plan import Plan

Cells = Literal["auto", "generic", "device"]
_GENERIC: Style = "generic"
CELLS = ("auto", "generic", "device")


def _layout(ports: Sequence[Port], prefix: str) -> data.StructLayout:
    return data.StructLayout({port.name.removeprefix(prefix): port.width for port in ports})


class Kernel(wiring.Component):
    """One exported function in the ``sync`` domain.

    ``i`` carries the parameters as a struct with a field each, ``o`` the results (``data``, or ``0``, ``1``,
    ... for a tuple). With ``--interface stream`` both are streams; without a handshake both are plain
    structs, and ``o`` belongs to the ``i`` of ``latency_cycles`` before, at an item every
    ``initiation_interval`` cycles.
    """

    def __init__(
        self, inputs: Sequence[Port], outputs: Sequence[Port], interface: str, latency: int, interval: int,
    ) -> None:
        self._inputs, self._outputs, self._interface = inputs, outputs, interface
        self.latency_cycles, self.initiation_interval = latency, interval
        taken, given = _layout(inputs, "in_"), _layout(outputs, "out_")
        if interface == "none":
            super().__init__({"i": In(taken), "o": Out(given)})
        else:
            super().__init__({"i": In(stream.Signature(taken)), "o": Out(stream.Signature(given))})

    def _fields(self) -> tuple[dict[str, Value], dict[str, Value]]:
        """The data buses of the kernel by name: parameters and results."""
        taken, given = self.i, self.o
        if self._interface != "none":
            taken, given = taken.payload, given.payload
        return (
            {port.name: taken[port.name.removeprefix("in_")] for port in self._inputs},
            {port.name: given[port.name.removeprefix("out_")] for port in self._outputs},
        )


def _add_files(platform: object, files: Mapping[str, str]) -> None:
    """Verilog for the platform's tools; a simulation has none and needs none."""
    add_file = getattr(platform, "add_file", None)
    if add_file is not None:
        for name, text in files.items():
            add_file(name, text)


class VerilogKernel(Kernel):
    """The kernel as an instance of its Verilog, which a platform gets as a file."""

    def __init__(self, emitted: Emitted) -> None:
        self._emitted = emitted
        super().__init__(
            emitted.data_inputs, emitted.data_outputs, emitted.interface,
            emitted.latency_cycles, emitted.initiation_interval,
        )

    def elaborate(self, platform: object) -> Module:
        """Called by Amaranth."""
        emitted, m = self._emitted, Module()
        _add_files(platform, {f"{emitted.name}.v": emitted.verilog})
        wires: dict[str, Value] = {"i_clk": ClockSignal()}
        if emitted.interface != "none":
            wires |= {
                "i_rst": ResetSignal(allow_reset_less=True),
                "i_in_valid": self.i.valid, "o_in_ready": self.i.ready,
                "o_out_valid": self.o.valid, "i_out_ready": self.o.ready,
            }
        taken, given = self._fields()
        wires |= {f"i_{name}": value for name, value in taken.items()}
        wires |= {f"o_{name}": value for name, value in given.items()}
        m.submodules.kernel = Instance(emitted.name, **wires)
        return m


class AmaranthKernel(Kernel):
    """The kernel as an Amaranth design.

    With ``generic`` cells there is no instance in it, so that Amaranth's simulator runs it; ``device`` takes
    the vendor cells that the plan counts on, whose modules a platform gets as files; ``auto`` takes those
    where there is a platform. Without a handshake, a reset of the domain restarts state and intervals.
    """

    def __init__(
        self, netlist: Netlist, plan: Plan, interface: Interface, device: Style, cells: Cells = "auto",
    ) -> None:
        self._netlist, self._plan, self._device, self._cells = netlist, plan, device, cells
        self._kind: Interface = interface
        super().__init__(
            [Port(bus, "input", width) for bus, width in netlist.inputs],
            [Port(out.bus, "output", bits_width(out.bits)) for out in netlist.outputs],
            interface, plan.latency_cycles, plan.initiation_interval,
        )

    def elaborate(self, platform: object) -> Module:
        """Called by Amaranth."""
        m = Module()
        vendor = self._cells == "device" or (self._cells == "auto" and platform is not None)
        style = self._device if vendor else _GENERIC
        if style == "ecp5":
            _add_files(platform, {f"{name}.v": model_text(name) for name in LIBRARY})
        control = control_of(self._netlist, self._plan, self._kind)
        datapath = AmaranthDatapath(self._netlist, self._plan, control, style)
        spec = shell_spec(self._netlist, self._plan, control, datapath.build)
        m.submodules.kernel = shell = shell_of(self._kind, spec, top=False)
        taken, given = self._fields()
        m.d.comb += [signal.eq(taken[signal.name]) for signal in shell.inputs]
        m.d.comb += [given[signal.name].eq(signal) for signal in shell.outputs]
        if isinstance(shell, StreamShell):
            m.d.comb += [
                shell.in_valid.eq(self.i.valid), self.i.ready.eq(shell.in_ready),
                self.o.valid.eq(shell.out_valid), shell.out_ready.eq(self.o.ready),
            ]
        return m
