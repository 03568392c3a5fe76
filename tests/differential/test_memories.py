"""Streams whose state is memories: cells, plans and emitted Verilog against the interpreter."""
from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kera_hw.driver.hardware import HardwareDesign, plan_hardware
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.packing import pack_leaves
from kera_hw.driver.rtl_target import scalar_columns, unpack_outputs
from kera_hw.driver.sampling import random_value
from kera_hw.driver.session import compile_text, find_export
from kera_hw.graph import Export
from kera_hw.interp import flatten_value, run_export
from kera_hw.rtl.emit.verilog import Emitter, Interface, Style, emit_verilog
from kera_hw.rtl.sim.bench import Traffic, simulate
from kera_hw.rtl.sim.words import from_words, to_words
from kera_hw.schedule.accesses import memories
from kera_hw.schedule.fpga.simulate import simulate_netlist
from kera_hw.support import SourceFile
from tests.memory_programs import SOURCES
from tests.netlist_reference import evaluate

DEVICES = ("ecp5-85k", "ice40-hx8k")


@cache
def design_of(name: str, device: str = "ecp5-85k", interval: int | None = None) -> HardwareDesign:
    path = Path(f"{name}.kera")
    loaded = compile_text(SourceFile(str(path), SOURCES[name].encode()), path)
    assert loaded.graph is not None, name
    export = find_export(loaded, name)
    assert isinstance(export, Export)
    return plan_hardware(loaded.graph, export, TargetOptions(device, interval=interval))


class _Case:
    """Items for a design, and the results that the interpreter gives."""

    def __init__(self, design: HardwareDesign, count: int, seed: int = 1) -> None:
        rng = np.random.default_rng(seed)
        export = design.export
        self.inputs = {name: random_value(kind, count, rng) for name, kind in export.params}
        self.expected = run_export(export, self.inputs, batch=True)
        columns = [
            column for name, kind in export.params
            for column in scalar_columns(flatten_value(kind, self.inputs[name], count, name), count)
        ]
        self.words = pack_leaves(design.flat.inputs, columns, design.flat.in_buses, count)
        self.count, self._design = count, design

    def agrees(self, words: dict[str, Any]) -> bool:
        """Whether these are the expected results, by bus."""
        got: Any = unpack_outputs(self._design, words, self.count)
        wanted: Any = self.expected
        several = len(self._design.flat.out_buses) > 1
        pairs = list(zip(got, wanted)) if several else [(got, wanted)]
        return all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in pairs)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", SOURCES)
def test_cells_mean_what_the_program_says(name: str, device: str) -> None:
    """Random addresses, of which many are equal; planning has the independent verifier agree."""
    design = design_of(name, device)
    assert memories(design.netlist), f"{name} is kept in registers"
    case = _Case(design, 400)
    columns = {bus: from_words(words) for bus, words in case.words.items()}
    found = simulate_netlist(design.netlist, columns)
    rows = evaluate(design.netlist, [dict(zip(columns, row)) for row in zip(*columns.values())])
    assert found == {bus: [row[bus] for row in rows] for bus in found}
    widths = dict(design.flat.out_buses)
    assert case.agrees({bus: to_words(values, widths[bus]) for bus, values in found.items()})


_SIMULATED: tuple[tuple[str, str, Interface, Style, Emitter], ...] = (
    ("counted", "ecp5-85k", "stream", "ecp5", "text"),
    ("conditional", "ecp5-85k", "stream", "generic", "amaranth"),
    ("read_behind", "ecp5-85k", "stream", "ecp5", "amaranth"),
    ("two_writes", "ecp5-85k", "stream", "generic", "text"),
    ("started", "ecp5-85k", "none", "ecp5", "text"),
    ("either", "ice40-hx8k", "stream", "generic", "text"),
    ("banks", "ecp5-85k", "none", "generic", "amaranth"),
    ("looped", "ice40-hx8k", "stream", "generic", "amaranth"),
)


@pytest.mark.parametrize(("name", "device", "interface", "style", "emitter"), _SIMULATED)
def test_verilog_means_what_the_program_says(
    name: str, device: str, interface: Interface, style: Style, emitter: Emitter
) -> None:
    """In every cycle as planned, with stalls on both sides, and after a reset from the initial words on."""
    design = design_of(name, device)
    plan = replace(design.plan, interface=interface)
    emitted = emit_verilog(design.netlist, plan, interface, style, emitter)
    assert emitted.register_bits == plan.register_bits and emitted.reset_cycles == plan.reset_cycles > 0
    case = _Case(design, 500)
    items = [case.words[port.name] for port in emitted.data_inputs]
    resets = (plan.reset_cycles + 200, plan.reset_cycles // 2)  # while items pass, and words are initialised
    traffics = [
        Traffic(), Traffic(60, 60, 1), Traffic(100, 30, 2), *(Traffic(80, 70, 3, at) for at in resets),
    ]
    for traffic in traffics:
        run = simulate(emitted, items, traffic)
        assert run.fault is None, traffic
        assert case.agrees(dict(zip((port.name for port in emitted.data_outputs), run.outputs))), traffic
        if traffic.unhindered:
            assert set(run.emit_cycles - run.accept_cycles) == {plan.latency_cycles}
            assert set(run.accept_cycles[1:] - run.accept_cycles[:-1]) == {plan.initiation_interval}
