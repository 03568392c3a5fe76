"""Finds regions of XOR gates and rebuilds them as shared parity networks."""
from __future__ import annotations

from collections.abc import Sequence

from kera_hw.rtl.techmap import parity, truth
from kera_hw.rtl.techmap.net import Item, Net
from kera_hw.schedule.netlist import Bits, Segment, cell_bits, concat, slice_bits

_WORTH = 9
"""Bits of a parity from which rebuilding pays: two LUT levels hold fewer."""
_MAX_CELLS = 40_000
"""Outputs times inputs up to which sharing is searched for."""

Bit = tuple[int, int]


def is_parity(item: Item) -> bool:
    """Whether a gate is the XOR or XNOR of all its operands."""
    if item.kind != "lut":
        return False
    count, table = len(item.ins), item.data[0]
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
        self.gate_bits = sum(
            item.width for index, item in enumerate(self.net.items) if live[index] and self.xor[index]
        )
        return list(roots)

    def _sources(self, bit: Bit) -> tuple[list[Bit], int]:
        """The bits a gate's bit is the parity of, and whether it is inverted."""
        item = self.net.items[bit[0]]
        found: list[Bit] = []
        for bits in item.ins:
            one = bits if len(bits) == 1 and bits[0].width == 1 else slice_bits(bits, bit[1], 1)
            cell = one[0].cell
            assert cell is not None
            found.append((cell, one[0].low))
        return found, int(item.data[0]) & 1  # type: ignore[call-overload]

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
    """The net with its large XOR regions rebuilt, and its outputs; unchanged where that gains nothing."""
    if not _may_be_large(net):
        return net, outputs
    region = _Region(net, outputs)
    sets = {root: region.parity_of(root) for root in region.roots}
    large = [root for root in region.roots if sets[root][0].bit_count() >= _WORTH]
    if not large or len(large) * len(region.leaves) > _MAX_CELLS:
        return net, outputs
    rows = [[k for k in range(len(region.leaves)) if sets[root][0] >> k & 1] for root in large]
    tries = max(1, min(4, 8_000 // (len(large) * len(region.leaves))))
    network = parity.build(rows, len(region.leaves), arity, tries)
    if len(network.gates) > region.gate_bits:
        return net, outputs
    return _Copy(net, region, dict(zip(large, network.outputs)), network, sets).run(outputs)


def _may_be_large(net: Net) -> bool:
    """Whether any parity may have enough bits, judged by whole gates."""
    bound: list[int] = []
    for item in net.items:
        size = 1
        if is_parity(item):
            size = sum(
                max((bound[s.cell] for s in bits if s.cell is not None), default=0) for bits in item.ins
            )
            if size >= _WORTH:
                return True
        bound.append(size)
    return False


class _Copy:
    """Copies what is live into a new net, with the chosen bits taken from the network."""

    def __init__(
        self, net: Net, region: _Region, replaced: dict[Bit, int], network: parity.Network,
        sets: dict[Bit, tuple[int, int]],
    ) -> None:
        self.old = net
        self.new = Net(net.fusing)
        self.region = region
        self.replaced = replaced
        self.network = network
        self.sets = sets
        self.items: dict[int, Bits] = {}
        self.signals: dict[int, Bits] = {}

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
        if index < self.network.inputs:
            cell, low = self.region.leaves[index]
            return self._missing([cell_bits(cell, 1, low)])
        gate = self.network.gates[index - self.network.inputs]
        return [("signal", s) for s in gate if s not in self.signals]

    def _make(self, kind: str, index: int) -> None:
        if kind == "item":
            if index not in self.items:
                item = self.old.items[index]
                self.new.origin = item.origin
                ins = tuple(self._present(bits) for bits in item.ins)
                cell = self.new.make(item.kind, item.width, ins, item.data)
                self.items[index] = cell_bits(cell, item.width)
        elif index < self.network.inputs:
            cell, low = self.region.leaves[index]
            self.signals[index] = self._present(cell_bits(cell, 1, low))
        else:
            gate = self.network.gates[index - self.network.inputs]
            table = 0
            for k in range(len(gate)):
                table ^= truth.variable(k, len(gate))
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
            parts.append(self.new.invert(bits) if self.sets[s.cell, k][1] else bits)
        return parts
