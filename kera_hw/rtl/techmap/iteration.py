"""Loops that the flat region keeps: one step mapped by itself, its registers and what enables them."""
from __future__ import annotations

from collections.abc import Callable
from typing import cast

from kera_hw.graph.node import Node, Ref, Region
from kera_hw.graph.store import Store
from kera_hw.rtl.lower.builder import width_of
from kera_hw.rtl.lower.design import FlatDesign, FlatLeaf
from kera_hw.schedule.fpga.netlist import Netlist
from kera_hw.schedule.fpga.units.iterative import Register

MapStep = Callable[[FlatDesign], Netlist]


def step_of(node: Node, map_step: MapStep) -> tuple[tuple[Register, ...], Netlist]:
    """The registers of a ``control.loop`` over scalars and the netlist of its step.

    A result that is ``select(condition, next, same)`` is a register with an enable.
    """
    region = cast(Region, node.attr("region"))
    count = cast(int, node.attr("carried"))
    assert count == len(node.inputs) == len(region.params) - 1, "a kept loop carries all it reads"
    nodes = region.nodes()
    given = {n.attr("index"): Ref(n, 0) for n in nodes if n.opcode == "core.param"}
    assert 0 not in given, "a kept loop does not read its index"
    registers: list[Register] = []
    results: list[tuple[str, Ref]] = []
    for k, result in enumerate(region.results):
        register, wanted = _register(k, result, given.get(k + 1))
        registers.append(register)
        results.extend(wanted)
    inputs = tuple(FlatLeaf(f"r{k}", 0, width_of(ref.type), ref.type) for k, ref in enumerate(node.inputs))
    outputs = tuple(FlatLeaf(bus, 0, width_of(ref.type), ref.type) for bus, ref in results)
    flat = FlatDesign(
        name="step", region=_renumbered(region, [ref for _, ref in results]),
        inputs=inputs, outputs=outputs, states=(),
        in_buses=tuple((leaf.bus, leaf.width_bits) for leaf in inputs),
        out_buses=tuple((leaf.bus, leaf.width_bits) for leaf in outputs),
    )
    step = map_step(flat)
    assert not any(cell.inner_stages() for cell in step.cells), "a step takes one cycle"
    return tuple(registers), step


def _register(k: int, result: Ref, same: Ref | None) -> tuple[Register, list[tuple[str, Ref]]]:
    """A carried value's register, and the results of the step that it reads."""
    bus = f"r{k}"
    if result == same:
        return Register(bus, None, None), []
    node = result.node
    if node.opcode == "control.select" and same in node.inputs[1:]:
        follow = node.inputs[2] if node.inputs[1] == same else node.inputs[1]
        wanted = [(f"n{k}", follow), (f"e{k}", node.inputs[0])]
        return Register(bus, f"n{k}", f"e{k}", enabled_by=node.inputs[2] == same), wanted
    return Register(bus, f"n{k}", None), [(f"n{k}", result)]


def _renumbered(region: Region, results: list[Ref]) -> Region:
    """The step as a region without the index: the parameters begin with the carried values."""
    store = Store()
    made: dict[Node, Node] = {}
    for node in Region(region.params, tuple(results)).nodes():
        inputs = tuple(Ref(made[ref.node], ref.index) for ref in node.inputs)
        if node.opcode == "core.param":
            index = cast(int, node.attr("index"))
            made[node] = store.param(index - 1, node.types[0]).node
        else:
            made[node] = store.node(node.opcode, inputs, dict(node.attrs))
    refs = [Ref(made[ref.node], ref.index) for ref in results]
    return store.region(list(region.params[1:]), refs)
