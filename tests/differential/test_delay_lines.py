"""Registers that are delay lines in LUT RAM: plans, Verilog under stalls, gates, counts, proofs."""
from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from kera_hw.driver.formal import prove_export
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.session import compile_text
from kera_hw.graph import Graph
from kera_hw.interp import run_export
from kera_hw.rtl.emit.verilog import Emitter, Interface, Style, emit_verilog
from kera_hw.rtl.sim.bench import Traffic, simulate
from kera_hw.rtl.sim.gates import synthesised
from kera_hw.rtl.techmap import MapOptions, map_design
from kera_hw.rtl.toolchain.nextpnr import CHIPS
from kera_hw.schedule.fpga.delay_model import DelayModel
from kera_hw.schedule.fpga.device import find_device
from kera_hw.schedule.fpga.lut_ram import LONGEST, counter
from kera_hw.schedule.fpga.netlist import Netlist
from kera_hw.schedule.plan import DelayLine, DelayPart, Lifetime, Plan
from kera_hw.schedule.planner import schedule
from kera_hw.schedule.verifier import verify_plan
from kera_hw.support import SourceFile
from tests.differential.hardware_support import (
    assert_same,
    bus_words,
    input_buses,
    lower,
    random_inputs,
    result_buses,
    run_buses,
)

ITEMS, LATENCY = 60, 22
CLOCK_PS = 6600
_DEVICE = find_device("ecp5-25k")
assert _DEVICE is not None
DEVICE = _DEVICE
MODEL = DelayModel(DEVICE)

# What waits for the quotient is read on its way, and stands beside state that a reset restores.
WAITS = """\
pub stream f(a: u16, b: u6, c: u13, d: u37) -> (u16, u13, u37, u16) {
    state last: u16 = 3;
    let q = a / (b as u16 | 1);
    let before = last;
    last = rotl(q, 1) ^ (c as u16);
    (q, c + 1, d, before)
}
"""
SMALL = "pub fn f(a: u8, b: u4, c: u9, d: u8) -> (u8, u9, u8) { (a / (b as u8 | 1), c, d) }\n"


@cache
def graph_of(source: str) -> Graph:
    graph = compile_text(SourceFile("f.kera", source.encode()), Path("f.kera")).graph
    assert graph is not None
    return graph


@cache
def planned(interface: Interface, alone: bool = True, source: str = WAITS) -> tuple[Netlist, Plan]:
    graph = graph_of(source)
    netlist = map_design(lower(graph, graph.exports[0]), DEVICE.name, CLOCK_PS, MapOptions())
    latency = LATENCY if source is WAITS else None
    plan, _ = schedule(netlist, DEVICE, CLOCK_PS, latency, interface=interface, alone=alone)
    assert plan is not None and verify_plan(netlist, plan, MODEL) == []
    return netlist, plan


def test_counters_have_every_period_and_come_back_to_it() -> None:
    for period in range(1, LONGEST):
        found = counter(period)
        mask = (1 << found.bits) - 1

        def steps(state: int, count: int, following: int = found.following, mask: int = mask) -> list[int]:
            states = [state]
            while len(states) < count:
                states.append((states[-1] << 1 | following >> states[-1] & 1) & mask)
            return states

        own = steps(found.start, period + 1)
        assert len(set(own)) == period and own[0] == own[-1]
        assert all(set(own) & set(steps(state, mask + 1)) for state in range(mask + 1))


def test_lines_save_sites_and_no_time() -> None:
    (_, plan), (_, plain) = planned("stream"), planned("stream", alone=False)
    assert not plain.delay_lines and len({line.stages for line in plan.delay_lines}) > 1
    assert max(line.stages for line in plan.delay_lines) == LONGEST, "longer rows are several lines"
    assert (plan.stage, plan.lifetimes, plan.arrival_ps) == (plain.stage, plain.lifetimes, plain.arrival_ps)
    ours, theirs = plan.estimate, plain.estimate
    assert max(ours.lut, ours.ff) < 0.8 * max(theirs.lut, theirs.ff)
    assert ours.fmax_mhz > 0.97 * theirs.fmax_mhz
    assert any("LUT RAM" in note and f"{plain.estimate.ff:,} in flip-flops" in note for note in plan.notes)
    assert Plan.from_json(plan.to_json()) == plan


def test_lines_keep_to_the_luts_asked_for() -> None:
    (netlist, plan), (_, plain) = planned("stream"), planned("stream", alone=False)
    most = (plan.estimate.lut + plain.estimate.lut) // 2
    for most_luts in (most, plain.estimate.lut - 1):
        some, _ = schedule(netlist, DEVICE, CLOCK_PS, LATENCY, interface="stream", most_luts=most_luts)
        assert some is not None and verify_plan(netlist, some, MODEL) == []
        assert some.estimate.lut <= max(most_luts, plain.estimate.lut)
        assert bool(some.delay_lines) == (most_luts == most)
        assert some.estimate.ff > plan.estimate.ff


