"""How much of what can go wrong in a circuit a comparison sees: faults planted in it, one at a time.

Each fault is simulated with the items and the traffic that `kera verify` compares with. One that nothing
shows is held against the circuit by a solver: where no difference can be seen from outside it was none, and
does not count. What remains was missed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kera_hw.driver.hardware import HardwareDesign, design_hardware
from kera_hw.driver.options import FAULTS, VECTOR_SEED, VECTORS, TargetOptions
from kera_hw.driver.rtl_target import departure, pack_inputs, traffics
from kera_hw.driver.sampling import draw_items
from kera_hw.driver.session import identity
from kera_hw.graph import Export, Graph
from kera_hw.rtl.sim.axi_lite import SoftwareBench
from kera_hw.rtl.sim.bench import Bench, SimRun, Traffic, make_bench
from kera_hw.rtl.sim.faults import FaultyDesign, PlantedFault, plant_faults
from kera_hw.rtl.sim.words import Words
from kera_hw.rtl.toolchain.process import ToolError, ToolTimeout, scratch
from kera_hw.support import KeraError

Outcome = Literal["caught", "none", "missed"]
LEAST_SHARE = 0.95
"""Share of the faults that a comparison has to catch."""
STEPS = 4
"""Calls of ``progress``."""
_MOST_SHOWN = 10
# A fault may keep a circuit busy for ever; the bench gives up long before.
_RUN_S = 60.0


@dataclass(frozen=True, slots=True)
class Tried:
    """A fault, what became of it, and by what it was caught."""

    fault: PlantedFault
    outcome: Outcome
    how: str = ""

    def to_json(self) -> dict[str, Any]:
        row = {"fault": self.fault.text, "sources": list(self.fault.sources), "outcome": self.outcome}
        return {**row, "how": self.how} if self.how else row


@dataclass(frozen=True, slots=True)
class MutationReport:
    """All faults that were tried on one circuit; ``none`` are those proved to change nothing."""

    fingerprint: str
    program_fingerprint: str
    function: str
    target: str
    items: int
    tried: tuple[Tried, ...]

    def __repr__(self) -> str:
        return f"<MutationReport {self.function}: {self.caught} of {self.faults} faults caught>"

    @property
    def caught(self) -> int:
        return sum(item.outcome == "caught" for item in self.tried)

    @property
    def missed(self) -> tuple[Tried, ...]:
        return tuple(item for item in self.tried if item.outcome == "missed")

    @property
    def faults(self) -> int:
        """Those that make a difference, as far as is known."""
        return sum(item.outcome != "none" for item in self.tried)

    @property
    def fine(self) -> bool:
        return self.caught >= LEAST_SHARE * self.faults

    def text(self) -> str:
        """For people: the share caught, then what was missed."""
        share = f", {100 * self.caught / self.faults:.1f} %" if self.faults else ""
        none = len(self.tried) - self.faults
        lines = [
            f"{self.function}: {self.caught} of {self.faults} faults caught{share}; {self.items} items on "
            f"{self.target}",
            f"  {self.fingerprint}",
            f"  {none} more proved to change nothing",
        ]
        lines += [f"  missed: {item.fault.text}{_place(item.fault)}" for item in self.missed[:_MOST_SHOWN]]
        more = len(self.missed) - _MOST_SHOWN
        return "\n".join([*lines, *([f"  ... and {more} more"] if more > 0 else [])])

    def to_json(self) -> dict[str, Any]:
        return {
            "fingerprint": self.fingerprint, "program_fingerprint": self.program_fingerprint,
            "function": self.function, "target": self.target, "items": self.items, "faults": self.faults,
            "caught": self.caught, "none": len(self.tried) - self.faults, "missed": len(self.missed),
            "tried": [item.to_json() for item in self.tried],
        }  # fmt: skip


def _place(fault: PlantedFault) -> str:
    return f" ({fault.sources[0]})" if fault.sources else ""


def try_faults(
    graph: Graph,
    export: Export,
    options: TargetOptions,
    count: int,
    vectors: int,
    seed: int,
    given: Sequence[str] = (),
    progress: Callable[[str], None] = lambda _: None,
) -> MutationReport:
    """Plants ``count`` faults in an export's circuit and tries each with the items of a comparison.

    Raises KeraError where there is no circuit, or for a tool that is missing or fails.
    """
    count, vectors, seed = FAULTS.check(count), VECTORS.check(vectors), VECTOR_SEED.check(seed)
    inputs, batch = draw_items(export, vectors, seed, given)
    progress("planning")
    design = design_hardware(graph, export, options)
    words, latencies = pack_inputs(design, inputs, batch), design.latencies(inputs, batch)
    try:
        progress("planting faults")
        faulty = plant_faults(design.emitted, count, seed)
        progress("simulating")
        with scratch("faults") as work:
            emitted = design.with_verilog(faulty.verilog).emitted
            bench = make_bench(emitted, work, words, batch, latencies=latencies, faulty=True)
            tried = _Trial(design, bench, batch, latencies).tried(faulty)
        progress("proving")
        tried = [_judged(faulty, item) for item in tried]
    except ToolError as fault:
        raise KeraError([fault.diagnostic]) from None
    names = identity(graph, export)
    return MutationReport(
        names["fingerprint"], names["program_fingerprint"], export.name, f"fpga:{design.device.name}", batch,
        tuple(tried),
    )  # fmt: skip


class _Trial:
    """One circuit without and with each of its faults, in all runs of a comparison."""

    def __init__(
        self, design: HardwareDesign, bench: Bench | SoftwareBench, batch: int,
        latencies: NDArray[np.uint64] | None,
    ) -> None:  # fmt: skip
        self._design, self._bench, self._latencies = design, bench, latencies
        self._right: dict[Traffic, tuple[Words, ...]] = {}
        for traffic in traffics(design.emitted, batch):
            found = bench.run(traffic, fault=0, timeout_s=_RUN_S)
            departed = self._departure(found, traffic)
            assert departed is None, f"without a fault the circuit is as it was, but {departed}"
            self._right[traffic] = found.outputs

    def tried(self, faulty: FaultyDesign) -> list[Tried]:
        return [self._try(fault) for fault in faulty.faults]

    def _try(self, fault: PlantedFault) -> Tried:
        for traffic, wanted in self._right.items():
            try:
                found = self._bench.run(traffic, fault=fault.number, timeout_s=_RUN_S)
            except ToolTimeout:
                return Tried(fault, "caught", "it never ends")
            departed = self._departure(found, traffic)
            if departed is not None:
                return Tried(fault, "caught", departed)
            if not all(map(np.array_equal, found.outputs, wanted)):
                return Tried(fault, "caught", "a result is wrong")
        return Tried(fault, "missed")

    def _departure(self, run: SimRun, traffic: Traffic) -> str | None:
        return departure(self._design, run, traffic, self._latencies)


def _judged(faulty: FaultyDesign, item: Tried) -> Tried:
    none = item.outcome == "missed" and faulty.is_none(item.fault)
    return Tried(item.fault, "none", "proved equal") if none else item
