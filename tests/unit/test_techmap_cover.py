"""Covering: what LUTs read, and what they do not."""
from __future__ import annotations

from kera_hw.graph.store import Store
from kera_hw.rtl.lower.builder import Builder
from kera_hw.rtl.lower.floats.mul import lower_mul
from kera_hw.schedule.netlist import Lut
from kera_hw.types import BF16, IntType

from .hw_random import check

U16 = IntType(16, False)


def test_no_lut_reads_an_inverter() -> None:
    """An inverted flag with several uses looks cheap when shared, yet every LUT inverts for nothing."""
    store = Store()
    product = lower_mul(Builder(store), BF16, store.param(0, U16), store.param(1, U16))
    _, netlist = check(store, [U16, U16], [product])
    inverters = {
        k for k, cell in enumerate(netlist.cells) if isinstance(cell, Lut) and cell.expr == ("not", ("in", 0))
    }
    assert inverters, "an adder's plain operand still needs one"
    luts = [cell for cell in netlist.cells if isinstance(cell, Lut)]
    assert not [cell for cell in luts if any(s.cell in inverters for bits in cell.inputs for s in bits)]
