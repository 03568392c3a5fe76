"""Tables of constants: LUTs or block RAM, of every depth and width, on every family; and what they cost."""
from __future__ import annotations

import random

import pytest

from kera_hw.graph.store import Store
from kera_hw.rtl.lower.builder import Builder
from kera_hw.rtl.lower.design import FlatDesign, FlatLeaf
from kera_hw.rtl.lower.floats.wires import Wires
from kera_hw.rtl.techmap import map_design
from kera_hw.schedule.fpga.cells import Call
from kera_hw.schedule.fpga.delay_model import DelayModel
from kera_hw.schedule.fpga.device import find_device
from kera_hw.schedule.fpga.netlist import Netlist
from kera_hw.schedule.fpga.resource_model import netlist_brams
from kera_hw.schedule.fpga.simulate import simulate_netlist
from kera_hw.schedule.planner import schedule
from kera_hw.schedule.verifier import verify_plan
from kera_hw.types import IntType


def design_of(contents: list[int], index_bits: int) -> FlatDesign:
    store = Store()
    index_type = IntType(index_bits, False)
    index = store.param(0, index_type)
    result = Wires(Builder(store)).lookup(index, contents)
    width = result.type.width_bits
    return FlatDesign(
        "table", store.region([index_type], [result]), (FlatLeaf("in_i", 0, index_bits, index_type),),
        (FlatLeaf("out_data", 0, width, result.type),), (), (("in_i", index_bits),), (("out_data", width),),
    )


def mapped(contents: list[int], index_bits: int, device: str) -> Netlist:
    netlist = map_design(design_of(contents, index_bits), device, 8000)
    return netlist


def check(netlist: Netlist, contents: list[int], index_bits: int) -> None:
    corners = (len(contents) - 1, len(contents), (1 << index_bits) - 1)
    indices = sorted({*range(min(1 << index_bits, 3000)), *corners})
    indices = [i for i in indices if i < 1 << index_bits]
    width = sum(s.width for s in netlist.outputs[0].bits)
    wanted = [contents[min(i, len(contents) - 1)] & (1 << width) - 1 for i in indices]
    assert simulate_netlist(netlist, {"in_i": indices})["out_data"] == wanted


@pytest.mark.parametrize("device", ("ecp5-25k", "ice40-hx8k", "ice40-up5k"))
@pytest.mark.parametrize(("entries", "low", "high", "index_bits"), [
    (2, 0, 9, 1), (16, -5, 5, 4), (63, 0, 1 << 20, 6), (64, 0, 1 << 20, 6), (100, -1 << 30, 1 << 30, 7),
    (512, 0, (1 << 57) - 1, 9), (300, -1 << 40, 1 << 40, 16), (1024, 0, 1 << 17, 10), (1500, -9, 200, 12),
    (2048, 0, 511, 11), (5000, -1 << 12, 1 << 12, 13), (70, 3, 4, 7),
])
def test_every_entry_is_read(device: str, entries: int, low: int, high: int, index_bits: int) -> None:
    rng = random.Random(f"{entries}/{low}")
    contents = [rng.randint(low, high) for _ in range(entries)]
    netlist = mapped(contents, index_bits, device)
    check(netlist, contents, index_bits)
    part = find_device(device)
    assert part is not None
    assert netlist_brams(netlist, part) <= part.bram
    plan, problems = schedule(netlist, part, 40_000)
    assert plan is not None
    assert not problems
    assert verify_plan(netlist, plan, DelayModel(part)) == []
    in_blocks = [cell for cell in netlist.cells if isinstance(cell, Call)]
    assert bool(in_blocks) <= (entries >= 64)
    assert plan.latency_cycles >= (part.area.bram_stages if in_blocks else 1)


def test_bits_that_never_change_take_no_memory() -> None:
    part = find_device("ecp5-25k")
    assert part is not None
    contents = [(1 << 40) | (i * i % 997 << 5) | 0b10110 for i in range(512)]
    netlist = mapped(contents, 9, "ecp5-25k")
    (memory,) = netlist.units()
    assert memory.width == 41 - 5
    assert memory.brams(part) == 1
    check(netlist, contents, 9)


def test_tables_beyond_the_block_rams_become_luts_and_are_said_to() -> None:
    rng = random.Random(3)
    contents = [rng.getrandbits(60) for _ in range(2048)]
    netlist = mapped(contents, 11, "ice40-hx1k")
    assert not any(isinstance(cell, Call) for cell in netlist.cells)
    assert any("block RAM" in note for note in netlist.notes)
