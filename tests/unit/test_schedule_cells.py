"""Every class of cells, units and items: all its facts are stated, and every table has an entry for it."""
from __future__ import annotations

import inspect
import random
from dataclasses import replace
from typing import get_args

import pytest

from kera_hw.driver.report import theme
from kera_hw.rtl.emit import amaranth_cells, amaranth_ecp5, amaranth_styles, cells, ecp5, styles
from kera_hw.rtl.techmap import finish, items
from kera_hw.schedule.fpga.bits import Bits, cell_bits, concat, const_bits
from kera_hw.schedule.fpga.cells import (
    CELLS,
    Add,
    Call,
    Cell,
    Chain,
    Input,
    Lut,
    Moves,
    Mul,
    Mux,
    RegisterPin,
    Restart,
    Rom,
    StateNext,
    StateOut,
    Unit,
)
from kera_hw.schedule.fpga.cells.cell import Paint
from kera_hw.schedule.fpga.delay_model import DelayModel
from kera_hw.schedule.fpga.device import device_names, find_device
from kera_hw.schedule.fpga.netlist import Netlist, Output, least_initiation_interval
from kera_hw.schedule.fpga.simulate import simulate_netlist
from kera_hw.schedule.fpga.units import UNITS, IterativeUnit, Memory, Port, ReadPort, Storage, WritePort
from kera_hw.schedule.fpga.units.iterative import Register
from kera_hw.schedule.fpga.units.operator import accumulator, shared_product
from kera_hw.schedule.verifier import verify_plan
from tests.differential.emit_netlists import (
    iterative_unit,
    memory_unit,
    plan_of,
    random_items,
    random_netlist,
)
from tests.netlist_reference import evaluate

X, Y, BIT = cell_bits(0, 8), cell_bits(1, 8), cell_bits(2, 1)
_NEXT = Output("n0", concat([cell_bits(0, 7, 1), const_bits(1, 1)]))
_STEP = Netlist("step", (("r0", 8),), (Input(width=8, bus="r0"),), (_NEXT,))
_MEMORY = Memory(name="memory1", word_bits=8, contents=(1, 2, 3), read_latency_cycles=2)
_LOOP = IterativeUnit(name="iterative1", registers=(Register("r0", "n0", None),), step=_STEP, count=3)
_STORAGE = Storage(
    name="kept", entries=100, word_bits=8, initial=(1,) * 100, style="block", read_latency_cycles=2,
    transparent=True,
)
_READ, _WRITE = ReadPort(name="kept.read0", storage=_STORAGE), WritePort(name="kept.write", storage=_STORAGE)
_PRODUCT, _TOTAL = shared_product("product1", 4, 8, 2), accumulator("accumulator1", 4, 8)
PART = find_device("ecp5-25k")
assert PART is not None
MODEL = DelayModel(PART)
SAMPLES: tuple[Cell, ...] = (
    Input(width=8, bus="in_x"),
    Lut(width=8, inputs=(X, Y, BIT), expr=("mux", ("in", 2), ("in", 0), ("in", 1))),
    Add(width=9, a=X, inputs=(Y,), carry_in=BIT, carry_out=True),
    Chain(width=8, a=X, inputs=(Y, X, Y), tables=((8, 0x66AA),)),
    Mul(width=16, a=X, b=Y, a_signed=True, b_signed=False, latency_cycles=2),
    Mux(width=8, select=cell_bits(0, 2), choices=(X, Y, X)),
    Rom(width=8, address=X, contents=tuple(range(100))),
    Call(width=8, unit=_MEMORY, arguments=(cell_bits(0, 2),)),
    Call(width=8, unit=_LOOP, arguments=(X,)),
    Call(width=16, unit=_PRODUCT, arguments=(X, Y)),
    Call(width=8, unit=_TOTAL, arguments=(X, Y, BIT)),
    Call(width=8, unit=_READ, arguments=(cell_bits(0, 7),)),
    Call(width=0, unit=_WRITE, arguments=(cell_bits(0, 7), Y, BIT)),
    StateOut(width=8, state=0), StateNext(width=8, state=0),
    Moves(width=1, state=0), Restart(width=1, state=0),
    RegisterPin(width=1, bits=BIT, registers=20),
)
"""One of every class of cells and units."""


def _concrete(base: type) -> set[type]:
    """All classes below ``base`` that have instances."""
    below = {found for each in base.__subclasses__() for found in _concrete(each)}
    own = {each for each in base.__subclasses__() if not inspect.isabstract(each)}
    return {each for each in below | own if each.__module__.startswith("kera_hw.")}


def _named(classes: object) -> set[str]:
    return {each.__name__ for each in classes}  # type: ignore[attr-defined]


def test_the_lists_are_complete() -> None:
    assert _named(CELLS) == _named(_concrete(Cell))
    assert _named(UNITS) == _named(_concrete(Unit))
    assert _named(type(cell) for cell in SAMPLES) == _named(CELLS)
    assert _named(type(cell.unit) for cell in SAMPLES if isinstance(cell, Call)) == _named(UNITS)


