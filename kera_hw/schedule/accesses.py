"""Accesses to memories in a netlist: which there are, and what their order asks of the stages.

Accesses to a memory act in the order of their cells, an item's after those of the items before it. With II
the initiation interval, an access in stage s of an item works s cycles after the item starts, and the item
after it starts II cycles or more after that. A read in stage r sees a write in stage w of an item that
started d cycles before its own if w <= r + d + ``sees``, and surely does not if w >= r + d + ``misses``; in
between, the word that it gets is not defined. What lies between two items of which neither may touch the
other's word (``Storage.distance``) needs no order.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kera_hw.schedule.fpga.cells import Call
from kera_hw.schedule.fpga.netlist import Netlist
from kera_hw.schedule.fpga.units import Port, ReadPort, Storage


class Access(NamedTuple):
    """A call of a memory's port."""

    cell: int
    port: Port

    @property
    def reads(self) -> bool:
        return isinstance(self.port, ReadPort)


class Order(NamedTuple):
    """``after`` works ``stages`` later than ``before`` at the least, less ``items`` initiation intervals."""

    before: int
    after: int
    stages: int
    items: int


def memories(netlist: Netlist) -> list[tuple[Storage, tuple[Access, ...]]]:
    """Every memory with its accesses, in order."""
    found: dict[str, tuple[Storage, list[Access]]] = {}
    for index, cell in enumerate(netlist.cells):
        if isinstance(cell, Call) and isinstance(cell.unit, Port):
            storage = cell.unit.storage
            known, accesses = found.setdefault(storage.name, (storage, []))
            assert known == storage, f"two memories are called {storage.name}"
            accesses.append(Access(index, cell.unit))
    return [(storage, tuple(accesses)) for storage, accesses in found.values()]


def clear_cycles(netlist: Netlist) -> int:
    """Cycles after a reset in which words are initialised, all memories at once."""
    entries = (storage.entries for storage, _ in memories(netlist) if storage.initial is not None)
    return max(entries, default=0)


def reset_cycles(netlist: Netlist) -> int:
    """Cycles after a reset until all memories hold their initial words; those of tables come one later."""
    tables = any(not storage.uniform for storage, _ in memories(netlist))
    return clear_cycles(netlist) + tables


def shared_ffs(netlist: Netlist) -> int:
    """Flip-flops that reads keep of addresses, where writes to the same ones keep them anyway."""
    total = 0
    for storage, accesses in memories(netlist):
        if not storage.forwards:
            continue
        written = [netlist.arguments(access.cell)[0] for access in accesses if not access.reads]
        ports = {
            access.port.name for access in accesses
            if access.reads and netlist.arguments(access.cell)[0] in written
        }
        total += len(ports) * (storage.read_latency_cycles - 1) * storage.address_bits
    return total


def window(storage: Storage) -> tuple[int, int]:
    """``sees`` and ``misses`` of a read; see above."""
    if storage.transparent:
        return storage.read_latency_cycles - 1, storage.read_latency_cycles
    return -1, 1


def orders(netlist: Netlist) -> Iterator[Order]:
    """What the accesses to memories ask of the stages."""
    for storage, accesses in memories(netlist):
        sees, misses = window(storage)
        for place, first in enumerate(accesses):
            for second in accesses[place + 1 :]:
                yield from _pair(first, second, sees, misses, storage.distance)


def _pair(first: Access, second: Access, sees: int, misses: int, distance: int) -> Iterator[Order]:
    """Of two accesses, the first one first in each item."""
    one, other = first.cell, second.cell
    if first.reads and second.reads:
        return
    if first.reads:  # does not see this item's write, but those of all items before
        yield Order(one, other, misses, 0)
        yield Order(other, one, -sees, distance)
    elif second.reads:  # sees this item's write, and none of an item behind it
        yield Order(one, other, -sees, 0)
        yield Order(other, one, misses, distance)
    else:
        yield Order(one, other, 1, 0)
        yield Order(other, one, 1, distance)
