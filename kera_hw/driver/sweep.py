"""One function at interval after interval: what its circuit takes against how often an item may come.

A longer interval asks for less, so it never takes more: where its own circuit would, that of a shorter one is
kept, and the sweep says so. Area is in sites, the larger of LUTs and flip-flops, with blocks at
the price at which circuits are chosen (``schedule.objective``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from math import inf
from typing import Any

from kera_hw.driver.design import HardwareDesign, Progress
from kera_hw.driver.hardware import plan_hardware
from kera_hw.driver.options import INTERVAL, TargetOptions
from kera_hw.driver.pace import interval_text
from kera_hw.graph import Export, Graph
from kera_hw.schedule.explain import Refusal
from kera_hw.schedule.fpga.device import find_device
from kera_hw.schedule.objective import measure_text
from kera_hw.support import KeraError, SourceFile

LONGEST = 64
"""Up to here every interval is tried; from here, or from a least one beyond, a quarter more each time."""
_EXCEEDS = 1 << 62
"""The area of a circuit that the device has no room for."""
_PATIENCE = 6
"""Intervals without a gain, beyond half of those so far, after which one without an end of its own stops."""


@dataclass(frozen=True, slots=True)
class Point:
    """An interval and the circuit for it, which may be one ``made_for`` a shorter one.

    ``area`` is None where there is no circuit; ``note`` tells why, or why it is another's. ``on_front``: no
    other point has less area, more items a second and less latency, or is as good in two and better in one.
    """

    interval: int
    made_for: int
    items_per_s: float
    latency_cycles: int
    lut: int
    ff: int
    dsp: int
    bram: int
    sites: int
    area: int | None
    note: str | None = None
    on_front: bool = False


@dataclass(frozen=True, slots=True)
class Sweep:
    """All points, and the measure of their areas."""

    function: str
    target: str
    clock_mhz: float
    measure: str
    points: tuple[Point, ...]

    def to_json(self) -> dict[str, Any]:
        """A plain JSON object."""
        return {
            "function": self.function, "target": self.target, "clock_mhz": self.clock_mhz,
            "measure": self.measure, "points": [asdict(point) for point in self.points],
        }  # fmt: skip


def sweep(
    graph: Graph,
    export: Export,
    options: TargetOptions,
    progress: Progress = lambda _: None,
    files: dict[str, SourceFile] | None = None,
    plan: Callable[..., HardwareDesign] = plan_hardware,
) -> Sweep:
    """Plans for the intervals up to ``--ii``, or for as long as the area falls.

    Raises KeraError where no interval has a circuit.
    """
    points: list[Point] = []
    best: Point | None = None
    clock_mhz, refusal = 0.0, None
    interval: int | None = 1
    while interval is not None:
        progress(interval_text(interval))
        least = 0
        try:
            design = plan(graph, export, replace(options, interval=interval), _quietly, files)
        except KeraError as fault:
            refusal, first = fault, fault.diagnostics[0]
            least = first.least if isinstance(first, Refusal) and first.code == "K0603" else 0
            points.append(_kept(interval, best, first.message.split(":")[0]))
        else:
            clock_mhz = design.clock_mhz
            found = _point(interval, design)
            assert found.area is not None
            if best is not None and best.area is not None and found.area >= best.area:
                found = _kept(interval, best, _why_not(found.area, best.area))
            else:
                best = found
            points.append(found)
        enough = LONGEST if best is None else best.interval * 3 // 2 + _PATIENCE + 1
        if options.interval is None and interval >= enough:
            break
        interval = _next(interval, least, options.interval)
    if best is None:
        assert refusal is not None
        raise refusal
    device = find_device(options.device)
    assert device is not None
    measure = measure_text(device).removeprefix("interval × ").strip("()")
    marked = tuple(replace(point, on_front=_on_front(point, points)) for point in points)
    return Sweep(export.name, f"fpga:{options.device}", clock_mhz, measure, marked)


def _next(interval: int, least: int, end: int | None) -> int | None:
    """The interval to try after one; ``least``: the least that there may be, or 0. None: past the end."""
    following = interval + 1 if interval < LONGEST else interval * 5 // 4
    if least > LONGEST:
        following = max(following, least)
    if end is not None and interval < end < following and least <= end:
        following = end
    return following if following <= (INTERVAL.most if end is None else end) else None


def _quietly(_: str) -> None:
    """The steps of one plan are not told."""


def _point(interval: int, design: HardwareDesign) -> Point:
    estimate, area = design.estimate, design.area
    most = design.core_paces[1]
    return Point(
        interval, interval, design.clock_mhz * 1e6 / most[1], most[0], estimate.lut, estimate.ff,
        estimate.dsp, estimate.bram, max(estimate.lut, estimate.ff), round(area) if area < inf else _EXCEEDS,
    )  # fmt: skip


def _why_not(own: int, best: int) -> str:
    """Why a circuit is not taken whose area is no less than that for a shorter interval."""
    if own >= _EXCEEDS:
        return "its own circuit would exceed the device"
    return f"its own circuit would take {'as much' if own == best else f'{own:,}'}"


def _kept(interval: int, best: Point | None, why: str | None) -> Point:
    """The circuit of a shorter interval, or none."""
    if best is None:
        return Point(interval, interval, 0.0, 0, 0, 0, 0, 0, 0, None, why)
    return replace(best, interval=interval, note=why)


def _on_front(point: Point, points: list[Point]) -> bool:
    """Whether no other point is at least as good in everything and better in something."""
    if point.area is None or point.made_for != point.interval:
        return False

    def figures(item: Point) -> tuple[float, float, float]:
        assert item.area is not None
        return item.area, -item.items_per_s, item.latency_cycles

    own = figures(point)
    others = (figures(item) for item in points if item.area is not None and item.made_for == item.interval)
    return not any(all(a <= b for a, b in zip(other, own)) and other != own for other in others)
