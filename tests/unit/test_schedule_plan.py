"""Plans of the scheduler: valid by the independent checker, of least cost, refused with a reason."""
from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kera_hw.schedule.asap import Loop, build_constraints, earliest, latest
from kera_hw.schedule.fpga.bits import Bits, cell_bits, slice_bits
from kera_hw.schedule.fpga.cells import Add, Cell, Input, Mul, StateOut
from kera_hw.schedule.fpga.delay_model import DelayModel
from kera_hw.schedule.fpga.device import device_names, find_device
from kera_hw.schedule.fpga.netlist import Netlist, Output, StateReg
from kera_hw.schedule.lifetimes import register_bits
from kera_hw.schedule.plan import Plan
from kera_hw.schedule.planner import schedule
from kera_hw.schedule.problem import Problem, build_problem, staged_fanout, timing_pairs, with_fanout
from kera_hw.schedule.sdc import least_registers
from kera_hw.schedule.timing import fmax_mhz, likely, stage_arrivals
from kera_hw.schedule.verifier import verify_plan
from tests.schedule_nets import Builder, random_netlist

ECP5 = find_device("ecp5-85k")
assert ECP5 is not None
MODEL = DelayModel(ECP5)


def planned(netlist: Netlist, clock_ps: int, **options: int) -> Plan:
    plan, _ = schedule(netlist, ECP5, clock_ps, **options)
    assert plan is not None
    return plan


CLOCKS = st.sampled_from([8000, 10000, 20000, 90000])


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(8, 80), st.integers(0, 3), CLOCKS)
def test_plans_are_valid(seed: int, size: int, states: int, clock_ps: int) -> None:
    netlist = random_netlist(seed, size, states)
    plan, diagnostics = schedule(netlist, ECP5, clock_ps)
    assert plan is not None and all(d.code == "K0604" for d in diagnostics)
    assert verify_plan(netlist, plan, MODEL) == []
    assert Plan.from_json(plan.to_json()) == plan
    # As near the clock as routing is foreseen to come, or a word on why not.
    assert plan.notes or plan.estimate.fmax_mhz * clock_ps > 0.95e6


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(8, 50))
def test_more_latency_never_costs_validity_and_slower_clocks_never_cost_latency(seed: int, size: int) -> None:
    netlist = random_netlist(seed, size)
    plans = [planned(netlist, clock_ps) for clock_ps in (8000, 9000, 12000, 25000)]
    latencies = [plan.latency_cycles for plan in plans]
    # Where wires are relieved of readers in other stages differs with the clock: by a stage at most, here.
    assert all(slow <= fast + 1 for fast, slow in pairwise(latencies))
    longer = planned(netlist, 8000, latency=latencies[0] + 3)
    assert longer.latency_cycles == latencies[0] + 3
    assert verify_plan(netlist, longer, MODEL) == []


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(3, 9))
def test_fewest_register_bits_by_exhaustion(seed: int, size: int) -> None:
    """On tiny nets every placement is tried: none that passes the checker's rules keeps fewer bits."""
    netlist = random_netlist(seed, size, window=4)
    problem = build_problem(netlist, MODEL)
    constraints = build_constraints(problem, timing_pairs(problem, 7500 - MODEL.setup_ps))
    lower = earliest(constraints, 1)
    assert not isinstance(lower, Loop)
    inputs = [k for k, cell in enumerate(netlist.cells) if isinstance(cell, Input)]
    stage, proved = least_registers(problem, constraints, 1, lower, latest(constraints, 1, lower[-1], inputs))
    assert proved
    assert register_bits(problem, stage) == _fewest(problem, constraints.rows(), lower[-1])


def _fewest(problem: Problem, rows: list[tuple[int, int, int]], count: int) -> int | None:
    best: int | None = None
    stages = [0] * (problem.end + 1)
    stages[problem.end] = count

    def place(node: int) -> None:
        nonlocal best
        if node == problem.end:
            if all(stages[v] >= stages[u] + c for u, v, c in rows if v == node):
                cost = register_bits(problem, stages)
                best = cost if best is None else min(best, cost)
            return
        fixed = node < len(problem.netlist.inputs)
        for stage in range(1 if fixed else count):
            stages[node] = stage
            if all(stage >= stages[u] + c for u, v, c in rows if v == node):
                place(node + 1)

    place(0)
    return best


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 2))
def test_without_the_solver_the_schedule_is_valid_and_no_worse_than_asap(seed: int, states: int) -> None:
    problem = build_problem(random_netlist(seed, 60, states), MODEL)
    constraints = build_constraints(problem, timing_pairs(problem, 9000))
    interval = 1
    while isinstance(lower := earliest(constraints, interval), Loop):
        interval = lower.least_initiation_interval
    inputs = [k for k, cell in enumerate(problem.netlist.cells) if isinstance(cell, Input)]
    upper = latest(constraints, interval, lower[-1], inputs)
    stage, optimal = least_registers(problem, constraints, interval, lower, upper, step_limit=0)
    best, proved = least_registers(problem, constraints, interval, lower, upper)
    assert proved
    assert stage == best or not optimal
    assert all(stage[v] >= stage[u] + c for u, v, c in constraints.rows())
    assert all(stage[v] >= stage[u] + c for u, v, c in constraints.backward(interval))
    assert register_bits(problem, best) <= register_bits(problem, stage) <= register_bits(problem, lower)


