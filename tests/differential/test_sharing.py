"""Products that take turns: cells, plans and emitted Verilog of random filters against the interpreter."""
from __future__ import annotations

import random
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from kera_hw.driver.session import compile_text
from kera_hw.graph import Export, Graph
from kera_hw.interp import run_export
from kera_hw.rtl.emit.verilog import Emitted, Emitter, Interface, Style, emit_verilog
from kera_hw.rtl.sim.bench import Traffic, simulate
from kera_hw.rtl.techmap import MapOptions, map_design, sharing
from kera_hw.schedule.fpga.delay_model import DelayModel
from kera_hw.schedule.fpga.device import find_device
from kera_hw.schedule.fpga.netlist import Netlist
from kera_hw.schedule.fpga.simulate import simulate_netlist
from kera_hw.schedule.fpga.units import Operator
from kera_hw.schedule.plan import Plan
from kera_hw.schedule.planner import schedule
from kera_hw.schedule.turns import Placed, Turn, held_ffs, turns
from kera_hw.schedule.verifier import verify_plan
from kera_hw.support import SourceFile
from tests.differential.hardware_support import (
    assert_same,
    bus_words,
    check_graph,
    input_buses,
    lower,
    random_inputs,
    result_buses,
    run_buses,
)

ITEMS = 40
CLOCK_PS = 7000
_DEVICE = find_device("ecp5-25k")
assert _DEVICE is not None
DEVICE = _DEVICE


def program(seed: int) -> str:
    """Sums of products of parameters, states and constants, some of which feed states again."""
    rng = random.Random(f"sharing/{seed}")
    kinds = [f"{rng.choice('iu')}{rng.randrange(4, 20)}" for _ in range(rng.randrange(2, 6))]
    lines = [f"pub stream f({', '.join(f'p{k}: {kind}' for k, kind in enumerate(kinds))}) -> (i40, i40) {{"]
    values = [f"(p{k} as i40)" for k in range(len(kinds))]
    states = [f"s{k}" for k in range(rng.randrange(4))]
    lines += [f"    state {name}: i{rng.randrange(6, 16)} = {rng.randrange(-9, 9)};" for name in states]
    values += [f"({name} as i40)" for name in states]
    for k in range(rng.randrange(1, 4)):
        terms: list[str] = []
        for _ in range(rng.randrange(1, 8)):
            value = rng.choice(values)
            numbers = rng.randrange(-40_000, 40_000), rng.randrange(1, 9)
            factor = rng.choice([rng.choice(values), *map(str, numbers)])
            terms.append(f"{rng.choice('+-')} {value} * {factor}")
        lines.append(f"    let v{k} = 0i40 {' '.join(terms)};")
        values.append(f"((v{k} >> {rng.randrange(0, 9)}) as i{rng.randrange(8, 18)} as i40)")
    for name in states:
        kind = next(line.split()[2] for line in lines if line.startswith(f"    state {name}:"))
        lines.append(f"    {name} = {rng.choice(values)} as {kind};")
    return "\n".join([*lines, f"    ({values[-1]}, {rng.choice(values)})", "}", ""]).replace("(0i40 + ", "(")


@cache
def graph_of(seed: int) -> Graph:
    found = compile_text(SourceFile("f.kera", program(seed).encode()), Path("f.kera"))
    assert found.graph is not None, [item.message for item in found.diagnostics]
    return found.graph


def shared(seed: int, interval: int, interface: Interface = "stream") -> tuple[Netlist, Plan]:
    """The netlist in which so many products take turns as there is a plan for, and that plan, checked."""
    graph = graph_of(seed)
    flat = lower(graph, graph.exports[0])
    count = interval
    while True:
        netlist = map_design(flat, DEVICE.name, CLOCK_PS, MapOptions(turns=count))
        plan, _ = schedule(netlist, DEVICE, CLOCK_PS, None, interval, interface=interface)
        if plan is None and count == 1:
            plan, _ = schedule(netlist, DEVICE, CLOCK_PS, interface=interface)
        if plan is not None:
            assert verify_plan(netlist, plan, DelayModel(DEVICE)) == []
            return netlist, plan
        count -= 1


def test_a_cast_that_changes_nothing_keeps_the_sign() -> None:
    """Only the low bits of what is cast are asked for, and the cast is passed over: they are the value."""
    source = (
        "pub stream f(p: i8) -> i40 {\n    state s: i14 = 4;\n    state one: i14 = 1;\n"
        "    let v = 0i40 + (s as i40) * -4711 - (s as i40) * (p as i40) * 8;\n"
        "    s = one;\n    one = s;\n    ((v >> 6) as i10 as i40)\n}\n"
    )
    graph = compile_text(SourceFile("f.kera", source.encode()), Path("f.kera")).graph
    assert graph is not None
    check_graph(graph, 1)


