"""Gates into LUTs: cuts of few leaves for every gate, the earliest, then the cheapest that is in time.

Mishchenko, Cho, Chatterjee and Brayton, "Combinational and sequential mapping with priority cuts", ICCAD
2007.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass

from kera_hw.rtl.techmap.bitwise.aig import AND, LEAF, Aig
from kera_hw.rtl.techmap.bitwise.shapes import masks

Cut = frozenset[int]
_KEPT, _KEPT_WIDE = 8, 4
"""Cuts kept for a gate: of as many leaves as a LUT has inputs, and of more."""
_NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class Timing:
    """When leaves settle, when outputs must, and what logic takes, in ps; an output may be in no hurry.

    ``lut_ps``: the way through a LUT and to it. ``wide_ps``: through functions of one input more than a LUT
    has, two more, and so on: LUTs side by side with multiplexers behind them.
    """

    arrival_ps: Sequence[float]
    required_ps: Sequence[float]
    lut_ps: float
    wide_ps: tuple[float, ...] = ()

    def delays_ps(self, inputs: int) -> list[float]:
        """By number of inputs, where a LUT has ``inputs``."""
        return [self.lut_ps] * (inputs + 1) + list(self.wide_ps)


@dataclass(frozen=True, slots=True)
class Lut:
    """A gate's table over other nodes."""

    leaves: tuple[int, ...]
    table: int


def map_gates(
    aig: Aig, outputs: Sequence[int], timings: Sequence[Timing], inputs: int
) -> list[dict[int, Lut]]:
    """For each timing the LUTs, by the node each gives, leaves before readers.

    Timings are alike but for when outputs must settle, of which cuts know nothing: these are found once.
    """
    cuts = _Mapping(aig, outputs, timings[0], inputs)
    cuts.enumerate()
    found: list[dict[int, Lut]] = []
    for timing in timings:
        mapping = cuts.for_timing(timing)
        mapping.choose()
        found.append({node: Lut(leaves, cone_table(aig, node, leaves)) for node, leaves in mapping.chosen()})
    return found


def cone_table(aig: Aig, root: int, leaves: Sequence[int]) -> int:
    """The table of a node over nodes that cut it off from the leaves."""
    count = len(leaves)
    full = (1 << (1 << count)) - 1
    values: dict[int, int] = dict(zip(leaves, masks(count)))
    values[0] = 0
    pending = [root]
    while pending:
        node = pending[-1]
        if node in values:
            pending.pop()
            continue
        assert aig.kind[node] != LEAF, "the leaves cut the cone off"
        a, b = aig.left[node], aig.right[node]
        missing = [x >> 1 for x in (a, b) if x >> 1 not in values]
        if missing:
            pending.extend(missing)
            continue
        x = values[a >> 1] ^ (full if a & 1 else 0)
        y = values[b >> 1] ^ (full if b & 1 else 0)
        values[node] = x & y if aig.kind[node] == AND else x ^ y
    return values[root]


def _kept(found: Mapping[Cut, tuple[float, float]], most: int, already: list[Cut]) -> list[Cut]:
    """Up to ``most`` cuts beside those there, the earliest and the cheapest in turn; (time, cost) of each."""
    early = sorted(found, key=found.__getitem__)
    cheap = sorted(found, key=lambda cut: (found[cut][1], found[cut][0]))
    kept = list(already)
    for cut in (cut for pair in zip(early, cheap) for cut in pair):
        if len(kept) == len(already) + most:
            break
        if not any(other <= cut for other in kept):
            kept.append(cut)
    return kept


