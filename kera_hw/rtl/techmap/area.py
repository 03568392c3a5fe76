"""LUTs of parts of a covered net: what a vector would cost more, or free, beside the vectors in use.

A bit of logic is there as long as somebody uses it. Using and dropping vectors one after another gives the
logic that each of them has to itself, without covering anew.
"""
from __future__ import annotations

from collections import Counter

from kera_hw.rtl.techmap import truth
from kera_hw.rtl.techmap.cover import Cover
from kera_hw.rtl.techmap.items import Choice, Gate, Item, Sum, Table
from kera_hw.rtl.techmap.net import Net
from kera_hw.schedule.fpga.bits import Bits, bits_width
from kera_hw.schedule.fpga.cells.cell import luts_of_function
from kera_hw.schedule.fpga.device import Device


class Area:
    """Counts the users of every bit; whole carry chains and tables are there for any bit of theirs."""

    def __init__(self, net: Net, chosen: Cover, device: Device) -> None:
        self.net = net
        self.cover = chosen
        self.device = device
        self.luts = 0
        self._users: Counter[tuple[int, int]] = Counter()

    def use(self, bits: Bits) -> None:
        """Counts one more user of every bit."""
        self._change(bits, 1)

    def drop(self, bits: Bits) -> None:
        """Takes one user of every bit away."""
        self._change(bits, -1)

    def _change(self, bits: Bits, step: int) -> None:
        pending = [bits]
        while pending:
            for segment in pending.pop():
                if segment.cell is None:
                    continue
                item = self.net.items[segment.cell]
                for bit in range(segment.low, segment.low + segment.width):
                    pending += self._count(segment.cell, item, bit, step)

    def _count(self, index: int, item: Item, bit: int, step: int) -> list[Bits]:
        """Notes a user of one bit; the vectors behind it where it came, or went, with that."""
        key = (index, bit if isinstance(item, Gate | Choice) else 0)
        before = self._users[key]
        self._users[key] += step
        if (before if step > 0 else self._users[key]) > 0:
            return []
        self.luts += step * self._cost(index, item)
        if isinstance(item, Gate):
            return [self._seen(leaf, item, bit) for leaf in self.cover.cuts[index].leaves]
        if isinstance(item, Choice):
            return [item.select, *(self._seen(choice, item, bit) for choice in item.choices)]
        if isinstance(item, Sum) and index in self.cover.chains:
            return [*self.cover.chains[index].pins, item.carry]
        if isinstance(item, Sum):
            return [self.cover.adds[index].a, *self.cover.adds[index].leaves, item.carry]
        return list(item.ins)

    def _seen(self, bits: Bits, item: Item, bit: int) -> Bits:
        return bits if bits_width(bits) == 1 or item.width == 1 else bit_of(bits, bit)

    def _cost(self, index: int, item: Item) -> int:
        area = self.device.area
        match item:
            case Gate():
                cut = self.cover.cuts[index]
                count = sum(truth.depends(cut.table, len(cut.leaves), k) for k in range(len(cut.leaves)))
                return luts_of_function(count, self.device)
            case Sum():
                return -(-item.width // area.carry_bits_per_cell) * area.luts_per_carry_cell
            case Choice():
                return len(item.ins) // 2 if self.device.family == "ecp5" else len(item.ins) - 2
            case Table(ins=(address,)):
                inputs = bits_width(address)
                return item.width * max(1, 1 << max(0, inputs - self.device.lut_inputs))
            case _:
                return 0


def bit_of(bits: Bits, place: int) -> Bits:
    """One bit of a vector."""
    for segment in bits:
        if place < segment.width:
            low = segment.low >> place & 1 if segment.cell is None else segment.low + place
            return (segment._replace(low=low, width=1),)
        place -= segment.width
    raise AssertionError("a bit beyond the vector")