def loads_by_bit(problem: Problem, stage: list[int], slack: int) -> dict[tuple[int, int], int]:
    """The definition: the most loads of any bit that a wire carries, the next register being one."""
    found: dict[tuple[int, int], int] = {}
    for source, readings in enumerate(problem.readings):
        for r in readings:
            if r.node >= problem.cell_count:
                continue
            for bit in range(r.low, r.low + r.width):
                others = [o for o in readings if o.low <= bit < o.low + o.width]
                here = sum(o.each for o in others if abs(stage[o.node] - stage[r.node]) <= slack)
                kept = any(stage[o.node] > stage[r.node] + slack for o in others)
                wire = source, r.node
                found[wire] = max(found.get(wire, 0), here + kept)
    return found


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), states=st.integers(0, 3), slack=st.integers(0, 2))
def test_fan_outs_are_those_of_readers_in_one_stage(seed: int, states: int, slack: int) -> None:
    device = find_device("ecp5-25k")
    assert device is not None
    problem = build_problem(random_netlist(seed, 25, states), DelayModel(device))
    stage = [(seed >> k % 11) % 4 + k % 3 for k in range(problem.end + 1)]
    wires = zip(problem.edges.source.tolist(), problem.edges.target.tolist())
    expected = loads_by_bit(problem, stage, slack)
    assert staged_fanout(problem, stage, slack).tolist() == [expected[wire] for wire in wires]


def accumulator(width: int, adds: int) -> Netlist:
    """state = state + x + x + ... in ``adds`` chained additions."""
    build = Builder()
    x = build.input("x", width)
    total = build.add(StateOut(width=width, state=0))
    for _ in range(adds):
        total = build.sum(total, x)
    build.states.append(StateReg("total", width, 0, 1, total))
    return build.netlist((Output("out_data", total),), "accumulate")


def test_a_recurrence_sets_the_interval_and_is_named() -> None:
    netlist = accumulator(32, 3)
    plan = planned(netlist, 4200)
    assert plan.initiation_interval == 3
    assert plan.recurrence is not None
    assert plan.recurrence.states == ("total",)
    assert plan.recurrence.stages == 3
    assert plan.recurrence.cells == (1, 2, 3, 4)
    assert verify_plan(netlist, plan, MODEL) == []
    assert planned(netlist, 20000).initiation_interval == 1


def test_an_interval_below_the_recurrence_is_refused() -> None:
    plan, diagnostics = schedule(accumulator(32, 3), ECP5, 4200, ii=2)
    assert plan is None
    assert [d.code for d in diagnostics] == ["K0603"]
    assert "`total` takes 3 stages" in diagnostics[0].message
    assert "smallest interval for this loop is 3" in diagnostics[0].message


def test_an_operation_wider_than_the_clock_is_refused_with_a_clock_that_works() -> None:
    build = Builder()
    wide = build.sum(build.input("x", 200), build.input("y", 200))
    netlist = build.netlist((Output("out_data", wide),))
    plan, diagnostics = schedule(netlist, ECP5, 5000)
    assert plan is None
    assert [d.code for d in diagnostics] == ["K0601"]
    assert "200-bit addition" in diagnostics[0].message
    mhz = float(diagnostics[0].message.rsplit(" is ", 1)[1].split(" ")[0])
    assert schedule(netlist, ECP5, int(1e6 / mhz))[0] is not None


def test_a_latency_below_the_least_is_refused_with_the_path() -> None:
    build = Builder()
    total = build.input("x", 32)
    for _ in range(5):
        total = build.sum(total, total)
    plan, diagnostics = schedule(build.netlist((Output("out_data", total),)), ECP5, 4200, latency=3)
    assert plan is None
    assert [d.code for d in diagnostics] == ["K0602"]
    assert "at least 5" in diagnostics[0].message
    assert diagnostics[0].message.count("32-bit addition") == 5


def test_a_design_larger_than_the_device_is_reported() -> None:
    build = Builder()
    x = build.input("x", 18)
    product = Mul(width=36, a=x, b=x, a_signed=False, b_signed=False, latency_cycles=2)
    products = [build.add(product) for _ in range(30)]
    netlist = build.netlist(tuple(Output(f"out_{k}", bits) for k, bits in enumerate(products)))
    _, diagnostics = schedule(netlist, find_device("ecp5-25k"), 10000)
    assert [d.code for d in diagnostics] == ["K0604"]
    assert "30 DSP blocks, but ecp5-25k has 28" in diagnostics[0].message


