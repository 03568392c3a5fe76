"""Fewer gates for the same functions: small cones are replaced by their tables' shapes where that frees more.

A pass walks a graph from its leaves and writes a new one. What a replacement saves is counted on the old
graph: the gates that only the cone's root needed, less those of the new shape that are not there already.

Mishchenko, Chatterjee and Brayton, "DAG-aware AIG rewriting", DAC 2006.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush

from kera_hw.rtl.techmap.bitwise.aig import AND, LEAF, Aig
from kera_hw.rtl.techmap.bitwise.lutmap import cone_table
from kera_hw.rtl.techmap.bitwise.shapes import Shape, shape

_NARROW = 4
_CUTS = 8
"""Cuts of up to ``_NARROW`` leaves kept for a gate."""
_WIDE = 6
"""Leaves of the one wide cut that is tried for every gate."""


def restructured(aig: Aig, outputs: Sequence[int], leaves: int, even: bool) -> tuple[Aig, list[int]]:
    """One pass; ``even``: also where as many gates come as go, which opens other ways for the next pass."""
    return _Pass(aig, outputs, leaves, 0 if even else 1).run()


class _Pass:
    def __init__(self, aig: Aig, outputs: Sequence[int], leaves: int, least_gain: int) -> None:
        self.aig = aig
        self.outputs = list(outputs)
        self.leaves = leaves
        self.least_gain = least_gain
        self.refs = aig.references(outputs)
        self.replaced: dict[int, int] = {}
        self.cuts: list[list[frozenset[int]]] = [[frozenset((n,))] for n in range(len(aig))]

    def run(self) -> tuple[Aig, list[int]]:
        new = Aig()
        literal = [0] * len(self.aig)
        for node in range(1, self.leaves + 1):
            literal[node] = new.leaf()
        live = self.aig.live(self.outputs)
        for node in range(self.leaves + 1, len(self.aig)):
            if not live[node]:
                continue
            self._enumerate(node)
            found = self._replacement(node) if self.refs[node] else None
            if found is not None:
                cut, made = found
                literal[node] = new.build(made, [literal[leaf] for leaf in cut])
                continue
            a, b = (literal[x >> 1] ^ (x & 1) for x in (self.aig.left[node], self.aig.right[node]))
            literal[node] = new.both(a, b) if self.aig.kind[node] == AND else new.differ(a, b)
        return new.swept([literal[x >> 1] ^ (x & 1) for x in self.outputs], self.leaves)

    def _enumerate(self, node: int) -> None:
        left, right = self.aig.left[node] >> 1, self.aig.right[node] >> 1
        found = {
            cut for a in self.cuts[left] for b in self.cuts[right]
            if len(a) + len(b) <= _NARROW or (not a.isdisjoint(b))
            if len(cut := a | b) <= _NARROW
        }
        kept: list[frozenset[int]] = []
        for cut in sorted(found, key=lambda c: (len(c), sorted(c))):
            for other in kept:
                if other <= cut:
                    break
            else:
                kept.append(cut)
        self.cuts[node] = [*kept[:_CUTS], frozenset((node,))]

    def _wide_cut(self, node: int) -> frozenset[int]:
        """Leaves found by opening, one after another, the leaf that adds the fewest."""
        aig = self.aig
        cut = {aig.left[node] >> 1, aig.right[node] >> 1}
        while True:
            best: tuple[int, int, set[int]] | None = None
            for leaf in cut:
                if aig.kind[leaf] == LEAF or leaf in self.replaced:
                    continue
                more = {aig.left[leaf] >> 1, aig.right[leaf] >> 1} - cut
                if best is None or (len(more), -leaf) < best[:2]:
                    best = (len(more), -leaf, more)
            if best is None or len(cut) - 1 + best[0] > _WIDE:
                return frozenset(cut)
            cut.remove(-best[1])
            cut |= best[2]

    def _replacement(self, node: int) -> tuple[list[int], Shape] | None:
        best: tuple[list[int], Shape] | None = None
        best_gain = self.least_gain - 1
        for cut in [*self.cuts[node][:-1], self._wide_cut(node)]:
            if len(cut) < 2 or 0 in cut or any(self.refs[leaf] == 0 for leaf in cut):
                continue
            leaves = sorted(cut)
            freed = self._release(node, cut)
            if freed > best_gain:
                made = shape(cone_table(self.aig, node, leaves), len(leaves))
                added, same = self._added(made, leaves, node)
                if not same and freed - added > best_gain:
                    best, best_gain = (leaves, made), freed - added
            self._take(node, cut)
        if best is None:
            return None
        self._release(node, frozenset(best[0]))
        added, _ = self._added(best[1], best[0], node, commit=True)
        self.replaced[node] = added
        return best

    def _release(self, node: int, cut: frozenset[int]) -> int:
        """Take away the readers that a node is of others; how many gates only it needed, itself included."""
        freed, pending = 0, [node]
        while pending:
            gate = pending.pop()
            if gate in self.replaced:
                freed += self.replaced[gate]
                continue
            freed += 1
            for x in (self.aig.left[gate], self.aig.right[gate]):
                below = x >> 1
                self.refs[below] -= 1
                if self.refs[below] == 0 and below not in cut and self.aig.kind[below] != LEAF:
                    pending.append(below)
        return freed

    def _take(self, node: int, cut: frozenset[int]) -> None:
        """Undo ``_release``."""
        pending = [node]
        while pending:
            gate = pending.pop()
            if gate in self.replaced:
                continue
            for x in (self.aig.left[gate], self.aig.right[gate]):
                below = x >> 1
                if self.refs[below] == 0 and below not in cut and self.aig.kind[below] != LEAF:
                    pending.append(below)
                self.refs[below] += 1

    def _added(self, made: Shape, leaves: list[int], root: int, commit: bool = False) -> tuple[int, bool]:
        """Gates of a shape that are not in use yet, and whether it is just the root's own gate."""
        signals: list[int | None] = [0, *(2 * leaf for leaf in leaves)]
        added = 0
        for kind, a, b in made.gates:
            x, y = signals[a >> 1], signals[b >> 1]
            found = None
            if x is not None and y is not None:
                found = self.aig.find(kind, x ^ (a & 1), y ^ (b & 1))
            if found is None or (self.refs[found >> 1] == 0 and self.aig.kind[found >> 1] != LEAF):
                added += 1
            if commit:
                for signal in (x, y):
                    if signal is not None:
                        self.refs[signal >> 1] += 1
            signals.append(found)
        end = signals[made.output >> 1]
        return added, end is not None and end >> 1 == root


