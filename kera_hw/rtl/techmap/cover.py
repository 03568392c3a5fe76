"""Covering: gates into LUTs of at most K operands, or into the carry cells they feed.

Works on whole vectors: a cut of a gate is up to K vectors and a truth table over them. Gates are covered by
area flow (a shared gate's cost is split among its users), with a small price on depth; an adder may take a
cut of up to three operands of the gate behind it for nothing.

Cuts are enumerated and pruned as by Cong, Wu and Ding, "Cut ranking and pruning", FPGA 1999; area flow is
due to Manohararajah, Brown and Vranesic, "Heuristics for area minimization in LUT-based FPGA technology
mapping", 2006.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

from kera_hw.rtl.techmap import absorb, fuse, truth
from kera_hw.rtl.techmap.chain import Chained, Function, PinRun, joined, widest_runs
from kera_hw.rtl.techmap.items import Gate, Sum
from kera_hw.rtl.techmap.net import Net, known
from kera_hw.schedule.fpga.bits import Bits, Segment, bits_width, concat, slice_bits

_CUTS = 6
_MOST_PRODUCTS = 200
_DEPTH_PRICE = 0.08
_CHAIN_GAIN = 1.5
"""LUTs that tables of their own for an adder's bits must save."""
"""Share of a gate's cost that one more level is worth."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A function of up to K vectors that gives a gate's output."""

    leaves: tuple[Bits, ...]
    table: int
    depth: int
    flow: float

    @property
    def score(self) -> float:
        return self.flow * (1 + _DEPTH_PRICE * self.depth)


@dataclass(frozen=True, slots=True)
class Fused:
    """An adder's operands after covering: ``a``, and a function of ``leaves``."""

    a: Bits
    leaves: tuple[Bits, ...]
    table: int


@dataclass(frozen=True, slots=True)
class Cover:
    """What to build: every gate's chosen cut, every adder's operands; in ``chains`` those with own tables."""

    cuts: dict[int, Cut]
    adds: dict[int, Fused]
    chains: dict[int, Chained]


class Coverer:
    """Covers one net for several sets of outputs: what these do not change is taken over from the last."""

    def __init__(self, net: Net, lut_inputs: int) -> None:
        self._net = net
        self._lut_inputs = lut_inputs
        self._last: _Covering | None = None

    def cover(self, outputs: Iterable[Bits]) -> Cover:
        """Choose cuts for all gates that ``outputs`` need."""
        last, self._last = self._last, _Covering(self._net, list(outputs), self._lut_inputs)
        return self._last.run(last)


def permuted(leaf: Bits, pattern: Sequence[Segment]) -> Bits:
    """A leaf seen through a vector that takes bits of the gate it feeds; one-bit leaves stay broadcast."""
    if bits_width(leaf) == 1:
        return leaf
    if len(pattern) == 1 and pattern[0].low == 0 and pattern[0].width == bits_width(leaf):
        return leaf
    return concat(slice_bits(leaf, s.low, s.width) for s in pattern)


