"""Bit vectors over cells: runs of bits of other cells and constants, least significant first.

Slices, concatenations, shifts by constants and extensions are vectors: they cost nothing and need no cells.
"""
from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Segment(NamedTuple):
    """``width`` bits of cell ``cell`` from bit ``low``; for ``cell is None`` the constant integer ``low``."""

    cell: int | None
    low: int
    width: int


Bits = tuple[Segment, ...]


def const_bits(value: int, width: int) -> Bits:
    """A constant vector."""
    return (Segment(None, value & ((1 << width) - 1), width),) if width else ()


def cell_bits(cell: int, width: int, low: int = 0) -> Bits:
    return (Segment(cell, low, width),) if width else ()


def bits_width(bits: Bits) -> int:
    return sum(segment.width for segment in bits)


def is_single(bits: Bits) -> bool:
    """Whether a vector is one bit, which bitwise cells broadcast."""
    return len(bits) == 1 and bits[0].width == 1


def has_signals(bits: Bits) -> bool:
    """Whether any bit comes from a cell."""
    return any(segment.cell is not None for segment in bits)


def concat(parts: Iterable[Bits]) -> Bits:
    """Least significant first; neighbouring runs are merged."""
    out: list[Segment] = []
    for segment in (s for bits in parts for s in bits):
        if segment.width == 0:
            continue
        if out:
            last = out[-1]
            if last.cell is None and segment.cell is None:
                out[-1] = Segment(None, last.low | segment.low << last.width, last.width + segment.width)
                continue
            if last.cell is not None and last.cell == segment.cell and last.low + last.width == segment.low:
                out[-1] = Segment(last.cell, last.low, last.width + segment.width)
                continue
        out.append(segment)
    return tuple(out)


def slice_bits(bits: Bits, low: int, width: int) -> Bits:
    """Bits [low, low + width) of a vector."""
    if len(bits) == 1 and low >= 0 and 0 < width <= bits[0].width - low:
        only = bits[0]
        if only.cell is None:
            return const_bits(only.low >> low, width)
        return (Segment(only.cell, only.low + low, width),)
    parts: list[Bits] = []
    position = 0
    for segment in bits:
        first, last = max(low, position), min(low + width, position + segment.width)
        if first < last:
            skip, count = first - position, last - first
            if segment.cell is None:
                parts.append(const_bits(segment.low >> skip, count))
            else:
                parts.append(cell_bits(segment.cell, count, segment.low + skip))
        position += segment.width
    return concat(parts)
