"""A kernel as an Amaranth component, so that an Amaranth design can hold it like any other part.

The component's ports are Amaranth's own streams (``amaranth.lib.stream``); the Verilog goes along with the
platform's files. Inside, the control is the same Amaranth design that ``kera build`` writes out.
"""
from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import ClockSignal, Instance, Module, ResetSignal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from kera_hw.rtl.emit.verilog import Emitted, Port


def _layout(ports: Sequence[Port], prefix: str) -> data.StructLayout:
    return data.StructLayout({port.name.removeprefix(prefix): port.width for port in ports})


class Kernel(wiring.Component):
    """One exported function in the ``sync`` domain.

    ``i`` carries the parameters as a struct with a field each, ``o`` the results (``data``, or ``0``, ``1``,
    ... for a tuple). With ``--interface stream`` both are streams; without a handshake both are plain
    structs, and ``o`` belongs to the ``i`` of ``latency_cycles`` before.
    """

    def __init__(self, emitted: Emitted) -> None:
        self._emitted = emitted
        self.latency_cycles = emitted.latency_cycles
        taken, given = _layout(emitted.data_inputs, "in_"), _layout(emitted.data_outputs, "out_")
        if emitted.interface == "none":
            super().__init__({"i": In(taken), "o": Out(given)})
        else:
            super().__init__({"i": In(stream.Signature(taken)), "o": Out(stream.Signature(given))})

    def elaborate(self, platform: object) -> Module:
        """Called by Amaranth; a platform also gets the Verilog file."""
        emitted, m = self._emitted, Module()
        add_file = getattr(platform, "add_file", None)
        if add_file is not None:
            add_file(f"{emitted.name}.v", emitted.verilog)
        wires: dict[str, Value] = {"i_clk": ClockSignal()}
        taken, given = self.i, self.o
        if emitted.interface != "none":
            wires |= {
                "i_rst": ResetSignal(), "i_in_valid": self.i.valid, "o_in_ready": self.i.ready,
                "o_out_valid": self.o.valid, "i_out_ready": self.o.ready,
            }
            taken, given = self.i.payload, self.o.payload
        wires |= {f"i_{port.name}": taken[port.name.removeprefix("in_")] for port in emitted.data_inputs}
        wires |= {f"o_{port.name}": given[port.name.removeprefix("out_")] for port in emitted.data_outputs}
        m.submodules.kernel = Instance(emitted.name, **wires)
        return m
