"""What reports show of a plan, and the step from a missed clock to the next schedule."""
from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from kera_hw.schedule.fpga.delay_model import DelayModel
from kera_hw.schedule.fpga.device import find_device
from kera_hw.schedule.fpga.netlist import Output
from kera_hw.schedule.planner import schedule
from kera_hw.schedule.problem import build_problem
from kera_hw.schedule.refine import next_scale
from kera_hw.schedule.report import critical_path_text, pipeline_rows, stage_register_bits
from kera_hw.schedule.timing import stage_arrivals
from tests.schedule_nets import Builder, random_netlist

ECP5 = find_device("ecp5-85k")
assert ECP5 is not None


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.integers(8, 60))
def test_rows_and_registers_agree_with_the_plan(seed: int, size: int) -> None:
    netlist = random_netlist(seed, size)
    plan, _ = schedule(netlist, ECP5, 9000)
    assert plan is not None
    rows = pipeline_rows(netlist, plan)
    assert sorted(row.cell for row in rows) == list(range(len(netlist.cells)))
    assert all(0 <= row.start_ps <= plan.clock_ps and 0 < row.end_ps <= plan.clock_ps for row in rows)
    assert all(row.stage <= row.available <= max(row.last_stage, row.available) for row in rows)
    assert [row.stage for row in rows] == sorted(row.stage for row in rows)
    assert sum(stage_register_bits(plan)) == plan.register_bits


def test_the_critical_path_is_told_in_words() -> None:
    build = Builder()
    total = build.input("x", 16)
    for _ in range(2):
        total = build.sum(total, total)
    netlist = build.netlist((Output("out_data", total),))
    plan, _ = schedule(netlist, ECP5, 20000)
    assert plan is not None
    lines = critical_path_text(netlist, plan)
    assert [line.split(":")[0] for line in lines] == ["input `x`", "16-bit addition", "16-bit addition"]
    assert ": +0.00 ns, at " in lines[0]


def test_a_missed_clock_stretches_wires_until_it_is_met() -> None:
    build = Builder()
    total = build.input("x", 16)
    for _ in range(6):
        total = build.sum(total, total)
    netlist = build.netlist((Output("out_data", total),))
    # "Routing" has wires that are 60 % slower than the model says.
    routed = build_problem(netlist, DelayModel(ECP5, 1.6))
    counts: list[int] = []
    for clock_ps in range(5000, 8000, 250):
        scale, latencies = 1.0, list[int]()
        while True:
            plan, _ = schedule(netlist, ECP5, clock_ps, scale=scale)
            assert plan is not None
            latencies.append(plan.latency_cycles)
            settled = stage_arrivals(routed, [*plan.stage, plan.latency_cycles]).settled_ps
            achieved_ps = max(settled) + plan.setup_ps
            after = next_scale(netlist, plan, DelayModel(ECP5, scale), achieved_ps)
            if after is None:
                break
            assert 1.04 * scale <= after <= 1.4 * scale + 1e-9
            scale = after
        assert achieved_ps <= clock_ps
        assert latencies == sorted(latencies)
        counts.append(len(latencies))
    assert 1 < max(counts) < 12
