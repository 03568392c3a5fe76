"""Arrival times inside the stages of a schedule, the longest path of each stage, and the clock they allow."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log2

import numpy as np

from kera_hw.schedule.fpga.cells import WriteControl
from kera_hw.schedule.problem import Problem

_NEAR = 0.93  # end points within this share of the longest path may become the critical one after routing


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Arrivals per cell, in ps from the clock edge, and the cell before each on its longest path.

    ``settled_ps`` is counted in the stage the cell works in; ``output_ps`` in the stage its output is
    available in, which differs for registered products only.
    """

    settled_ps: list[int]
    output_ps: list[int]
    before: list[int | None]


def stage_arrivals(problem: Problem, stage: Sequence[int]) -> Arrivals:
    """Longest-path arrivals when each cell works in ``stage[cell]``."""
    latency: list[int] = problem.latency.tolist()
    clk_to_q: list[int] = problem.clk_to_q_ps.tolist()
    settled = list(clk_to_q)
    before: list[int | None] = [None] * problem.cell_count
    driven = [False] * problem.cell_count
    # Wires are sorted by reader, and ids are topological: each driver's time is final when it is used.
    for source, target, chained_ps, registered_ps in problem.edges.rows():
        chained = latency[source] == 0 and stage[source] == stage[target]
        arrival = settled[source] + chained_ps if chained else clk_to_q[source] + registered_ps
        if not driven[target] or arrival > settled[target]:
            settled[target] = arrival
            before[target] = source if chained else None
            driven[target] = True
    output = [clk_to_q[k] if own else settled[k] for k, own in enumerate(latency)]
    return Arrivals(settled, output, before)


def stage_paths(
    problem: Problem, stage: Sequence[int], arrivals: Arrivals,
) -> list[list[tuple[int, int, int]]]:
    """For each stage its longest path as (cell, delay, arrival), first cell first."""
    worst: list[int | None] = [None] * stage[problem.end]
    # A cell that reads constants alone is no path: nothing changes on its way.
    for cell in sorted({target for _, target, _, _ in problem.edges.rows()}):
        best = worst[stage[cell]]
        if best is None or arrivals.settled_ps[cell] > arrivals.settled_ps[best]:
            worst[stage[cell]] = cell
    return [[] if last is None else _path(problem, arrivals, last) for last in worst]


def _path(problem: Problem, arrivals: Arrivals, last: int) -> list[tuple[int, int, int]]:
    cells = [last]
    while (previous := arrivals.before[cells[-1]]) is not None:
        cells.append(previous)
    path: list[tuple[int, int, int]] = []
    time = round(problem.model.device.timing.clk_to_q_ps)
    for cell in reversed(cells):
        path.append((cell, arrivals.settled_ps[cell] - time, arrivals.settled_ps[cell]))
        time = arrivals.settled_ps[cell]
    return path


def likely(problem: Problem, luts: int) -> Problem:
    """The problem with the wires that its slowest path will have in a circuit of so many LUTs."""
    edges, cells, model = problem.edges, problem.netlist.cells, problem.model
    saved = 1 - model.near_share(luts)
    sinks: list[int] = edges.target.tolist()
    near = np.array([cells[sink].near for sink in sinks], dtype=bool)
    less = np.where(near, np.round(saved * edges.route_ps), 0).astype(np.int64)
    control = [saved * model.route_ps(c, 1) if isinstance(c, WriteControl) else 0 for c in cells]
    return replace(
        problem,
        edges=replace(
            edges, chained_ps=edges.chained_ps - less, registered_ps=edges.registered_ps - less,
            route_ps=edges.route_ps - less,
        ),
        clk_to_q_ps=problem.clk_to_q_ps - np.round(control).astype(np.int64),
    )


def fmax_mhz(problem: Problem, arrivals: Arrivals) -> float:
    """The clock that place and route should reach: the longest path, longer where many paths compete."""
    setup = problem.model.setup_ps
    times: list[int] = [*arrivals.settled_ps, *arrivals.output_ps, *problem.step_ps.tolist()]
    timing = problem.model.device.timing
    # Even without logic a register drives the next over one wire.
    least = round(timing.clk_to_q_ps + timing.route_lut_ps)
    longest = max([least, *times])
    cells = problem.netlist.cells
    near = sum(cells[k].width for k, time in enumerate(arrivals.settled_ps) if time >= _NEAR * longest)
    stretch = 1 + timing.crowd * log2(max(1, near))
    return round(1e6 / ((longest + setup) * stretch), 1)
