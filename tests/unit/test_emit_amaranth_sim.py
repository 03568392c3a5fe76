"""Kernels of all kinds in Amaranth's own simulator, under random stalls, equal to the interpreter."""
from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from amaranth.back import rtlil
from amaranth.hdl import Value
from amaranth.sim import Simulator, SimulatorContext

import kera_hw
from kera_hw.driver.hardware import HardwareDesign, design_hardware
from kera_hw.driver.interp_target import InterpExecutor
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.rtl_target import pack_inputs, unpack_outputs
from kera_hw.driver.sampling import random_value
from kera_hw.driver.shrink import first_difference
from kera_hw.rtl.emit.component import AmaranthKernel, Kernel
from kera_hw.rtl.sim.words import from_words, to_words
from kera_hw.schedule.fpga.cells import Call, Cell, Mul, Mux, Rom
from kera_hw.schedule.fpga.netlist import Netlist
from kera_hw.schedule.fpga.units import Memory

Rows = list[dict[str, int]]

SOURCES = {
    "products": "pub fn f(a: i16, b: u16, c: i40) -> i40 { (a as i40) * (b as i40) + c }",
    "choice": "pub fn f(k: u3, x: [u12; 7]) -> (u12, bool) { (x[min(k, 6)], x[0] > x[6]) }",
    "table": "const T: [u7; 48] = [" + ", ".join(str(k * k * 11 % 127) for k in range(48)) + "];\n"
             "pub fn f(k: u6) -> u7 { T[min(k, 47)] }",
    "memory": "pub fn f(x: f16) -> f16 { sin(x) }",
    "state": "pub stream f(x: i12, up: bool) -> (i12, u8) {\n"
             "  state level: i12 = -7;\n  state seen: u8 = 3;\n"
             "  level = if up { level - (level >> 3) + x } else { level };\n"
             "  seen = seen + 1;\n  (level, seen)\n}",
    "feedback": "pub stream f(x: f16) -> f16 { state y: f16 = 1.0; y = y * 0.5 + x; y }",
    "folded": "pub fn f(a: f16, b: f16) -> f16 { a / b }",
    "sum": "pub fn f(a: f16, b: f16) -> f16 { a + b }",
}


@dataclass(frozen=True)
class Case:
    """A kernel, how it is planned, and what its netlist must hold for the test to be about that."""

    source: str
    options: TargetOptions
    holds: Callable[[Cell], bool] | None = None
    items: int = 60


FAST = TargetOptions(clock_mhz=250)
CASES = {
    "products": Case("products", FAST, lambda c: isinstance(c, Mul) and c.latency_cycles > 0),
    "products-bare": Case("products", replace(FAST, interface="none")),
    "choice": Case("choice", TargetOptions(), lambda c: isinstance(c, Mux)),
    "table": Case("table", TargetOptions(), lambda c: isinstance(c, Rom)),
    "memory": Case("memory", TargetOptions(), lambda c: isinstance(c, Call) and isinstance(c.unit, Memory)),
    "state": Case("state", TargetOptions()),
    "state-bare": Case("state", TargetOptions(interface="none")),
    "feedback": Case("feedback", TargetOptions(), items=40),
    "folded": Case("folded", TargetOptions(interval=16), lambda c: isinstance(c, Call), items=20),
    "folded-bare": Case("folded", TargetOptions(interval=16, interface="none"), items=20),
    "sum": Case("sum", TargetOptions(clock_mhz=200)),
}


def simulated(kernel: Kernel, bench: Callable[[SimulatorContext], Any]) -> None:
    simulator = Simulator(kernel)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


def through_streams(kernel: Kernel, netlist: Netlist, items: Rows, seed: int) -> Rows:
    """Results of ``items``; both neighbours stall half of the time, and an offer stands until it is taken."""
    rng, found = random.Random(seed), Rows()
    taken = {bus: Value.cast(kernel.i.payload[bus.removeprefix("in_")]) for bus, _ in netlist.inputs}
    given = {out.bus: raw(kernel.o.payload[out.bus.removeprefix("out_")]) for out in netlist.outputs}

    async def bench(ctx: SimulatorContext) -> None:
        sent, offered = 0, False
        while len(found) < len(items):
            offered = offered or (sent < len(items) and rng.random() < 0.5)
            willing = rng.random() < 0.5
            ctx.set(kernel.i.valid, offered)
            for bus, value in items[sent].items() if offered else ():
                ctx.set(taken[bus], value)
            ctx.set(kernel.o.ready, willing)
            signals = (kernel.i.ready, kernel.o.valid, *given.values())
            _, _, ready, valid, *values = await ctx.tick().sample(*signals)
            if offered and ready:
                sent, offered = sent + 1, False
            if valid and willing:
                found.append(dict(zip(given, values)))

    simulated(kernel, bench)
    return found


