"""The reference simulation of netlists against an independent bit-by-bit evaluation."""
from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kera_hw.schedule.fpga.bits import Bits, bits_width
from kera_hw.schedule.fpga.cells import Add, Cell, Input, Lut, Mul, Mux, Rom, StateOut
from kera_hw.schedule.fpga.expressions import BitExpr
from kera_hw.schedule.fpga.netlist import Netlist, Output, StateReg
from kera_hw.schedule.fpga.simulate import simulate_netlist
from tests.schedule_nets import Builder, random_netlist


def bit(expr: BitExpr, operands: Sequence[int]) -> int:
    head, *rest = expr
    if head == "in":
        return operands[rest[0]]
    parts = [bit(part, operands) for part in rest]
    table = {
        "not": lambda: 1 - parts[0], "and": lambda: min(parts), "or": lambda: max(parts),
        "xor": lambda: sum(parts) % 2, "mux": lambda: parts[1] if parts[0] else parts[2],
    }
    return table[head]()


def signed(value: int, width: int) -> int:
    return value - (1 << width) if value >> (width - 1) else value


class Slow:
    """One item at a time, one bit at a time."""

    def __init__(self, netlist: Netlist) -> None:
        self.netlist = netlist
        self.registers = [state.initial for state in netlist.states]
        self.values: list[list[int]] = []

    def bits(self, bits: Bits) -> list[int]:
        out: list[int] = []
        for s in bits:
            word = [s.low >> i & 1 for i in range(s.width)] if s.cell is None else None
            out += word if word is not None else self.values[s.cell][s.low : s.low + s.width]
        return out

    def number(self, bits: Bits) -> int:
        return sum(b << i for i, b in enumerate(self.bits(bits)))

    def columns(self, cell: Lut | Add, width: int) -> list[int]:
        rows = [self.bits(b) for b in cell.inputs]
        return [bit(cell.expr, [r[i if len(r) > 1 else 0] for r in rows]) for i in range(width)]

    def cell(self, cell: Cell, item: dict[str, int]) -> int | list[int]:
        if isinstance(cell, Input):
            return item[cell.bus] >> cell.low
        if isinstance(cell, StateOut):
            return self.registers[cell.state]
        if isinstance(cell, Lut):
            return self.columns(cell, cell.width)
        if isinstance(cell, Add):
            second = self.columns(cell, cell.width - cell.carry_out)
            total = sum(b << i for i, b in enumerate(second))
            return self.number(cell.a) + total + self.number(cell.carry_in)
        if isinstance(cell, Mul):
            a, b = self.number(cell.a), self.number(cell.b)
            a = signed(a, bits_width(cell.a)) if cell.a_signed else a
            b = signed(b, bits_width(cell.b)) if cell.b_signed else b
            return a * b
        if isinstance(cell, Mux):
            return self.number(cell.choices[min(self.number(cell.select), len(cell.choices) - 1)])
        assert isinstance(cell, Rom)
        address = self.number(cell.address)
        return cell.contents[address] if address < len(cell.contents) else 0

    def item(self, item: dict[str, int]) -> dict[str, int]:
        self.values = []
        for cell in self.netlist.cells:
            value = self.cell(cell, item)
            row = [value >> i & 1 for i in range(cell.width)] if isinstance(value, int) else value
            self.values.append(row)
        self.registers = [self.number(state.next) for state in self.netlist.states]
        return {output.bus: self.number(output.bits) for output in self.netlist.outputs}


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(8, 60), st.integers(0, 2))
def test_batches_equal_bit_by_bit(seed: int, size: int, states: int) -> None:
    netlist = random_netlist(seed, size, states)
    rng = random.Random(seed)
    items = [{bus: rng.getrandbits(width) for bus, width in netlist.inputs} for _ in range(5)]
    got = simulate_netlist(netlist, {bus: [item[bus] for item in items] for bus, _ in netlist.inputs})
    slow = Slow(netlist)
    for index, item in enumerate(items):
        assert {bus: values[index] for bus, values in got.items()} == slow.item(item)


@pytest.mark.parametrize("width", [63, 64, 65, 128])
def test_sums_at_the_word_edge(width: int) -> None:
    build = Builder()
    x, y = build.input("x", width), build.input("y", width)
    carried = build.add(Add(width=width + 1, a=x, inputs=(y,), carry_out=True))
    netlist = build.netlist((Output("wrapped", build.sum(x, y)), Output("full", carried)))
    top = (1 << width) - 1
    got = simulate_netlist(netlist, {"x": [top, top, 1], "y": [top, 1, 2]})
    assert got["wrapped"] == [top - 1, 0, 3]
    assert got["full"] == [2 * top, top + 1, 3]


def test_state_carries_over_and_starts_from_reset() -> None:
    build = Builder()
    x = build.input("x", 8)
    total = build.sum(build.add(StateOut(width=8, state=0)), x)
    build.states.append(StateReg("total", 8, 250, 1, total))
    netlist = build.netlist((Output("out_data", total),))
    assert simulate_netlist(netlist, {"x": [1, 2, 3, 4]}) == {"out_data": [251, 253, 0, 4]}


def test_missing_and_uneven_inputs_are_refused() -> None:
    build = Builder()
    total = build.sum(build.input("x", 8), build.input("y", 8))
    netlist = build.netlist((Output("out_data", total),))
    with pytest.raises(ValueError, match="no values for input y"):
        simulate_netlist(netlist, {"x": [1]})
    with pytest.raises(ValueError, match="differ in length"):
        simulate_netlist(netlist, {"x": [1], "y": [1, 2]})
