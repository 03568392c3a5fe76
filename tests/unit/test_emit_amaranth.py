"""The two emitters write the same signals: registers counted in RTLIL, names, places, long paths, limits."""
from __future__ import annotations

import random
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from amaranth.back import rtlil

from kera_hw.cli.main import main
from kera_hw.graph.node import Origin
from kera_hw.rtl.emit.amaranth_datapath import AmaranthDatapath
from kera_hw.rtl.emit.handshake import StreamShell
from kera_hw.rtl.emit.layout import Layout, control_of
from kera_hw.rtl.emit.verilog import emit_verilog, shell_spec
from kera_hw.rtl.toolchain.verilator import lint
from kera_hw.schedule.fpga.bits import cell_bits, const_bits
from kera_hw.schedule.fpga.cells import Input, Lut, Mul
from kera_hw.schedule.fpga.netlist import Netlist, Output
from kera_hw.schedule.fpga.units import Memory
from kera_hw.support import Span
from tests.differential.emit_netlists import plan_of, random_netlist, random_plan

LINE = re.compile(r"^\s*(?:wire|reg)(?: signed)? (?:\[(\d+):0\] )?(\w+)(?: =.*)?;", re.MULTILINE)


def declared(verilog: str) -> dict[str, int]:
    """The width of each signal declared in the datapath's module, attributes apart."""
    text = re.sub(r"\(\*.*?\*\)", "", verilog[verilog.index("module dut__datapath") :])
    return {name: int(high or 0) + 1 for high, name in LINE.findall(text)}


@pytest.mark.parametrize("seed", range(4))
def test_registers_are_those_of_the_plan(seed: int) -> None:
    rng = random.Random(f"registers/{seed}")
    netlist = random_netlist(rng, cells=50, states=2)
    plan = random_plan(rng, netlist, "stream")
    control = control_of(netlist, plan, "stream")
    shell = StreamShell(
        shell_spec(netlist, plan, control, AmaranthDatapath(netlist, plan, control, "generic").build)
    )
    text = rtlil.convert(shell, "dut", ports=shell.ports(), emit_src=False)
    datapath = text[text.index("module \\dut.datapath") :]
    datapath = datapath[: datapath.index("\nend\n")]
    cells = re.findall(r"cell \$dff .*?\n\s*end\n", datapath, re.DOTALL)
    found = sum(int(re.findall(r"parameter \\WIDTH (\d+)", cell)[0]) for cell in cells)
    inside = sum(cell.width * cell.latency_cycles for cell in netlist.cells if isinstance(cell, Mul))
    # A memory's read port is its first register.
    inside += sum(
        unit.width * (unit.latency_cycles - 1) for unit in netlist.units() if isinstance(unit, Memory)
    )
    assert found == plan.register_bits + sum(state.width for state in netlist.states) + inside


@pytest.mark.parametrize("style", ["generic", "ecp5"])
def test_both_emitters_declare_the_same_registers_and_wires(style: str) -> None:
    rng = random.Random(f"names/{style}")
    netlist = random_netlist(rng, cells=50, states=1)
    plan = random_plan(rng, netlist, "stream")
    made = [
        emit_verilog(netlist, plan, "stream", "ecp5" if style == "ecp5" else "generic", emitter)
        for emitter in ("text", "amaranth")
    ]
    text, amaranth = (declared(emitted.verilog) for emitted in made)
    layout = Layout(netlist, plan, control_of(netlist, plan, "stream"))
    wanted = {run.name: run.width for run in layout.runs()}
    read = {life.cell for life in plan.lifetimes}
    wanted |= {layout.wires[index]: netlist.cells[index].width for index in read}
    for found in (text, amaranth):
        assert {name: found.get(name) for name in wanted} == wanted
    assert made[0].register_bits == made[1].register_bits == plan.register_bits
    assert made[0].origins == made[1].origins and made[0].states == made[1].states


def chain(length: int) -> Netlist:
    """So many XORs of eight bits, each of the one before and the input."""
    place = Origin("chain\\of.kera", Span(0, 1), 7, "link")
    xor = ("xor", ("in", 0), ("in", 1))
    cells = [Input(width=8, bus="in_x"), *(
        Lut(width=8, inputs=(cell_bits(k, 8), cell_bits(0, 7, 1) + cell_bits(0, 1)), expr=xor, origin=place)
        for k in range(length)
    )]
    return Netlist("dut", (("in_x", 8),), tuple(cells), (Output("out_data", cell_bits(length, 8)),))


def test_places_are_the_users_and_none_of_ours(tmp_path: Path) -> None:
    netlist = chain(3)
    plan = plan_of(netlist, "none", [0, 0, 1, 1], [0, 0, 1, 1])
    emitted = emit_verilog(netlist, plan, "none", "generic", "amaranth")
    # Three wires, and the registers behind the first and the last, which a port may show too.
    assert set(re.findall(r'src = "(.*?)"', emitted.verilog)) == {"chain/of.kera:7"}
    assert emitted.verilog.count("src = ") >= 5
    assert "kera_hw" not in emitted.verilog and ".py" not in emitted.verilog
    assert emit_verilog(netlist, plan, "none", "generic", "amaranth") == emitted
    path = tmp_path / "dut.v"
    path.write_text(emitted.verilog)
    assert lint([path], "dut") == []


def test_long_paths_without_registers() -> None:
    length = 3 * sys.getrecursionlimit() // 2
    netlist = chain(length)
    plan = plan_of(netlist, "none", [0] * (length + 1), [0] * (length + 1))
    emitted = emit_verilog(netlist, plan, "none", "generic", "amaranth")
    assert emitted.verilog.count("link_") >= length


def test_outputs_that_are_constant_or_plain_inputs(tmp_path: Path) -> None:
    outputs = (Output("out_0", cell_bits(0, 8)), Output("out_1", const_bits(5, 3)))
    netlist = replace(chain(0), outputs=outputs)
    plan = plan_of(netlist, "stream", [0], [0])
    for style in ("generic", "ecp5"):
        emitted = emit_verilog(netlist, plan, "stream", "ecp5" if style == "ecp5" else "generic", "amaranth")
        path = tmp_path / "dut.v"
        path.write_text(emitted.verilog)
        assert lint([path], "dut") == []


@pytest.mark.parametrize(("extra", "refused"), [
    (["--interface", "stream"], False),  # a beat at a time
    (["--interface", "none"], False),
    (["--interface", "none", "--emitter", "amaranth"], True),
])
def test_more_port_bits_than_amaranth_takes(
    extra: list[str], refused: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str],
) -> None:
    source = tmp_path / "wide.kera"
    source.write_text("pub fn wide(a: [u64; 1024]) -> [u64; 1024] { a }")
    status = main(["build", str(source), "--emit", "verilog", "-o", str(tmp_path / "out"), *extra])
    assert status == (1 if refused else 0)
    assert ("K0615" in capsys.readouterr().err) == refused
