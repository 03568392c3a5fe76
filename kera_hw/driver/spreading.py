"""How many rounds of a process's loops go side by side: a forecast of every number, the best of them planned.

The item that takes the fewest cycles is looked for, among what fits the device and keeps to what was asked;
of items that take as many, the cheapest. What a forecast goes by is the process with one round at a time,
planned: what a round takes is taken as often as rounds go side by side, memories are laid in banks as
accesses ask for (``rtl/machine/spread.py``), and tensors come as many elements a beat as banks take.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from kera_hw.driver.options import TargetOptions
from kera_hw.loops.program import Buffer
from kera_hw.rtl.machine.nests import Regions
from kera_hw.rtl.machine.spread import Axis, Forecast, axes_of
from kera_hw.schedule.fpga.device import Device
from kera_hw.schedule.fpga.units.storage import ram_block
from kera_hw.schedule.objective import prices
from kera_hw.schedule.plan import Resources
from kera_hw.types import bit_width

_MOST_CELLS = 2000
"""Cells of a region up to which rounds of it go side by side: bounds the time of planning."""
_MOST_ROUNDS = 256
FULL = 0.5
"""The share of a device's LUTs and flip-flops that rounds side by side may fill, so that it can be routed."""
_SURE = 0.5
"""What a design takes at the least, of the LUTs forecast: rounds share much."""
TRIES = 6
"""Choices that are planned."""
_MOST_CHOICES = 20_000
_WRONG = 4
"""Cycles of a pipeline that differ from those of the process with one round at a time."""
LOADING = 16
"""Times that a tensor's beats are fewer than the cycles that regions run, where its banks let them be."""

Factors = Mapping[Axis, int]


@dataclass(frozen=True, slots=True)
class Run:
    """A region of the process with one round at a time: how often it runs, its pace, what it takes."""

    runs: int
    latency_cycles: int
    initiation_interval: int
    estimate: Resources
    cells: int


