"""RTL as a target: the emitted Verilog, simulated by Verilator, cycles held against the plan."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kera_hw.driver.hardware import HardwareDesign, design_hardware
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.packing import pack_leaves, unpack_leaves
from kera_hw.driver.units import Times, in_turn
from kera_hw.driver.values import Array
from kera_hw.graph import Export, Graph
from kera_hw.interp import flatten_value, unflatten_value
from kera_hw.rtl.emit.verilog import Emitted
from kera_hw.rtl.sim.axi_lite import SoftwareBench
from kera_hw.rtl.sim.bench import Bench, SimRun, Traffic, make_bench, simulate
from kera_hw.rtl.sim.live import LiveSimulation
from kera_hw.rtl.sim.words import Words, words_of
from kera_hw.rtl.toolchain.files import move_into_place
from kera_hw.rtl.toolchain.process import ToolError, scratch
from kera_hw.support import Diagnostic, KeraError
from kera_hw.types import element_type, leaf_types, numpy_dtype, shape_of

_RESET_ITEMS, _RESETS = 1000, 16
_ROUGH_PERCENT = 60


def traffics(emitted: Emitted, items: int) -> tuple[Traffic, ...]:
    """How the neighbours of a design behave in its runs.

    The first run is unhindered. Where there is a protocol, another has a neighbour that stalls and leaves
    bubbles half of the time, and the last such a one and resets while items are in flight.
    """
    if emitted.protocol == "none":
        return (Traffic(),)
    rough = Traffic(_ROUGH_PERCENT, _ROUGH_PERCENT, seed=7)
    busy = emitted.pace.item_cycles // 2 + emitted.initiation_interval * min(items, 20)
    first = 2 + emitted.reset_cycles + busy
    return Traffic(), rough, replace(rough, seed=11, reset_at_cycle=first, resets=_RESETS)


class RtlExecutor:
    """Simulates the design; every run is made unhindered, under random stalls, and with resets within."""

    def __init__(self, graph: Graph, export: Export, options: TargetOptions) -> None:
        self.design = design_hardware(graph, export, options)

    @property
    def plan(self) -> Mapping[str, Any]:
        return self.design.plan_json()

    def run(self, inputs: Mapping[str, Any], batch: int) -> Any:
        words = pack_inputs(self.design, inputs, batch)
        if batch == 0:
            ports = self.design.emitted.data_outputs
            nothing = {port.name: np.zeros((0, words_of(port.width)), np.uint32) for port in ports}
            return unpack_outputs(self.design, nothing, 0)
        try:
            own = self.design.latencies(inputs, batch)
            with scratch("sim") as work:
                bench = make_bench(self.design.emitted, work, words, batch, latencies=own)
                outputs = self.run_checked(bench, batch, own)
        except ToolError as fault:
            raise KeraError([fault.diagnostic]) from None
        ports = self.design.emitted.data_outputs
        named = {port.name: found for port, found in zip(ports, outputs, strict=True)}
        return unpack_outputs(self.design, named, batch)

    def run_checked(
        self, bench: Bench | SoftwareBench, batch: int, latencies: NDArray[np.uint64] | None
    ) -> tuple[Words, ...]:
        """Words of each output; raises KeraError (K0910) where the circuit does not behave as planned."""
        outputs: tuple[Words, ...] | None = None
        for traffic in traffics(self.design.emitted, batch):
            count = batch if traffic.reset_at_cycle is None else min(batch, _RESET_ITEMS)
            run = bench.run(traffic, count=count)
            fault = departure(self.design, run, traffic, latencies)
            outputs = run.outputs if outputs is None else outputs
            wanted = (item[:count] for item in outputs)
            if fault is None and not all(map(np.array_equal, wanted, run.outputs)):
                what = "stalls" if traffic.reset_at_cycle is None else "what was there before a reset"
                fault = f"results depend on {what}"
            if fault is not None:
                raise KeraError([_departure(self.design, fault)])
        assert outputs is not None
        return outputs

    def stepper(self) -> RtlStepper:
        if self.design.interface == "axi-lite":
            message = "Behind AXI4-Lite, software runs items; step a circuit with another `--interface`."
            raise KeraError([Diagnostic("K0908", message)])
        try:
            return RtlStepper(self.design, LiveSimulation(self.design.emitted))
        except ToolError as fault:
            raise KeraError([fault.diagnostic]) from None

    def trace(self, inputs: Mapping[str, Any], batch: int, wave: Path) -> None:
        """Simulates without stalls and writes every signal to ``wave``, VCD or FST by its suffix.

        A circuit that departs from its plan is written as it behaves. Raises KeraError for unfit values, for
        a missing or failing tool, and OSError.
        """
        words = pack_inputs(self.design, inputs, batch)
        try:
            with scratch("wave") as work:
                written = work / wave.name
                own = self.design.latencies(inputs, batch)
                simulate(
                    self.design.emitted, words, Traffic(), count=batch, trace=written, latencies=own
                )
                move_into_place(written, wave)
        except ToolError as fault:
            raise KeraError([fault.diagnostic]) from None


class RtlStepper:
    """A circuit in simulation, item by item: each is accepted, and its result waited for."""

    def __init__(self, design: HardwareDesign, simulation: LiveSimulation) -> None:
        self._design, self._simulation = design, simulation
        self._counter = design.round_counter()

    def reset(self) -> None:
        if self._counter is not None:
            self._counter.reset()
        try:
            self._simulation.reset()
        except ToolError as fault:
            raise KeraError([fault.diagnostic]) from None

    def step(self, inputs: Mapping[str, Any]) -> Any:
        words, pace = pack_inputs(self._design, inputs, 1), self._design.core_paces[1]
        own = None if self._counter is None else self._design.latencies(inputs, 1, self._counter)
        inside = pace[0] if own is None else int(own[0])
        try:
            outputs, cycles, fault = self._simulation.step(words, inside)
        except ToolError as failure:
            raise KeraError([failure.diagnostic]) from None
        latency = self._design.ports.pace(inside, pace[1]).latency_cycles
        if fault is None and cycles != latency and not self._design.ports.in_beats:
            fault = f"an item took {cycles} cycles instead of {latency}"
        if fault is not None:
            raise KeraError([_departure(self._design, fault)])
        ports = self._design.emitted.data_outputs
        return unpack_outputs(self._design, {p.name: row for p, row in zip(ports, outputs, strict=True)}, 1)

    def close(self) -> None:
        self._simulation.close()


def _departure(design: HardwareDesign, fault: str) -> Diagnostic:
    message = f"In simulation, `{design.export.name}` did not behave as planned: {fault}."
    return Diagnostic("K0910", message)


def pack_inputs(design: HardwareDesign, inputs: Mapping[str, Any], batch: int) -> list[Array]:
    """Bus words in port order. Raises KeraError (K0904) for inputs that do not fit."""
    export = design.export
    given, wanted = set(inputs), {name for name, _ in export.params}
    if given != wanted:
        odd = sorted(given ^ wanted)[0]
        what = "is missing" if odd in wanted else "is no parameter"
        raise KeraError([Diagnostic("K0904", f"In the call of `{export.name}`, `{odd}` {what}.")])
    columns: list[Array] = []
    for name, kind in export.params:
        columns += scalar_columns(flatten_value(kind, inputs[name], batch, name), batch)
    words = pack_leaves(design.leaves[0], columns, design.in_buses, batch)
    return [words[port.name] for port in design.emitted.data_inputs]


def scalar_columns(leaves: list[Array], batch: int) -> list[Array]:
    """One column a scalar, tensors row-major: the order of ``FlatDesign.inputs``."""
    columns: list[Array] = []
    for leaf in leaves:
        flat = leaf.reshape(batch, math.prod(leaf.shape[1:]))
        columns += [flat[:, i] for i in range(flat.shape[1])]
    return columns


def unpack_outputs(design: HardwareDesign, words: dict[str, Array], batch: int) -> Any:
    """The result value of every item."""
    columns = iter(unpack_leaves(design.leaves[1], words))
    leaves: list[Array] = []
    for kind in leaf_types(design.export.result):
        shape = shape_of(kind)
        parts = [next(columns) for _ in range(int(np.prod(shape, dtype=np.int64)))]
        if not shape:
            leaves.append(parts[0])
        elif parts:
            leaves.append(np.stack(parts, axis=1).reshape(batch, *shape))
        else:
            leaves.append(np.zeros((batch, *shape), numpy_dtype(element_type(kind))))
    return unflatten_value(design.export.result, leaves)


def departure(
    design: HardwareDesign, run: SimRun, traffic: Traffic, latencies: NDArray[np.uint64] | None = None
) -> str | None:
    """How a run departs from the protocol or the planned cycles, if it does.

    ``latencies`` are those of each item where they differ.
    """
    if run.fault is not None:
        return f"{run.fault.message} (cycle {run.fault.cycle}, item {run.fault.item})"
    return _wrong_cycles(design, run, latencies) if traffic.unhindered else None


def _wrong_cycles(design: HardwareDesign, run: SimRun, latencies: NDArray[np.uint64] | None) -> str | None:
    """Where an unhindered run departs from the planned pace; ``latencies``: those inside, where they differ.

    Results of several beats may wait for those before them, so that only the first item's latency is sure.
    """
    plan, pace = design.emitted.port_plan, design.emitted.pace
    timed = 1 if plan.in_beats and plan.interface != "axi-lite" else None
    accepts, emits, finishes = (
        cycles.astype(np.int64) for cycles in (run.accept_cycles, run.emit_cycles, run.finish_cycles)
    )
    sooner = np.zeros(len(accepts), np.int64)  # than the slowest item
    times: Times | None = None
    if latencies is not None:
        times = in_turn(latencies, 1 if design.rounds is None else design.rounds.units, plan.registered_ready)
        one_by_one = design.emitted.interface == "axi-lite"  # as software sends them
        sooner = design.core_paces[1][0] - (latencies.astype(np.int64) if one_by_one else times.latency)
    for what, ends, most in (
        ("", emits, pace.latency_cycles), (" to the last beat", finishes, pace.item_cycles),
    ):  # fmt: skip
        taken, wanted = (ends - accepts)[:timed], (most - sooner)[:timed]
        odd = np.flatnonzero(taken != wanted)
        if len(odd):
            return f"item {odd[0]} took {taken[odd[0]]} cycles{what} instead of {wanted[odd[0]]}"
    if design.emitted.interface == "axi-lite":
        return None  # software says when the next one starts
    if timed is not None and latencies is not None:
        return None
    gaps = np.diff(accepts if timed is None else finishes)
    wanted = np.full(len(gaps), pace.initiation_interval) if times is None else times.gap
    odd = np.flatnonzero(gaps != wanted)
    if len(odd):
        event = "was accepted" if timed is None else "was ready"
        return f"item {odd[0] + 1} {event} after {gaps[odd[0]]} cycles, not {wanted[odd[0]]}"
    return None
