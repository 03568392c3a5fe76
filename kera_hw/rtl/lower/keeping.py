"""Which state of a stream is kept in memories, and which as registers."""
from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from math import prod

from kera_hw.loops.program import LoopProgram
from kera_hw.rtl.lower.builder import width_of
from kera_hw.rtl.lower.storage import Kept, Unkept

LEAST_ENTRIES, LEAST_BITS = 16, 512
"""State below either is registers: a memory's ports and its initialisation after a reset take more."""
MOST_BANKS = 16
_MOST_READS, _MOST_WRITES = 8, 4
"""Accesses an item to one memory beyond which registers are better, if there may be so many."""


def candidates(program: LoopProgram) -> dict[str, int]:
    """State that may be memories, each with how many leading axes may be banks."""
    found: dict[str, int] = {}
    for buffer in program.of_kind("state"):
        if buffer.size >= LEAST_ENTRIES and buffer.size * width_of(buffer.element) >= LEAST_BITS:
            found[buffer.name] = _bank_axes(buffer.shape, len(buffer.shape) - 1)
    return found


def _bank_axes(shape: Sequence[int], most: int) -> int:
    """How many leading axes give no more banks than are allowed."""
    return max(k for k in range(most + 1) if prod(shape[:k]) <= MOST_BANKS)


def better_apart(kept: Iterable[Kept], small: Collection[str]) -> Unkept | None:
    """A buffer of which no element is reached by data, or one that may be registers and had better be."""
    for storage in kept:
        name, banks = storage.buffer.name, len(storage.banks)
        if not storage.moves:
            return Unkept(name, "constants alone say which of its elements an item reads and writes")
        reads = sum(len(bank.reads) for bank in storage.banks)
        writes = sum(bank.writes for bank in storage.banks)
        if name in small and (reads > _MOST_READS * banks or writes > _MOST_WRITES * banks):
            return Unkept(name, "an item reads and writes many of its elements")
    return None