def through_strobes(kernel: Kernel, netlist: Netlist, items: Rows, seed: int) -> Rows:
    """Results of ``items``: offered at random times, ignored while one is early, each result on time."""
    rng, found, due = random.Random(seed), Rows(), list[int]()
    taken = {bus: Value.cast(kernel.i[bus.removeprefix("in_")]) for bus, _ in netlist.inputs}
    given = {out.bus: raw(kernel.o[out.bus.removeprefix("out_")]) for out in netlist.outputs}

    async def bench(ctx: SimulatorContext) -> None:
        sent, cycle, last = 0, 0, -kernel.initiation_interval
        while len(found) < len(items):
            early = cycle - last < kernel.initiation_interval
            offered = rng.random() < 0.5 and (early or sent < len(items))
            ctx.set(kernel.in_valid, offered)
            for bus, width in netlist.inputs:
                takes = offered and not early
                ctx.set(taken[bus], items[sent][bus] if takes else rng.getrandbits(width))
            _, _, valid, *values = await ctx.tick().sample(kernel.out_valid, *given.values())
            assert valid == (bool(due) and due[0] == cycle)
            if valid:
                found.append(dict(zip(given, values)))
                due.pop(0)
            if offered and not early:
                due.append(cycle + kernel.latency_cycles)
                sent, last = sent + 1, cycle
            cycle += 1

    simulated(kernel, bench)
    return found


def raw(field: Any) -> Value:
    """The bits of a field, without a sign."""
    return Value.cast(field).as_unsigned()


def through_wires(kernel: Kernel, netlist: Netlist, items: Rows) -> Rows:
    """Results of ``items``, one in every cycle from power-up, each taken ``latency_cycles`` later."""
    found = Rows()
    taken = {bus: Value.cast(kernel.i[bus.removeprefix("in_")]) for bus, _ in netlist.inputs}
    given = {out.bus: raw(kernel.o[out.bus.removeprefix("out_")]) for out in netlist.outputs}

    async def bench(ctx: SimulatorContext) -> None:
        cycle = 0
        while len(found) < len(items):
            shown = items[cycle] if cycle < len(items) else {}
            for bus, width in netlist.inputs:
                ctx.set(taken[bus], shown.get(bus, (1 << width) - 1))
            _, _, *values = await ctx.tick().sample(*given.values())
            if cycle >= kernel.latency_cycles:
                found.append(dict(zip(given, values)))
            cycle += 1

    simulated(kernel, bench)
    return found


def planned(name: str, folder: Path) -> HardwareDesign:
    case, path = CASES[name], folder / f"{name}.kera"
    path.write_text(SOURCES[case.source])
    program = kera_hw.load(path)
    return design_hardware(program.graph, program.graph.exports[0], case.options)


@pytest.mark.parametrize("name", CASES)
def test_equals_the_interpreter(name: str, tmp_path: Path) -> None:
    case, design = CASES[name], planned(name, tmp_path)
    assert case.holds is None or any(case.holds(cell) for cell in design.netlist.cells)
    rng = np.random.default_rng(11)
    export = design.export
    inputs = {param: random_value(kind, case.items, rng) for param, kind in export.params}
    columns = [from_words(words) for words in pack_inputs(design, inputs, case.items)]
    buses = [bus for bus, _ in design.netlist.inputs]
    items = [dict(zip(buses, row)) for row in zip(*columns)]
    interface = "none" if case.options.interface == "none" else "stream"
    kernel = AmaranthKernel(design.export, design.netlist, design.plan, interface, "ecp5")
    assert "kera_ecp5" not in rtlil.convert(kernel, "top")
    if kernel.protocol == "none":
        results = through_wires(kernel, design.netlist, items)
    elif kernel.protocol == "valid":
        results = through_strobes(kernel, design.netlist, items, seed=4)
    else:
        results = through_streams(kernel, design.netlist, items, seed=3)
    ports = design.emitted.data_outputs
    words = {port.name: to_words((row[port.name] for row in results), port.width) for port in ports}
    found = unpack_outputs(design, words, case.items)
    expected = InterpExecutor(design.graph, export).run(inputs, case.items)
    assert first_difference(export, expected, found, case.items) is None
