"""One clock's cells and schedule, with the enables and resets of flip-flops where the schedule can bear them.

A control saves logic, but comes later than data may: it passes a gate that asks whether the pipeline moves,
and works in the very stage that writes the state. Where that would cost cycles or the clock, states are
written without. Logic refined bit by bit is a second netlist for each; the better plan is kept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kera_hw.driver.options import TargetOptions
from kera_hw.rtl.lower import FlatDesign
from kera_hw.rtl.machine.rounds import RoundDesign
from kera_hw.rtl.techmap import Logic, MapOptions, logic_of, netlist_of
from kera_hw.rtl.techmap.bitwise.refine import refined, refined_as
from kera_hw.rtl.techmap.options import Controls
from kera_hw.schedule.explain import Refusal
from kera_hw.schedule.fpga.delay_model import DelayModel
from kera_hw.schedule.fpga.device import Device
from kera_hw.schedule.fpga.netlist import Netlist
from kera_hw.schedule.plan import Plan
from kera_hw.schedule.planner import schedule
from kera_hw.support import Diagnostic, SourceFile

_SIMPLER: tuple[Controls, ...] = ("enables", "own")
"""What to try where all controls cost cycles: conditions that come sooner, states in stages of their own."""
_AS_FAST = 0.99
"""Share of another design's clock that routing may make up for."""
_MORE_LUTS = 1.02
"""Times the LUTs that a plan may take that is better in everything else."""


class Mappings:
    """A flat design in cells of a device: every way to map it once, however often it is planned."""

    def __init__(
        self, flat: FlatDesign, device: Device, interval: int = 1, region: RoundDesign | None = None,
        *, alone: bool = True, far: bool = False,
    ) -> None:
        self.flat = flat
        self.alone = alone  # whether no other circuit is made together with it
        self.region = region  # of which the design is a round, where a loop stays a loop
        self.interval = interval  # that the design was lowered for
        self.device = device
        self._far = far  # whether products are, where nothing else was asked for
        self._netlists: dict[tuple[int, MapOptions], Netlist] = {}
        self._logic: tuple[tuple[int, MapOptions], Logic] | None = None

    def netlist(self, clock_ps: int, way: MapOptions) -> Netlist:
        """The design mapped in one way for a clock period."""
        if self._far and way.far is None:
            way = replace(way, far=True)
        found = self._netlists.get((clock_ps, way))
        if found is None:
            found = netlist_of(self._logic_of(clock_ps, replace(way, controls="shared")), way.controls)
            self._netlists[clock_ps, way] = found
        return found

    def _logic_of(self, clock_ps: int, way: MapOptions) -> Logic:
        """Logic is large, and asked for with all controls in a row: the last one alone is kept."""
        key = (clock_ps, way)
        if self._logic is None or self._logic[0] != key:
            self._logic = key, logic_of(self.flat, self.device.name, clock_ps, way)
        return self._logic[1]


@dataclass(frozen=True, slots=True)
class Variant:
    """Which netlist of one way to map: with which controls, and the name of its refined logic, if any."""

    controls: Controls
    finer: str | None = None


@dataclass(frozen=True, slots=True)
class Mapped:
    """A netlist with its plan, or why there is none: faults of the scheduler."""

    netlist: Netlist
    plan: Plan | None
    faults: list[Diagnostic]
    variant: Variant


@dataclass(frozen=True, slots=True)
class Scheduling:
    """What a netlist is scheduled for."""

    device: Device
    clock_ps: int
    options: TargetOptions
    files: dict[str, SourceFile]
    scale: float
    alone: bool

    def planned(self, netlist: Netlist, variant: Variant) -> Mapped:
        plan, faults = schedule(
            netlist, self.device, self.clock_ps, self.options.latency, self.options.interval,
            interface=self.options.interface, scale=self.scale, sources=self.files,
            alone=self.alone, most_luts=self.options.lut,
        )  # fmt: skip
        return Mapped(netlist, plan, faults, variant)


def made_as(mappings: Mappings, aim: Scheduling, way: MapOptions, variant: Variant) -> Mapped | None:
    """What ``map_and_schedule`` chose before, without looking for anything; None where there is none such."""
    netlist = mappings.netlist(aim.clock_ps, replace(way, controls=variant.controls))
    if variant.finer is None:
        return aim.planned(netlist, variant)
    finer = refined_as(netlist, DelayModel(aim.device, aim.scale), aim.clock_ps, variant.finer)
    return None if finer is None else aim.planned(finer, variant)