def balanced(
    aig: Aig, outputs: Sequence[int], leaves: int, arrival: Sequence[float]
) -> tuple[Aig, list[int]]:
    """Chains of one kind of gate as trees in which what settles late passes few gates."""
    refs = aig.references(outputs)
    new = Aig()
    literal = [0] * len(aig)
    level = [0.0]
    for node in range(1, leaves + 1):
        literal[node] = new.leaf()
        level.append(arrival[node - 1])
    live = aig.live(outputs)

    def members(node: int) -> list[int]:
        kind, pending = aig.kind[node], [aig.left[node], aig.right[node]]
        found: list[int] = []
        while pending:
            x = pending.pop()
            below = x >> 1
            if aig.kind[below] == kind and refs[below] == 1 and (x & 1 == 0 or kind != AND):
                found += [1] * (x & 1)  # an inverted XOR inverts the whole
                pending += [aig.left[below], aig.right[below]]
            else:
                found.append(x)
        return found

    def inner(node: int) -> bool:
        return live[node] and aig.kind[node] != LEAF

    absorbed: set[int] = set()
    for node in range(len(aig) - 1, leaves, -1):
        if inner(node):
            for x in (aig.left[node], aig.right[node]):
                below = x >> 1
                same = aig.kind[below] == aig.kind[node] and refs[below] == 1
                if same and (x & 1 == 0 or aig.kind[node] != AND):
                    absorbed.add(below)
    for node in range(leaves + 1, len(aig)):
        if not inner(node) or node in absorbed:
            continue
        heap = [(level[y >> 1], y) for y in (literal[x >> 1] ^ (x & 1) for x in members(node))]
        heapify(heap)
        while len(heap) > 1:
            (_, a), (_, b) = heappop(heap), heappop(heap)
            made = new.both(a, b) if aig.kind[node] == AND else new.differ(a, b)
            while len(level) < len(new):
                level.append(1 + max(level[a >> 1], level[b >> 1]))
            heappush(heap, (level[made >> 1], made))
        literal[node] = heap[0][1]
    return new.swept([literal[x >> 1] ^ (x & 1) for x in outputs], leaves)


def hastened(
    aig: Aig, outputs: Sequence[int], leaves: int, late: Mapping[int, int]
) -> tuple[Aig, list[int]]:
    """Outputs in ``late`` as a choice by the node given for each: what is known of it otherwise comes first.

    Everything behind the node is computed for both its values, beside the node instead of after it.
    """
    new, same = Aig(), [0] * len(aig)
    for node in range(1, leaves + 1):
        same[node] = new.leaf()

    def copied(literal: Sequence[int], node: int) -> int:
        a, b = (literal[x >> 1] ^ (x & 1) for x in (aig.left[node], aig.right[node]))
        return new.both(a, b) if aig.kind[node] == AND else new.differ(a, b)

    for node in range(leaves + 1, len(aig)):
        same[node] = copied(same, node)
    known: dict[int, list[list[int]]] = {}
    for pivot in set(late.values()):
        branches: list[list[int]] = []
        for value in (0, 1):
            literal = list(same)
            literal[pivot] = value
            behind = [False] * len(aig)
            behind[pivot] = True
            for node in range(max(pivot, leaves) + 1, len(aig)):
                behind[node] = behind[aig.left[node] >> 1] or behind[aig.right[node] >> 1]
                if behind[node]:
                    literal[node] = copied(literal, node)
            branches.append(literal)
        known[pivot] = branches
    made: list[int] = []
    for place, x in enumerate(outputs):
        pivot = late.get(place)
        if pivot is None:
            made.append(same[x >> 1] ^ (x & 1))
            continue
        zero, one = (branch[x >> 1] ^ (x & 1) for branch in known[pivot])
        made.append(new.choose(same[pivot], one, zero))
    return new.swept(made, leaves)
