"""Operands padded with constants or signs still fall into the adder's cells."""
from __future__ import annotations

import pytest

from kera_hw.graph.store import Store
from kera_hw.schedule.fpga.cells import Lut
from kera_hw.types import BOOL, IntType

from .hw_random import check

U8, U12 = IntType(8, False), IntType(12, False)


@pytest.mark.parametrize("top", [0, 1])
def test_add_or_subtract_of_a_narrower_operand(top: int) -> None:
    s = Store()
    a, b, flag = s.param(0, U12), s.param(1, U8), s.param(2, BOOL)
    padded = s.op("bits.cat", s.constant(IntType(4, False), 5 * top), b)
    ones = s.op("control.select", flag, s.constant(U12, 0xFFF), s.constant(U12, 0))
    operand = s.op("bits.xor", padded, ones)
    carry = s.op("convert.cast", flag, type=U12)
    total = s.op("integer.add", s.op("integer.add", a, operand), carry)
    _, netlist = check(s, [U12, U8, BOOL], [total])
    assert not [cell for cell in netlist.cells if isinstance(cell, Lut) and cell.width > 1]
