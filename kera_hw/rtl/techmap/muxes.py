"""Four-way multiplexers bit by bit: where few signals are chosen between, one LUT does instead of two.

A shift in steps of four ways ends in bits that are all fill; those take a signal, the fill and the two select
bits, which is one LUT4.
"""
from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Protocol

from kera_hw.rtl.techmap.items import Choice, Item
from kera_hw.schedule.fpga.bits import Bits, Segment, bits_width, concat, slice_bits

_LUT_INPUTS = 4
Pattern = tuple[int, ...]
"""Of each choice: -1 or -2 for the constants 0 and 1, else which of the bit's signals it is."""


class Growing(Protocol):
    """The netlist under construction (``net.Net``), as far as it is needed here."""

    def logic(self, table: int, operands: Sequence[Bits], width: int) -> Bits: ...
    def bits(self, item: Item) -> Bits: ...


def four_way(net: Growing, select: Bits, choices: Sequence[Bits], width: int) -> Bits:
    """``choices[select]`` of three or four choices and two select bits that are signals."""
    columns = [_pattern([slice_bits(choice, i, 1)[0] for choice in choices]) for i in range(width)]
    parts: list[Bits] = []
    position = 0
    for narrow, group in groupby(columns, key=lambda found: found if _is_narrow(found) else None):
        span = len(list(group))
        pieces = [slice_bits(choice, position, span) for choice in choices]
        if narrow is None:
            parts.append(net.bits(Choice(span, (select, *pieces))))
        else:
            parts.append(_logic(net, select, pieces, narrow, span))
        position += span
    return concat(parts)


def _pattern(column: Sequence[Segment]) -> Pattern:
    signals: list[Segment] = []
    found: list[int] = []
    for segment in column:
        if segment.cell is None:
            found.append(-1 - (segment.low & 1))
            continue
        if segment not in signals:
            signals.append(segment)
        found.append(signals.index(segment))
    return tuple(found)


def _is_narrow(pattern: Pattern) -> bool:
    return max(pattern) + 3 <= _LUT_INPUTS


def _logic(net: Growing, select: Bits, choices: Sequence[Bits], pattern: Pattern, width: int) -> Bits:
    """The bits' function of their signals and the select bits."""
    count = max(0, max(pattern) + 1)
    operands = [_narrowed(choices[pattern.index(k)]) for k in range(count)]
    operands += [slice_bits(select, k, 1) for k in (0, 1)]
    table = 0
    for row in range(1 << (count + 2)):
        role = pattern[min(row >> count, len(choices) - 1)]
        bit = row >> role & 1 if role >= 0 else -1 - role
        table |= bit << row
    return net.logic(table, operands, width)


def _narrowed(bits: Bits) -> Bits:
    """One bit that repeats, as itself: logic spreads it."""
    first = bits[0]
    same = first.width == 1 and all(segment == first for segment in bits)
    return (first,) if same and bits_width(bits) > 1 else bits
