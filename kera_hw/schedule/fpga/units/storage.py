"""Memories that are written: words reached through ports, each a unit that calls share.

A memory (``Storage``) is a plain value that its ports name. Accesses to it act in the order of their cells,
and every item's after those of the items before it; that this holds whatever the stages are is the schedule's
business (``schedule.accesses``), which goes by when a read sees a write:

* ``transparent``: a read sees what is written by the end of the stage before its word appears, so the word
  is as new as it can be. A memory in LUTs that shows a word at once is so of itself; others compare the
  addresses of writes with that of a read on its way, hand over the data that pass by, and have a register
  behind that.
* else a read sees what is written before the stage in which it starts, and no word that it asks for may be
  written in that stage: block RAM as it is. Where it is ``far``, registers before its ports delay all
  accesses alike by a clock of the read's latency, and one behind the word is another.
"""
from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from kera_hw.schedule.fpga import lut_ram
from kera_hw.schedule.fpga.bits import Bits
from kera_hw.schedule.fpga.cells.call import Unit
from kera_hw.schedule.fpga.cells.cell import Look, levels, wide_ps
from kera_hw.schedule.fpga.device import Device
from kera_hw.schedule.fpga.values import Value

StorageStyle = Literal["lut", "block"]

_DEEPEST_BLOCK_WIDTH = 18
"""Bits of a word through each of a block RAM's two ports."""


