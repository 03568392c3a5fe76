"""Stencils over whole pictures: one region that runs in step with its channels, rows kept in line buffers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kera_hw.driver.design import DEFAULT_CLOCK_MHZ, SLOWDOWN, SLOWEST_MHZ
from kera_hw.driver.lowering import Lowering
from kera_hw.driver.mapping import Mappings
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.process_design import ProcessDesign
from kera_hw.driver.search import Choice, Task, choose
from kera_hw.graph import Export, Graph
from kera_hw.loops.program import Buffer
from kera_hw.rtl.emit.layout import control_of
from kera_hw.rtl.emit.naming import inner_name, module_name
from kera_hw.rtl.emit.ports import Channel, Pace
from kera_hw.rtl.machine.nests import Regions
from kera_hw.rtl.machine.raster_round import RasterRound
from kera_hw.rtl.toolchain.process import ToolError
from kera_hw.schedule.explain import Refusal
from kera_hw.schedule.fpga.delay_model import DelayModel
from kera_hw.schedule.plan import Resources
from kera_hw.schedule.planner import over_capacity
from kera_hw.schedule.verifier import verify_plan
from kera_hw.support import Diagnostic, KeraError

if TYPE_CHECKING:
    from kera_hw.rtl.emit.raster import RasterPlan
    from kera_hw.rtl.emit.verilog import Emitted

_SHOWN = 2
"""Items that the timeline has."""
_CONTROLLER_LUTS, _CONTROLLER_FFS = 8, 4
"""What starts rounds, counters aside."""


@dataclass(frozen=True)
class StencilDesign(ProcessDesign):
    """A design of one region whose rounds take elements as they come."""

    round: RasterRound | None = None

    @cached_property
    def raster(self) -> RasterPlan:
        """What the controller is made from."""
        from kera_hw.rtl.emit.raster import RasterPlan

        assert self.round is not None
        control = control_of(self.netlist, self.plan, "stream")
        return RasterPlan(
            inner_name(module_name(self.export.name), "region0"), self.netlist, self.plan, control,
            self.round.raster.counts, self.round.counters, self.round.takes, self.round.gives, self.ports,
        )  # fmt: skip

    def _buffer_of(self, channel: Channel, regions: Regions | None = None) -> Buffer | None:
        """None: nothing that comes or leaves lies in a memory, and every round takes an element."""
        return None

    @property
    def pace(self) -> Pace:
        return self.raster.pace()

    @property
    def estimate(self) -> Resources:
        """The region, counters, and elements that are kept."""
        found, raster = self.plan.estimate, self.raster
        bits = sum(max(1, (count - 1).bit_length()) for count in raster.counts)
        kept = sum(
            sum(value.width for value in channel.values) if not channel.in_beats else channel.beat_bits + 1
            for channel in self.ports.inputs
        ) if raster.keeps_beats else 0
        return replace(
            found, lut=found.lut + 2 * bits + _CONTROLLER_LUTS,
            ff=found.ff + bits + kept + _CONTROLLER_FFS + self.plan.latency_cycles,
        )  # fmt: skip

    @property
    def register_bits(self) -> int:
        return self.plan.register_bits

    def regions_json(self) -> list[dict[str, Any]]:
        """The stages, which run at once: by the rounds in which their elements are there."""
        assert self.round is not None
        found = self.round.raster
        interval, latency = self.plan.initiation_interval, self.plan.latency_cycles
        rows: list[dict[str, Any]] = []
        for node in found.nodes:
            if node.stage is None:
                continue
            place = found.stencils.stages[node.stage].loop.place
            first, last = (found.number(ends) for ends in zip(*node.rounds_of_box()))
            rows.append({
                "loop": None if place is None else f"{place.path}:{place.line}",
                "in_step": True,
                "writes": node.buffer.name,
                "rounds": last - first + 1,
                "latency_cycles": latency,
                "initiation_interval": interval,
                "starts_at": first * interval,
                "runs": 1,
                "cycles": (last - first) * interval + latency,
            })
        return rows

    def timeline_json(self) -> list[dict[str, Any]]:
        """Channels and stages, which all work at once."""
        assert self.round is not None
        found, interval = self.round.raster, self.plan.initiation_interval
        every = self.pace.initiation_interval

        def row(name: str, spans: Sequence[tuple[int, int]], behind: int = 0) -> dict[str, Any]:
            first, last = (found.number(place) * interval + behind for place in zip(*spans))
            return {"name": name, "spans": [[first + k * every, last + k * every] for k in range(_SHOWN)]}

        latency = self.plan.latency_cycles
        rows = [row(take.port, take.spans) for take in self.round.takes]
        rows += [
            row(node.buffer.name, node.rounds_of_box()) for node in found.nodes if node.stage is not None
        ]
        return rows + [row(give.port, give.spans, latency) for give in self.round.gives]

    def memories_json(self) -> list[dict[str, Any]]:
        """The line buffers."""
        return super(ProcessDesign, self).memories_json()

    def check_ports(self) -> None:
        """Nothing to check: what is wide comes in beats."""

    @cached_property
    def emitted(self) -> Emitted:
        from kera_hw.rtl.emit.verilog import emit_raster

        try:
            return emit_raster(
                self.raster, module_name(self.export.name), self.style, self.graph.fingerprint, self.export,
                self.clock_mhz, self.device.name,
            )  # fmt: skip
        except ToolError as fault:
            raise KeraError([fault.diagnostic]) from None


def plan_raster(
    program: Graph, export: Export, options: TargetOptions, lowering: Lowering, scale: float,
    name_notes: tuple[Diagnostic, ...], progress: Callable[[str], None],
) -> StencilDesign | None:
    """The export as stencils in step; None where it is none, or not as was asked.

    Raises KeraError (K06xx) where the clock that was asked for cannot be met.
    """
    if options.interface not in ("stream", "axis") or options.latency is not None:
        return None
    if options.emitter != "text" or lowering.raster is None:
        return None
    rounds = lowering.raster.rounds
    if options.interval is not None and rounds > options.interval:
        return None
    clock_mhz = options.clock_mhz or DEFAULT_CLOCK_MHZ[lowering.device.family]
    free = replace(options, interval=None, interface="stream", plan=None)
    found = lowering.raster_round(1)
    mappings = Mappings(found.flat, lowering.device, 1, alone=False)
    while True:
        choice = choose(Task(mappings, int(1e6 / clock_mhz), free, lowering.files, scale), progress)
        if isinstance(choice, Choice):
            break
        clock_mhz = _slower(choice, options, clock_mhz)
    design = StencilDesign(
        program, export, options, lowering, mappings, choice, clock_mhz, scale, name_notes, round=found
    )
    faults = verify_plan(design.netlist, design.plan, DelayModel(lowering.device, scale))
    if faults:
        raise AssertionError(f"the plan of {export.name} is unsound: {faults[0]}")
    if options.interval is not None and design.pace.initiation_interval > options.interval:
        return None
    design = _with_note(design)
    fits = not over_capacity(export.name, replace(design.plan, estimate=design.estimate), lowering.device)
    return design if fits else None


def _with_note(design: StencilDesign) -> StencilDesign:
    """Says which channels have to be served at once: their elements are not kept until the others come."""
    sides = [
        [f"`{channel.name}`" for channel in channels if channel.in_beats]
        for channels in (design.ports.inputs, design.ports.outputs)
    ]
    several = [" and ".join(names) for names in sides if len(names) > 1]
    if not several:
        return design
    made = design.noted(f"Elements come and go in step: {', '.join(several)} are to be served at once.")
    assert isinstance(made, StencilDesign)
    return made


def _slower(refusal: Refusal, options: TargetOptions, clock_mhz: float) -> float:
    """The next slower clock to try, where none was asked for. Raises KeraError."""
    slower = clock_mhz * SLOWDOWN
    if options.clock_mhz is not None or slower < SLOWEST_MHZ or refusal.code != "K0601":
        raise KeraError([refusal])
    return slower
