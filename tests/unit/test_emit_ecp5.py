"""The ECP5 helper modules: what is simulated equals what is synthesised, and the carry tables are right."""
from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from kera_hw.rtl.emit.ecp5 import fit_carry_cell
from kera_hw.rtl.emit.verilog import model_text
from kera_hw.rtl.toolchain.yosys import run_script
from kera_hw.schedule.fpga.expressions import BitExpr, evaluate

MAJORITY: BitExpr = ("or", ("and", ("in", 0), ("in", 1)), ("and", ("in", 2), ("or", ("in", 0), ("in", 1))))
CHOOSE: BitExpr = ("mux", ("in", 0), ("in", 1), ("in", 2))
MASKED_SUBTRACT: BitExpr = ("and", ("xor", ("in", 0), ("in", 1)), ("in", 2))


def _chain_bit(init: int, a: int, b: int, c: int, d: int, carry: int) -> tuple[int, int]:
    """Sum and carry of one bit of a CCU2C, as the vendor's cell defines them."""
    propagate = init >> (8 * d + 4 * c + 2 * b + a) & 1
    return propagate ^ carry, carry if propagate else init >> (2 * b + a) & 1


@pytest.mark.parametrize(
    "expr", [MAJORITY, CHOOSE, MASKED_SUBTRACT, ("xor", ("in", 0), ("in", 1)), ("in", 0)],
)
@pytest.mark.parametrize("a_is_zero", [False, True])
def test_carry_table_adds(expr: BitExpr, a_is_zero: bool) -> None:
    operands = 3 if "2" in str(expr) else 2
    fit = fit_carry_cell(expr, operands, a_is_zero)
    assert fit is not None
    for values in product((0, 1), repeat=operands):
        for a, carry in product((0,) if a_is_zero else (0, 1), (0, 1)):
            shown = [
                a if pin == -1 else values[pin] if pin is not None else int(index == 3 and fit.d_tied_high)
                for index, pin in enumerate(fit.pins)
            ]
            total = a + evaluate(expr, values, 1) + carry
            assert _chain_bit(fit.init, *shown, carry) == (total & 1, total >> 1)


def test_three_way_parity_does_not_fit_beside_an_addend() -> None:
    parity: BitExpr = ("xor", ("in", 0), ("in", 1), ("in", 2))
    assert fit_carry_cell(parity, 3, a_is_zero=False) is None
    assert fit_carry_cell(parity, 3, a_is_zero=True) is not None


def prove_simulated_form(module: str, parameters: str, directory: Path) -> None:
    """Yosys proves that a helper module's form for simulation equals its carry cells."""
    text = model_text(module)
    (directory / "cells.v").write_text(text)
    (directory / "vectors.v").write_text(text.replace("`ifdef SYNTHESIS", "`ifdef NEVER"))
    setting = f"chparam {parameters} {module}"
    flatten = [f"hierarchy -top {module}", "proc", "flatten"]
    run_script(
        [
            "read_verilog +/ecp5/common_sim.vh +/ecp5/ccu2c_sim.vh", "read_verilog cells.v",
            setting, *flatten, "rename -top gate", "design -stash gate",
            "read_verilog vectors.v", setting, *flatten, "rename -top gold",
            "design -copy-from gate -as gate gate", "miter -equiv -make_assert -flatten gold gate miter",
            "sat -verify -prove-asserts miter",
        ],
        directory,
    )


@pytest.mark.parametrize("init", [0x96AA, 0x66AA, 0xCA00, 0x5A00, 0x9CA2])
def test_simulated_chain_equals_carry_cells(init: int, tmp_path: Path) -> None:
    given = f"-set SLICES 3 -set INIT 16'h{init:04x} -set FIRST 16'h00aa"
    prove_simulated_form("kera_ecp5_add", given, tmp_path)


def test_simulated_chain_of_own_tables_equals_carry_cells(tmp_path: Path) -> None:
    tables = "96aa_66aa_ca00_9ca2_fe13_0001".replace("_", "")
    prove_simulated_form("kera_ecp5_chain", f"-set SLICES 3 -set TABLES 96'h{tables}", tmp_path)
