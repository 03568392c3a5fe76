"""Units that take the items of a loop in turn: order, values and cycles under stalls, who can have them."""
from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kera_hw.driver.design import HardwareDesign
from kera_hw.driver.hardware import design_hardware
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.rtl_target import departure
from kera_hw.driver.session import compile_text
from kera_hw.driver.units import in_turn
from kera_hw.graph import Graph
from kera_hw.interp import run_export
from kera_hw.rtl.sim.bench import Traffic, simulate
from kera_hw.support import KeraError, SourceFile
from tests.differential.hardware_support import (
    assert_same,
    bus_words,
    input_buses,
    random_inputs,
    result_buses,
    run_buses,
)

ITEMS = 80
STEPS = """\
pub fn steps(n: u9) -> (u8, u9) {
    let mut v = n;
    let mut count: u8 = 0;
    while v > 1, max 200 {
        v = if v & 1 == 0 { v >> 1 } else { v - (v >> 2) - 1 };
        count += 1;
    }
    (count, n)
}
"""


@cache
def graph_of(source: str) -> Graph:
    graph = compile_text(SourceFile("f.kera", source.encode()), Path("f.kera")).graph
    assert graph is not None
    return graph


@cache
def design(**options: Any) -> HardwareDesign:
    graph = graph_of(STEPS)
    return design_hardware(graph, graph.exports[0], TargetOptions(device="ecp5-25k", **options))


def test_times_are_those_of_a_simulation_cycle_by_cycle() -> None:
    rng = np.random.default_rng(7)
    for units in (1, 2, 3, 5):
        latencies = rng.integers(1, 12, 60).astype(np.uint64)
        due: list[int] = []
        accepted: list[int] = []
        taken: list[int] = []
        cycle = 0
        while len(taken) < len(latencies):
            busy = len(due) - len(taken)
            if len(taken) < len(due) and due[len(taken)] <= cycle:
                taken.append(cycle)
            if busy < units and len(due) < len(latencies):
                due.append(cycle + int(latencies[len(due)]))
                accepted.append(cycle)
            cycle += 1
        found = in_turn(latencies, units)
        assert found.latency.tolist() == [b - a for a, b in zip(accepted, taken)]
        assert found.gap.tolist() == np.diff(accepted).tolist()


@pytest.mark.parametrize(("interface", "units"), [("stream", 3), ("axis", 3), ("axis", None)])
def test_items_come_back_in_order_in_the_cycles_predicted(interface: str, units: int | None) -> None:
    made = design(units=units, interface=interface)
    export, emitted = made.export, made.emitted
    values = random_inputs(export, ITEMS, 3)
    own = made.latencies(values, ITEMS)
    assert own is not None and len(set(own.tolist())) > 5
    expected = result_buses(export, run_export(export, values, ITEMS), ITEMS)
    rows = bus_words(emitted, input_buses(export, values, ITEMS))
    for traffic in (Traffic(), Traffic(60, 60, 3), Traffic(90, 12, 4), Traffic(12, 90, 5, 75)):
        run = simulate(emitted, rows, traffic, count=ITEMS, latencies=own)
        assert departure(made, run, traffic, own) is None, traffic
        assert_same(expected, run_buses(emitted, run), str(traffic))
    if interface == "stream":  # a third of the time, but for waiting in turn; and the comparison can fail
        run = simulate(emitted, rows, Traffic(), count=ITEMS, latencies=own)
        assert int(run.emit_cycles[-1]) < 0.6 * int((own + 1).sum())
        assert departure(made, run, Traffic(), own + np.uint64(1)) is not None
        core = emitted.core
        assert core is not None
        other = replace(emitted, core=replace(core, units=2))
        run = simulate(other, rows, Traffic(), count=ITEMS, latencies=own)
        assert run.fault is not None and "in_ready" in run.fault.message


def test_the_plan_says_what_units_gain_and_take() -> None:
    one, three = design().plan_json(), design(units=3).plan_json()
    row = three["regions"][0]
    assert row["units"] == 3 and row["interval_of_one"] == one["initiation_interval"]
    assert "units" not in one["regions"][0]
    assert three["initiation_interval"] == {"min": 1, "max": -(-one["initiation_interval"]["max"] // 3)}
    assert three["estimate"]["ff"] == 3 * one["estimate"]["ff"] + 4
    assert three["estimate"]["lut"] > 3 * one["estimate"]["lut"]


@pytest.mark.parametrize(("source", "interface", "why"), [
    ("pub fn f(a: u8) -> u8 { a + 1 }", "stream", "no loop that ends by a condition"),
    ("pub stream f(a: u8) -> u8 { state s: u8 = 0; s += a; s }", "stream", "the state that the one before"),
    (STEPS, "none", "nothing tells when a unit"),
])
def test_who_cannot_have_units_is_told(source: str, interface: str, why: str) -> None:
    graph = graph_of(source)
    with pytest.raises(KeraError) as caught:
        design_hardware(graph, graph.exports[0], TargetOptions(units=2, interface=interface))
    (found,) = caught.value.diagnostics
    assert found.code == "K0908" and why in found.message and found.notes
