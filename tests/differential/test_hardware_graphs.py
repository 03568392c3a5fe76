"""Random graphs through the hardware path: every stage computes what the interpreter does on the graph."""
from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from kera_hw.driver.hardware import design_hardware
from kera_hw.driver.options import TargetOptions
from kera_hw.graph import Export, Graph, Ref, Store
from kera_hw.graph.generate import GraphGenerator, generatable_ops
from kera_hw.schedule.fpga.cells import Add
from kera_hw.schedule.fpga.netlist import Netlist
from kera_hw.schedule.fpga.simulate import simulate_netlist
from kera_hw.support import KeraError
from kera_hw.types import BOOL, FixType, IntType, TensorType, TupleType, Type
from tests.differential.hardware_support import (
    Refused,
    check_graph,
    check_rtl,
    input_buses,
    plan_of,
    random_graph,
    random_inputs,
)

DEVICES = ("ecp5-85k", "ice40-hx8k")
CLOCKS_MHZ = (20, 50, 100, 150, 250, 350)
# What a compiler may answer about a random graph: too slow a device, too large a design.
ANSWERS = {"large", "K0601", "K0604", "K0610", "K0611"}


@pytest.mark.parametrize("block", range(20))
def test_graphs_in_cells(block: int) -> None:
    """Flat graph and cells equal the interpreter; a plan exists and passes the verifier, also with slack."""
    made = 0
    for seed in range(10 * block, 10 * block + 10):
        graph = random_graph(seed)
        rng = random.Random(seed)
        device, clock, interface = rng.choice(DEVICES), rng.choice(CLOCKS_MHZ), rng.choice(("stream", "none"))
        try:
            _, netlist = check_graph(graph, seed, 24, device, clock, most_nodes=300)
            made += 1
            plan = plan_of(netlist, device, clock, interface)
            later = plan_of(netlist, device, clock, interface, plan.latency_cycles + 1 + rng.randrange(6))
            assert later.latency_cycles > plan.latency_cycles
        except Refused as answer:
            assert answer.code in ANSWERS, (seed, answer)
    assert made >= 4  # float units make some graphs too large for a quick look


@pytest.mark.parametrize("op", generatable_ops())
def test_every_operation_in_cells(op: str) -> None:
    """Four small graphs around it; a float unit is large by itself, so that one or two have to do."""
    rng = random.Random(op)
    wanted, most_nodes = (1, 3000) if op.startswith(("floating.", "neural.")) else (4, 100)
    done = 0
    for trial in range(4 if wanted > 1 else 24):
        graph = GraphGenerator(rng.randrange).graph(3, op)
        try:
            check_graph(graph, trial, 16, rng.choice(DEVICES), rng.choice(CLOCKS_MHZ), most_nodes=most_nodes)
            done += 1
            if done == wanted:
                break
        except Refused as answer:
            assert answer.code in ANSWERS, answer
    assert done


@pytest.mark.parametrize("seed", (3, 12, 16, 27))
def test_graphs_in_verilog(seed: int) -> None:
    """The emitted Verilog of a few graphs, under stalls, bubbles and a reset."""
    graph = random_graph(seed, 14)
    device, clock = (("ecp5-85k", 120.0), ("ice40-hx8k", 40.0))[seed % 2]
    interface = "none" if seed % 3 == 0 else "stream"
    try:
        design = design_hardware(graph, graph.exports[0], TargetOptions(device, clock, None, interface))
    except KeraError as answer:
        pytest.fail(f"{answer.diagnostics[0].code}: {answer.diagnostics[0].message}")
    check_rtl(design)


def _graph(params: list[Type], results: list[Ref], store: Store) -> Graph:
    kinds = tuple(ref.type for ref in results)
    named = tuple((f"p{i}", kind) for i, kind in enumerate(params))
    result = kinds[0] if len(kinds) == 1 else TupleType(kinds)
    return Graph([Export("f", "fn", named, result, store.region(params, results))])


@pytest.mark.parametrize("axis", (-1, 0, 1))
def test_fixed_point_tensors_reduce_on_raw_integers(axis: int) -> None:
    kind = TensorType(FixType(9, 4, True), (3, 5))
    store = Store()
    x = store.param(0, kind)
    results = [store.op("reduce.sum", x, axis=axis, order="")]
    results += [store.op(f"reduce.{name}", x, axis=axis) for name in ("min", "max", "argmin", "argmax")]
    check_graph(_graph([kind], results, store), 1)


@pytest.mark.parametrize("shape", ((0,), (0, 3), (3, 0), (2, 0, 3)), ids=str)
def test_empty_axes(shape: tuple[int, ...]) -> None:
    """Sums are 0, products 1, means 0 / 0; where a kept axis is empty, nothing is left."""
    kind, flag = TensorType(IntType(7, True), shape), TensorType(BOOL, shape)
    store = Store()
    x, c = store.param(0, kind), store.param(1, flag)
    results: list[Ref] = []
    for axis in range(-1, len(shape)):
        results += [store.op(f"reduce.{name}", x, axis=axis, order="") for name in ("sum", "prod", "mean")]
        results += [store.op(f"reduce.{name}", c, axis=axis) for name in ("any", "all")]
    check_graph(_graph([kind, flag], results, store), 1)


def _flipped(netlist: Netlist) -> Netlist:
    """The same with the operands of the last addition's expression inverted: a wrong circuit."""
    index = max(i for i, cell in enumerate(netlist.cells) if isinstance(cell, Add))
    cell = netlist.cells[index]
    assert isinstance(cell, Add)
    cells = list(netlist.cells)
    cells[index] = replace(cell, expr=("not", cell.expr))
    return replace(netlist, cells=tuple(cells))


def test_a_wrong_circuit_is_seen() -> None:
    kind = IntType(12, True)
    store = Store()
    total = store.op("integer.add", store.param(0, kind), store.param(1, kind))
    graph = _graph([kind, kind], [total], store)
    _, netlist = check_graph(graph, 1, 24)
    buses = input_buses(graph.exports[0], random_inputs(graph.exports[0], 24, 1), 24)
    right, wrong = (simulate_netlist(n, buses)["out_data"] for n in (netlist, _flipped(netlist)))
    assert np.any(np.array(right) != np.array(wrong))
