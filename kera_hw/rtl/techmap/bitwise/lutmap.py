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
    known: dict[tuple[int, tuple[int, ...]], Lut] = {}
    for timing in timings:
        mapping = cuts.for_timing(timing)
        mapping.choose()
        luts: dict[int, Lut] = {}
        for place in mapping.chosen():
            node, leaves = place
            if place not in known:
                known[place] = Lut(leaves, cone_table(aig, node, leaves))
            luts[node] = known[place]
        found.append(luts)
    return found


def cone_table(aig: Aig, root: int, leaves: Sequence[int]) -> int:
    """The table of a node over nodes that cut it off from the leaves."""
    count = len(leaves)
    full = (1 << (1 << count)) - 1
    kind, left, right = aig.kind, aig.left, aig.right
    values: dict[int, int] = dict(zip(leaves, masks(count)))
    values[0] = 0
    pending = [root]
    while pending:
        node = pending[-1]
        if node in values:
            pending.pop()
            continue
        assert kind[node] != LEAF, "the leaves cut the cone off"
        a, b = left[node], right[node]
        x, y = values.get(a >> 1), values.get(b >> 1)
        if x is None or y is None:
            pending += [literal >> 1 for literal, value in ((a, x), (b, y)) if value is None]
            continue
        if a & 1:
            x ^= full
        if b & 1:
            y ^= full
        values[node] = x & y if kind[node] == AND else x ^ y
    return values[root]


def _kept(found: Mapping[Cut, tuple[float, float]], most: int, already: list[Cut]) -> list[Cut]:
    """Up to ``most`` cuts beside those there, the earliest and the cheapest in turn; (time, cost) of each."""
    early = sorted(found, key=found.__getitem__)
    cheap = sorted(found, key=lambda cut: found[cut][::-1])
    kept, full = list(already), len(already) + most
    for cut in (cut for pair in zip(early, cheap) for cut in pair):
        if len(kept) == full:
            break
        for other in kept:
            if other <= cut:
                break
        else:
            kept.append(cut)
    return kept


def _sign(node: int) -> int:
    return 1 << (node & 63)


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
        self.signs: list[list[int]] = [[] for _ in range(count)]
        """Of each cut: its leaves' numbers modulo the bits of a word, as a set of bits.

        Two cuts have at least as many leaves together as their signs have bits.
        """
        self.best: list[Cut] = [frozenset()] * count
        self.required = [_NEVER] * count
        self.used = [0] * count
        self.nodes = [n for n in range(1, count) if self.live[n] and aig.kind[n] != LEAF]
        leaves = [n for n in range(1, count) if aig.kind[n] == LEAF]
        for node, arrival in zip(leaves, timing.arrival_ps):
            self.arrival[node] = arrival
            self.cuts[node], self.signs[node] = [frozenset((node,))], [_sign(node)]

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
        left, right = self.aig.left[node] >> 1, self.aig.right[node] >> 1
        arrival, flow, most = self.arrival, self.flow, self.inputs
        later, more = self.later, self.more
        found: dict[Cut, tuple[float, float]] = {}
        signs: dict[Cut, int] = {}
        second = list(zip(self.cuts[right], self.signs[right]))
        for a, sign_a in zip(self.cuts[left], self.signs[left]):
            for b, sign_b in second:
                sign = sign_a | sign_b
                if sign.bit_count() > most:
                    continue
                cut = a | b
                size = len(cut)
                if size > most or cut in found:
                    continue
                late, cost = 0.0, more[size]
                for leaf in cut:
                    cost += flow[leaf]
                    if arrival[leaf] > late:
                        late = arrival[leaf]
                found[cut] = (late + later[size], cost)
                signs[cut] = sign
        narrow = {cut: figures for cut, figures in found.items() if len(cut) <= self.narrow}
        kept = _kept(narrow, _KEPT, [])
        if len(narrow) < len(found):
            kept = _kept({cut: found[cut] for cut in found if cut not in narrow}, _KEPT_WIDE, kept)
        self.cuts[node] = [*kept, frozenset((node,))]
        self.signs[node] = [*(signs[cut] for cut in kept), _sign(node)]
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
        used, required, best, delay_ps = self.used, self.required, self.best, self.delay_ps
        for node in reversed(self.nodes):
            if not used[node]:
                continue
            before = required[node] - delay_ps[len(best[node])]
            for leaf in best[node]:
                if count:
                    used[leaf] += 1
                if before < required[leaf]:
                    required[leaf] = before
        if count:
            readers = self.readers
            for node in self.nodes:  # what readers there are in the cover guides the next choice
                readers[node] = max(1.0, (readers[node] + 2 * used[node]) / 3)

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
        used, area, best, kind = self.used, self.area, self.best, self.aig.kind
        added, pending = area[len(cut)], [cut]
        while pending:
            for leaf in pending.pop():
                if used[leaf] == 0 and kind[leaf] != LEAF:
                    added += area[len(best[leaf])]
                    pending.append(best[leaf])
                used[leaf] += 1
        return added

    def _release(self, cut: Cut) -> None:
        """Undo ``_take``."""
        used, best, kind = self.used, self.best, self.aig.kind
        pending = [cut]
        while pending:
            for leaf in pending.pop():
                used[leaf] -= 1
                if used[leaf] == 0 and kind[leaf] != LEAF:
                    pending.append(best[leaf])