def in_turns(netlist: Netlist) -> int:
    """The most calls of an operator."""
    return max((len(c) for unit, c in netlist.calls() if isinstance(unit, Operator)), default=1)


def test_cells_equal_the_interpreter() -> None:
    most = 0
    for seed in range(24):
        graph = graph_of(seed)
        export = graph.exports[0]
        netlist, _ = shared(seed, 2 + seed % 15)
        most = max(most, in_turns(netlist))
        values = random_inputs(export, ITEMS, seed)
        expected = result_buses(export, run_export(export, values, ITEMS), ITEMS)
        assert_same(expected, simulate_netlist(netlist, input_buses(export, values, ITEMS)), f"seed {seed}")
    assert most >= 6, "hardly any products take turns"


@pytest.mark.parametrize(
    ("seed", "interval", "interface", "style", "emitter"),
    [
        (1, 9, "stream", "ecp5", "text"), (4, 6, "none", "generic", "text"),
        (6, 12, "stream", "generic", "amaranth"), (10, 8, "none", "ecp5", "amaranth"),
    ],
)  # fmt: skip
def test_verilog_equals_the_interpreter(
    seed: int, interval: int, interface: Interface, style: Style, emitter: Emitter
) -> None:
    graph = graph_of(seed)
    export = graph.exports[0]
    netlist, plan = shared(seed, interval, interface)
    assert in_turns(netlist) > 1
    emitted = emit_verilog(netlist, plan, interface, style, emitter)
    assert emitted.register_bits == plan.register_bits
    values = random_inputs(export, ITEMS, seed)
    expected = result_buses(export, run_export(export, values, ITEMS), ITEMS)
    rows = bus_words(emitted, input_buses(export, values, ITEMS))
    # Items also come further apart than the interval, by any number of cycles, and during a reset.
    for traffic in (Traffic(), Traffic(60, 60, 3), Traffic(12, 90, 4, 75)):
        run = simulate(emitted, rows, traffic, count=ITEMS)
        assert run.fault is None, (traffic, run.fault)
        assert_same(expected, run_buses(emitted, run), str(traffic))


def test_a_longer_interval_keeps_no_more_bits() -> None:
    for seed in (1, 4, 6, 10):
        netlist, plan = shared(seed, 9)
        for interval in (10, 14, 21):
            longer, _ = schedule(netlist, DEVICE, CLOCK_PS, plan.latency_cycles, interval)
            assert longer is not None
            assert verify_plan(netlist, longer, DelayModel(DEVICE)) == []
            assert longer.initiation_interval == interval
            assert longer.register_bits <= plan.register_bits, (seed, interval)


def test_the_verifier_sees_calls_that_meet() -> None:
    """Two calls an interval apart from each other meet when items come one cycle later than they may."""
    netlist, plan = shared(1, 9)
    unit = next(u for u in plan.units if u.name.startswith("product") and len(u.calls) > 1)
    call = max(unit.calls, key=lambda index: plan.stage[index])
    moved = [s + (plan.initiation_interval + 1) * (index == call) for index, s in enumerate(plan.stage)]
    faults = verify_plan(netlist, replace(plan, stage=tuple(moved)), DelayModel(DEVICE))
    assert any("two may meet" in fault for fault in faults)
    held = [life for life in plan.lifetimes if life.stages_each > 1]
    longer = [replace(life, stages_each=plan.initiation_interval + 1) for life in held]
    lives = [longer[held.index(life)] if life in held else life for life in plan.lifetimes]
    assert held
    assert verify_plan(netlist, replace(plan, lifetimes=tuple(lives)), DelayModel(DEVICE))


def test_a_filter_is_one_multiplier_and_one_accumulator() -> None:
    source = (
        "pub stream f(x: i8, c: [i8; 16]) -> i32 {\n"
        "    state line: [i8; 16] = [0; 16];\n"
        "    line = shift_in(line, x);\n"
        "    let mut acc = 0i32;\n"
        "    for i in 0..16 { acc = acc + (line[i] as i32) * (c[i] as i32); }\n"
        "    acc\n}\n"
    )
    graph = compile_text(SourceFile("f.kera", source.encode()), Path("f.kera")).graph
    assert graph is not None
    flat = lower(graph, graph.exports[0])
    netlist = map_design(flat, DEVICE.name, CLOCK_PS, MapOptions(turns=16))
    plan, _ = schedule(netlist, DEVICE, CLOCK_PS, None, 16)
    assert plan is not None
    assert verify_plan(netlist, plan, DelayModel(DEVICE)) == []
    taken = turns(netlist, Placed(plan.stage, plan.available, plan.lifetimes))
    assert [len(turn.calls) for turn in taken] == [16, 16]
    product, total = taken
    assert plan.estimate.dsp == 1
    taken_luts = sum(operand.luts(DEVICE) for operand in product.operands)
    assert taken_luts == 2 * 8 * 8, "a 16-way choice of 8 bits, twice"
    assert not total.operands[0].columns, "the accumulator chooses among nothing"
    assert not total.operands[1].columns
    assert plan.estimate.lut < 200


