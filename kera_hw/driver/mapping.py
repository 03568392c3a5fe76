"""One clock's cells and schedule, with the enables and resets of flip-flops where the schedule can bear them.

A control saves logic, but comes later than data may: it passes a gate that asks whether the pipeline moves,
and works in the very stage that writes the state. Where that would cost cycles or the clock, states are
written without.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kera_hw.driver.options import TargetOptions
from kera_hw.rtl.lower import FlatDesign
from kera_hw.rtl.techmap import MapOptions, map_design
from kera_hw.rtl.techmap.options import Controls
from kera_hw.schedule.device import Device
from kera_hw.schedule.netlist import Netlist
from kera_hw.schedule.plan import Plan
from kera_hw.schedule.planner import schedule
from kera_hw.support import Diagnostic, SourceFile

_AS_FAST = 0.97
"""Share of another design's clock that routing may make up for."""


@dataclass(frozen=True, slots=True)
class Mapped:
    """A netlist with its plan, or why there is none: notes of the mapper, faults of the scheduler."""

    netlist: Netlist
    plan: Plan | None
    notes: list[Diagnostic]
    faults: list[Diagnostic]


def map_and_schedule(
    flat: FlatDesign, device: Device, clock_ps: int, options: TargetOptions, files: dict[str, SourceFile],
    scale: float, progress: Callable[[str], None],
) -> Mapped:
    """The design in the fewest LUTs that cost no cycles."""

    def mapped(controls: Controls) -> tuple[Netlist, list[Diagnostic]]:
        return map_design(flat, device.name, clock_ps, MapOptions(dsp=options.dsp, controls=controls))

    def scheduled(netlist: Netlist, notes: list[Diagnostic]) -> Mapped:
        plan, faults = schedule(
            netlist, device, clock_ps, options.latency, options.interval,
            interface=options.interface, scale=scale, sources=files,
        )  # fmt: skip
        return Mapped(netlist, plan, notes, faults)

    progress("mapping to cells")
    netlist, notes = mapped("shared")
    if any(item.is_error for item in notes):
        return Mapped(netlist, None, notes, [])
    progress("scheduling")
    found = scheduled(netlist, notes)
    if not _has_controls(netlist):
        return found
    plain = scheduled(*mapped("none"))
    if _bears(found, plain):
        return found
    found = scheduled(*mapped("own"))
    return found if _bears(found, plain) else plain


def _has_controls(netlist: Netlist) -> bool:
    return any(state.controls for state in netlist.states)


def _bears(found: Mapped, plain: Mapped) -> bool:
    """Whether a schedule with controls is as good as that without."""
    if found.plan is None or plain.plan is None:
        return plain.plan is None and found.plan is not None
    cycles = found.plan.initiation_interval, found.plan.latency_cycles
    most = plain.plan.initiation_interval, plain.plan.latency_cycles
    enough_mhz = min(found.plan.clock_mhz, _AS_FAST * plain.plan.estimate.fmax_mhz)
    return all(a <= b for a, b in zip(cycles, most)) and found.plan.estimate.fmax_mhz >= enough_mhz
