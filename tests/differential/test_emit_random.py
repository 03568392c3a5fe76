"""Random netlists: emitted Verilog, simulated under random traffic, equals the cell-by-cell reference."""
from __future__ import annotations

import random
import tempfile
from pathlib import Path

import pytest

from kera_hw.rtl.emit.verilog import Emitted, emit_verilog
from kera_hw.rtl.sim.bench import SimRun, Traffic, simulate
from kera_hw.rtl.sim.reference import evaluate
from kera_hw.rtl.sim.words import from_words, to_words
from kera_hw.rtl.toolchain.verilator import lint
from tests.differential.emit_netlists import random_items, random_netlist, random_plan


def _results(run: SimRun, emitted: Emitted) -> list[dict[str, int]]:
    columns = {port.name: from_words(words) for port, words in zip(emitted.data_outputs, run.outputs)}
    return [dict(zip(columns, row)) for row in zip(*columns.values())]


@pytest.mark.parametrize("style", ["generic", "ecp5"])
@pytest.mark.parametrize("interface", ["stream", "none"])
@pytest.mark.parametrize("seed", range(2))
def test_simulation_equals_reference(seed: int, interface: str, style: str) -> None:
    rng = random.Random(f"{seed}/{interface}/{style}")
    netlist = random_netlist(rng, cells=40, states=seed % 3)
    plan = random_plan(rng, netlist, interface)
    emitted = emit_verilog(netlist, plan, interface, style)
    assert emitted.register_bits == plan.register_bits
    items = random_items(rng, netlist, 300)
    expected = evaluate(netlist, items)
    rows = [to_words((item[bus] for item in items), width) for bus, width in netlist.inputs]
    reset = 40 + plan.latency_cycles
    traffics = [Traffic(), Traffic(60, 60, seed), Traffic(100, 30, seed), Traffic(70, 80, seed, reset)]
    for traffic in traffics if interface == "stream" else traffics[:1]:
        run = simulate(emitted, rows, traffic)
        assert run.fault is None
        assert _results(run, emitted) == expected
        if traffic.unhindered:
            assert set(run.emit_cycles - run.accept_cycles) == {plan.latency_cycles}
            assert set(run.accept_cycles[1:] - run.accept_cycles[:-1]) == {plan.initiation_interval}


@pytest.mark.parametrize("style", ["generic", "ecp5"])
def test_lint_is_clean(style: str) -> None:
    rng = random.Random(f"lint/{style}")
    with tempfile.TemporaryDirectory() as folder:
        for states in range(3):
            netlist = random_netlist(rng, cells=60, states=states, name="fir")
            for interface in ("stream", "none"):
                emitted = emit_verilog(netlist, random_plan(rng, netlist, interface), interface, style)
                path = Path(folder) / "fir.v"
                path.write_text(emitted.verilog)
                assert lint([path], "fir") == []