def products_in_turns(source: str) -> tuple[Export, Netlist, Plan, list[Turn]]:
    """The one function planned for an item every 4 cycles, and the products that take turns in it."""
    graph = compile_text(SourceFile("f.kera", source.encode()), Path("f.kera")).graph
    assert graph is not None
    export = graph.exports[0]
    netlist = map_design(lower(graph, export), DEVICE.name, CLOCK_PS, MapOptions(turns=4))
    plan, _ = schedule(netlist, DEVICE, CLOCK_PS, None, 4)
    assert plan is not None
    taken = turns(netlist, Placed(plan.stage, plan.available, plan.lifetimes))
    products = [turn for turn in taken if turn.unit.name.startswith("product")]
    return export, netlist, plan, products


def assert_gives_its_bits(export: Export, emitted: Emitted) -> None:
    """Under stalls, those of the interpreter."""
    values = random_inputs(export, ITEMS, 1)
    expected = result_buses(export, run_export(export, values, ITEMS), ITEMS)
    run = simulate(emitted, bus_words(emitted, input_buses(export, values, ITEMS)), Traffic(60, 60, 3))
    assert run.fault is None
    assert_same(expected, run_buses(emitted, run), "Verilog")


@pytest.mark.parametrize("emitter", ["text", "amaranth"])
def test_operators_that_choose_the_same_share_the_choice(emitter: Emitter) -> None:
    """Two rows of a matrix meet the same elements of the vector, one after another."""
    source = (
        "pub fn f(x: [i9; 4]) -> [i32; 2] {\n"
        "    let m: [i32; 2, 4] = [[113, 3_341, -517, 77], [-1_299, 411, 919, 57]];\n"
        "    let mut y = [0i32; 2];\n"
        "    for i in 0..2 { for k in 0..4 { y[i] += m[i, k] * (x[k] as i32); } }\n    y\n}\n"
    )
    export, netlist, plan, products = products_in_turns(source)
    assert len(products) == 2
    one, other = (turn.operands[0].of_kind("signals") for turn in products)
    assert one == other and len(one) == 9
    emitted = emit_verilog(netlist, plan, "stream", "ecp5", emitter)
    assert emitter == "amaranth" or emitted.verilog.count("ecp5_mux #(.WIDTH(9)") == 1
    assert_gives_its_bits(export, emitted)


def test_many_operands_are_chosen_by_copies_of_a_phase() -> None:
    """One register would have to reach the multiplexers of all blocks, wherever these stand."""
    source = (
        "pub fn f(a: [i8; 4, 4], b: [i8; 4, 4]) -> [i18; 4, 4] {\n"
        "    let mut sums = [0i18; 4, 4];\n"
        "    for k in 0..4 { for i in 0..4 { for j in 0..4 {\n"
        "        sums[i, j] += mul_wide(a[i, k], b[k, j]) as i18;\n    } } }\n    sums\n}\n"
    )
    export, netlist, plan, products = products_in_turns(source)
    assert len({turn.copy for turn in products}) == 7, "one turn brings two of eight operands"
    emitted = emit_verilog(netlist, plan, "stream", "ecp5")
    kept = re.findall(r"reg (?:\[1:0\] )?(\w*phase\w*);", emitted.verilog)
    chosen = {name: emitted.verilog.count(f"_sel = {name};") for name in kept}
    assert sorted(count for name, count in chosen.items() if name.startswith("phase_s0")) == [*[1] * 6, 2]
    assert emitted.verilog.count("(* keep *) always") == 7
    assert_gives_its_bits(export, emitted)


@pytest.mark.parametrize("emitter", ["text", "amaranth"])
def test_many_multipliers_hold_their_operands_a_stage_before(
    emitter: Emitter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What several choose alike is held once, and the bits stay those of the interpreter."""
    monkeypatch.setattr(sharing, "_NEAR_MULTIPLIERS", 1)
    source = (
        "pub fn f(a: [i9; 4], b: [i9; 4]) -> [i32; 4] {\n    let mut y = [0i32; 4];\n"
        "    for i in 0..4 { for k in 0..4 { y[i] += (a[k] as i32) * (b[(i + k) % 4] as i32); } }\n    y\n}\n"
    )
    export, netlist, plan, products = products_in_turns(source)
    assert len(products) > 1 and all(turn.unit.held for turn in products)
    near = [replace(turn, unit=replace(turn.unit, held=False)) for turn in products]
    bits = sum(len(operand.columns) for turn in products for operand in turn.operands)
    assert 0 == held_ffs(near) < held_ffs(products) < bits
    assert not verify_plan(netlist, plan, DelayModel(DEVICE))
    assert_gives_its_bits(export, emit_verilog(netlist, plan, "stream", "ecp5", emitter))
