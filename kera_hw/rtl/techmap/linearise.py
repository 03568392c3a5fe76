"""Finds regions of XOR gates and rebuilds them as shared parity networks.

Whatever its source form, such a region is a linear map over GF(2): its outputs are parities of its inputs.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from kera_hw.graph.node import Origin, join_origins
from kera_hw.rtl.techmap import parity, truth
from kera_hw.rtl.techmap.items import Gate, Item
from kera_hw.rtl.techmap.net import Net
from kera_hw.schedule.fpga.bits import Bits, Segment, cell_bits, concat, const_bits, slice_bits

_MAX_CELLS = 40_000
"""Outputs times inputs up to which sharing is searched for."""
_DEARER = 1.25
"""Times the gates as they stand that a network may take when it is shallower."""

Bit = tuple[int, int]


def is_parity(item: Item) -> bool:
    """Whether a gate is the XOR or XNOR of all its operands."""
    if not isinstance(item, Gate):
        return False
    count, table = len(item.ins), item.table
    odd = 0
    for k in range(count):
        odd ^= truth.variable(k, count)
    return table in (odd, truth.mask(count) ^ odd)


class _Region:
    """All XOR gates of a net, bit by bit."""

    def __init__(self, net: Net, outputs: Sequence[Bits]) -> None:
        self.net = net
        self.xor = [is_parity(item) for item in net.items]
        self._sets: dict[Bit, tuple[int, int]] = {}
        self.leaves: list[Bit] = []
        self._leaf_index: dict[Bit, int] = {}
        self.roots = self._find_roots(outputs)

    def _find_roots(self, outputs: Sequence[Bits]) -> list[Bit]:
        """Bits of XOR gates that something else reads."""
        live = [False] * len(self.net.items)
        roots: dict[Bit, None] = {}

        def read(bits: Bits, by_xor: bool) -> None:
            for s in bits:
                if s.cell is None:
                    continue
                live[s.cell] = True
                if self.xor[s.cell] and not by_xor:
                    roots.update(dict.fromkeys((s.cell, k) for k in range(s.low, s.low + s.width)))

        for bits in outputs:
            read(bits, False)
        for index in range(len(self.net.items) - 1, -1, -1):
            if live[index]:
                for bits in self.net.items[index].ins:
                    read(bits, self.xor[index])
        return list(roots)

    def groups(self, roots: Sequence[Bit]) -> list[list[Bit]]:
        """Roots connected by shared leaves, each in order."""
        leader = list(range(len(roots)))

        def find(k: int) -> int:
            while leader[k] != k:
                leader[k] = leader[leader[k]]
                k = leader[k]
            return k

        owner: dict[int, int] = {}
        for k, root in enumerate(roots):
            for leaf in _members(self.parity_of(root)[0]):
                leader[find(k)] = find(owner.setdefault(leaf, k))
        found: dict[int, list[Bit]] = {}
        for k, root in enumerate(roots):
            found.setdefault(find(k), []).append(root)
        return list(found.values())

    def as_it_stands(self, roots: Sequence[Bit], arity: int) -> tuple[int, int]:
        """(LUTs, levels) that covering makes of the gates behind the roots: it joins gates, it moves none."""
        uses: Counter[Bit] = Counter(roots)
        order: list[Bit] = []
        inner: dict[Bit, list[Bit]] = {}
        pending = list(roots)
        while pending:
            bit = pending.pop()
            if bit in inner:
                continue
            inner[bit] = [source for source in self._sources(bit)[0] if self.xor[source[0]]]
            order.append(bit)
            uses.update(inner[bit])
            pending.extend(inner[bit])
        own = set(roots)
        size: dict[Bit, int] = {}
        steps: dict[Bit, int] = {}
        gates = 0
        for bit in sorted(order):  # a gate stands behind what it reads
            width = len(self.net.items[bit[0]].ins)
            joined = [source for source in inner[bit] if uses[source] == 1 and source not in own]
            size[bit] = width + sum(size[source] - 1 for source in joined)
            steps[bit] = width - 1 + max((steps[source] for source in inner[bit]), default=0)
            if bit in own or uses[bit] > 1:
                gates += -(-(size[bit] - 1) // (arity - 1))
        return gates, max(-(-steps[root] // (arity - 1)) for root in roots)

    def _sources(self, bit: Bit) -> tuple[list[Bit], int]:
        """The bits a gate's bit is the parity of, and whether it is inverted."""
        item = self.net.items[bit[0]]
        assert isinstance(item, Gate)
        found: list[Bit] = []
        for bits in item.ins:
            one = bits if len(bits) == 1 and bits[0].width == 1 else slice_bits(bits, bit[1], 1)
            cell = one[0].cell
            assert cell is not None
            found.append((cell, one[0].low))
        return found, item.table & 1

    def parity_of(self, root: Bit) -> tuple[int, int]:
        """(mask over ``leaves``, inversion) of a bit."""
        pending = [root]
        while pending:
            bit = pending[-1]
            if bit in self._sets:
                pending.pop()
                continue
            if not self.xor[bit[0]]:
                index = self._leaf_index.setdefault(bit, len(self.leaves))
                if index == len(self.leaves):
                    self.leaves.append(bit)
                self._sets[bit] = (1 << index, 0)
                continue
            sources, inverted = self._sources(bit)
            missing = [source for source in sources if source not in self._sets]
            if missing:
                pending.extend(missing)
                continue
            mask = 0
            for source in sources:
                mask ^= self._sets[source][0]
                inverted ^= self._sets[source][1]
            self._sets[bit] = (mask, inverted)
        return self._sets[root]


