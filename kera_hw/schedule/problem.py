"""The scheduling problem of a netlist: nodes, wires with delays, timing pairs, and the runs of bits to keep.

Nodes are the cells (their ids), then one node per state register (the stage that writes it), then the end
node: the stage count N. A difference constraint (u, v, c) demands stage[v] >= stage[u] + c.
"""
from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kera_hw.schedule.fpga.bits import Bits
from kera_hw.schedule.fpga.cells import WriteControl
from kera_hw.schedule.fpga.delay_model import DelayModel
from kera_hw.schedule.fpga.netlist import Netlist
from kera_hw.schedule.fpga.units import IterativeUnit

IntArray = NDArray[np.int64]
_SHARE = 4096  # path starts handled at once while looking for timing pairs: bounds memory


@dataclass(frozen=True, slots=True)
class Run:
    """``width`` bits of ``cell`` from bit ``low``, all read by the same nodes."""

    cell: int
    low: int
    width: int
    readers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Edges:
    """Wires between cells, sorted by reader, then driver; each pair once.

    ``chained_ps`` is what wire and reader add to the time at which the driver has settled, in one stage;
    ``registered_ps`` what they add to the clock-to-output time of a register with the driver's value; both
    hold ``route_ps``, the wire alone, for ``fanout`` loads.
    """

    source: IntArray
    target: IntArray
    chained_ps: IntArray
    registered_ps: IntArray
    route_ps: IntArray
    fanout: IntArray

    def rows(self) -> list[tuple[int, int, int, int]]:
        """(driver, reader, chained, registered) in order."""
        columns = (self.source, self.target, self.chained_ps, self.registered_ps)
        return list(zip(*(column.tolist() for column in columns)))


@dataclass(frozen=True, slots=True)
class Reading:
    """``node`` reads ``width`` bits from ``low`` that enter it at ``position``, ``each`` loads a bit."""

    low: int
    width: int
    node: int
    position: int
    each: int


@dataclass(frozen=True, slots=True)
class Fans:
    """All readings, those of one cell after another, and the pieces of its output that they are made of.

    A piece is a run of bits that every reading takes whole or not at all. Of each reading: its ``node``, and
    the wire (``edge``) that it belongs to, -1 where that is no cell. ``first`` is where its pieces begin:
    their numbers, whose they are, and how many loads a bit.
    """

    node: IntArray
    edge: IntArray
    first: IntArray
    piece: IntArray
    reading: IntArray
    each: IntArray


@dataclass(frozen=True, slots=True)
class Problem:
    """Everything the solver needs; see ``build_problem``."""

    netlist: Netlist
    model: DelayModel
    readings: tuple[tuple[Reading, ...], ...]  # per cell
    fans: Fans
    runs: tuple[Run, ...]
    edges: Edges
    logic_ps: IntArray
    clk_to_q_ps: IntArray
    latency: IntArray  # pipeline registers inside each cell
    base_ps: IntArray  # arrival of each cell's output when all its inputs come from registers, if they can
    step_ps: IntArray  # time of one step of the unit that a cell calls; 0 where it has none

    @property
    def cell_count(self) -> int:
        return len(self.netlist.cells)

    @property
    def end(self) -> int:
        """The node whose stage is the stage count."""
        return len(self.netlist.cells) + len(self.netlist.states)

    def write_node(self, state: int) -> int:
        """The node of the stage that writes a state register."""
        return len(self.netlist.cells) + state


def build_problem(netlist: Netlist, model: DelayModel) -> Problem:
    """Collect runs, wires and delays of a netlist; all readers of a bit count as loads of one wire."""
    model = model.among(netlist)
    readings = _readings(netlist)
    cells = netlist.cells
    edges = _edges(netlist, model, readings)
    logic = np.array([model.logic_ps(cell) for cell in cells], dtype=np.int64)
    clk_to_q = np.array([model.clk_to_q_ps(cell) for cell in cells], dtype=np.int64)
    latency = np.array([cell.inner_stages() for cell in cells], dtype=np.int64)
    step = _step_times(netlist, model)
    base = np.maximum(_base(netlist, edges, clk_to_q, latency), step)
    runs = _runs(readings)
    fans = _fans(readings, edges)
    return Problem(netlist, model, readings, fans, runs, edges, logic, clk_to_q, latency, base, step)


def _step_times(netlist: Netlist, model: DelayModel) -> IntArray:
    """For every cell the time of one step of the iterative unit that it calls, if it does."""
    times = np.zeros(len(netlist.cells), dtype=np.int64)
    for unit, users in netlist.calls():
        if isinstance(unit, IterativeUnit):
            settled = _settled_ps(unit.step, model)
            for user in users:
                cell = netlist.cells[user]
                times[user] = settled + model.route_ps(cell, 1) + model.logic_ps(cell)
    return times


