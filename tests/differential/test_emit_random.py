"""Random netlists: emitted Verilog, simulated under random traffic, equals the cell-by-cell reference."""
from __future__ import annotations

import random
import re
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from kera_hw.rtl.emit.ports import Interface
from kera_hw.rtl.emit.verilog import Emitted, Emitter, Style, emit_verilog, model_text
from kera_hw.rtl.sim.bench import SimRun, Traffic, simulate
from kera_hw.rtl.sim.words import from_words, to_words
from kera_hw.rtl.toolchain.tools import require
from kera_hw.rtl.toolchain.verilator import lint
from kera_hw.schedule.fpga.simulate import simulate_netlist
from tests.differential.emit_netlists import (
    iterative_unit,
    memory_unit,
    random_items,
    random_netlist,
    random_plan,
)
from tests.netlist_reference import evaluate

INTERFACES: tuple[Interface, ...] = ("stream", "none")


def _results(run: SimRun, emitted: Emitted) -> list[dict[str, int]]:
    columns = {port.name: from_words(words) for port, words in zip(emitted.data_outputs, run.outputs)}
    return [dict(zip(columns, row)) for row in zip(*columns.values())]


@pytest.mark.parametrize("emitter", ["text", "amaranth"])
@pytest.mark.parametrize("style", ["generic", "ecp5"])
@pytest.mark.parametrize("interface", ["stream", "none"])
@pytest.mark.parametrize("seed", [0, 1, 2, 5])
def test_simulation_equals_reference(seed: int, interface: Interface, style: Style, emitter: Emitter) -> None:
    rng = random.Random(f"{seed}/{interface}/{style}")
    netlist = random_netlist(rng, cells=40, states=seed % 3, controls=seed > 1)
    plan = random_plan(rng, netlist, interface)
    emitted = emit_verilog(netlist, plan, interface, style, emitter)
    assert emitted.register_bits == plan.register_bits
    items = random_items(rng, netlist, 300)
    expected = evaluate(netlist, items)
    rows = [to_words((item[bus] for item in items), width) for bus, width in netlist.inputs]
    reset = 40 + plan.latency_cycles
    traffics = [Traffic(), Traffic(60, 60, seed), Traffic(100, 30, seed), Traffic(70, 80, seed, reset)]
    for traffic in traffics if emitted.protocol != "none" else traffics[:1]:
        run = simulate(emitted, rows, traffic)
        assert run.fault is None
        assert _results(run, emitted) == expected
        if traffic.unhindered:
            assert set(run.emit_cycles - run.accept_cycles) == {plan.latency_cycles}
            assert set(run.accept_cycles[1:] - run.accept_cycles[:-1]) == {plan.initiation_interval}


@pytest.mark.parametrize("emitter", ["text", "amaranth"])
@pytest.mark.parametrize("style", ["generic", "ecp5"])
def test_chains_of_own_tables_equal_reference(style: Style, emitter: Emitter) -> None:
    rng = random.Random(f"chains/{style}")
    netlist = random_netlist(rng, cells=30, chains=20)
    plan = random_plan(rng, netlist, "none")
    emitted = emit_verilog(netlist, plan, "none", style, emitter)
    assert ("dut__ecp5_chain" in emitted.verilog) == (style == "ecp5")
    items = random_items(rng, netlist, 300)
    rows = [to_words((item[bus] for item in items), width) for bus, width in netlist.inputs]
    assert simulate_netlist(netlist, {bus: [item[bus] for item in items] for bus, _ in netlist.inputs}) == {
        bus: [row[bus] for row in evaluate(netlist, items)] for bus in ("out_0", "out_1")
    }
    assert _results(simulate(emitted, rows, Traffic()), emitted) == evaluate(netlist, items)


@pytest.mark.parametrize("emitter", ["text", "amaranth"])
@pytest.mark.parametrize("style", ["generic", "ecp5"])
def test_lint_is_clean(style: Style, emitter: Emitter) -> None:
    rng = random.Random(f"lint/{style}")
    with tempfile.TemporaryDirectory() as folder:
        for states in range(3):
            netlist = random_netlist(rng, cells=60, states=states, name="fir", controls=states > 1)
            for interface in INTERFACES:
                hop = 0.0 if states == 0 else 0.35  # a single stage, or several
                plan = random_plan(rng, netlist, interface, hop)
                emitted = emit_verilog(netlist, plan, interface, style, emitter)
                path = Path(folder) / "fir.v"
                path.write_text(emitted.verilog)
                assert lint([path], "fir") == []