def test_wrong_lines_are_found() -> None:
    netlist, plan = planned("stream")
    first, *rest = plan.delay_lines
    part = first.parts[0]

    def faults(*parts: DelayPart, stages: int = first.stages) -> list[str]:
        line = replace(first, stages=stages, parts=(*parts, *first.parts[1:]))
        return verify_plan(netlist, replace(plan, delay_lines=(line, *rest)), MODEL)

    assert any("not there" in fault for fault in faults(replace(part, load=part.load - 1)))
    assert any("not there" in fault for fault in faults(part, part)), "one bit is in two lines"
    assert any("of 18 stages" in fault for fault in faults(part, stages=LONGEST + 1))
    assert any("register bits" in fault for fault in faults())
    # A value that is read on its way, in one line over that.
    reads = {life: {s for s in range(life.available + 1, life.until) if _read(netlist, plan, life, s)}
             for life in plan.lifetimes}
    life = next(life for life, stages in reads.items() if stages)
    over = DelayPart(life.cell, life.low, life.width, min(reads[life]) - 1)
    line = DelayLine(min(life.until - over.load, LONGEST), (over,))
    found = verify_plan(netlist, replace(plan, delay_lines=(line,)), MODEL)
    assert any("is read while" in fault for fault in found)


def _read(netlist: Netlist, plan: Plan, life: Lifetime, stage: int) -> bool:
    working = (cell for cell, at in zip(netlist.cells, plan.stage) if at == stage)
    segments = (s for cell in working for bits in cell.operands() for s in bits if s.cell == life.cell)
    return any(s.low < life.low + life.width and s.low + s.width > life.low for s in segments)


@pytest.mark.parametrize(
    ("interface", "style", "emitter"),
    [("stream", "ecp5", "text"), ("none", "ecp5", "amaranth"), ("stream", "generic", "amaranth")],
)
def test_verilog_equals_the_interpreter(interface: Interface, style: Style, emitter: Emitter) -> None:
    graph = graph_of(WAITS)
    export = graph.exports[0]
    netlist, plan = planned(interface)
    emitted = emit_verilog(netlist, plan, interface, style, emitter)
    assert emitted.register_bits == plan.register_bits
    values = random_inputs(export, ITEMS, 5)
    expected = result_buses(export, run_export(export, values, ITEMS), ITEMS)
    rows = bus_words(emitted, input_buses(export, values, ITEMS))
    for traffic in (Traffic(), Traffic(60, 60, 3), Traffic(12, 90, 4, 75)):  # the last is reset in mid-flight
        run = simulate(emitted, rows, traffic, count=ITEMS)
        assert run.fault is None, (traffic, run.fault)
        assert_same(expected, run_buses(emitted, run), str(traffic))


def test_synthesis_has_the_cells_foretold_and_they_do_the_same() -> None:
    graph = graph_of(SMALL)
    export = graph.exports[0]
    netlist, plan = planned("stream", source=SMALL)
    emitted = emit_verilog(netlist, plan, "stream", "ecp5", "text")
    gates = synthesised(emitted, CHIPS[DEVICE.name])
    other_netlist, plain = planned("stream", False, SMALL)
    without = synthesised(emit_verilog(other_netlist, plain, "stream", "ecp5", "text"), CHIPS[DEVICE.name])
    counts, memories = gates.counts, sum(-(-line.width // 4) for line in plan.delay_lines)
    assert counts.by_type["TRELLIS_DPR16X4"] == memories
    assert (counts.ff, without.counts.ff) == (plan.estimate.ff, plain.estimate.ff)
    assert counts.lut - without.counts.lut == plan.estimate.lut - plain.estimate.lut
    values = random_inputs(export, ITEMS, 6)
    expected = result_buses(export, run_export(export, values, ITEMS), ITEMS)
    rows = bus_words(emitted, input_buses(export, values, ITEMS))
    run = simulate(replace(emitted, verilog=gates.verilog), rows, Traffic(50, 50, 7), count=ITEMS)
    assert run.fault is None, run.fault
    assert_same(expected, run_buses(emitted, run), "gates")


def test_a_circuit_with_lines_is_proved() -> None:
    graph = graph_of(SMALL)
    options = TargetOptions(device=DEVICE.name, clock_mhz=150.0, interface="none")
    proof = prove_export(graph, graph.exports[0], options, 30)
    assert proof.proved, proof.text()
