"""The choice of a circuit: one design mapped in several ways, each scheduled, the best by one measure kept.

The ways are a ladder of how many multiplier blocks products may take, from all that the design has a use for
to none, and where the clock is near the limit of what a block's output wires bear, each with and without a
pipeline register behind the blocks. The ladder depends on the design, the device and the clock alone: with a
tighter limit on blocks, latency or interval there are fewer of the same circuits to choose from, so that a
looser one never ends with a worse circuit.

A rung that cannot be better than what is already there is not mapped: logic in place of a block takes at
least a share of the product's own bits. Nor is one of a large design, once there is a circuit that keeps to
what was asked: there each block less is so much more logic that it does not pay.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kera_hw.driver.mapping import Mapped, Mappings, Scheduling, Variant, made_as, map_and_schedule
from kera_hw.driver.options import TargetOptions, exceeds
from kera_hw.driver.remembered import Decision, digest_of, recall, remember
from kera_hw.rtl.techmap import MapOptions
from kera_hw.rtl.techmap.options import needs_far_products
from kera_hw.schedule.explain import Refusal
from kera_hw.schedule.fpga.cells import Mul
from kera_hw.schedule.fpga.device import Device
from kera_hw.schedule.fpga.netlist import Netlist
from kera_hw.schedule.fpga.resource_model import netlist_brams, netlist_dsps, netlist_luts
from kera_hw.schedule.fpga.units import Operator
from kera_hw.schedule.objective import Merit, measure_text, merit, prices
from kera_hw.schedule.plan import Plan
from kera_hw.support import Diagnostic, Severity, SourceFile

_FEWEST_STEPS, _MOST_STEPS = 2, 16
_WORK_CELLS = 1600
"""Cells that the ways of mapping may have in all: bounds the time of a search."""
_LARGE_CELLS = 1500
"""Cells from which a further way is mapped only where none so far keeps to what was asked."""
_PROBED_CELLS = 200
"""Cells up to which circuits for clocks a little faster are tried where none for the clock itself will do."""
_PROBE_STEP, _PROBES = 1.025, 2
"""Ratio of the clock periods tried, and how many of them are."""
_TIGHT_PS = 6000
"""Clock period below which the wires from a block may cost more stages than a register behind it."""
_LOGIC_SHARE = 0.5
"""LUTs that a product takes in logic, at the least, for each of its partial products."""


@dataclass(frozen=True, slots=True)
class Way:
    """A design mapped: with how many blocks, with a register behind them or not, for which clock.

    ``turns``: how many products may share a block.
    """

    blocks: int | None
    far: bool | None
    clock_ps: int
    netlist: Netlist
    turns: int = 1


@dataclass(frozen=True, slots=True)
class Circuit:
    """One way to build a design, planned."""

    way: Way
    netlist: Netlist
    plan: Plan
    diagnostics: tuple[Diagnostic, ...]
    merit: Merit
    variant: Variant

    def to_json(self) -> dict[str, Any]:
        """The figures by which it was judged."""
        estimate = self.plan.estimate
        return {
            "dsp": estimate.dsp,
            "lut": estimate.lut,
            "ff": estimate.ff,
            "bram": estimate.bram,
            "latency_cycles": self.plan.latency_cycles,
            "initiation_interval": self.plan.initiation_interval,
            "cost": self.merit[1],
        }


@dataclass(frozen=True, slots=True)
class Choice:
    """The circuit chosen, and the figures of all others that it was chosen from."""

    best: Circuit
    against: tuple[dict[str, Any], ...]

    def to_json(self, device: Device) -> dict[str, Any]:
        """What was chosen, by which measure, and against what."""
        return {"measure": measure_text(device), **self.best.to_json(), "against": list(self.against)}

    def decision(
        self, lowered_for: int, interval: int | None, clock_mhz: float, rolled: bool = False,
        note: str | None = None,
    ) -> Decision:
        """What leads to it without a search, from a design lowered for that interval, asked for this one."""
        way, variant = self.best.way, self.best.variant
        return Decision(
            lowered_for, rolled, interval, clock_mhz, way.blocks, way.far, way.clock_ps, variant.controls,
            variant.finer, way.turns, note, self.against, digest_of(self.best.netlist, self.best.plan),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Task:
    """What circuits are looked for: the design and its device, for which clock, what was asked."""

    mappings: Mappings
    clock_ps: int
    options: TargetOptions
    files: dict[str, SourceFile]
    scale: float

    @property
    def device(self) -> Device:
        return self.mappings.device

    def mapped(
        self, blocks: int | None, far: bool | None = None, clock_ps: int | None = None, turns: int = 1
    ) -> Way:
        """The design in cells, with so many multiplier blocks."""
        period_ps = clock_ps or self.clock_ps
        options = MapOptions(blocks, far=far, turns=turns)
        return Way(blocks, far, period_ps, self.mappings.netlist(period_ps, options), turns)

    def planned(self, way: Way) -> Circuit | Refusal:
        """A schedule as asked for, or why there is none."""
        return self._circuit(way, map_and_schedule(self.mappings, self._scheduling(way), _options(way)))

    def planned_as(
        self, blocks: int | None, far: bool | None, clock_ps: int, variant: Variant, turns: int = 1
    ) -> Circuit | Refusal | None:
        """What ``planned`` chose among a way's variants, made again; None where there is none such."""
        options = MapOptions(blocks, variant.controls, far, turns)
        way = Way(blocks, far, clock_ps, self.mappings.netlist(clock_ps, options), turns)
        found = made_as(self.mappings, self._scheduling(way), _options(way), variant)
        return None if found is None else self._circuit(way, found)

    def decided(self, known: Decision) -> Circuit | Refusal | None:
        """The circuit that a decision leads to."""
        return self.planned_as(
            known.blocks, known.far, known.clock_ps, Variant(known.controls, known.finer), known.turns
        )

    def _scheduling(self, way: Way) -> Scheduling:
        return Scheduling(
            self.device, way.clock_ps, self.options, self.files, self.scale, self.mappings.alone
        )

    def _circuit(self, way: Way, found: Mapped) -> Circuit | Refusal:
        if found.plan is None:
            (refusal,) = found.faults
            assert isinstance(refusal, Refusal)
            return refusal
        plan = replace(found.plan, clock_ps=self.clock_ps)
        # A plan that exceeds the device is still worth its Verilog; only a bitstream is not to be had.
        tight = tuple(replace(item, severity=Severity.WARNING) for item in found.faults)
        return Circuit(way, found.netlist, plan, tight, merit(plan, self.device), found.variant)


