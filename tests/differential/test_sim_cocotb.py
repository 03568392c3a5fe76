"""The cocotb benches pass on a small design with state, and fail on one that breaks the handshake."""
from __future__ import annotations

import random
import re
from dataclasses import replace
from pathlib import Path

import pytest

from kera_hw.rtl.emit.verilog import Emitted, emit_verilog
from sim.runner import run_stream_bench
from tests.differential.emit_netlists import random_items, random_netlist, random_plan
from tests.netlist_reference import evaluate

TESTS = 3


def _design() -> tuple[Emitted, list[dict[str, int]], list[dict[str, int]]]:
    rng = random.Random("cocotb")
    netlist = random_netlist(rng, cells=20, states=1)
    emitted = emit_verilog(netlist, random_plan(rng, netlist, "stream"), "stream", "ecp5")
    items = random_items(rng, netlist, 60)
    return emitted, items, evaluate(netlist, items)


def test_cocotb_benches_pass(tmp_path: Path) -> None:
    emitted, items, expected = _design()
    assert run_stream_bench(emitted, items, expected, tmp_path) == (TESTS, 0)


@pytest.mark.long
def test_cocotb_benches_see_a_lost_result(tmp_path: Path) -> None:
    """A pipeline that moves although its result was not taken loses it."""
    emitted, items, expected = _design()
    text = re.sub(r"assign advance = .*;", "assign advance = 1'b1;", emitted.verilog)
    _, failed = run_stream_bench(replace(emitted, verilog=text), items, expected, tmp_path)
    assert failed == 2