def lanes_of(most: int, elements: int, widest: int, run_cycles: int) -> int:
    """Elements a beat: the fewest that keep up with the regions, and divide the banks (``most``)."""
    able = [k for k in range(1, most + 1) if most % k == 0 and k <= max(1, widest)]
    return next((k for k in able if elements // k * LOADING <= run_cycles), able[-1])


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a choice of factors should come to."""

    factors: Factors
    cycles: int
    lut: float
    dsp: int
    bram: int
    cost: float

    def shortens(self, cycles: int) -> bool:
        """Whether it makes an item of so many cycles shorter, by more than forecasts are wrong."""
        return self.cycles + _WRONG + cycles // 64 < cycles

    @property
    def rank(self) -> tuple[int, float]:
        return self.cycles, self.cost

    def to_json(self) -> dict[str, Any]:
        return {"cycles": self.cycles, "lut": round(self.lut), "dsp": self.dsp, "bram": self.bram}


class Search:
    """Looks for factors by forecasts. ``channels``: of each tensor that lies in a memory and is a channel."""

    def __init__(
        self, regions: Regions, runs: Sequence[Run], channels: Sequence[tuple[Buffer, bool]],
        beats: tuple[int, int], options: TargetOptions, device: Device, widest: int,
    ) -> None:
        self.axes = axes_of(regions)
        self._regions, self._runs, self._channels, self._beats = regions, runs, channels, beats
        self._options, self._device, self._widest = options, device, widest
        self._forecast = Forecast(regions, self.axes)
        self._price = prices(device)
        self._rounds = [nest.rounds for nest in regions.nests]

    def outlooks(self) -> list[Outlook]:
        """All choices worth planning, the best first."""
        nests = sorted({axis.nest for axis in self.axes})
        found: list[Outlook] = []
        if not nests:
            return found
        by_nest = [list(self._choices(nest)) for nest in nests]
        if len(nests) == 1 or prod(map(len, by_nest)) <= _MOST_CHOICES // 20:
            every = (_joined(choice) for choice in product(*by_nest))
            found = [self.outlook(choice) for choice in every]
        else:
            found = list(self._step_by_step(by_nest))
        if self._options.interval is not None:
            within = [item for item in found if item.cycles <= self._options.interval]
            return sorted(within, key=lambda item: (item.cost, item.cycles)) if within else []
        return sorted((item for item in found if self._fits(item)), key=lambda item: item.rank)

    def _choices(self, nest: int) -> Iterator[Factors]:
        """Factors of one nest's loops, as many rounds as may be planned."""
        axes = [axis for axis in self.axes if axis.nest == nest]
        cells = max(1, self._runs[nest].cells)
        most = min(_MOST_ROUNDS, max(1, _MOST_CELLS // cells))
        if self._options.dsp is not None and self._runs[nest].estimate.dsp:
            most = min(most, max(1, self._options.dsp // self._runs[nest].estimate.dsp))
        able: list[dict[Axis, int]] = [{}]
        for axis in axes:
            able = [
                {**one, axis: factor} for one in able for factor in axis.factors
                if prod(one.values()) * factor <= most
            ][:_MOST_CHOICES]
        yield from able

    def _step_by_step(self, by_nest: Sequence[Sequence[Factors]]) -> Iterator[Outlook]:
        """One nest after another, that first which shortens an item the most."""
        fewer = [self._best_each(choices) for choices in by_nest]
        now = self.outlook(_joined([choices[0] for choices in by_nest]))
        yield now
        while True:
            moves = [self.outlook({**now.factors, **one}) for choices in fewer for one in choices]
            better = [item for item in moves if item.cycles < now.cycles and self._fits(item)]
            if not better:
                return
            now = max(better, key=lambda item: (now.cycles - item.cycles) / max(1.0, item.cost - now.cost))
            yield now

    def _best_each(self, choices: Sequence[Factors]) -> list[Factors]:
        """The best choice for each number of rounds side by side."""
        best: dict[int, Outlook] = {}
        for one in choices:
            found, rounds = self.outlook(one), prod(one.values())
            if rounds not in best or found.rank < best[rounds].rank:
                best[rounds] = found
        return [found.factors for found in best.values()]

    def outlook(self, factors: Factors) -> Outlook:
        """What a choice should come to."""
        lut = dsp = run = 0
        lies = {buffer.name: self._forecast.lies(buffer, factors) for buffer in self._regions.memories}
        stores = max([1, *(item.stores for item in lies.values())])
        joins = 0
        for number, facts in enumerate(self._runs):
            mine = {axis: factor for axis, factor in factors.items() if axis.nest == number}
            copies = prod(mine.values())
            rounds = -(-self._rounds[number] // copies)
            interval = max(facts.initiation_interval, stores)
            run += facts.runs * ((rounds - 1) * interval + facts.latency_cycles + 1)
            lut, dsp = lut + facts.estimate.lut * copies, dsp + facts.estimate.dsp * copies
            joins += copies // prod(factor for axis, factor in mine.items() if axis.joins)
        bram, waits = 0, list(self._beats)
        for buffer in self._regions.memories:
            found = lies[buffer.name]
            entries = prod(-(-extent // count) for extent, count in zip(buffer.shape, found.banks))
            depth, width = ram_block(max(1, entries), self._device)
            if width and entries > _SHALLOW:
                blocks = -(-entries // depth) * -(-bit_width(buffer.element) // width)
                bram += blocks * prod(found.banks) * found.loads
        for buffer, goes_in in self._channels:
            found = lies[buffer.name]
            most = found.banks[-1] if found.banks else 1
            wide = self._widest // bit_width(buffer.element)
            lanes = lanes_of(most, buffer.size, min(wide, self._options.lanes or wide), run)
            waits[goes_in] = max(waits[goes_in], buffer.size // lanes)
        cycles = run + 1 + max(waits)
        cost = lut + _JOIN * joins + self._price.dsp * dsp + self._price.bram * bram
        return Outlook(factors, cycles, lut, dsp, bram, cost)

    def _fits(self, found: Outlook) -> bool:
        """Whether it may fit the device and keep to what was asked."""
        device, asked = self._device, self._options
        luts = [FULL * device.lut, *(one for one in (asked.lut, asked.sites) if one is not None)]
        return (
            found.dsp <= min(device.dsp, asked.dsp if asked.dsp is not None else device.dsp)
            and found.bram <= min(device.bram, asked.bram if asked.bram is not None else device.bram)
            and all(found.lut * _SURE <= limit for limit in luts)
        )


_JOIN = 32
"""LUTs that an accumulator counts for."""
_SHALLOW = 64
"""Words up to which a memory is in LUTs."""


def _joined(choices: Sequence[Factors]) -> Factors:
    return {axis: factor for choice in choices for axis, factor in choice.items()}