def map_and_schedule(mappings: Mappings, aim: Scheduling, way: MapOptions) -> Mapped:
    """The design in the fewest LUTs that cost no cycles, products mapped in one ``way``."""

    def mapped(controls: Controls) -> Netlist:
        return mappings.netlist(aim.clock_ps, replace(way, controls=controls))

    def scheduled(netlist: Netlist, controls: Controls) -> Mapped:
        found = aim.planned(netlist, Variant(controls))
        known: list[Mapped] = []
        for name, finer in refined(netlist, DelayModel(aim.device, aim.scale), aim.clock_ps):
            other = next((item for item in known if item.netlist == finer), None)
            other = aim.planned(finer, Variant(controls, name)) if other is None else other
            known.append(other)
            if other.plan is None or found.plan is None:
                found = other if other.plan is not None else _nearer(found, other)
            elif _improves(other, found):
                found = other
        return found

    shared = mapped("shared")
    found = scheduled(shared, "shared")
    if not _has_controls(shared):
        return found
    plain = scheduled(mapped("none"), "none")
    for controls in _SIMPLER:
        bears = _bears(found, plain)
        if bears and not _waits(found, plain):
            return found
        other = scheduled(mapped(controls), controls)
        if bears:  # values wait for states that share a signal to be written together: each its own, perhaps
            found = other if _bears(other, plain) and _site_time(other) < _site_time(found) else found
        else:
            found = _nearer(found, other) if found.plan is None and other.plan is None else other
    if found.plan is None and plain.plan is None:
        return _nearer(found, plain)
    return found if _bears(found, plain) else plain


def _waits(found: Mapped, plain: Mapped) -> bool:
    """Whether controls cost registers. None of them has a plan that is not there."""
    assert found.plan is not None
    return plain.plan is not None and found.plan.estimate.ff > plain.plan.estimate.ff


def _nearer(one: Mapped, other: Mapped) -> Mapped:
    """Of two netlists, one of them without a plan: that with a plan, else that which asks for less."""
    if one.plan is not None or other.plan is not None:
        return other if one.plan is None else one

    def asks(mapped: Mapped) -> tuple[str, int]:
        refusal = next((fault for fault in mapped.faults if isinstance(fault, Refusal)), None)
        return ("", 0) if refusal is None else (refusal.code, -refusal.least)

    return other if asks(other) > asks(one) else one


def _has_controls(netlist: Netlist) -> bool:
    return any(state.controls for state in netlist.states)


def _bears(found: Mapped, plain: Mapped) -> bool:
    """Whether a schedule with controls is as good as that without: in cycles, and for its LUTs or sites."""
    if found.plan is None or plain.plan is None:
        return plain.plan is None and found.plan is not None
    cycles = found.plan.initiation_interval, found.plan.latency_cycles
    most = plain.plan.initiation_interval, plain.plan.latency_cycles
    new, old = found.plan.estimate, plain.plan.estimate
    fast_enough = new.fmax_mhz >= _AS_FAST * min(found.plan.clock_mhz, old.fmax_mhz)
    return cycles <= most and ((new.lut < old.lut and fast_enough) or not _improves(plain, found))


def _site_time(mapped: Mapped) -> float:
    """Sites times the time of an item."""
    assert mapped.plan is not None
    figures = mapped.plan.estimate
    return max(figures.lut, figures.ff) * mapped.plan.initiation_interval / figures.fmax_mhz


def _improves(found: Mapped, other: Mapped) -> bool:
    """Whether a plan makes more of its sites: with states, in sites x time an item, else in every figure."""
    new, old = found.plan, other.plan
    assert new is not None
    assert old is not None
    (a, b), (ii_a, ii_b) = (new.estimate, old.estimate), (new.initiation_interval, old.initiation_interval)
    cheaper = _site_time(found) < _site_time(other)
    if found.netlist.states:
        fewer = a.lut * ii_a / a.fmax_mhz <= b.lut * ii_b / b.fmax_mhz  # flip-flops are no gain alone
        return ii_a <= ii_b and cheaper and fewer
    if ii_a > ii_b or new.latency_cycles > old.latency_cycles:
        return False
    sooner = a.fmax_mhz / b.fmax_mhz
    fast_enough = sooner >= _AS_FAST or (cheaper and a.fmax_mhz >= new.clock_mhz)
    if a.lut <= b.lut and a.ff <= b.ff and fast_enough:
        return (a.lut, a.ff) != (b.lut, b.ff) or new.latency_cycles < old.latency_cycles
    return a.lut < b.lut * min(_MORE_LUTS, sooner) and a.ff <= b.ff