def rebuild_parities(net: Net, outputs: list[Bits], arity: int) -> tuple[Net, list[Bits]]:
    """The net with its XOR regions rebuilt where that makes them smaller or shallower, and its outputs."""
    if not _may_be_large(net, arity):
        return net, outputs
    region = _Region(net, outputs)
    groups = region.groups(region.roots)
    base = len(region.leaves)
    gates: list[parity.Gate] = []
    replaced: dict[Bit, int] = {}
    for roots in groups:
        found = _network(region, roots, arity)
        if found is None:
            continue
        network, leaves = found
        signals = [*leaves, *range(base + len(gates), base + len(gates) + len(network.gates))]
        gates += [tuple(signals[k] for k in gate) for gate in network.gates]
        replaced.update((root, -1 if k < 0 else signals[k]) for root, k in zip(roots, network.outputs))
    if not replaced:
        return net, outputs
    return _Copy(net, region, replaced, gates).run(outputs)


def _network(region: _Region, roots: list[Bit], arity: int) -> tuple[parity.Network, list[int]] | None:
    """A network for roots that share leaves, and the leaves it reads; None where it gains nothing."""
    masks = [region.parity_of(root)[0] for root in roots]
    if max(mask.bit_count() for mask in masks) <= arity:
        return None
    leaves = sorted({leaf for mask in masks for leaf in _members(mask)})
    if len(roots) * len(leaves) > _MAX_CELLS:
        return None
    place = {leaf: k for k, leaf in enumerate(leaves)}
    rows = [[place[leaf] for leaf in _members(mask)] for mask in masks]
    tries = max(1, min(4, 8_000 // (len(rows) * len(leaves))))
    network = parity.build(rows, len(leaves), arity, tries)
    gates, levels = region.as_it_stands(roots, arity)
    deepest = max(parity.depth_needed(len(row), arity) for row in rows)
    if len(network.gates) < gates or (deepest < levels and len(network.gates) <= gates * _DEARER):
        return network, leaves
    return None


def _members(mask: int) -> list[int]:
    """The places of a mask's set bits."""
    found: list[int] = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found


def _may_be_large(net: Net, arity: int) -> bool:
    """Whether any parity may have more bits than a LUT, judged by whole gates."""
    bound: list[int] = []
    for item in net.items:
        size = 1
        if is_parity(item):
            size = sum(
                max((bound[s.cell] for s in bits if s.cell is not None), default=0) for bits in item.ins
            )
            if size > arity:
                return True
        bound.append(size)
    return False


class _Copy:
    """Copies what is live into a new net, with the chosen bits taken from the network."""

    def __init__(
        self, net: Net, region: _Region, replaced: dict[Bit, int], gates: Sequence[parity.Gate]
    ) -> None:
        self.old = net
        self.new = Net(net.fusing)
        self.region = region
        self.replaced = replaced
        self.gates = gates  # their signals stand behind the region's leaves
        self.origins = self._gate_origins()
        self.items: dict[int, Bits] = {}
        self.signals: dict[int, Bits] = {-1: const_bits(0, 1)}

    def _gate_origins(self) -> dict[int, Origin | None]:
        """Of every gate of the network: what the gates were for whose XOR it takes part in."""
        cones: list[Origin | None] = []
        for index, item in enumerate(self.old.items):
            inner = dict.fromkeys(s.cell for bits in item.ins for s in bits if s.cell is not None)
            below = [cones[cell] for cell in inner if self.region.xor[cell]] if self.region.xor[index] else []
            cones.append(join_origins((self.old.origins[index], *below)))
        found: dict[int, Origin | None] = {}
        for (cell, _), signal in self.replaced.items():
            found[signal] = join_origins((found.get(signal), cones[cell]))
        first = len(self.region.leaves)
        for signal in range(first + len(self.gates) - 1, first - 1, -1):
            for source in self.gates[signal - first]:
                found[source] = join_origins((found.get(source), found.get(signal)))
        return found

    def run(self, outputs: list[Bits]) -> tuple[Net, list[Bits]]:
        return self.new, [self._bits(bits) for bits in outputs]

    def _bits(self, bits: Bits) -> Bits:
        """The vector in the new net; what it needs is copied first, without recursion."""
        pending: list[tuple[str, int]] = [*self._missing([bits])]
        while pending:
            kind, index = pending[-1]
            needs = self._needs(kind, index)
            if needs:
                pending.extend(needs)
                continue
            pending.pop()
            self._make(kind, index)
        return self._present(bits)

    def _missing(self, vectors: Sequence[Bits]) -> list[tuple[str, int]]:
        found: list[tuple[str, int]] = []
        for s in (s for bits in vectors for s in bits):
            if s.cell is None:
                continue
            if not self.region.xor[s.cell]:
                if s.cell not in self.items:
                    found.append(("item", s.cell))
                continue
            for k in range(s.low, s.low + s.width):
                signal = self.replaced.get((s.cell, k))
                if signal is None:
                    if s.cell not in self.items:
                        found.append(("item", s.cell))
                elif signal not in self.signals:
                    found.append(("signal", signal))
        return found

    def _needs(self, kind: str, index: int) -> list[tuple[str, int]]:
        if kind == "item":
            return [] if index in self.items else self._missing(self.old.items[index].ins)
        if index in self.signals:
            return []
        leaves = self.region.leaves
        if index < len(leaves):
            cell, low = leaves[index]
            return self._missing([cell_bits(cell, 1, low)])
        gate = self.gates[index - len(leaves)]
        return [("signal", s) for s in gate if s not in self.signals]

    def _make(self, kind: str, index: int) -> None:
        if kind == "item":
            if index not in self.items:
                item = self.old.items[index]
                self.new.origin = self.old.origins[index]
                ins = tuple(self._present(bits) for bits in item.ins)
                self.items[index] = self.new.bits(replace(item, ins=ins))
        elif index < len(self.region.leaves):
            cell, low = self.region.leaves[index]
            self.signals[index] = self._present(cell_bits(cell, 1, low))
        else:
            gate = self.gates[index - len(self.region.leaves)]
            table = 0
            for k in range(len(gate)):
                table ^= truth.variable(k, len(gate))
            self.new.origin = self.origins.get(index)
            self.signals[index] = self.new.logic(table, [self.signals[s] for s in gate], 1)

    def _present(self, bits: Bits) -> Bits:
        return concat(part for s in bits for part in self._segment(s))

    def _segment(self, s: Segment) -> list[Bits]:
        if s.cell is None:
            return [(s,)]
        if not self.region.xor[s.cell]:
            return [slice_bits(self.items[s.cell], s.low, s.width)]
        parts: list[Bits] = []
        for k in range(s.low, s.low + s.width):
            signal = self.replaced.get((s.cell, k))
            if signal is None:
                parts.append(slice_bits(self.items[s.cell], k, 1))
                continue
            bits = self.signals[signal]
            parts.append(self.new.invert(bits) if self.region.parity_of((s.cell, k))[1] else bits)
        return parts