def _as_synthesised(emitted: Emitted) -> Emitted:
    """The design with its vendor cells, as synthesis reads it, and models of those cells."""
    library = require("pyosys") / "share" / "ecp5"
    cells = [re.sub(r"specify.*?endspecify|`include[^\n]*", "", (library / name).read_text(), flags=re.DOTALL)
             for name in ("common_sim.vh", "ccu2c_sim.vh")]
    text = emitted.verilog.replace("`ifdef SYNTHESIS", "`ifndef SYNTHESIS")
    return replace(emitted, verilog="\n".join([text, *cells, model_text("MULT18X18D"), model_text("DP16KD")]))


@pytest.mark.parametrize("emitter", ["text", "amaranth"])
def test_vendor_cells_equal_reference(emitter: Emitter) -> None:
    rng = random.Random("vendor cells")
    netlist = random_netlist(rng, cells=60, states=1)
    emitted = emit_verilog(netlist, random_plan(rng, netlist, "stream"), "stream", "ecp5", emitter)
    assert "dut__ecp5_add #" in emitted.verilog
    assert "dut__ecp5_mul #" in emitted.verilog
    items = random_items(rng, netlist, 300)
    rows = [to_words((item[bus] for item in items), width) for bus, width in netlist.inputs]
    run = simulate(_as_synthesised(emitted), rows, Traffic(80, 50))
    assert run.fault is None
    assert _results(run, emitted) == evaluate(netlist, items)


def test_a_wrong_table_is_seen() -> None:
    """The comparison does fail: one flipped bit in one carry table changes results."""
    rng = random.Random("wrong table")
    netlist = random_netlist(rng, cells=12)
    emitted = emit_verilog(netlist, random_plan(rng, netlist, "none"), "none", "ecp5")
    broken = replace(emitted, verilog=emitted.verilog.replace(".INIT(16'h66aa)", ".INIT(16'h67aa)"))
    assert broken.verilog != emitted.verilog
    items = random_items(rng, netlist, 50)
    rows = [to_words((item[bus] for item in items), width) for bus, width in netlist.inputs]
    assert _results(simulate(broken, rows), emitted) != evaluate(netlist, items)


@pytest.mark.parametrize("emitter", ["text", "amaranth"])
@pytest.mark.parametrize("style", ["generic", "ecp5"])
@pytest.mark.parametrize("interface", INTERFACES)
def test_units_equal_reference(interface: Interface, style: Style, emitter: Emitter) -> None:
    """Memories and iterative units: of their own, of one make, and with calls that take turns."""
    rng = random.Random(f"units/{interface}/{style}")
    shared, twin, table = iterative_unit(rng, "a"), iterative_unit(rng, "b"), memory_unit(rng, "t")
    twins = [twin, replace(twin, name="c")]
    netlist = random_netlist(rng, cells=40, states=1, units=[shared, *twins, table, shared, table, shared])
    plan = random_plan(rng, netlist, interface)
    assert plan.initiation_interval >= 3 * shared.initiation_interval
    emitted = emit_verilog(netlist, plan, interface, style, emitter)
    if emitter == "text":
        assert len(re.findall(r"^module dut__iterative", emitted.verilog, re.MULTILINE)) == 2
    items = random_items(rng, netlist, 60)
    expected = evaluate(netlist, items)
    columns = {bus: [item[bus] for item in items] for bus, _ in netlist.inputs}
    found = simulate_netlist(netlist, columns)
    assert [dict(zip(found, row)) for row in zip(*found.values())] == expected
    rows = [to_words(columns[bus], width) for bus, width in netlist.inputs]
    for traffic in [Traffic(), Traffic(60, 60, 1)] if interface == "stream" else [Traffic()]:
        run = simulate(emitted, rows, traffic)
        assert run.fault is None
        assert _results(run, emitted) == expected