class _Mapping:
    def __init__(self, aig: Aig, outputs: Sequence[int], timing: Timing, inputs: int) -> None:
        self.aig = aig
        self.timing = timing
        self.narrow, self.inputs = inputs, inputs + len(timing.wide_ps)
        self.delay_ps = timing.delays_ps(inputs)
        self.area = [1.0 * (1 << max(0, count - inputs)) for count in range(self.inputs + 1)]
        self.later = [ps - timing.lut_ps for ps in self.delay_ps]  # beyond what every LUT takes
        self.more = [count - 1.0 for count in self.area]
        self.outputs = outputs
        self.live = aig.live(outputs)
        self.readers = [float(max(1, n)) for n in aig.references(outputs)]
        count = len(aig)
        self.arrival = [0.0] * count
        self.flow = [0.0] * count
        self.cuts: list[list[Cut]] = [[] for _ in range(count)]
        self.best: list[Cut] = [frozenset()] * count
        self.required = [_NEVER] * count
        self.used = [0] * count
        self.nodes = [n for n in range(1, count) if self.live[n] and aig.kind[n] != LEAF]
        leaves = [n for n in range(1, count) if aig.kind[n] == LEAF]
        for node, arrival in zip(leaves, timing.arrival_ps):
            self.arrival[node] = arrival
            self.cuts[node] = [frozenset((node,))]

    def enumerate(self) -> None:
        """The cuts of every node, and the earliest for a start."""
        for node in self.nodes:
            self._enumerate(node)

    def for_timing(self, timing: Timing) -> _Mapping:
        """The same cuts, to choose from by themselves."""
        other = copy(self)
        other.timing = timing
        other.arrival, other.flow, other.best = list(self.arrival), list(self.flow), list(self.best)
        other.readers = list(self.readers)
        return other

    def choose(self) -> None:
        self._choose_used()
        for _ in range(2):
            for node in self.nodes:
                self._cheapest_by_flow(node)
            self._choose_used()
        for _ in range(2):
            self._exact()

    def chosen(self) -> list[tuple[int, tuple[int, ...]]]:
        return [(node, tuple(sorted(self.best[node]))) for node in self.nodes if self.used[node]]

    # Cuts

    def _enumerate(self, node: int) -> None:
        first, second = (self.cuts[x >> 1] for x in (self.aig.left[node], self.aig.right[node]))
        arrival, flow, most = self.arrival, self.flow, self.inputs
        later, more = self.later, self.more
        found: dict[Cut, tuple[float, float]] = {}
        for a in first:
            for b in second:
                cut = a | b
                if len(cut) <= most and cut not in found:
                    late, cost = 0.0, more[len(cut)]
                    for leaf in cut:
                        cost += flow[leaf]
                        if arrival[leaf] > late:
                            late = arrival[leaf]
                    found[cut] = (late + later[len(cut)], cost)
        narrow = {cut: figures for cut, figures in found.items() if len(cut) <= self.narrow}
        kept = _kept(narrow, _KEPT, [])
        if len(narrow) < len(found):
            kept = _kept({cut: found[cut] for cut in found if cut not in narrow}, _KEPT_WIDE, kept)
        self.cuts[node] = [*kept, frozenset((node,))]
        self._settle(node, min(kept, key=found.__getitem__))

    def _arrival_of(self, cut: Cut) -> float:
        late, arrival = 0.0, self.arrival
        for leaf in cut:
            if arrival[leaf] > late:
                late = arrival[leaf]
        return late + self.delay_ps[len(cut)]

    def _flow_of(self, cut: Cut) -> float:
        cost = self.area[len(cut)]
        for leaf in cut:
            cost += self.flow[leaf]
        return cost

    def _settle(self, node: int, cut: Cut) -> None:
        self.best[node] = cut
        self.arrival[node] = self._arrival_of(cut)
        self.flow[node] = self._flow_of(cut) / self.readers[node]

    def _own_cuts(self, node: int) -> list[Cut]:
        return self.cuts[node][:-1]

    # What is used, and until when it must settle

    def _choose_used(self) -> None:
        """Count readers of every node in the chosen cover, and set when each must settle."""
        self.used = [0] * len(self.aig)
        self.required = [_NEVER] * len(self.aig)
        for literal, wanted in zip(self.outputs, self.timing.required_ps):
            node = literal >> 1
            self.used[node] += 1
            self.required[node] = min(self.required[node], max(wanted, self.arrival[node]))
        self._set_required(count=True)

    def _set_required(self, count: bool) -> None:
        for node in reversed(self.nodes):
            if not self.used[node]:
                continue
            before = self.required[node] - self.delay_ps[len(self.best[node])]
            for leaf in self.best[node]:
                if count:
                    self.used[leaf] += 1
                self.required[leaf] = min(self.required[leaf], before)
        if count:
            for node in self.nodes:  # what readers there are in the cover guides the next choice
                self.readers[node] = max(1.0, (self.readers[node] + 2 * self.used[node]) / 3)

    def _cheapest_by_flow(self, node: int) -> None:
        """The cut of the least flow, then the earliest, of those in time; else the earliest of all."""
        arrivals, flows, latest = self.arrival, self.flow, self.required[node] + 0.5
        delay_ps, area = self.delay_ps, self.area
        best, best_key = self.cuts[node][0], (_NEVER, _NEVER)
        soonest, soonest_ps = best, _NEVER
        for cut in self.cuts[node][:-1]:
            late, cost = 0.0, area[len(cut)]
            for leaf in cut:
                cost += flows[leaf]
                if arrivals[leaf] > late:
                    late = arrivals[leaf]
            late += delay_ps[len(cut)]
            if late < soonest_ps:
                soonest, soonest_ps = cut, late
            if late <= latest and (cost, late) < best_key:
                best, best_key = cut, (cost, late)
        self._settle(node, best if best_key[0] < _NEVER else soonest)

    # Exact area

    def _exact(self) -> None:
        """Choose again, counting the LUTs each choice really adds."""
        for node in self.nodes:
            if not self.used[node]:
                self.arrival[node] = self._arrival_of(self.best[node])
                continue
            self._release(self.best[node])
            best, best_cost = self.best[node], (_NEVER, _NEVER)
            for cut in self._own_cuts(node):
                arrival = self._arrival_of(cut)
                if arrival > self.required[node] + 0.5:
                    continue
                cost = (self._take(cut), arrival)
                self._release(cut)
                if cost < best_cost:
                    best, best_cost = cut, cost
            self.best[node] = best
            self._take(best)
            self.arrival[node] = self._arrival_of(best)
        required = [_NEVER] * len(self.aig)
        for literal, wanted in zip(self.outputs, self.timing.required_ps):
            required[literal >> 1] = min(required[literal >> 1], max(wanted, self.arrival[literal >> 1]))
        self.required = required
        self._set_required(count=False)

    def _take(self, cut: Cut) -> float:
        """Use a cut; how many LUTs that adds."""
        added, pending = self.area[len(cut)], [cut]
        while pending:
            for leaf in pending.pop():
                if self.used[leaf] == 0 and self.aig.kind[leaf] != LEAF:
                    added += self.area[len(self.best[leaf])]
                    pending.append(self.best[leaf])
                self.used[leaf] += 1
        return added

    def _release(self, cut: Cut) -> None:
        """Undo ``_take``."""
        pending = [cut]
        while pending:
            for leaf in pending.pop():
                self.used[leaf] -= 1
                if self.used[leaf] == 0 and self.aig.kind[leaf] != LEAF:
                    pending.append(self.best[leaf])