def _options(way: Way) -> MapOptions:
    return MapOptions(way.blocks, far=way.far, turns=way.turns)


def choose_once(
    task: Task, key: str | None, clock_mhz: float, progress: Callable[[str], None]
) -> Choice | Refusal:
    """What ``choose`` finds, made again without a search where it was found before under this key."""
    known = None if key is None else recall(key)
    if known is not None:
        best = task.decided(known)
        if isinstance(best, Circuit) and digest_of(best.netlist, best.plan) == known.plan:
            return Choice(best, known.against)
    choice = choose(task, progress)
    if key is not None and isinstance(choice, Choice):
        remember(key, choice.decision(task.mappings.interval, task.options.interval, clock_mhz))
    return choice


def choose(task: Task, progress: Callable[[str], None]) -> Choice | Refusal:
    """The best circuit that keeps to what was asked, or why there is none."""
    progress("mapping to cells")
    widest = task.mapped(None)
    progress("scheduling")
    considered: list[Circuit] = []
    ways: list[Way] = []
    refusals: list[Refusal] = []
    for way in _ways(task, widest, considered):
        found = task.planned(way)
        if isinstance(found, Refusal):
            refusals.append(found)
        else:
            considered.append(found)
        ways.append(way)
    if not considered and len(widest.netlist.cells) <= _PROBED_CELLS:
        considered += _made_for_faster(task, ways)
    if considered:
        within = [item for item in considered if exceeds(item.plan.estimate, task.options) is None]
        best = min(within or considered, key=lambda item: item.merit)
        return Choice(best, tuple(item.to_json() for item in considered if item is not best))
    # What comes nearest: a latency or an interval that would do before a slower clock.
    return max(refusals, key=lambda item: (item.code, -item.least))


def _made_for_faster(task: Task, ways: Sequence[Way]) -> list[Circuit]:
    """Circuits made for clocks a little faster, where none made for this one keeps to what was asked.

    Where long carry chains are cut, and how many readers share a wire in a stage, can happen to suit a faster
    clock better; what is right for it is right for a slower one.
    """
    found: list[Circuit] = []
    for way in ways:
        for clock_ps in faster_periods(task.clock_ps):
            circuit = task.planned(task.mapped(way.blocks, way.far, clock_ps))
            if isinstance(circuit, Circuit):
                found.append(circuit)
    return found


def faster_periods(clock_ps: int) -> list[int]:
    """The next shorter clock periods of a fixed ladder, so that neighbouring clocks look at the same ones."""
    step = math.floor(math.log(clock_ps) / math.log(_PROBE_STEP) + 1e-9)
    steps = [round(_PROBE_STEP ** (step - k)) for k in range(_PROBES + 1)]
    return [period_ps for period_ps in steps if period_ps < clock_ps][:_PROBES]


