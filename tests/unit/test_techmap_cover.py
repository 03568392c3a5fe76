"""Covering: what LUTs read, and what they do not."""
from __future__ import annotations

from pathlib import Path

from kera_hw.driver.session import compile_text
from kera_hw.graph.store import Store
from kera_hw.rtl.lower import FlatDesign, flatten_export
from kera_hw.rtl.lower.builder import Builder
from kera_hw.rtl.lower.floats.mul import lower_mul
from kera_hw.rtl.techmap import map_design
from kera_hw.rtl.techmap.items import Parameter, Sum
from kera_hw.rtl.techmap.net import Net
from kera_hw.schedule.fpga.bits import concat, const_bits, slice_bits
from kera_hw.schedule.fpga.cells import Lut
from kera_hw.schedule.fpga.simulate import simulate_netlist
from kera_hw.support import SourceFile
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


def test_an_adder_of_one_operand_adds_it_or_its_complement() -> None:
    """What operands do not decide is a constant: carry cells were given its complement."""
    net = Net(fusing=True)
    x = net.bits(Parameter(4, (), "in_x", 0))
    flag = net.bits(Parameter(1, (), "in_y", 0))
    mixed = concat((slice_bits(x, 0, 2), flag * 2))
    for table, operands in ((0b11, (const_bits(0b0101, 4),)), (0b1111, (x, x)), (0b1100, (mixed, x))):
        net.fused(x, table, operands, 4, flag)
    adders = [item for item in net.items if isinstance(item, Sum)]
    assert adders
    for item in adders:
        assert len(item.operands) > 1 or item.table in (0b10, 0b01)


def test_a_quotient_of_equals_keeps_its_remainder() -> None:
    """The rows of the outer division have bits that are known, and those that nothing decides."""
    text = """pub fn f(x: u8, y: u20, z: u7) -> u20 {
        let mut s = y;
        while s <= 15 || x < 10, max 5 { s = popcount(z) as u20; }
        (s / s) % 15
    }"""
    loaded = compile_text(SourceFile("c.kera", text.encode()), Path("c.kera"))
    assert loaded.graph is not None
    flat = flatten_export(loaded.graph.exports[0], Store(), 1, True)
    assert isinstance(flat, FlatDesign)
    netlist = map_design(flat, "ecp5-85k", 6000)
    given = {"in_x": [8, 12, 0], "in_y": [6, 100, 99], "in_z": [48, 0, 127]}
    assert simulate_netlist(netlist, given)["out_data"] == [1, 1, 1]
