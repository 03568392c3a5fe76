"""LUT4 and multiplexer modules: what is simulated is what is synthesised, in the LUTs that were planned."""
from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from kera_hw.rtl.emit.verilog import emit_verilog, model_text
from kera_hw.rtl.toolchain.harness import measure
from kera_hw.rtl.toolchain.nextpnr import CHIPS
from kera_hw.rtl.toolchain.yosys import run_script
from kera_hw.schedule.fpga.bits import cell_bits, concat, const_bits, slice_bits
from kera_hw.schedule.fpga.cells import Lut, Mux
from kera_hw.schedule.fpga.device import find_device
from kera_hw.schedule.fpga.netlist import Netlist, Output
from kera_hw.schedule.planner import schedule
from tests.schedule_nets import Builder

ECP5 = find_device("ecp5-85k")
assert ECP5 is not None


@pytest.mark.parametrize(("module", "settings"), [
    ("kera_ecp5_lut", "-set WIDTH 3 -set INIT 16'hca53"),
    ("kera_ecp5_wide", "-set WIDTH 2 -set INPUTS 5 -set INIT 64'h1d6b03f4_1d6b03f4"),
    ("kera_ecp5_wide", "-set WIDTH 2 -set INPUTS 6 -set INIT 64'h1d6b03f4_95c2ae17"),
    *(("kera_ecp5_mux", f"-set WIDTH 2 -set LEVELS {levels}") for levels in (2, 3, 4)),
])
def test_simulated_text_equals_device_cells(module: str, settings: str, tmp_path: Path) -> None:
    text = model_text(module)
    (tmp_path / "cells.v").write_text(text)
    (tmp_path / "vectors.v").write_text(text.replace("`ifdef SYNTHESIS", "`ifdef NEVER"))
    flatten = [f"chparam {settings} {module}", f"hierarchy -top {module}", "proc", "flatten", "opt_clean"]
    run_script(
        [
            "read_verilog +/ecp5/common_sim.vh", "read_verilog cells.v", *flatten, "rename -top gate",
            "select gate", "write_rtlil -selected gate.il", "design -reset",
            "read_verilog vectors.v", *flatten, "rename -top gold", "read_rtlil gate.il",
            "miter -equiv -make_assert -flatten gold gate miter", "hierarchy -top miter", "flatten",
            "sat -verify -prove-asserts miter",
        ],
        tmp_path,
    )


def area(netlist: Netlist, tmp_path: Path) -> int:
    plan, _ = schedule(netlist, ECP5, 20000, interface="none")
    assert plan is not None
    source = tmp_path / "design.v"
    source.write_text(emit_verilog(netlist, plan, "none", "ecp5").verilog)
    counts = measure([source], netlist.name, CHIPS["ecp5-85k"], reset=None, seeds=()).counts
    assert counts.lut == plan.estimate.lut
    return counts.lut


def test_covered_logic_keeps_its_luts(tmp_path: Path) -> None:
    build = Builder()
    rows = [build.input(f"x{k}", 8) for k in range(4)]
    mix = ("xor", ("and", ("in", 0), ("in", 1)), ("or", ("in", 2), ("in", 3)))
    for _ in range(3):
        turned = [concat([slice_bits(row, 5, 3), slice_bits(row, 0, 5)]) for row in rows]
        operands = [(rows[k], turned[k - 1], rows[k - 2], turned[k - 3]) for k in range(4)]
        rows = [build.add(Lut(width=8, inputs=four, expr=mix)) for four in operands]
    outputs = tuple(Output(f"out_{k}", row) for k, row in enumerate(rows))
    assert area(build.netlist(outputs, "covered"), tmp_path) == 96


@pytest.mark.parametrize(("operator", "count", "luts"), [
    ("xor", 5, 6), ("xor", 6, 12), ("and", 5, 6), ("or", 6, 12),  # half of an AND's table is 0
])
def test_functions_of_more_signals_take_luts_and_what_stands_behind_them(
    operator: str, count: int, luts: int, tmp_path: Path
) -> None:
    build = Builder()
    rows = tuple(build.input(f"x{k}", 3) for k in range(count))
    wide = build.add(Lut(width=3, inputs=rows, expr=(operator, *(("in", k) for k in range(count)))))
    assert area(build.netlist((Output("out_data", wide),), "wide"), tmp_path) == luts


@pytest.mark.parametrize(("choices", "luts"), [(4, 16), (8, 32), (16, 64)])
def test_multiplexers_take_half_a_lut_a_choice(choices: int, luts: int, tmp_path: Path) -> None:
    build = Builder()
    select = build.input("select", (choices - 1).bit_length())
    rows = tuple(build.input(f"x{k}", 8) for k in range(choices))
    chosen = build.add(Mux(width=8, select=select, choices=rows))
    assert area(build.netlist((Output("out_data", chosen),), "chosen"), tmp_path) == luts


def test_constant_operands_become_wires(tmp_path: Path) -> None:
    build = Builder()
    x = build.input("x", 4)
    expressions = [(name, ("in", 0), ("in", 1)) for name in ("and", "xor")]
    for expr, mask in itertools.product(expressions, (0, 15)):
        build.add(Lut(width=4, inputs=(x, const_bits(mask, 4)), expr=expr))
    outputs = tuple(Output(f"out_{k}", cell_bits(k, 4)) for k in (1, 2, 3))
    assert area(build.netlist(outputs, "wires"), tmp_path) == 0
