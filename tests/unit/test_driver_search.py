"""The choice among circuits: a looser request ends with none worse, and what any circuit meets is taken."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kera_hw.driver.hardware import HardwareDesign, plan_hardware
from kera_hw.driver.mapping import Mappings
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.search import Floor, Task, faster_periods, rungs
from kera_hw.driver.session import compile_text, load_program
from kera_hw.graph import Export, Graph
from kera_hw.schedule.fpga.device import find_device
from kera_hw.schedule.fpga.netlist import Netlist
from kera_hw.schedule.fpga.resource_model import netlist_brams, netlist_dsps, netlist_luts
from kera_hw.schedule.objective import cost, measure_text, prices
from kera_hw.support import KeraError, SourceFile
from tests.unit.cli_support import Kera

ROOT = Path(__file__).parents[2]
BIQUAD = """
pub stream biquad(x: i16, b0: i16, b1: i16, b2: i16, a1: i16, a2: i16) -> i16 {
    state x1: i16 = 0;
    state x2: i16 = 0;
    state y1: i16 = 0;
    state y2: i16 = 0;
    let sum = (b0 as i40) * (x as i40) + (b1 as i40) * (x1 as i40) + (b2 as i40) * (x2 as i40)
        - (a1 as i40) * (y1 as i40) - (a2 as i40) * (y2 as i40);
    let y = (sum >> 14) as i16;
    x2 = x1;
    x1 = x;
    y2 = y1;
    y1 = y;
    y
}
"""
ARBITER = """
pub stream arbiter(req: u8) -> (bool, u3) {
    state last: u3 = 7;
    let turn = last + 1;
    let index = ctz(rotr(req, turn)) as u3 + turn;
    if req != 0 { last = index; }
    (req != 0, index)
}
"""
Design = tuple[Graph, Export]
Figures = tuple[int, int, int, int, int]
"""Interval, latency, sites, DSPs, BRAMs."""


@cache
def compiled(source: str) -> Design:
    loaded = compile_text(SourceFile("p.kera", source.encode()), Path("p.kera"))
    assert loaded.graph is not None and not loaded.has_errors, loaded.diagnostics
    return loaded.graph, loaded.graph.exports[0]


@cache
def kernel(path: str, name: str) -> Design:
    graph = load_program(ROOT / path).graph
    assert graph is not None
    return graph, next(item for item in graph.exports if item.name == name)


def planned(design: Design, **asked: Any) -> HardwareDesign | None:
    """The circuit for a request, None where it is refused for its clock, latency or interval."""
    request: dict[str, Any] = {"device": "ecp5-25k", "clock_mhz": 150, **asked}
    try:
        return plan_hardware(*design, TargetOptions(**request))
    except KeraError as refused:
        assert {item.code for item in refused.diagnostics} <= {"K0601", "K0602", "K0603"}
        return None


def test_a_refusal_names_the_least_interval_of_all_circuits() -> None:
    design = compiled(ARBITER)
    least = planned(design)
    assert least is not None and least.plan.initiation_interval == 2
    with pytest.raises(KeraError) as refused:
        plan_hardware(*design, TargetOptions(device="ecp5-25k", clock_mhz=150, interval=1))
    (refusal,) = refused.value.diagnostics
    assert refusal.code == "K0603" and "The smallest interval for this loop is 2." in refusal.message


def figures(found: HardwareDesign) -> Figures:
    plan, use = found.plan, found.plan.estimate
    return plan.initiation_interval, plan.latency_cycles, max(use.lut, use.ff), use.dsp, use.bram


def dominates(one: Figures, other: Figures) -> bool:
    """Whether ``one`` is nowhere worse than ``other``, and somewhere better."""
    return one != other and all(a <= b for a, b in zip(one, other))


@dataclass(frozen=True)
class Sweep:
    """Circuits by limit of DSP blocks, None last, which is no limit."""

    found: dict[int | None, Figures]

    def check(self) -> None:
        rows = list(self.found.values())
        for tight, row in enumerate(rows):
            for loose in rows[tight:]:
                assert not dominates(row, loose), (self.found, row, loose)


def considered(design: HardwareDesign) -> list[dict[str, Any]]:
    """The figures of all circuits that one was chosen from, the chosen one first."""
    return [design.choice.best.to_json(), *design.choice.against]


def sweep(design: Design, **asked: Any) -> Sweep:
    """The circuits for all limits up to the blocks that are used without one."""
    free = planned(design, **asked)
    assert free is not None
    most = max(row["dsp"] for row in considered(free))
    limits = [*rungs(most, 5)[::-1], None]
    found = {limit: planned(design, dsp=limit, **asked) for limit in limits}
    return Sweep({limit: figures(item) for limit, item in found.items() if item is not None})


def check_latencies(design: Design, circuits: Sweep) -> None:
    """The least latency of any circuit is accepted without a limit, and so are longer ones."""
    least = min(row[1] for row in circuits.found.values())
    for latency in (least, least + 1):
        found = planned(design, latency=latency)
        assert found is not None and found.plan.latency_cycles == latency


def test_a_biquad_has_the_best_circuit_that_its_limits_allow() -> None:
    design = compiled(BIQUAD)
    circuits = sweep(design)
    circuits.check()
    assert [row[3] for row in circuits.found.values()] == [0, 1, 2, 3, 3, 5, 5]
    check_latencies(design, circuits)
    found = planned(design)
    assert found is not None
    device = found.device
    costs = [row["cost"] for row in considered(found)]
    assert len(costs) == 9 and cost(found.plan, device) == min(costs)


KERNELS = [
    ("bench/kernels/fpu.kera", "mul_f16"), ("bench/kernels/fpu.kera", "mul_bf16"),
    ("bench/kernels/fpu.kera", "equal_f32"), ("bench/kernels/conv.kera", "conv"),
    ("bench/kernels/sobel.kera", "sobel"), ("tests/programs/filters.kera", "resonator"),
    ("examples/fir.kera", "fir"), ("tests/programs/matrices.kera", "totals"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "name"), KERNELS, ids=[name for _, name in KERNELS])
def test_kernels_have_no_better_circuit_under_tighter_limits(path: str, name: str) -> None:
    design = kernel(path, name)
    circuits = sweep(design)
    circuits.check()
    check_latencies(design, circuits)


@pytest.mark.parametrize(("path", "name"), [KERNELS[0], *KERNELS[3:6]], ids=lambda item: str(item)[-12:])
def test_slower_clocks_need_no_more_latency(path: str, name: str) -> None:
    design = kernel(path, name)
    for slow, fast in pairwise((100, 125, 150, 156, 240, 245)):
        found = planned(design, clock_mhz=fast)
        assert found is not None
        assert planned(design, clock_mhz=slow, latency=found.plan.latency_cycles) is not None


@st.composite
def sums_of_products(draw: st.DrawFn) -> str:
    """A stream or a function that sums products of parameters, constants and earlier values."""
    count, width = draw(st.integers(2, 4)), draw(st.sampled_from([8, 11, 16]))
    names = [f"p{k}" for k in range(count)]
    operands = [*names, "s"] if (state := draw(st.booleans())) else names
    pick = st.sampled_from(operands)
    terms: list[str] = []
    for _ in range(draw(st.integers(1, 4))):
        right = f"{draw(st.integers(3, 999))}" if draw(st.booleans()) else f"({draw(pick)} as i40)"
        terms.append(f"({draw(pick)} as i40) * {right}")
    body = f"let t = {' + '.join(terms)};\n"
    if state:
        body = f"state s: i{width} = 1;\n{body}s = (t >> 3) as i{width};\n"
    parameters = ", ".join(f"{name}: i{width}" for name in names)
    kind = "stream" if state else "fn"
    return f"pub {kind} f({parameters}) -> i40 {{\n{body}t\n}}\n"


@settings(max_examples=4, deadline=None)
@given(sums_of_products())
def test_random_sums_of_products_keep_the_order(source: str) -> None:
    design = compiled(source)
    circuits = sweep(design)
    circuits.check()
    check_latencies(design, circuits)


@pytest.mark.parametrize("source", [
    "pub fn f(a: i16, b: i16, c: u9, d: u9) -> i40 { (a as i40) * (b as i40) + (c as i40) * (d as i40) }",
    "pub fn f(a: i24, b: i20) -> i44 { (a as i44) * (b as i44) }",
    "pub fn f(a: i12) -> i24 { (a as i24) * (a as i24) }",
    "pub fn f(a: i16, b: i16) -> i16 { a * b + a }",
    "pub fn f(a: i18) -> i40 { (a as i40) * 23171 + (a as i40) * (a as i40) }",
])
def test_the_floor_under_circuits_of_fewer_blocks_holds(source: str) -> None:
    device = find_device("ecp5-85k")
    assert device is not None
    design = compiled(source)
    found = planned(design, device="ecp5-85k")
    assert found is not None
    task = Task(Mappings(found.flat, device), 6666, TargetOptions(), {}, 1.0)
    widest: Netlist = task.mapped(None).netlist
    floor, price = Floor(widest, device), prices(device)
    most = netlist_dsps(widest, device)
    assert most
    for blocks in range(most + 1):
        netlist = task.mapped(blocks).netlist
        least = netlist_luts(netlist, device) + price.dsp * netlist_dsps(netlist, device)
        assert floor.cost(blocks) <= least + price.bram * netlist_brams(netlist, device)


def test_a_latency_is_met_at_a_longer_interval_where_that_is_what_it_takes() -> None:
    source = """
