"""Memories of a flat region: the chain of each one's versions, and what it is made of on a device.

A read names the version that it sees, which is how many writes of the item come before it. How many ports
there are, whether reads are handed what is on its way, and whether the words are in LUTs or in block RAM is
decided here, by sites.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count

from kera_hw.graph.node import Node, Origin, Ref
from kera_hw.rtl.lower.design import FlatMemory
from kera_hw.rtl.techmap import words
from kera_hw.rtl.techmap.addresses import Addresses
from kera_hw.rtl.techmap.items import Reading
from kera_hw.rtl.techmap.net import Net
from kera_hw.rtl.techmap.options import Capabilities
from kera_hw.rtl.techmap.source import Source
from kera_hw.rtl.techmap.words import Word, trimmed
from kera_hw.schedule.fpga.bits import Bits, const_bits
from kera_hw.schedule.fpga.device import Device
from kera_hw.schedule.fpga.units import ReadPort, Storage, WritePort
from kera_hw.schedule.objective import prices

_NEAR = 16
"""Items between accesses to one word below which reads are handed what is on its way to the memory."""
_SHALLOW = 64
"""Words beyond which a memory in LUTs is more multiplexers than memory."""


_ALWAYS = const_bits(1, 1)


@dataclass(frozen=True, slots=True)
class Write:
    """One write of an item: where, what, and where a condition (None: always) is ``when``."""

    address: Ref
    value: Ref
    condition: Ref | None = None
    when: bool = True
    origin: Origin | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """A write in terms of the net."""

    memory: int
    number: int
    address: Bits
    word: Bits
    condition: Bits
    origin: Origin | None = None

    def vectors(self) -> tuple[Bits, Bits, Bits]:
        return self.address, self.word, self.condition


@dataclass(frozen=True, slots=True)
class _Chain:
    """The writes of one memory in order, and its reads with the number of writes before each."""

    writes: tuple[Write, ...]
    reads: tuple[tuple[Node, int], ...]


class Memories:
    """The memories of one design, on one device."""

    def __init__(self, source: Source, able: Capabilities) -> None:
        self._source = source
        self._device = able.model.device
        self._addresses = Addresses(source)
        self._ports: dict[Node, tuple[int, int, int]] = {}  # of a read: memory, writes before, port
        self._left = able.bram_count
        self._kept: list[_Chain] = []  # of every storage
        self._shared: list[bool] = []
        self.storages: list[Storage] = []
        chains = [self._chain(index) for index in range(len(source.flat.memories))]
        # Each has one write port, so that a round takes as many cycles as the most writes of one.
        cycles = max([1, *(len(chain.writes) for chain in chains)])
        for memory, chain in zip(source.flat.memories, chains):
            if not chain.writes and memory.initial is not None:
                continue  # a table of constants
            storage = self._storage(memory, chain, cycles)
            self._left -= _blocks(storage, self._device)
            for number, (node, writes) in enumerate(chain.reads):
                self._ports[node] = len(self.storages), writes, number % storage.read_ports
            self.storages.append(storage)
            self._kept.append(chain)
            self._shared.append(memory.kind in ("param", "result"))

    # Structure

    def _chain(self, index: int) -> _Chain:
        """A memory's writes, from the last one back, and the reads of all versions."""
        source, flat = self._source, self._source.flat
        scalars = len(flat.inputs) + len(flat.states)
        writes: list[Write] = []
        at = self._final(index)
        behind: list[Ref] = []
        while at is not None and at.node.opcode != "core.param":
            behind.append(at)
            write, before = _write(at.node)
            writes.append(replace(write, origin=flat.origins.get(at.node)))
            at = before
        versions = {ref: number for number, ref in enumerate(reversed(behind), start=1)}
        reads: list[tuple[Node, int]] = []
        for node in source.nodes:
            if node.opcode == "core.param" and node.attr("index") == scalars + index:
                versions[Ref(node, 0)] = 0
            elif node.opcode == "tensor.index" and node.inputs[0] in versions:
                reads.append((node, versions[node.inputs[0]]))
        if not writes and (contents := flat.memories[index].initial) is not None:
            source.tables.update((ref.node, list(contents)) for ref in versions)
        return _Chain(tuple(reversed(writes)), tuple(reads))

    def _final(self, index: int) -> Ref | None:
        """The last version; None for a constant."""
        flat = self._source.flat
        if flat.memories[index].kind == "const":
            return None
        before = sum(memory.kind != "const" for memory in flat.memories[:index])
        return self._source.results[len(flat.outputs) + len(flat.states) + before]

    # What they are made of

    def _storage(self, memory: FlatMemory, chain: _Chain, cycles: int) -> Storage:
        """As many read ports as a round of so many cycles needs."""
        addresses = [*(write.address for write in chain.writes), *(node.inputs[1] for node, _ in chain.reads)]
        distance = max(memory.distance, min(
            (self._addresses.distance(write.address, other) for write in chain.writes for other in addresses),
            default=1,
        ))
        ports = max(1, -(-len(chain.reads) // cycles))
        ways = [self._in_block(memory, distance, ports), self._in_luts(memory, distance, ports)]
        found = [way for way in ways if way is not None]
        return min(found, key=lambda way: self._cost(way))

    def _in_block(self, memory: FlatMemory, distance: int, ports: int) -> Storage | None:
        near = distance < _NEAR
        far = memory.far and not near and self._device.family == "ecp5"
        latency = self._device.area.bram_stages + near + 2 * far
        made = Storage(
            name=memory.name, entries=memory.entries, word_bits=memory.word_bits, initial=memory.initial,
            style="block", read_latency_cycles=latency, transparent=near,
            read_ports=ports, distance=distance, writers=memory.writers, readers=memory.readers, far=far,
        )
        return made if self._device.area.bram_bits else None

    def _in_luts(self, memory: FlatMemory, distance: int, ports: int) -> Storage | None:
        if self._device.family != "ecp5" or memory.entries > _SHALLOW:
            return None
        # Where reads follow writes closely, the memory is better not part of the loop.
        near = distance < _NEAR
        return Storage(
            name=memory.name, entries=memory.entries, word_bits=memory.word_bits, initial=memory.initial,
            style="lut", read_latency_cycles=int(near), transparent=True, read_ports=ports, distance=distance,
            writers=memory.writers, readers=memory.readers,
        )

    def _cost(self, storage: Storage) -> tuple[bool, float]:
        """Sites, blocks at their price; what exceeds the blocks that are left comes last.

        While a word is on its way about as many bits of its item wait beside it.
        """
        device, units = self._device, ports_of(storage)
        luts = sum(unit.luts(device) for unit in units)
        flops = sum(unit.flip_flops() for unit in units)
        flops += storage.read_latency_cycles * storage.word_bits
        blocks = _blocks(storage, device)
        return blocks > self._left, max(luts, flops) + prices(device).bram * blocks

    # In the net

    def is_read(self, node: Node) -> bool:
        """Whether a node reads a memory that is no table of constants."""
        return node in self._ports

    def blocks(self) -> int:
        """Block RAMs that they take."""
        return sum(_blocks(storage, self._device) for storage in self.storages)

    def read(self, net: Net, node: Node, index: Word) -> Word:
        """The word of a ``tensor.index``."""
        memory, writes, port = self._ports[node]
        storage = self.storages[memory]
        address = self._address(net, storage, node.inputs[1], index)
        bits = net.bits(Reading(storage.word_bits, (address,), memory, writes, port))
        return trimmed(bits, False)

    def live(self, net: Net, vectors: Iterable[Bits], written: Sequence[Written]) -> list[Written]:
        """The writes of memories that something reads, directly or by way of others, or that others share."""
        pending = list(vectors)
        reached = {k for k, shared in enumerate(self._shared) if shared}
        pending += [bits for write in written if write.memory in reached for bits in write.vectors()]
        seen: set[int] = set()
        while pending:
            for segment in pending.pop():
                if segment.cell is None or segment.cell in seen:
                    continue
                seen.add(segment.cell)
                item = net.items[segment.cell]
                pending.extend(item.ins)
                if isinstance(item, Reading) and item.memory not in reached:
                    reached.add(item.memory)
                    own = (write for write in written if write.memory == item.memory)
                    pending += [bits for write in own for bits in write.vectors()]
        return [write for write in written if write.memory in reached]

    def written(self, net: Net, word: Callable[[Ref], Word]) -> list[Written]:
        """All writes; ``word`` gives the word of a mapped value."""
        found: list[Written] = []
        for index, storage, chain in zip(count(), self.storages, self._kept):
            for number, write in enumerate(chain.writes, start=1):
                net.origin = write.origin
                address = self._address(net, storage, write.address, word(write.address))
                condition = _ALWAYS if write.condition is None else word(write.condition).bit(0)
                condition = condition if write.when else net.invert(condition)
                value = word(write.value).extend(storage.word_bits)
                found.append(Written(index, number, address, value, condition, write.origin))
        return found

    def _address(self, net: Net, storage: Storage, ref: Ref, index: Word) -> Bits:
        """The address that an index means, which is held within the memory."""
        course = self._addresses.course(ref)
        low, high = index.range
        if course is not None:
            low, high = min(course.values), max(course.values)
        if low < 0 or high >= storage.entries:
            index = words.clamp(net, index, 0, storage.entries - 1)
        return index.extend(storage.address_bits)


def ports_of(storage: Storage) -> list[ReadPort | WritePort]:
    """The units of a memory."""
    reads = [ReadPort(name=f"{storage.name}.read{k}", storage=storage) for k in range(storage.read_ports)]
    return [*reads, WritePort(name=f"{storage.name}.write", storage=storage)]


def _blocks(storage: Storage, device: Device) -> int:
    return sum(unit.brams(device) for unit in ports_of(storage))


def _write(node: Node) -> tuple[Write, Ref]:
    """The write that gives a version, and the version before."""
    if node.opcode == "tensor.update":
        before, value, address = node.inputs
        return Write(address, value), before
    assert node.opcode == "control.select", f"{node.opcode} gives no version of a memory"
    condition, *sides = node.inputs
    for when, (written, before) in ((True, sides), (False, sides[::-1])):
        if written.node.opcode == "tensor.update" and written.node.inputs[0] == before:
            _, value, address = written.node.inputs
            return Write(address, value, condition, when), before
    raise AssertionError("a conditional write chooses between the versions before and behind it")
