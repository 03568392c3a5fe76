"""LUT4 and multiplexer modules: what is simulated is what is synthesised, in the LUTs that were planned."""
from __future__ import annotations

import itertools
import random
from dataclasses import replace
from pathlib import Path

import pytest

from kera_hw.rtl.emit.cells import PLAIN_CELLS, CellWriter, Site
from kera_hw.rtl.emit.ecp5_table import write_rom
from kera_hw.rtl.emit.verilog import emit_verilog, model_text
from kera_hw.rtl.toolchain.harness import measure
from kera_hw.rtl.toolchain.nextpnr import CHIPS
from kera_hw.rtl.toolchain.yosys import run_script
from kera_hw.schedule.fpga.bits import cell_bits, concat, const_bits, slice_bits
from kera_hw.schedule.fpga.cells import Lut, Mux, Rom
from kera_hw.schedule.fpga.device import find_device
from kera_hw.schedule.fpga.netlist import Netlist, Output
from kera_hw.schedule.planner import schedule
from tests.schedule_nets import Builder

_ECP5 = find_device("ecp5-85k")
assert _ECP5 is not None
ECP5 = _ECP5


@pytest.mark.parametrize(("module", "settings"), [
    ("kera_ecp5_lut", "-set WIDTH 3 -set INIT 16'hca53"),
    ("kera_ecp5_wide", "-set WIDTH 2 -set INPUTS 5 -set INIT 64'h1d6b03f4_1d6b03f4"),
    ("kera_ecp5_wide", "-set WIDTH 2 -set INPUTS 6 -set INIT 64'h1d6b03f4_95c2ae17"),
    ("kera_ecp5_table", "-set INIT 128'h0f1e2d3c_4b5a6978_8796a5b4_c3d2e1f1"),
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


def large_tables() -> list[Rom]:
    """As random as can be; of few words, equal halves and constant bits; with an address beyond them."""
    rng = random.Random("tables")
    flat = [(k * k >> 9) | (k & 1) << 9 for k in range(256)]
    return [
        Rom(width=4, address=cell_bits(0, 8), contents=tuple(rng.getrandbits(4) for _ in range(256))),
        Rom(width=11, address=cell_bits(0, 8), contents=tuple(flat)),
        Rom(width=3, address=cell_bits(0, 10), contents=tuple(rng.getrandbits(3) for _ in range(300))),
    ]


def test_large_tables_are_the_functions_that_their_words_say(tmp_path: Path) -> None:
    modules = ("kera_ecp5_table", "kera_ecp5_mux", "kera_ecp5_wide", "kera_ecp5_lut")
    text = [model_text(module).replace("`ifdef SYNTHESIS", "`ifdef NEVER") for module in modules]
    for number, rom in enumerate(large_tables()):
        writers: dict[str, CellWriter] = {"gold": PLAIN_CELLS[Rom], "gate": write_rom}
        for side, write in writers.items():
            names = itertools.count()
            site = Site(
                "y", lambda bits: [f"x[{bits.low + bits.width - 1}:{bits.low}]"],
                lambda stem, names=names: f"{stem}_{next(names)}", "",
            )  # fmt: skip
            ports = f"input [{rom.address[0].width - 1}:0] x, output [{rom.width - 1}:0] y"
            text += [f"module {side}{number}({ports});", *write(rom, site), "endmodule"]
    (tmp_path / "tables.v").write_text("\n".join(text))
    checks = [
        line for number in range(len(large_tables())) for line in (
            f"miter -equiv -make_assert -flatten gold{number} gate{number} miter{number}",
            f"sat -verify -prove-asserts miter{number}",
        )
    ]  # fmt: skip
    read = ["read_verilog tables.v", "hierarchy", "proc -norom", "flatten", "opt_clean"]
    run_script([*read, *checks], tmp_path)


def test_large_tables_take_the_luts_that_were_planned(tmp_path: Path) -> None:
    """A bit of eight inputs 17, where synthesis takes up to 32."""
    build, outputs = Builder(), list[Output]()
    for number, rom in enumerate(large_tables()[::2]):  # no mux is half constant
        address = build.input(f"x{number}", (len(rom.contents) - 1).bit_length())
        table = build.add(replace(rom, address=address))
        outputs.append(Output(f"y{number}", table))
    assert large_tables()[0].luts(ECP5) == 4 * 17
    area(build.netlist(tuple(outputs), "tables"), tmp_path)
