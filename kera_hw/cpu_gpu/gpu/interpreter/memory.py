"""State spaces: bytes at addresses, every access within an object, aligned, written before, and no race.

Threads race when two touch a byte, at least one writing, and nothing orders them: no barrier of their block
in between, or different blocks of one launch, which nothing orders at all.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kera_hw.cpu_gpu.gpu.interpreter.stop import Stop
from kera_hw.numerics.arrays import Array

GUARD_BYTES = 256
"""Between objects, so that what is next to one is no object."""
_NOBODY, _SEVERAL = -1, -2


@dataclass(frozen=True, slots=True)
class Who:
    """The threads of an access: their numbers, their blocks, and how many barriers these have passed."""

    thread: Array
    block: Array
    epoch: Array

    def of_bytes(self, size_bytes: int) -> Who:
        """Each thread once a byte of its access, in the same order as the bytes."""
        return Who(*(np.repeat(one, size_bytes) for one in (self.thread, self.block, self.epoch)))


class Watch:
    """Who touched each byte last."""

    def __init__(self, size_bytes: int) -> None:
        writers, readers = ([np.full(size_bytes, _NOBODY, np.int32) for _ in range(3)] for _ in range(2))
        self._writer, self._writer_block, self._writer_epoch = writers
        self._reader, self._reader_block, self._reader_epoch = readers

    def load(self, at: Array, who: Who) -> None:
        self._check_writers(at, who)
        block, epoch, reader = self._reader_block[at], self._reader_epoch[at], self._reader[at]
        mixed = (block != _NOBODY) & (block != who.block)
        shared = (block == who.block) & (epoch == who.epoch) & (reader != who.thread)
        self._reader_epoch[at] = who.epoch
        for table, values in (
            (self._reader_block, np.where(mixed, _SEVERAL, who.block)),
            (self._reader, np.where(shared, _SEVERAL, who.thread)),
        ):
            table[at] = values
            others = table[at] != values  # another thread of the same access was later
            table[at[others]] = _SEVERAL

    def store(self, at: Array, who: Who) -> None:
        self._check_writers(at, who)
        block, reader = self._reader_block[at], self._reader[at]
        elsewhere = (block != _NOBODY) & (block != who.block)
        here = (block == who.block) & (self._reader_epoch[at] == who.epoch) & (reader != who.thread)
        self._refuse(elsewhere | here, at, "reads what another writes")
        self._writer[at], self._writer_block[at], self._writer_epoch[at] = who.thread, who.block, who.epoch
        self._refuse(self._writer[at] != who.thread, at, "writes what another writes")

    def _check_writers(self, at: Array, who: Who) -> None:
        writer, block = self._writer[at], self._writer_block[at]
        elsewhere = (writer != _NOBODY) & (block != who.block)
        here = (block == who.block) & (self._writer_epoch[at] == who.epoch) & (writer != who.thread)
        self._refuse(elsewhere | here, at, "touches what another writes")

    def _refuse(self, clash: Array, at: Array, what: str) -> None:
        if clash.any():
            where = int(at[clash][0])
            raise Stop(f"a thread {what}, at offset {where} of its memory, and nothing orders them")


class Space:
    """``copies`` of memory with the same objects: one of global memory, one a block or thread of others."""

    def __init__(self, name: str, copies: int = 1, base: int = 0) -> None:
        self.name, self._copies, self._base = name, copies, base
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._tables: tuple[Array, Array] | None = None
        self._top = base
        self._bytes = np.zeros(0, np.uint8)
        self._written = np.zeros(0, np.bool_)
        self.watch: Watch | None = None

    # Objects

    def place(self, sizes_bytes: Sequence[tuple[int, int]]) -> list[int]:
        """Addresses for objects, each of a size and an alignment; nothing is written in them yet."""
        addresses: list[int] = []
        for size_bytes, align in sizes_bytes:
            address = -(-self._top // align) * align
            addresses.append(address)
            self._starts.append(address)
            self._ends.append(address + size_bytes)
            self._top = _behind(address + size_bytes)
        self._tables = None
        missing = max(0, (self._top - self._base) * self._copies - len(self._bytes))
        self._bytes = np.concatenate([self._bytes, np.zeros(missing, np.uint8)])
        self._written = np.concatenate([self._written, np.zeros(missing, np.bool_)])
        return addresses

    def free(self, address: int) -> None:
        """The object is gone; what was last goes back."""
        at = self._starts.index(address)
        self._written[address - self._base : self._ends[at] - self._base] = False
        del self._starts[at], self._ends[at]
        self._tables = None
        self._top = max([self._base, *map(_behind, self._ends)])

    def watched(self) -> None:
        """From now on nobody has touched anything."""
        self.watch = Watch(len(self._bytes))

    def write(self, address: int, data: Array) -> None:
        """Bytes from outside, which no thread wrote."""
        part = slice(address - self._base, address - self._base + len(data))
        self._bytes[part] = data
        self._written[part] = True

    def read(self, address: int, size_bytes: int) -> Array:
        part = slice(address - self._base, address - self._base + size_bytes)
        if not self._written[part].all():
            raise Stop(f"{int((~self._written[part]).sum())} bytes of a result were never written")
        return self._bytes[part].copy()

    # Accesses of threads

    def load(self, addresses: Array, copy: Array, dtype: np.dtype[np.generic], who: Who) -> Array:
        places = self._places(addresses, copy, dtype.itemsize)
        at = _bytes_of(places, dtype.itemsize)
        if not self._written[at].all():
            raise Stop(f"a thread reads in .{self.name} what nobody wrote")
        if self.watch is not None:
            self.watch.load(at, who.of_bytes(dtype.itemsize))
        found: Array = self._bytes.view(dtype)[places // dtype.itemsize]
        return found

    def store(self, addresses: Array, copy: Array, values: Array, who: Who) -> None:
        size_bytes = values.dtype.itemsize
        places = self._places(addresses, copy, size_bytes)
        at = _bytes_of(places, size_bytes)
        if self.watch is not None:
            self.watch.store(at, who.of_bytes(size_bytes))
        self._written[at] = True
        self._bytes.view(values.dtype)[places // size_bytes] = values

    def _places(self, addresses: Array, copy: Array, size_bytes: int) -> Array:
        """Where in the bytes of all copies."""
        if self._tables is None:
            order = np.argsort(self._starts)
            self._tables = np.array(self._starts, np.int64)[order], np.array(self._ends, np.int64)[order]
        starts, ends = self._tables
        own = addresses.astype(np.uint64).view(np.int64)
        which = np.searchsorted(starts, own, "right") - 1
        inside = (which >= 0) & (own <= (ends[which] if len(ends) else own) - size_bytes)
        if not inside.all():
            wrong = int(own[~inside][0])
            raise Stop(f"{size_bytes} bytes at address {wrong:#x} of .{self.name} are in no object")
        if (own % size_bytes).any():
            raise Stop(f"an address of .{self.name} is no multiple of the {size_bytes} bytes of the access")
        return own - self._base + copy.astype(np.int64) * (self._top - self._base)


def _behind(end: int) -> int:
    """Where the next object may begin."""
    return -(-(end + GUARD_BYTES) // GUARD_BYTES) * GUARD_BYTES


def _bytes_of(places: Array, size_bytes: int) -> Array:
    return (places[:, None] + np.arange(size_bytes)).reshape(-1)
