"""A kernel as an Amaranth component, so that an Amaranth design can hold it like any other part.

The component's ports are Amaranth's own streams (``amaranth.lib.stream``). Inside is the design that ``kera
build`` writes out: as Amaranth throughout, which Amaranth's simulator runs, or as an instance of its Verilog,
which goes along with the platform's files, for large kernels, where Amaranth is slow.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from amaranth.hdl import ClockSignal, Instance, Module, ResetSignal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from kera_hw.graph.node import Export, signature
from kera_hw.rtl.emit.amaranth_datapath import AmaranthDatapath
from kera_hw.rtl.emit.handshake import StreamShell, ValidShell, shell_of
from kera_hw.rtl.emit.layout import control_of
from kera_hw.rtl.emit.naming import field_name
from kera_hw.rtl.emit.ports import Interface, Protocol
from kera_hw.rtl.emit.shapes import shape_of_type
from kera_hw.rtl.emit.verilog import LIBRARY, Emitted, Style, model_text, shell_spec
from kera_hw.rtl.lower.ports import parameter_buses, result_buses
from kera_hw.schedule.fpga.netlist import Netlist
from kera_hw.schedule.plan import Plan
from kera_hw.types import Type, bit_width

Cells = Literal["auto", "generic", "device"]
_GENERIC: Style = "generic"
CELLS = ("auto", "generic", "device")


@dataclass(frozen=True, slots=True)
class Fields:
    """The values of a payload: each one's bus in Verilog, field and type. What holds no bit is left out."""

    members: tuple[tuple[str, str, Type], ...]

    @staticmethod
    def of(buses: list[tuple[str, Type]], prefix: str) -> Fields:
        """Fields named as the buses are, without the prefix."""
        named = [(bus, field_name(bus.removeprefix(prefix)), kind) for bus, kind in buses]
        return Fields(tuple(item for item in named if bit_width(item[2]) > 0))

    def layout(self) -> data.StructLayout:
        """The payload, a field each."""
        return data.StructLayout({field: shape_of_type(kind) for _, field, kind in self.members})

    def values(self, payload: Any) -> dict[str, Value]:
        """The bits of each field by bus."""
        return {bus: Value.cast(payload[field]) for bus, field, _ in self.members}


class Kernel(wiring.Component):
    """One exported function in the ``sync`` domain.

    ``i`` carries the parameters as a struct with a field each, ``o`` the results (``data``, or ``0``, ``1``,
    ... for a tuple), in shapes that follow their types. With ``--interface stream`` both are streams. Without
    a handshake both are plain structs, and ``o`` belongs to the ``i`` of ``latency_cycles`` before; a kernel
    with state, or with an ``initiation_interval`` above 1, has ``in_valid`` and ``out_valid`` beside them.
    """

    def __init__(self, export: Export, protocol: Protocol, latency: int, initiation_interval: int) -> None:
        self._signature = signature(export)
        self._taken = Fields.of(parameter_buses(export), "in_")
        self._given = Fields.of(result_buses(export), "out_")
        self.protocol: Protocol = protocol
        self.latency_cycles, self.initiation_interval = latency, initiation_interval
        taken, given = self._taken.layout(), self._given.layout()
        if protocol == "stream":
            super().__init__({"i": In(stream.Signature(taken)), "o": Out(stream.Signature(given))})
        elif protocol == "valid":
            valid = {"in_valid": In(1), "out_valid": Out(1)}
            super().__init__({"i": In(taken), "o": Out(given), **valid})
        else:
            super().__init__({"i": In(taken), "o": Out(given)})

    def __repr__(self) -> str:
        pace = f"latency {self.latency_cycles}, interval {self.initiation_interval}"
        return f"<{type(self).__name__} of {self._signature}: {pace}>"

    def _buses(self) -> tuple[dict[str, Value], dict[str, Value]]:
        """The data buses of the kernel by name: parameters and results."""
        taken, given = self.i, self.o
        if self.protocol == "stream":
            taken, given = taken.payload, given.payload
        return self._taken.values(taken), self._given.values(given)


def _add_files(platform: object, files: Mapping[str, str]) -> None:
    """Verilog for the platform's tools; a simulation has none and needs none."""
    add_file = getattr(platform, "add_file", None)
    if add_file is not None:
        for name, text in files.items():
            add_file(name, text)


class VerilogKernel(Kernel):
    """The kernel as an instance of its Verilog, which a platform gets as a file."""

    def __init__(self, export: Export, emitted: Emitted) -> None:
        self._emitted = emitted
        super().__init__(export, emitted.protocol, emitted.latency_cycles, emitted.initiation_interval)

    def elaborate(self, platform: object) -> Module:
        """Called by Amaranth."""
        emitted, m = self._emitted, Module()
        _add_files(platform, {f"{emitted.name}.v": emitted.verilog})
        wires: dict[str, Value] = {"i_clk": ClockSignal()}
        if self.protocol != "none":
            wires["i_rst"] = ResetSignal(allow_reset_less=True)
        if self.protocol == "stream":
            wires |= {"i_in_valid": self.i.valid, "o_in_ready": self.i.ready}
            wires |= {"o_out_valid": self.o.valid, "i_out_ready": self.o.ready}
        elif self.protocol == "valid":
            wires |= {"i_in_valid": self.in_valid, "o_out_valid": self.out_valid}
        taken, given = self._buses()
        wires |= {f"i_{name}": value for name, value in taken.items()}
        wires |= {f"o_{name}": value for name, value in given.items()}
        m.submodules.kernel = Instance(emitted.name, **wires)
        return m


class AmaranthKernel(Kernel):
    """The kernel as an Amaranth design.

    With ``generic`` cells there is no instance in it, so that Amaranth's simulator runs it; ``device`` takes
    the vendor cells that the plan counts on, whose modules a platform gets as files; ``auto`` takes those
    where there is a platform.
    """

    def __init__(
        self, export: Export, netlist: Netlist, plan: Plan, interface: Interface, device: Style,
        cells: Cells = "auto",
    ) -> None:
        self._netlist, self._plan, self._cells = netlist, plan, cells
        self._device: Style = device
        self._control = control_of(netlist, plan, interface)
        super().__init__(export, self._control.protocol, plan.latency_cycles, plan.initiation_interval)

    def elaborate(self, platform: object) -> Module:
        """Called by Amaranth."""
        m = Module()
        vendor = self._cells == "device" or (self._cells == "auto" and platform is not None)
        style = self._device if vendor else _GENERIC
        if style == "ecp5":
            _add_files(platform, {f"{name}.v": model_text(name) for name in LIBRARY})
        datapath = AmaranthDatapath(self._netlist, self._plan, self._control, style)
        spec = shell_spec(self._netlist, self._plan, self._control, datapath.build)
        m.submodules.kernel = shell = shell_of(spec, top=False)
        taken, given = self._buses()
        m.d.comb += [signal.eq(taken[signal.name]) for signal in shell.inputs]
        m.d.comb += [given[signal.name].eq(signal) for signal in shell.outputs]
        if isinstance(shell, StreamShell):
            m.d.comb += [
                shell.in_valid.eq(self.i.valid), self.i.ready.eq(shell.in_ready),
                self.o.valid.eq(shell.out_valid), shell.out_ready.eq(self.o.ready),
            ]
        elif isinstance(shell, ValidShell):
            m.d.comb += [shell.in_valid.eq(self.in_valid), self.out_valid.eq(shell.out_valid)]
        return m
