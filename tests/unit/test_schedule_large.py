"""Netlists of many thousand cells: nothing overflows, and what is far too large is planned in haste."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kera_hw.schedule import sdc
from kera_hw.schedule.asap import Constraints, Loop, build_constraints, earliest, latest
from kera_hw.schedule.fpga.bits import Bits
from kera_hw.schedule.fpga.cells import Input
from kera_hw.schedule.fpga.delay_model import DelayModel
from kera_hw.schedule.fpga.device import Device, find_device
from kera_hw.schedule.fpga.netlist import Netlist, Output
from kera_hw.schedule.lifetimes import register_bits
from kera_hw.schedule.planner import schedule
from kera_hw.schedule.problem import Problem, build_problem, timing_pairs
from kera_hw.schedule.sdc import least_registers
from kera_hw.schedule.verifier import verify_plan
from tests.schedule_nets import Builder, random_netlist


def part(name: str) -> Device:
    device = find_device(name)
    assert device is not None
    return device


ECP5, SMALL = part("ecp5-85k"), part("ecp5-25k")
MODEL = DelayModel(ECP5)


def chain_behind(inputs: int, adds: int) -> Netlist:
    """A chain of additions whose cells have large numbers."""
    build = Builder()
    parts = [build.input(f"x{k}", 1) for k in range(inputs)]
    total: Bits = build.input("a", 16)
    for _ in range(adds):
        total = build.sum(total, total)
    outputs = (Output("out_0", total), *(Output(f"out_{k + 1}", bits) for k, bits in enumerate(parts)))
    return build.netlist(outputs)


@pytest.mark.parametrize("inputs", [50_000, pytest.param(400_000, marks=pytest.mark.long)])
def test_timing_pairs_do_not_depend_on_the_numbers_of_cells(inputs: int) -> None:
    limit_ps = 8000 - MODEL.setup_ps
    alone = timing_pairs(build_problem(chain_behind(0, 12), MODEL), limit_ps)
    behind = timing_pairs(build_problem(chain_behind(inputs, 12), MODEL), limit_ps)
    assert len(alone[0]) > 0
    for ends, shifted in zip(alone, behind):
        assert np.array_equal(ends + inputs, shifted)


def test_a_chain_of_high_numbers_is_planned_like_the_same_chain_alone() -> None:
    alone, _ = schedule(chain_behind(0, 12), ECP5, 8000)
    large = chain_behind(50_000, 12)
    plan, _ = schedule(large, ECP5, 8000)
    assert alone is not None and plan is not None
    assert plan.latency_cycles == alone.latency_cycles
    assert verify_plan(large, plan, MODEL) == []


def rows_of_sums(width: int, depth: int) -> Netlist:
    """``depth`` rows of ``width`` additions, each of two sums of the row before."""
    build = Builder()
    row = [build.input(f"x{k}", 8) for k in range(width)]
    for step in range(depth):
        row = [build.sum(row[k], row[(k + 1 + step) % width]) for k in range(width)]
    return build.netlist(tuple(Output(f"out_{k}", bits) for k, bits in enumerate(row)))


def test_a_design_far_beyond_its_device_is_planned_in_haste_and_says_so() -> None:
    netlist = rows_of_sums(400, 40)
    plan, diagnostics = schedule(netlist, SMALL, 8000)
    assert plan is not None
    assert [item.code for item in diagnostics] == ["K0604"]
    assert any("too many to look for the fewest registers" in note for note in plan.notes)
    assert verify_plan(netlist, plan, DelayModel(SMALL)) == []
    longer, _ = schedule(netlist, SMALL, 8000, latency=plan.latency_cycles + 2)
    assert longer is not None and longer.latency_cycles == plan.latency_cycles + 2
    assert verify_plan(netlist, longer, DelayModel(SMALL)) == []
    refused, why = schedule(netlist, SMALL, 8000, latency=2)
    assert refused is None and [item.code for item in why] == ["K0602"]


def bounded(seed: int, states: int) -> tuple[Problem, Constraints, int, list[int], list[int]]:
    problem = build_problem(random_netlist(seed, 80, states), MODEL)
    constraints = build_constraints(problem, timing_pairs(problem, 9000))
    interval = 1
    while isinstance(lower := earliest(constraints, interval), Loop):
        interval = lower.least_initiation_interval
    inputs = [k for k, cell in enumerate(problem.netlist.cells) if isinstance(cell, Input)]
    return problem, constraints, interval, lower, latest(constraints, interval, lower[-1], inputs)


@pytest.mark.parametrize("answer", ["none", "late", "fractions", "nan"])
@pytest.mark.parametrize("seed", range(4))
def test_a_wrong_answer_of_the_solver_is_not_used(
    seed: int, answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, constraints, interval, lower, upper = bounded(seed, seed % 2)

    def solved(cost: Any, low: Any, high: Any, *_: object) -> Any:
        return {
            "none": None, "late": high + 1.0, "fractions": low + 0.5 * (np.arange(len(low)) % 4),
            "nan": np.full(len(cost), np.nan),
        }[answer]

    monkeypatch.setattr(sdc, "_minimise", solved)
    stage, proved = least_registers(problem, constraints, interval, lower, upper)
    assert not proved or answer == "fractions"
    assert all(stage[v] >= stage[u] + c for u, v, c in constraints.rows())
    assert all(a <= s <= b for a, s, b in zip(lower, stage, upper))
    assert proved or register_bits(problem, stage) <= register_bits(problem, lower)


def test_long_waits_do_not_take_the_improvement_longer() -> None:
    """At thousands of stages to spare, only those where the cost bends are tried."""
    problem, constraints, interval, lower, _ = bounded(3, 0)
    inputs = [k for k, cell in enumerate(problem.netlist.cells) if isinstance(cell, Input)]
    later = [*lower[:-1], 60_000]
    upper = latest(constraints, interval, 60_000, inputs)
    stage, _ = least_registers(problem, constraints, interval, later, upper, step_limit=0)
    best, proved = least_registers(problem, constraints, interval, later, upper)
    assert proved
    assert register_bits(problem, best) <= register_bits(problem, stage) <= register_bits(problem, later)
