"""Small designs all the way to bitstreams, with and without the serial shell; paths led back to source."""
from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kera_hw.graph.node import Origin
from kera_hw.rtl.emit.serial import serial_name, serial_verilog
from kera_hw.rtl.emit.verilog import emit_verilog
from kera_hw.rtl.flow import implement, pins_needed
from kera_hw.rtl.toolchain.verilator import lint
from kera_hw.schedule.fpga.bits import cell_bits
from kera_hw.schedule.fpga.cells import Add, Input
from kera_hw.schedule.fpga.netlist import Netlist, Output
from kera_hw.support import Span
from tests.differential.emit_netlists import plan_of

PLACE = Origin("adder.kera", Span(0, 1), 3, "total")


def _adder(width: int) -> Netlist:
    cells = (
        Input(width=width, bus="in_a"), Input(width=width, bus="in_b"),
        Add(width=width, a=cell_bits(0, width), inputs=(cell_bits(1, width),), origin=PLACE),
        Add(width=width, a=cell_bits(2, width), inputs=(cell_bits(1, width),), origin=replace(PLACE, line=4)),
    )
    inputs = (("in_a", width), ("in_b", width))
    return Netlist("adder", inputs, cells, (Output("out_data", cell_bits(3, width)),))


@pytest.mark.parametrize(("width", "device"), [(8, "ecp5-25k"), (24, "ice40-up5k")])
def test_implement(width: int, device: str, tmp_path: Path) -> None:
    netlist = _adder(width)
    plan = plan_of(netlist, "stream", [0, 0, 0, 1], [0, 0, 0, 1])
    emitted = emit_verilog(netlist, plan, "stream", "ecp5" if device.startswith("ecp5") else "generic")
    done = implement(emitted, device, 50.0, out_dir=tmp_path)
    assert done.bitstream.stat().st_size == done.bitstream_bytes > 1000
    # Every planned register and the two valid bits, and nothing else.
    assert done.ff == plan.register_bits + plan.latency_cycles
    assert done.fmax_mhz is not None and done.fmax_mhz > 50
    assert (done.shell is None) == (pins_needed(emitted) <= 34)
    rows = done.to_json()["critical_path"]
    assert isinstance(rows, list)
    assert {row["source"] for row in rows} & {"adder.kera:3", "adder.kera:4"}
    assert not any("/" in source for row in rows for source in row["sources"])


@pytest.mark.parametrize("interface", ["stream", "none"])
def test_serial_shell_lints(interface: str, tmp_path: Path) -> None:
    netlist = _adder(24)
    plan = plan_of(netlist, interface, [0, 0, 0, 0], [0, 0, 0, 0])
    emitted = emit_verilog(netlist, plan, "none" if interface == "none" else "stream", "generic")
    core, shell = tmp_path / "adder.v", tmp_path / "adder__serial.v"
    core.write_text(emitted.verilog)
    shell.write_text(serial_verilog(emitted))
    assert lint([core], "adder") == []
    # A counter's carry is computed and not used, as Amaranth writes it.
    assert lint([core, shell], serial_name(emitted), allowed=("DECLFILENAME", "UNUSEDSIGNAL")) == []