def _ways(task: Task, widest: Way, considered: list[Circuit]) -> Iterator[Way]:
    """The netlists to choose from, those of most blocks first, each once; ``considered`` grows meanwhile."""
    seen: list[Netlist] = []
    most = netlist_dsps(widest.netlist, task.device)
    allowed = most if task.options.dsp is None else task.options.dsp
    floor = Floor(widest.netlist, task.device, task.options.interval or 1)
    large = len(widest.netlist.cells) > _LARGE_CELLS
    for way in _in_turns(task, task.options.interval or 1):
        if netlist_dsps(way.netlist, task.device) <= allowed:
            yield way
    # Where blocks are shared, logic in place of some of them has little left to gain.
    steps = _FEWEST_STEPS if considered else _most_steps(widest.netlist)
    for blocks in rungs(most, steps):
        if blocks > allowed or (large and considered) or floor.excludes(blocks, considered):
            continue
        for far in _registered(task, most) if blocks else (None,):
            way = widest if blocks == most and far is None else task.mapped(blocks, far)
            if way.netlist not in seen:
                seen.append(way.netlist)
                yield way
    if task.options.interval is None and considered:  # a recurrence may leave room for turns
        forced = min(considered, key=lambda item: item.merit).plan.initiation_interval
        for way in _in_turns(task, forced):
            if netlist_dsps(way.netlist, task.device) <= allowed:
                yield way


def _in_turns(task: Task, interval: int) -> Iterator[Way]:
    """The ways in which products take turns, so many to a block as the interval leaves room for, or fewer.

    Of those with as many blocks the one of fewest turns is tried. That depends on the design alone: what is
    tried at an interval is among what is tried at a longer one, which so never ends with a larger circuit.
    """
    if interval < 2 or task.mappings.region is not None:
        return
    large = len(task.mapped(None).netlist.cells) > _LARGE_CELLS
    seen: list[int] = []
    for turns in _turn_steps(interval, large):
        way = task.mapped(None, turns=turns)
        shared = any(isinstance(unit, Operator) and calls[1:] for unit, calls in way.netlist.calls())
        count = netlist_dsps(way.netlist, task.device)
        if shared and count not in seen:
            seen.append(count)
            yield way
        if shared and count == 1:
            return  # as few as there can be


def _turn_steps(interval: int, large: bool) -> list[int]:
    """Numbers of turns to try: powers of two, and unless ``large`` those and a half, and all of a few."""
    powers = [1 << k for k in range(1, interval.bit_length())]
    between = () if large else (5, 7, *(power + power // 2 for power in powers))
    return sorted(turns for turns in {*powers, *between} if turns <= interval)


def _registered(task: Task, most: int) -> tuple[bool | None, ...]:
    """Whether products are tried with a register behind them as well: not where it is needed anyway."""
    near = most and task.clock_ps < _TIGHT_PS and not needs_far_products(task.device, task.clock_ps)
    return (None, True) if near and task.device.family == "ecp5" else (None,)


def _most_steps(widest: Netlist) -> int:
    """How many further ways are worth their time: few in a large design, and where blocks hold constants."""
    if not any(_partial_products(cell) for cell in widest.cells if isinstance(cell, Mul)):
        return _FEWEST_STEPS
    return max(_FEWEST_STEPS, min(_MOST_STEPS, _WORK_CELLS // len(widest.cells)))


def rungs(most: int, most_steps: int) -> list[int]:
    """Numbers of blocks to try, from ``most`` down to 0: all of them, or so many steps evenly spaced."""
    steps = min(most, most_steps)
    return sorted({round(most * k / steps) for k in range(steps + 1)}, reverse=True) if most else [0]


class Floor:
    """What a way with fewer blocks costs at the least, from the netlist with the most."""

    def __init__(self, widest: Netlist, device: Device, interval: int = 1) -> None:
        self._interval = interval
        products = [cell for cell in widest.cells if isinstance(cell, Mul)]
        in_logic = sorted(_LOGIC_SHARE * _partial_products(cell) for cell in products)
        self._saved = [0.0]
        for luts in in_logic:
            self._saved.append(self._saved[-1] + luts)
        self._luts = netlist_luts(widest, device)
        self._bram_luts = prices(device).bram * netlist_brams(widest, device)
        self._most = netlist_dsps(widest, device)

    def excludes(self, blocks: int, considered: Sequence[Circuit]) -> bool:
        """Whether no circuit of at most ``blocks`` blocks can be better than one of those."""
        bound = (False, self._interval * self.cost(blocks), 0)
        return any(item.merit <= bound for item in considered)

    def cost(self, blocks: int) -> float:
        """A bound below for at most ``blocks`` blocks: the smallest products are those in logic."""
        moved = min(len(self._saved) - 1, self._most - blocks)
        luts = self._luts + self._saved[moved]
        return luts + self._bram_luts


def _partial_products(cell: Mul) -> int:
    """Bits of a product's rows within its width; none for a constant, whose rows are few."""
    sides = [cell.a, cell.b]
    if any(all(s.cell is None for s in bits) for bits in sides):
        return 0
    a, b = (sum(s.width for s in bits) for bits in sides)
    return sum(max(0, min(a, cell.width - row)) for row in range(b))
