"""For the hardware tests: ports packed by hand, every stage of the hardware path held against the graph."""
from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from kera_hw.driver.hardware import HardwareDesign
from kera_hw.driver.sampling import random_value
from kera_hw.driver.session import optimise, single_export_graph
from kera_hw.graph import Export, Graph, Store
from kera_hw.graph.generate import GraphGenerator, generatable_ops
from kera_hw.interp import flatten_value, run_export, run_region
from kera_hw.numerics.floatbits import from_bits, to_bits
from kera_hw.rtl.emit.verilog import Emitted
from kera_hw.rtl.lower import FlatDesign, flatten_export
from kera_hw.rtl.sim.bench import SimRun, Traffic, simulate
from kera_hw.rtl.sim.words import from_words, to_words
from kera_hw.rtl.techmap import map_design
from kera_hw.rtl.techmap.bitwise.refine import refined
from kera_hw.schedule.fpga.delay_model import DelayModel
from kera_hw.schedule.fpga.device import find_device
from kera_hw.schedule.fpga.netlist import Netlist
from kera_hw.schedule.fpga.simulate import simulate_netlist
from kera_hw.schedule.plan import Plan
from kera_hw.schedule.planner import schedule
from kera_hw.schedule.verifier import verify_plan
from kera_hw.support import Diagnostic
from kera_hw.types import BoolType, FloatType, StructType, TensorType, TupleType, Type, numpy_dtype

Buses = dict[str, list[int]]

MOST_REFINED = 200
"""Cells up to which a netlist is compared after refinement as well, which takes most of the time."""


class Refused(Exception):
    """The compiler answered with a diagnostic instead of hardware."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


def random_graph(seed: int, size: int = 10) -> Graph:
    """A small random graph; the seed decides everything."""
    rng = random.Random(seed)
    ops = generatable_ops()
    return GraphGenerator(rng.randrange, ops).graph(rng.randrange(1, size), rng.choice(ops))


def item_of(value: Any, place: tuple[int, ...]) -> Any:
    """One element of a value whose leaves are arrays with leading axes."""
    if isinstance(value, Mapping):
        return {name: item_of(part, place) for name, part in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, tuple):
        return tuple(item_of(part, place) for part in cast("tuple[Any, ...]", value))
    return np.asarray(value)[place]


def pack(kind: Any, value: Any) -> tuple[int, int]:
    """(bits, width) of one value as the port carries it, from the interface description alone."""
    if isinstance(kind, TensorType):
        places = np.ndindex(*kind.shape)
        return _join([pack(kind.element, item_of(value, place)) for place in places])
    if isinstance(kind, StructType):
        return _join([pack(field, value[name]) for name, field in kind.fields])
    if isinstance(kind, TupleType):
        return _join([pack(part, value[i]) for i, part in enumerate(kind.items)])
    width = 1 if isinstance(kind, BoolType) else kind.width_bits
    scalar = np.asarray(value)
    if isinstance(kind, FloatType):
        return int.from_bytes(scalar.tobytes(), "little"), width
    return int(scalar) & ((1 << width) - 1), width


def _join(parts: Sequence[tuple[int, int]]) -> tuple[int, int]:
    total = position = 0
    for bits, width in parts:
        total |= bits << position
        position += width
    return total, position


def packed(kind: Type, value: Any, items: int) -> list[int]:
    return [pack(kind, item_of(value, (k,)))[0] for k in range(items)]


def input_buses(export: Export, inputs: Mapping[str, Any], items: int) -> Buses:
    return {f"in_{name}": packed(kind, inputs[name], items) for name, kind in export.params}


def result_buses(export: Export, result: Any, items: int) -> Buses:
    if isinstance(export.result, TupleType):
        parts = enumerate(export.result.items)
        return {f"out_{i}": packed(kind, result[i], items) for i, kind in parts}
    return {"out_data": packed(export.result, result, items)}


def random_inputs(export: Export, items: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {name: random_value(kind, items, rng) for name, kind in export.params}


def flat_outputs(export: Export, flat: FlatDesign, inputs: Mapping[str, Any], items: int) -> list[np.ndarray]:
    """The flat region's results, one column a scalar, state carried from item to item."""
    columns = [
        column
        for name, kind in export.params
        for leaf in flatten_value(kind, inputs[name], items)
        for column in leaf.reshape(items, -1).T
    ]
    if not flat.states:
        return run_region(flat.region, columns, batch=items)
    kinds = flat.region.params[len(columns) :]
    state = [_initial(s.initial, kind) for s, kind in zip(flat.states, kinds)]
    rows: list[list[np.ndarray]] = []
    for k in range(items):
        results = run_region(flat.region, [*(c[k : k + 1] for c in columns), *state], batch=1)
        split = len(results) - len(state)
        rows.append(results[:split])
        state = results[split:]
    return [np.concatenate(column) for column in zip(*rows)]


def _initial(raw: int, kind: Type) -> np.ndarray:
    """A state's initial value as a batch of one."""
    if isinstance(kind, FloatType):
        return from_bits(np.array([raw], dtype=f"u{kind.width_bits // 8}"), kind)
    return np.array([_signed(raw, kind)]).astype(numpy_dtype(kind))


def _signed(raw: int, kind: Type) -> int:
    width = getattr(kind, "width_bits", 1)
    return raw - (1 << width) if getattr(kind, "signed", False) and raw >> (width - 1) & 1 else raw