def test_products_keep_their_registers_to_themselves() -> None:
    build = Builder()
    x, y = build.input("x", 16), build.input("y", 16)
    product = build.add(Mul(width=32, a=x, b=y, a_signed=True, b_signed=True, latency_cycles=3))
    plan = planned(build.netlist((Output("out_data", product),)), 4200, latency=3)
    assert plan.latency_cycles == 3
    assert plan.register_bits == 0
    assert plan.available[2] == 3


def test_bits_with_one_reader_set_are_kept_together_and_others_apart() -> None:
    build = Builder()
    x = build.input("x", 16)
    total = build.sum(x, x)
    low = build.sum(slice_bits(total, 0, 4), slice_bits(x, 0, 4))
    netlist = build.netlist((Output("out_0", low), Output("out_1", slice_bits(total, 8, 8))))
    plan = planned(netlist, 4000, latency=2)
    runs = {(life.low, life.width): life.registers for life in plan.lifetimes}
    cells = {(life.cell, life.low, life.width) for life in plan.lifetimes}
    assert cells == {(0, 0, 4), (0, 4, 12), (1, 0, 4), (1, 8, 8), (2, 0, 4)}
    assert runs[8, 8] == 2
    assert verify_plan(netlist, plan, MODEL) == []


@pytest.mark.parametrize("name", device_names())
def test_every_device_schedules_an_adder(name: str) -> None:
    device = find_device(name)
    assert device is not None
    build = Builder()
    total = build.sum(build.input("x", 16), build.input("y", 16))
    netlist = build.netlist((Output("out_data", total),))
    plan, diagnostics = schedule(netlist, device, 20000)
    assert plan is not None and diagnostics == []
    assert plan.latency_cycles == 1
    assert plan.register_bits == 16


def test_the_checker_notices_damage() -> None:
    netlist = random_netlist(5, 60, 1)
    plan = planned(netlist, 9000)
    model = MODEL
    assert verify_plan(netlist, plan, model) == []
    late = max(range(len(plan.stage)), key=plan.stage.__getitem__)
    moved = tuple(0 if k == late else s for k, s in enumerate(plan.stage))
    assert verify_plan(netlist, replace(plan, stage=moved), model)
    assert verify_plan(netlist, replace(plan, register_bits=plan.register_bits - 1), model)
    assert verify_plan(netlist, replace(plan, lifetimes=plan.lifetimes[1:]), model)
    assert verify_plan(netlist, replace(plan, clock_ps=plan.clock_ps // 2), model)
    assert verify_plan(netlist, replace(plan, latency_cycles=plan.latency_cycles + 1), model)
    assert verify_plan(netlist, replace(plan, state_write=(plan.latency_cycles,)), model)


def test_the_way_out_of_a_block_grows_with_the_blocks_around_it() -> None:
    def foretold(count: int) -> int:
        cells: list[Cell] = []
        sums: list[Bits] = []
        for k in range(count):
            a, b = 3 * k, 3 * k + 1
            cells += [Input(width=18, bus=f"a{k}"), Input(width=18, bus=f"b{k}")]
            factors = cell_bits(a, 18), cell_bits(b, 18)
            cells.append(Mul(
                width=36, a=factors[0], b=factors[1], a_signed=True, b_signed=True, latency_cycles=3,
            ))
            sums.append(cell_bits(3 * k + 2, 36))
        cells.append(Add(width=36, a=sums[0], inputs=(sums[-1],)))
        buses = tuple((cell.bus, cell.width) for cell in cells if isinstance(cell, Input))
        netlist = Netlist("products", buses, tuple(cells), (Output("out", cell_bits(len(cells) - 1, 36)),))
        problem = build_problem(netlist, MODEL)
        return int(problem.clk_to_q_ps[2])

    one, four, forty = map(foretold, (1, 4, 40))
    assert one < four < forty == foretold(80)  # no farther than across the device


def test_short_wires_of_the_slowest_path_raise_the_clock_foretold_and_change_no_plan() -> None:
    netlist = random_netlist(3, 25, 0)
    plan, _ = schedule(netlist, ECP5, 6000)
    assert plan is not None
    problem = build_problem(netlist, MODEL)
    problem = with_fanout(problem, staged_fanout(problem, [*plan.stage, plan.latency_cycles]))
    stage = [*plan.stage, plan.latency_cycles]
    cautious = fmax_mhz(problem, stage_arrivals(problem, stage))
    near, far = (likely(problem, luts) for luts in (50, 50_000))
    clocks = [fmax_mhz(p, stage_arrivals(p, stage)) for p in (near, far)]
    assert cautious <= clocks[1] < clocks[0]
    assert plan.arrival_ps == tuple(stage_arrivals(problem, stage).output_ps)