def _settled_ps(step: Netlist, model: DelayModel) -> int:
    """Time from the registers around a step until all of it has settled."""
    inner = build_problem(step, model)
    settled: list[int] = inner.clk_to_q_ps.tolist()
    for source, target, chained, registered in inner.edges.rows():
        restarts = inner.latency[source] > 0
        arrival = inner.clk_to_q_ps[source] + registered if restarts else settled[source] + chained
        settled[target] = max(settled[target], int(arrival))
    return max(settled, default=0)


def _base(netlist: Netlist, edges: Edges, clk_to_q: IntArray, latency: IntArray) -> IntArray:
    base = np.zeros(len(clk_to_q), dtype=np.int64)
    half = latency == 1  # registers before the product only: it must settle within the next stage
    base[half] = clk_to_q[half]
    np.maximum.at(base, edges.target, clk_to_q[edges.source] + edges.registered_ps)
    base = np.where(base == 0, clk_to_q, base)
    tied = np.array([isinstance(cell, WriteControl) for cell in netlist.cells], dtype=bool)
    if tied.any():  # what follows a state's control works in the same stage, its path is never cut
        for source, target, chained, _ in edges.rows():
            if tied[source]:
                tied[target] = True
                base[target] = max(base[target], base[source] + chained)
    return base


def with_fanout(problem: Problem, fanout: IntArray) -> Problem:
    """The same problem with other fan-outs of its wires."""
    edges, cells, model = problem.edges, problem.netlist.cells, problem.model
    sinks: list[int] = edges.target.tolist()
    fanouts: list[int] = fanout.tolist()
    route = np.array([model.route_ps(cells[t], n) for t, n in zip(sinks, fanouts)], dtype=np.int64)
    change = route - edges.route_ps
    edges = replace(
        edges, chained_ps=edges.chained_ps + change, registered_ps=edges.registered_ps + change,
        route_ps=route, fanout=fanout,
    )
    base = _base(problem.netlist, edges, problem.clk_to_q_ps, problem.latency)
    base = np.maximum(base, problem.step_ps)
    return replace(problem, edges=edges, base_ps=base)


def staged_fanout(problem: Problem, stage: Sequence[int], slack: int = 0) -> IntArray:
    """Fan-outs of all wires when readers work in ``stage`` (indexed by node).

    A register drives the readers of its stage (of up to ``slack`` stages around it) and, where the value is
    kept for later ones, the next register.
    """
    fans, found = problem.fans, np.zeros(len(problem.edges.source), dtype=np.int64)
    if not len(fans.node):
        return found
    at = np.asarray(stage, dtype=np.int64)[fans.node][fans.reading]
    last = np.full(int(fans.piece.max()) + 1, -1, dtype=np.int64)  # the stage of a piece's last reader
    np.maximum.at(last, fans.piece, np.where(fans.each > 0, at, -1))
    loads = _loads_near(fans, at, slack) + (last[fans.piece] > at + slack)
    most = np.maximum.reduceat(loads, fans.first)
    wired = fans.edge >= 0
    np.maximum.at(found, fans.edge[wired], most[wired])
    return found


def _loads_near(fans: Fans, at: IntArray, slack: int) -> IntArray:
    """For every piece of a reading the loads of readers at most ``slack`` stages from it."""
    stages = int(at.max()) + 1 + 2 * slack
    keys = fans.piece * stages + at + slack
    known, place = np.unique(keys, return_inverse=True)
    counts = np.bincount(place, weights=fans.each).astype(np.int64)
    loads: IntArray = counts[place]
    for step in (*range(-slack, 0), *range(1, slack + 1)):
        near = np.minimum(np.searchsorted(known, keys + step), len(known) - 1)
        loads = loads + np.where(known[near] == keys + step, counts[near], 0)
    return loads


def _fans(readings: Sequence[Sequence[Reading]], edges: Edges) -> Fans:
    edge_of = {pair: k for k, pair in enumerate(zip(edges.source.tolist(), edges.target.tolist()))}
    rows: list[tuple[int, int, int]] = []
    pieces: list[tuple[int, int, int]] = []
    begun = 0
    for cell, own in enumerate(readings):
        cuts = sorted({end for r in own for end in (r.low, r.low + r.width)})
        number = {low: begun + k for k, low in enumerate(cuts)}
        begun += len(cuts)
        for r in own:
            taken = range(number[r.low], number[r.low + r.width])
            pieces += [(piece, len(rows), r.each) for piece in taken]
            rows.append((r.node, edge_of.get((cell, r.node), -1), len(pieces) - len(taken)))
    node, edge, first = np.array(rows, dtype=np.int64).reshape(-1, 3).T.copy()
    piece, reading, each = np.array(pieces, dtype=np.int64).reshape(-1, 3).T.copy()
    return Fans(node, edge, first, piece, reading, each)


