"""Where everything lies in memory.

From the bottom: constants, what states begin with, the states, temporaries, then room for a batch's
parameters and results, which the caller places. All begin at multiples of 64 bytes.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from kera_hw.loops.program import Alloc, Block, Buffer, LoopProgram, blocks_of
from kera_hw.types import BoolType, FloatType, IntType, Type

ALIGNMENT_BYTES = 64
"""A line of the cache, and as much as any vector has."""
FIRST_BYTE = 64
"""Address 0 stays free, so that a wrong pointer is easier to see."""


def element_bytes(kind: Type) -> int:
    """Of a native element."""
    if isinstance(kind, BoolType):
        return 1
    assert isinstance(kind, IntType | FloatType)
    return kind.width_bits // 8


def native_dtype(kind: Type) -> np.dtype[Any]:
    """Of a native element."""
    letter = "f" if isinstance(kind, FloatType) else "i" if isinstance(kind, IntType) and kind.signed else "u"
    return np.dtype(f"<{letter}{element_bytes(kind)}")


def aligned(size_bytes: int) -> int:
    return -(-size_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES


class Data(NamedTuple):
    """Bytes that the memory starts with."""

    address: int
    contents: bytes


@dataclass(frozen=True, slots=True)
class Layout:
    """``addresses`` of what has one; ``resets``: (state, what it begins with, bytes)."""

    addresses: Mapping[str, int]
    data: tuple[Data, ...]
    resets: tuple[tuple[int, int, int], ...]
    end: int

    def with_more(self, other: Layout) -> Layout:
        """Both, of which ``other`` has no states and begins after this one."""
        return replace(self, data=(*self.data, *other.data), end=other.end)

    def image(self) -> bytes:
        """The memory as it begins, states included; zeros from there on."""
        pieces = [(data.address, data.contents) for data in self.data]
        known = dict(pieces)
        pieces += [(state, known[first]) for state, first, _ in self.resets if first in known]
        out = bytearray(max((address + len(contents) for address, contents in pieces), default=1))
        for address, contents in pieces:
            out[address : address + len(contents)] = contents
        return bytes(out)


def lay_out(
    program: LoopProgram, private: frozenset[str], vector_bytes: int, first: int = FIRST_BYTE
) -> Layout:
    """A place for every buffer but parameters and results, from ``first`` on; those in ``private`` have one
    a lane."""
    addresses: dict[str, int] = {}
    data: list[Data] = []
    resets: list[tuple[int, int, int]] = []
    top = first
    for buffer in program.buffers:
        if buffer.kind in ("const", "state"):
            size_bytes = buffer.size * element_bytes(buffer.element)
            if any(buffer.data):
                data.append(Data(top, buffer.data))
            addresses[buffer.name], top = top, top + aligned(size_bytes)
            if buffer.kind == "state":
                resets.append((top, addresses[buffer.name], size_bytes))
                addresses[buffer.name], top = top, top + aligned(size_bytes)
    end = _temporaries(program.body, top, addresses, private, vector_bytes)
    return Layout(addresses, tuple(data), tuple(resets), end)


def lay_out_temporaries(block: Block) -> tuple[dict[str, int], int]:
    """Places for the temporaries that are made in a block, from 0 on, and how much they take."""
    addresses: dict[str, int] = {}
    size_bytes = _temporaries(block, 0, addresses, frozenset(), 0)
    return addresses, size_bytes


def _temporaries(
    block: Block, top: int, addresses: dict[str, int], private: frozenset[str], vector_bytes: int
) -> int:
    """Those of one block after another in the same place; the highest address used."""
    end = top
    for statement in block.body:
        if isinstance(statement, Alloc):
            buffer: Buffer = statement.buffer
            each = vector_bytes if buffer.name in private else element_bytes(buffer.element)
            addresses[buffer.name] = top
            top += aligned(buffer.size * each)
            end = max(end, top)
        for inner in blocks_of(statement):
            end = max(end, _temporaries(inner, top, addresses, private, vector_bytes))
    return end