def ram_block(entries: int, device: Device) -> tuple[int, int]:
    """Words of one block RAM and bits of each, for a memory of that many words with a read and a write port.

    Past the deepest shape (a bit a word) a memory is several such, one after another; (0, 0): no block RAM.
    """
    area = device.area
    if not area.bram_bits:
        return 0, 0
    width = min(area.bram_width, _DEEPEST_BLOCK_WIDTH)
    depth = area.bram_bits // width
    if area.bram_width > _DEEPEST_BLOCK_WIDTH:
        depth = 1 << depth.bit_length() - 1
    while depth < entries and width > 1:
        depth *= 2
        # Parity bits are there for whole bytes alone.
        width = {18: 9, 9: 4}.get(width, width // 2)
    return depth, width


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """``entries`` words; ``initial`` words are there from power-up and after every reset (None: none are).

    ``distance``: how many items at the least lie between two accesses to one word, of which one is a write.
    ``writers`` and ``readers``: circuits that take turns at its ports, this one among them.
    """

    name: str
    entries: int
    word_bits: int
    initial: tuple[int, ...] | None
    style: StorageStyle
    read_latency_cycles: int
    transparent: bool
    read_ports: int = 1
    distance: int = 1
    writers: int = 1
    readers: int = 1
    far: bool = False

    @property
    def address_bits(self) -> int:
        return max(1, (self.entries - 1).bit_length())

    @property
    def uniform(self) -> bool:
        """Whether all initial words are one, which needs no table."""
        return self.initial is None or len(set(self.initial)) <= 1

    @property
    def forwards(self) -> bool:
        """Whether data on their way to the memory are handed over to reads, which end in a register."""
        return self.transparent and self.read_latency_cycles > 0

    def blocks(self, device: Device) -> int:
        """Block RAMs of one copy."""
        if self.style != "block":
            return 0
        depth, width = ram_block(self.entries, device)
        return -(-self.entries // depth) * -(-self.word_bits // width)

    def copy_luts(self) -> int:
        """LUTs of one copy."""
        if self.style != "lut":
            return 0
        deep = -(-self.entries // lut_ram.ENTRIES)
        memories = deep * -(-self.word_bits // lut_ram.BITS)
        return lut_ram.LUTS * memories + round(self.word_bits * (deep - 1) * 2 / 3)

    def table_blocks(self, device: Device) -> int:
        """Block RAMs of the table of initial words, where there is one that large."""
        if self.uniform or self.entries * self.word_bits < device.area.bram_bits // 8:
            return 0
        return self.blocks(device)


@dataclass(frozen=True, slots=True, kw_only=True)
class Port(Unit, ABC):
    """A way into a memory, for one call a cycle."""

    storage: Storage

    keeps_items: ClassVar[bool] = True

    @property
    def initiation_interval(self) -> int:
        return 1

    def look(self) -> Look:
        return Look("memory", "memory", "table")

    def clk_to_q_ps(self, device: Device) -> int:
        """Of block RAM, its output register's and a longer wire; of data handed over, a flip-flop's."""
        timing, storage = device.timing, self.storage
        if storage.style == "lut" or storage.forwards or storage.far:
            return round(timing.clk_to_q_ps)
        return round(timing.bram_clk_to_q_ps + timing.bram_wire_ps)

    def keeps_luts(self, device: Device) -> bool:
        return True

    def operand_luts(self, operands: Sequence[Bits]) -> int:
        return 0

    def evaluate(self, operands: Sequence[Value]) -> Value:
        raise TypeError("what a memory holds is the simulation's own business")

    def _words(self, kept: dict[str, Any]) -> list[int]:
        """What the memory holds, from its initial words on."""
        storage = self.storage
        found: list[int] | None = kept.get(storage.name)
        if found is None:
            found = kept[storage.name] = list(storage.initial or (0,) * storage.entries)
        return found

    def _cleared_ps(self, device: Device) -> int:
        """The choice between an access and the initialisation after a reset."""
        timing = device.timing
        return 0 if self.storage.initial is None else round(timing.lut_ps + timing.route_lut_ps)

    def _block_ps(self, device: Device) -> int:
        timing = device.timing
        if self.storage.far:  # a register's, wherever that is best
            return 0
        return round(max(0.0, timing.bram_setup_ps - timing.setup_ps) + timing.bram_wire_ps)

    def _comparator_luts(self) -> int:
        """LUTs that compare two addresses: two bits a LUT, and as many to join them with an enable."""
        return self.storage.address_bits + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPort(Port):
    """A call reads the word at its address."""

    @property
    def latency_cycles(self) -> int:
        return self.storage.read_latency_cycles

    @property
    def width(self) -> int:
        return self.storage.word_bits

    def describe(self) -> str:
        return f"read of memory `{self.storage.name}`"

    def setup_ps(self, device: Device, operand: int = 0) -> int:
        storage = self.storage
        turn = turn_ps(device, storage.readers)
        if storage.style == "lut":
            read = turn + wide_ps(device, levels(-(-storage.entries // lut_ram.ENTRIES)))
            return read + (_chosen_ps(device) + round(device.timing.route_lut_ps) if storage.forwards else 0)
        on_read_side = device.family == "ecp5"
        inside = turn + self._block_ps(device) + (self._cleared_ps(device) if on_read_side else 0)
        return max(inside, turn + _compared_ps(device) if storage.forwards else 0)

    def act(self, operands: Sequence[int], kept: dict[str, Any]) -> int:
        return self._words(kept)[min(operands[0], self.storage.entries - 1)]

    def luts(self, device: Device) -> float:
        """Those of its own copy of the memory, of addresses compared and of the choice behind."""
        storage = self.storage
        total = storage.copy_luts()
        if storage.style != "lut" and device.family == "ecp5" and storage.initial is not None:
            total += storage.address_bits
        if storage.forwards:
            total += storage.read_latency_cycles * self._comparator_luts()
            total += max(1, storage.read_latency_cycles - 1) * storage.word_bits
        return total

    def flip_flops(self) -> int:
        """Addresses that are compared later, what came of it, and the word chosen; of a far port its own."""
        storage, inside = self.storage, self.storage.read_latency_cycles - 1
        if not storage.forwards:
            return storage.address_bits + storage.word_bits if storage.far else 0
        return inside * storage.address_bits + inside * (inside + 1) // 2 + storage.word_bits

    def brams(self, device: Device) -> int:
        return self.storage.blocks(device)


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePort(Port):
    """A call writes: its operands are the address, the word, and whether to. It shows nothing."""

    timed_by_items: ClassVar[bool] = True

    @property
    def latency_cycles(self) -> int:
        return 0

    @property
    def width(self) -> int:
        return 0

    def describe(self) -> str:
        return f"write of memory `{self.storage.name}`"

    def setup_ps(self, device: Device, operand: int = 0) -> int:
        """Data handed over are chosen before a register; addresses and conditions decide about that."""
        storage, timing = self.storage, device.timing
        on_write_side = storage.style == "lut" or device.family != "ecp5"
        inside = self._cleared_ps(device) if on_write_side else 0
        inside += self._block_ps(device) if storage.style == "block" else 0
        turn = turn_ps(device, storage.writers)
        if not storage.forwards:
            return inside + turn
        compared = 0 if operand == 1 else _compared_ps(device) + round(timing.route_lut_ps)
        return turn + max(inside, _chosen_ps(device) + compared)

    def act(self, operands: Sequence[int], kept: dict[str, Any]) -> int:
        address, word, condition = operands
        if condition:
            self._words(kept)[min(address, self.storage.entries - 1)] = word
        return 0

    def luts(self, device: Device) -> float:
        """The initialisation's choice of address and word, where it goes by the write port."""
        storage = self.storage
        if storage.initial is None:
            return 1
        by_write = storage.style == "lut" or device.family != "ecp5"
        deep = -(-storage.entries // lut_ram.ENTRIES) if storage.style == "lut" else 0
        return 1 + deep + (storage.address_bits + storage.word_bits if by_write else 0)

    def flip_flops(self) -> int:
        """The words on their way, one for every stage of a read but the last; of a far port its own."""
        storage = self.storage
        if storage.far:
            return 1 + storage.address_bits + storage.word_bits
        return (storage.read_latency_cycles - 1) * storage.word_bits if storage.forwards else 0

    def brams(self, device: Device) -> int:
        return self.storage.table_blocks(device)


def turn_ps(device: Device, drivers: int) -> int:
    """Through what chooses one of so many drivers of a port: two a LUT, four of these by each one behind."""
    if drivers < 2:
        return 0
    deep, joined = 1, -(-drivers // 2)
    while joined > 1:
        deep, joined = deep + 1, -(-joined // 4)
    return round(deep * (device.timing.lut_ps + device.timing.route_lut_ps / 2))  # neighbours, all of them


def _chosen_ps(device: Device) -> int:
    """One of the word read and those on their way."""
    timing = device.timing
    return round(timing.lut_ps + timing.mux_level_ps + timing.mux_exit_ps)


def _compared_ps(device: Device) -> int:
    """Two addresses and an enable down to a register: two LUTs, one behind the other."""
    timing = device.timing
    return round(2 * timing.lut_ps + timing.route_lut_ps)