def lower(graph: Graph, export: Export) -> FlatDesign:
    """As the driver lowers. Raises Refused."""
    store = Store()
    lowered = optimise(single_export_graph(graph, export)).exports[0]
    flat = flatten_export(lowered, store)
    if isinstance(flat, Diagnostic):
        raise Refused(flat.code, flat.message)
    return flat


def to_cells(flat: FlatDesign, device: str, clock_mhz: float) -> Netlist:
    return map_design(flat, device, round(1e6 / clock_mhz))


def plan_of(
    netlist: Netlist, device: str, clock_mhz: float, interface: str = "stream", latency: int | None = None
) -> Plan:
    """A schedule, checked by the verifier. Raises Refused."""
    found = find_device(device)
    assert found is not None
    plan, faults = schedule(netlist, found, round(1e6 / clock_mhz), latency, interface=interface)
    if plan is None:
        raise Refused(faults[0].code, faults[0].message)
    assert verify_plan(netlist, plan, DelayModel(found)) == []
    assert plan.latency_cycles >= 1
    return plan


def check_graph(
    graph: Graph, seed: int, items: int = 40, device: str = "ecp5-85k", clock_mhz: float = 150,
    inputs: Mapping[str, Any] | None = None, most_nodes: int | None = None,
) -> tuple[FlatDesign, Netlist]:
    """Flat graph and cells against the interpreter on the first export. Raises AssertionError or Refused.

    A flat graph of more than ``most_nodes`` is compared but not mapped, which would take long; nor are the
    cells of large ones refined, whose rules look at a few cells at a time.
    """
    export = graph.exports[0]
    values = random_inputs(export, items, seed) if inputs is None else inputs
    expected = result_buses(export, run_export(export, values, items), items)
    flat = lower(graph, export)
    columns = flat_outputs(export, flat, values, items)
    assert_same(expected, flat_buses(flat, columns, items), "flat graph")
    if most_nodes is not None and len(list(flat.region.nodes())) > most_nodes:
        raise Refused("large", "this graph is left out")
    netlist = to_cells(flat, device, clock_mhz)
    part = find_device(device)
    assert part is not None
    small = len(netlist.cells) <= MOST_REFINED
    finer = refined(netlist, DelayModel(part), round(1e6 / clock_mhz)) if small else []
    for cells in (netlist, *(cells for _, cells in finer)):
        counted = replace(cells, inputs=(*cells.inputs, ("in_", 1)))  # the items of a design without inputs
        got = simulate_netlist(counted, {**input_buses(export, values, items), "in_": [0] * items})
        assert_same(expected, got, "cells" if cells is netlist else "refined cells")
    return flat, netlist


def assert_same(expected: Buses, got: Buses, stage: str) -> None:
    """Equal on every bus; one whose value holds no bit has no port."""
    for bus, values in expected.items():
        if bus in got:
            assert got[bus] == values, f"{stage}: {bus}"
        else:
            assert not any(values), f"{stage} lacks {bus}"
    assert set(got) <= set(expected), stage


def flat_buses(flat: FlatDesign, columns: Sequence[np.ndarray], items: int) -> Buses:
    buses: Buses = {bus: [0] * items for bus, _ in flat.out_buses}
    for leaf, column in zip(flat.outputs, columns, strict=True):
        mask = (1 << leaf.width_bits) - 1
        raw = to_bits(column) if isinstance(leaf.type, FloatType) else column
        for k, value in enumerate(np.broadcast_to(raw, items).tolist()):
            buses[leaf.bus][k] |= (int(value) & mask) << leaf.low
    return buses


TRAFFIC = (Traffic(), Traffic(60, 60, 3), Traffic(100, 25, 4), Traffic(30, 100, 5), Traffic(80, 70, 6, 37))


def simulate_design(
    design: HardwareDesign, inputs: Mapping[str, Any], items: int, traffics: Sequence[Traffic] = TRAFFIC
) -> Buses:
    """The emitted Verilog under each traffic (one without handshake); cycles exactly as planned."""
    rows = bus_words(design.emitted, input_buses(design.export, inputs, items))
    found: Buses | None = None
    for traffic in traffics if design.emitted.protocol != "none" else traffics[:1]:
        run = simulate(design.emitted, rows, traffic, count=items)
        assert run.fault is None, (traffic, run.fault)
        if traffic.unhindered:
            assert set((run.emit_cycles - run.accept_cycles).tolist()) <= {design.plan.latency_cycles}
            assert set(np.diff(run.accept_cycles).tolist()) <= {design.plan.initiation_interval}
        got = run_buses(design.emitted, run)
        assert found is None or got == found, f"results depend on {traffic}"
        found = got
    assert found is not None
    return found


def bus_words(emitted: Emitted, buses: Mapping[str, Sequence[int]]) -> list[np.ndarray]:
    return [to_words(buses[port.name], port.width) for port in emitted.data_inputs]


def run_buses(emitted: Emitted, run: SimRun) -> Buses:
    return {port.name: from_words(words) for port, words in zip(emitted.data_outputs, run.outputs)}


def check_rtl(design: HardwareDesign, items: int = 60, seed: int = 1) -> None:
    """The emitted Verilog against the interpreter. Ports of no width have no bus."""
    export = design.export
    values = random_inputs(export, items, seed)
    expected = result_buses(export, run_export(export, values, items), items)
    got = simulate_design(design, values, items)
    assert_same(expected, got, "Verilog")