@pytest.mark.parametrize("table", [
    cells.PLAIN_CELLS, ecp5.ECP5_CELLS, amaranth_cells.PLAIN_CELLS, amaranth_ecp5.ECP5_CELLS,
], ids=["text", "text for ECP5", "Amaranth", "Amaranth for ECP5"])
def test_every_cell_has_a_rule_of_emission(table: dict[type[Cell], object]) -> None:
    assert _named(table) == _named(CELLS) - {"Call"}


def test_every_unit_has_a_rule_of_emission() -> None:
    for by_style in (styles.TEXT_STYLES, amaranth_styles.AMARANTH_STYLES):
        assert set(by_style) == set(get_args(styles.Style))
        for rules in by_style.values():
            assert _named(rules.units) == {unit.__name__ for unit in UNITS if not issubclass(unit, Port)}


def test_every_item_becomes_a_cell() -> None:
    bases = {"StateItem"}
    assert _named(finish.CELLS) == _named(_concrete(items.Item)) - {"Sum"} - bases


@pytest.mark.parametrize("cell", SAMPLES, ids=lambda cell: type(cell).__name__)
def test_a_cell_states_its_facts(cell: Cell) -> None:
    look = cell.look()
    assert look.paint in get_args(Paint) and f"--{look.paint}:" in theme.variables()
    assert look.stem.isidentifier() and look.noun and cell.describe()
    assert [bits for bits, _ in cell.loads()] == list(cell.operands())
    for name in device_names():
        device = find_device(name)
        assert device is not None
        model = DelayModel(device)
        assert model.cell_delay(cell) >= 0 and (not cell.leaf or model.cell_delay(cell) == 0)
        assert model.clk_to_q_ps(cell) >= 0 and model.early_ps(cell, cell.width - 1) == 0
        assert cell.luts(device) >= 0 and cell.dsps(device) >= 0 and cell.flip_flops() >= 0
        assert not cell.free or (cell.luts(device), cell.dsps(device), cell.flip_flops()) == (0, 0, 0)


@pytest.mark.parametrize("cell", SAMPLES, ids=lambda cell: type(cell).__name__)
def test_a_cell_exchanges_all_that_it_reads(cell: Cell) -> None:
    def moved(bits: Bits) -> Bits:
        return tuple(s if s.cell is None else s._replace(cell=s.cell + 10) for s in bits)

    assert cell.with_operands(lambda bits: bits) == cell
    assert cell.with_operands(moved).operands() == tuple(map(moved, cell.operands()))


def test_units_of_one_make_share_their_definition() -> None:
    again = IterativeUnit(name="iterative2", registers=_LOOP.registers, step=_STEP, count=3)
    assert again != _LOOP and again.definition() == _LOOP.definition()
    calls = [Call(width=8, unit=unit, arguments=(X,)) for unit in (_LOOP, again, _LOOP)]
    netlist = Netlist("f", (("in_x", 8),), (Input(width=8, bus="in_x"), *calls), ())
    assert netlist.calls() == [(_LOOP, (1, 3)), (again, (2,))]


def _random(seed: int) -> Netlist:
    rng = random.Random(seed)
    units = [iterative_unit(rng, "a"), memory_unit(rng, "m")]
    return random_netlist(rng, 40, states=2, chains=2, controls=True, units=[*units, units[0]])


def test_random_netlists_of_every_class_mean_what_the_reference_says() -> None:
    """Emitted Verilog is held against the same reference, on the same kind of netlists (test_emit_random)."""
    reached: set[type] = set()
    for seed in range(12):
        netlist = _random(seed)
        reached |= {type(cell) for cell in netlist.cells}
        items = random_items(random.Random(seed), netlist, 20)
        columns = {bus: [item[bus] for item in items] for bus, _ in netlist.inputs}
        found = simulate_netlist(netlist, columns)
        assert [dict(zip(found, row)) for row in zip(*found.values())] == evaluate(netlist, items)
    assert _named(reached) == _named(CELLS)


def test_a_unit_that_is_called_while_it_works_is_no_plan() -> None:
    """Reservations are counted modulo the interval: an item's second call may meet the next item's first."""
    calls = [Call(width=8, unit=_LOOP, arguments=(X,)) for _ in range(2)]
    netlist = Netlist("f", (("in_x", 8),), (Input(width=8, bus="in_x"), *calls), ())

    def faults(stages: tuple[int, int], interval: int) -> list[str]:
        plan = plan_of(netlist, "stream", [0, *stages], [0, *(stage + 4 for stage in stages)], interval)
        plan = replace(plan, critical_paths=((),) * plan.latency_cycles)
        return [fault for fault in verify_plan(netlist, plan, MODEL) if "still works" in fault]

    assert least_initiation_interval(netlist) == 8
    assert faults((0, 4), 8) == [] and faults((0, 12), 8) == []
    assert faults((0, 3), 8) == [
        "unit iterative1, busy for 4 cycles, still works for cell 1 when cell 2 calls it at interval 8"
    ]
    assert faults((0, 8), 8) != [] and faults((0, 4), 7) != []