def _readings(netlist: Netlist) -> tuple[tuple[Reading, ...], ...]:
    """Who reads which bits of every cell."""
    found: list[list[Reading]] = [[] for _ in netlist.cells]

    def note(bits: Bits, node: int, each: int, position: int = 0) -> None:
        for segment in bits:
            if segment.cell is not None:
                found[segment.cell].append(Reading(segment.low, segment.width, node, position, each))
            position += segment.width

    for index, cell in enumerate(netlist.cells):
        for operand, (bits, each) in enumerate(cell.loads()):
            note(bits, index, each, cell.entry(operand))
    end = len(netlist.cells) + len(netlist.states)
    for index, state in enumerate(netlist.states):
        for bits in state.operands():
            note(bits, len(netlist.cells) + index, 1)
    for output in netlist.outputs:
        note(output.bits, end, 1)
    return tuple(tuple(readings) for readings in found)


def _edges(netlist: Netlist, model: DelayModel, found: Sequence[Sequence[Reading]]) -> Edges:
    count = len(netlist.cells)
    rows: list[tuple[int, ...]] = []
    for source, readings in enumerate(found):
        driver = netlist.cells[source]
        loading = _loading(driver.width, readings)
        wires: dict[int, tuple[int, int, int]] = {}  # reader: loads, chained, registered
        for r in readings:
            if r.node >= count:
                continue
            sink = netlist.cells[r.node]
            fanout = max(loading[r.low : r.low + r.width])
            chained = model.through_ps(driver, r.low, sink, r.position, r.width)
            registered = model.logic_ps(sink, r.position)
            known = wires.get(r.node, (0, chained, 0))
            wires[r.node] = (max(known[0], fanout), max(known[1], chained), max(known[2], registered))
        for target, (fanout, chained, registered) in wires.items():
            route = model.route_ps(netlist.cells[target], fanout)
            rows.append((source, target, route + chained, route + registered, route, fanout))
    table = np.array(sorted(rows, key=lambda row: (row[1], row[0])), dtype=np.int64).reshape(-1, 6)
    return Edges(*(table[:, k].copy() for k in range(6)))


def _loading(width: int, readings: Sequence[Reading]) -> list[int]:
    """The loads of every bit."""
    steps = [0] * (width + 1)
    for r in readings:
        steps[r.low] += r.each
        steps[r.low + r.width] -= r.each
    return list(itertools.accumulate(steps))


def _runs(found: Sequence[Sequence[Reading]]) -> tuple[Run, ...]:
    """Maximal runs of bits with equal sets of readers."""
    runs: list[Run] = []
    for cell, readings in enumerate(found):
        cuts = sorted({p for r in readings for p in (r.low, r.low + r.width)})
        for low, high in itertools.pairwise(cuts):
            nodes = tuple(sorted({r.node for r in readings if r.low <= low < r.low + r.width}))
            if not nodes:
                continue
            last = runs[-1] if runs else None
            if last and last.cell == cell and last.low + last.width == low and last.readers == nodes:
                runs[-1] = Run(cell, last.low, last.width + high - low, nodes)
            else:
                runs.append(Run(cell, low, high - low, nodes))
    return tuple(runs)


@dataclass(frozen=True, slots=True)
class _Forward:
    """Combinational wires grouped by driver (CSR): arrays of readers and of the delay they add."""

    first: IntArray
    count: IntArray
    target: IntArray
    delay_ps: IntArray