pub stream f(x: i16) -> i32 {
    state s: i16 = 0;
    let t = (s as i32) * (s as i32) + (x as i32);
    s = (t >> 5) as i16;
    t
}
"""
    design = compiled(source)
    least = {ii: planned(design, interval=ii, dsp=0) for ii in range(1, 9)}
    latencies = [item.plan.latency_cycles for item in least.values() if item is not None]
    found = planned(design, latency=min(latencies), dsp=0)
    assert found is not None and found.plan.latency_cycles == min(latencies)


def test_ladders_are_fixed() -> None:
    assert rungs(5, 16) == [5, 4, 3, 2, 1, 0]
    assert rungs(28, 2) == [28, 14, 0]
    assert rungs(0, 7) == [0]
    for clock_ps in (1000, 4000, 6666, 20000, 200_000):
        periods = faster_periods(clock_ps)
        assert len(periods) == 2 and periods[1] < periods[0] < clock_ps
        assert periods[1] in faster_periods(periods[0])


def test_prices_come_from_the_device() -> None:
    for name, dsp, bram in (("ecp5-25k", 13, 6), ("ecp5-85k", 8, 6), ("ice40-hx8k", 0, 3)):
        device = find_device(name)
        assert device is not None and (prices(device).dsp, prices(device).bram) == (dsp, bram)
    small = find_device("ecp5-25k")
    assert small is not None and measure_text(small) == "interval × (sites + 13 DSP + 6 BRAM)"


def test_the_plan_says_what_was_chosen_and_against_what(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "p.kera"
    path.write_text(BIQUAD)
    kera = Kera(capsys)
    shown = kera("plan", path, "--target", "fpga:ecp5-25k", "--clock", "150MHz")
    assert "The cheapest of 9 circuits by interval × (sites + 13 DSP + 6 BRAM):" in shown.out
    choice = kera("plan", path, "--target", "fpga:ecp5-25k", "--clock", "150MHz", "--json").json["choice"]
    assert choice["dsp"] == 5 and [row["dsp"] for row in choice["against"]] == [4, 3, 2, 1, 0, 3, 2, 1]
    assert all(row["cost"] > choice["cost"] for row in choice["against"])