class _Covering:
    def __init__(self, net: Net, outputs: list[Bits], lut_inputs: int) -> None:
        self.net = net
        self.outputs = outputs
        self.lut_inputs = lut_inputs
        self.cuts: dict[int, list[Cut]] = {}
        self.depth: list[int] = [0] * len(net.items)
        self.flow: list[float] = [0.0] * len(net.items)
        self.adds: dict[int, Fused] = {}
        self.chains: dict[int, Chained] = {}
        self.uses = self._count_uses()

    def _count_uses(self) -> list[float]:
        """Uses of every item, in whole outputs: a slice counts as its share."""
        uses = [0.0] * len(self.net.items)
        live = [False] * len(self.net.items)

        def use(bits: Bits) -> None:
            share: dict[int, int] = {}
            for segment in bits:
                if segment.cell is not None:
                    live[segment.cell] = True
                    share[segment.cell] = share.get(segment.cell, 0) + segment.width
            for cell, count in share.items():
                uses[cell] += min(1.0, count / max(1, self.net.items[cell].width))

        for bits in self.outputs:
            use(bits)
        for index in range(len(self.net.items) - 1, -1, -1):
            if live[index]:
                for bits in self.net.items[index].ins:
                    use(bits)
        self.live = live
        return uses

    def run(self, last: _Covering | None) -> Cover:
        """Cover the live items in order; as in ``last`` where nothing that they may look at has changed."""
        changed = [True] * len(self.net.items)
        for index, item in enumerate(self.net.items):
            if not self.live[index]:
                continue
            known = last is not None and index < len(last.live) and last.live[index]
            if known and not any(s.cell is not None and changed[s.cell] for bits in item.ins for s in bits):
                assert last is not None
                self._take_over(last, index)
            elif isinstance(item, Gate):
                self._gate(index, item)
            elif isinstance(item, Sum):
                self._adder(index, item)
            else:
                base = max((self._depth_of(bits) for bits in item.ins), default=0)
                self.depth[index] = base + item.levels
                self.flow[index] = sum(self._flow_of(bits) for bits in item.ins)
            if known:
                assert last is not None
                changed[index] = self._looks_changed(last, index, changed)
        return Cover({index: found[0] for index, found in self.cuts.items()}, self.adds, self.chains)

    def _take_over(self, last: _Covering, index: int) -> None:
        self.depth[index], self.flow[index] = last.depth[index], last.flow[index]
        for mine, others in ((self.cuts, last.cuts), (self.adds, last.adds), (self.chains, last.chains)):
            if index in others:
                mine[index] = others[index]  # pyright: ignore[reportArgumentType] - of one kind each

    def _looks_changed(self, last: _Covering, index: int, changed: list[bool]) -> bool:
        """Whether a reader may see anything else than before: an item's cuts, their leaves, its cost."""
        if self.flow[index] != last.flow[index] or self.depth[index] != last.depth[index]:
            return True
        if self.flow[index] and self.uses[index] != last.uses[index]:
            return True
        cuts = self.cuts.get(index, [])
        return cuts != last.cuts.get(index, []) or any(
            s.cell is not None and changed[s.cell] for cut in cuts for leaf in cut.leaves for s in leaf
        )

    def _depth_of(self, bits: Bits) -> int:
        return max((self.depth[s.cell] for s in bits if s.cell is not None), default=0)

    def _flow_of(self, bits: Bits) -> float:
        """Cost of having a vector, its share of the gates behind it."""
        total = 0.0
        for s in bits:
            if s.cell is not None and self.flow[s.cell]:
                item = self.net.items[s.cell]
                total += self.flow[s.cell] * s.width / item.width / max(1.0, self.uses[s.cell])
        return total

    def _expansions(self, bits: Bits) -> list[tuple[tuple[Bits, ...], int]]:
        """A vector as a function of other vectors: itself, or the cuts of the one gate it is taken from."""
        found: list[tuple[tuple[Bits, ...], int]] = [((bits,), 0b10)]
        cell = bits[0].cell
        if cell is None or cell not in self.cuts or any(s.cell != cell for s in bits):
            return found
        if len(self.cuts[cell][0].leaves) == 1:
            found.clear()  # a LUT inverts its inputs for nothing, and the inverter may have no other use
        found.extend(
            (tuple(permuted(leaf, bits) for leaf in cut.leaves), cut.table) for cut in self.cuts[cell]
        )
        return found

    def _gate(self, index: int, item: Gate) -> None:
        table, width = item.table, item.width
        candidates: dict[tuple[Bits, ...], Cut] = {}
        for leaves, inner in self._products(item.ins):
            cut = self._cut(leaves, truth.compose(table, inner, len(leaves)), width)
            old = candidates.get(cut.leaves)
            if old is None or cut.score < old.score:
                candidates[cut.leaves] = cut
        best = sorted(candidates.values(), key=lambda c: (c.score, c.depth, len(c.leaves)))[:_CUTS]
        shallow = min(candidates.values(), key=lambda c: (c.depth, c.flow))
        if shallow not in best:
            best.append(shallow)
        if best[0].depth > shallow.depth and shallow.flow <= best[0].flow * 1.05:
            best.remove(shallow)
            best.insert(0, shallow)
        self.cuts[index] = best
        self.depth[index] = best[0].depth
        self.flow[index] = best[0].flow

    def _products(
        self, operands: Sequence[Bits]
    ) -> Iterable[tuple[tuple[Bits, ...], tuple[tuple[int, tuple[int, ...]], ...]]]:
        """Combinations of one expansion per operand that stay within K leaves."""
        partial: list[tuple[tuple[Bits, ...], tuple[tuple[int, tuple[int, ...]], ...]]] = [((), ())]
        for bits in operands:
            grown: list[tuple[tuple[Bits, ...], tuple[tuple[int, tuple[int, ...]], ...]]] = []
            expansions = [(one, tuple(dict.fromkeys(one)), table) for one, table in self._expansions(bits)]
            for leaves, inner in partial:
                for extra, distinct, table in expansions:
                    merged = (*leaves, *[leaf for leaf in distinct if leaf not in leaves])
                    if len(merged) <= self.lut_inputs:
                        places = tuple([merged.index(leaf) for leaf in extra])
                        grown.append((merged, (*inner, (table, places))))
            partial = grown[:_MOST_PRODUCTS]
        return partial

    def _cut(self, leaves: tuple[Bits, ...], table: int, width: int) -> Cut:
        k = 0
        while k < len(leaves):
            if truth.depends(table, len(leaves), k):
                k += 1
            else:
                table = truth.cofactor(table, len(leaves), k, 0)
                leaves = leaves[:k] + leaves[k + 1 :]
        depth = 1 + max((self._depth_of(leaf) for leaf in leaves), default=0)
        return Cut(leaves, table, depth, width + sum(self._flow_of(leaf) for leaf in leaves))

    def _adder(self, index: int, item: Sum) -> None:
        a, operands, carry, table = item.a, list(item.operands), item.carry, item.table
        found = [Fused(a, tuple(operands), table)]
        if self.net.fusing:
            for left, right, inverts in ((a, operands, table), *self._swapped(a, operands, table)):
                found.extend(self._absorptions(left, right, inverts))
        costs = [self._flow_of(f.a) + sum(self._flow_of(leaf) for leaf in f.leaves) for f in found]
        best = min(range(len(found)), key=lambda k: (costs[k], k))
        chosen = found[best]
        self.adds[index] = chosen
        self.flow[index] = costs[best] + self._flow_of(carry)
        ends = (chosen.a, *chosen.leaves, carry)
        chained = self._chained(a, operands, table, costs[best]) if self.net.fusing else None
        if chained is not None:
            self.chains[index], cost = chained
            self.flow[index] = cost + self._flow_of(carry)
            ends = (*self.chains[index].pins, carry)
        self.depth[index] = 2 + max((self._depth_of(bits) for bits in ends), default=0)

    def _swapped(self, a: Bits, operands: list[Bits], table: int) -> list[tuple[Bits, list[Bits], int]]:
        if table == 0b10 and len(operands) == 1:
            return [(operands[0], [a], 0b10)]
        return []

    def _absorptions(self, a: Bits, operands: list[Bits], table: int) -> list[Fused]:
        """Ways to take the gate behind the only operand into the carry cell."""
        if len(operands) != 1:
            return []
        bits = operands[0]
        gates = [s for s in bits if s.cell is not None]
        if not gates:
            return []
        cell = max(gates, key=lambda s: s.width).cell
        assert cell is not None
        zero = known(a) == 0
        found: list[Fused] = []
        for cut in self.cuts.get(cell, ()):
            count = len(cut.leaves)
            inner = cut.table if table == 0b10 else truth.mask(count) ^ cut.table
            order = fuse.legal_order(inner, count, zero)
            if order is None or count > 3:
                continue
            leaves = absorb.through(cut.leaves, cut.table, cell, bits, self._views)
            if leaves is None and all(s.cell == cell for s in gates):
                leaves = _through(cut, bits)
            if leaves is not None:
                ordered = tuple(leaves[k] for k in order)
                found.append(Fused(a, ordered, fuse.reorder(inner, order)))
        return found

    def _chained(
        self, a: Bits, operands: list[Bits], table: int, limit: float
    ) -> tuple[Chained, float] | None:
        """Both operands' gates in the carry cells, run by run, and their leaves' cost; None if no gain."""
        if len(operands) != 1:
            return None
        assert table in (0b10, 0b01), "the only operand is added or its complement"
        total = 0.0
        parts: list[PinRun] = []
        for low, count in widest_runs((a, operands[0])):
            first, second = (self._functions(slice_bits(bits, low, count)) for bits in (a, operands[0]))
            if table != 0b10:
                second = [(leaves, truth.negated(inner, leaves)) for leaves, inner in second]
            ends = count == 1 and low + 1 == bits_width(a)
            found = [joined(count, one, other, ends) for one, other in product(first, second)]
            costs = [(sum(map(self._flow_of, part.leaves)), part) for part in found if part is not None]
            if not costs:
                return None
            cost, part = min(costs, key=lambda item: item[0])
            total += cost
            if total > limit - _CHAIN_GAIN:
                return None
            parts.append(part)
        return Chained(tuple(parts)), total

    def _functions(self, bits: Bits) -> list[Function]:
        """A run of one segment as functions of others; a constant is one of none."""
        value = known(bits)
        return self._expansions(bits) if value is None else [((), value & 1)]

    def _views(self, segment: Segment) -> list[absorb.View]:
        """A single bit as itself, and by the cuts of its gate over single bits."""
        assert segment.cell is not None
        found: list[absorb.View] = [(((segment,),), 0b10)]
        for cut in self.cuts.get(segment.cell, ()):
            leaves = tuple(
                leaf if bits_width(leaf) == 1 else slice_bits(leaf, segment.low, 1) for leaf in cut.leaves
            )
            found.append((leaves, cut.table))
        return found


def _through(cut: Cut, bits: Bits) -> tuple[Bits, ...] | None:
    """The cut's leaves seen through ``bits``, whose constants become constants on the leaves."""
    count = len(cut.leaves)
    if all(s.cell is not None for s in bits):
        return tuple(permuted(leaf, bits) for leaf in cut.leaves)
    choice: dict[int, int] = {}
    for value in (0, 1):
        index = next((i for i in range(1 << count) if cut.table >> i & 1 == value), None)
        if index is None:
            return None
        choice[value] = index
    leaves: list[Bits] = []
    for k, leaf in enumerate(cut.leaves):
        parts: list[Bits] = []
        for s in bits:
            if s.cell is not None:
                one = bits_width(leaf) == 1
                parts.append(leaf * s.width if one else slice_bits(leaf, s.low, s.width))
            else:
                value = sum((choice[s.low >> i & 1] >> k & 1) << i for i in range(s.width))
                parts.append((Segment(None, value, s.width),))
        leaves.append(concat(parts))
    return tuple(leaves)