def timing_pairs(problem: Problem, limit_ps: int) -> tuple[IntArray, IntArray]:
    """Pairs (u, v) of cells that cannot share a stage: some path from u to v takes longer than ``limit_ps``.

    ``limit_ps`` is the clock less the setup time. Together the pairs are exact: stages that keep precedence
    and all pairs have no path over the limit. Paths are followed to the first cell over the limit only, and
    pairs implied by others are left out. Every single cell must fit the limit.
    """
    edges = problem.edges
    through = problem.latency[edges.source] == 0  # a registered product starts afresh
    source, target = edges.source[through], edges.target[through]
    added = edges.chained_ps[through]
    order = np.argsort(source, kind="stable")
    count = np.bincount(source, minlength=problem.cell_count)
    forward = _Forward(np.cumsum(count) - count, count, target[order], added[order])
    tail = _tails(problem.cell_count, source, target, added)
    works = problem.logic_ps > 0  # leaves add nothing to the paths of their readers
    starts = np.flatnonzero(works & (problem.base_ps + tail > limit_ps))
    keys = [
        _violations(problem, forward, tail, starts[begin : begin + _SHARE], limit_ps)
        for begin in range(0, len(starts), _SHARE)
    ]
    found = _distinct(np.concatenate(keys)) if keys else np.zeros(0, dtype=np.int64)
    kept = _not_implied(found, edges.source, edges.target, problem.cell_count) if len(found) else found
    return kept // problem.cell_count, kept % problem.cell_count


def _tails(count: int, source: IntArray, target: IntArray, added: IntArray) -> IntArray:
    """Longest combinational delay that can still follow each cell's output."""
    tail: list[int] = [0] * count
    order = np.argsort(source, kind="stable")[::-1]
    rows: list[list[int]] = np.stack([source, target, added], axis=1)[order].tolist()
    for u, v, d in rows:
        tail[u] = max(tail[u], d + tail[v])
    return np.array(tail, dtype=np.int64)


def _violations(
    problem: Problem, forward: _Forward, tail: IntArray, starts: IntArray, limit_ps: int,
) -> IntArray:
    """Keys u * cells + v of the first cells over the limit on paths from ``starts``, at most ``_SHARE``."""
    cells = problem.cell_count
    time_bits = max(limit_ps, int(problem.base_ps[starts].max(initial=0))).bit_length()
    # A path's start counts by its place in the share: with cell numbers large designs would overflow.
    assert _SHARE * cells << time_bits < 1 << 63, "a pair and a time within the limit fit one word"
    origin, here, arrival = np.arange(len(starts)), starts, problem.base_ps[starts]
    keys: list[IntArray] = []
    while len(here):
        count = forward.count[here]
        wire = _expand(forward.first[here], count)
        origin = np.repeat(origin, count)
        arrival = np.repeat(arrival, count) + forward.delay_ps[wire]
        here = forward.target[wire]
        over = arrival > limit_ps
        keys.append(_distinct(origin[over] * cells + here[over]))
        alive = ~over & (arrival + tail[here] > limit_ps)
        # Of several paths of equally many wires the longest decides: sorted by pair, then arrival, the last.
        packed = (origin[alive] * cells + here[alive]) << time_bits | arrival[alive]
        packed.sort()
        key = packed >> time_bits
        last = np.append(key[1:] != key[:-1], True) if len(key) else np.zeros(0, dtype=bool)
        key, arrival = key[last], packed[last] & (1 << time_bits) - 1
        origin, here = key // cells, key % cells
    found = _distinct(np.concatenate(keys)) if keys else np.zeros(0, dtype=np.int64)
    return starts[found // cells] * cells + found % cells


def _distinct(keys: IntArray) -> IntArray:
    """The keys in order, each once. Sorting beats the hash table of ``np.unique`` several times over."""
    keys.sort()
    return keys[np.append(True, keys[1:] != keys[:-1])] if len(keys) else keys


def _expand(first: IntArray, count: IntArray) -> IntArray:
    """The ranges [first, first + count) one after another."""
    offset: IntArray = np.arange(int(count.sum()), dtype=np.int64)
    offset -= np.repeat(np.cumsum(count) - count, count)
    return np.repeat(first, count) + offset


def _not_implied(keys: IntArray, first: IntArray, second: IntArray, cells: int) -> IntArray:
    """Drop pairs that a closer pair makes redundant; wires lead from ``first`` to ``second``.

    (u, v) follows from (w, v) with a wire u to w, since stage[w] >= stage[u], and from (u, w) with a wire w
    to v. Either leaves a pair that is closer together, so nothing is dropped in a circle.
    """
    implied = np.zeros(len(keys), dtype=bool)
    for near, far, of_source in ((first, second, True), (second, first, False)):
        own, other = (keys // cells, keys % cells) if of_source else (keys % cells, keys // cells)
        order = np.argsort(near, kind="stable")
        count = np.bincount(near, minlength=cells)
        start = np.cumsum(count) - count
        step = far[order][_expand(start[own], count[own])]
        kept = np.repeat(other, count[own])
        wanted = step * cells + kept if of_source else kept * cells + step
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        implied[np.repeat(np.arange(len(keys)), count[own])[keys[place] == wanted]] = True
    return keys[~implied]
