"""Vectors where some bits are known: gates and selections made again with constants in those bits' place.

A flip-flop that is enabled under a condition asks for its next value only where the condition holds.
"""
from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby

from kera_hw.rtl.techmap import truth
from kera_hw.rtl.techmap.items import Choice, Gate
from kera_hw.rtl.techmap.net import Net
from kera_hw.schedule.fpga.bits import Bits, bits_width, cell_bits, concat, const_bits, slice_bits

Bit = tuple[int, int]
Facts = Mapping[Bit, int]
"""Bits of items, and what they are."""
_MOST_ITEMS = 400
"""Gates and selections behind a vector that are made again; where there are more, it stays as it is."""


def facts_of(net: Net, signal: Bits, value: int) -> dict[Bit, int]:
    """What follows for other bits from one bit's value, through gates of single bits."""
    found: dict[Bit, int] = {}
    pending = [(signal, value)]
    while pending:
        bits, value = pending.pop()
        (segment,) = bits
        if segment.cell is None or (segment.cell, segment.low) in found:
            continue
        found[segment.cell, segment.low] = value
        item = net.items[segment.cell]
        if isinstance(item, Gate):
            operands = [one if bits_width(one) == 1 else slice_bits(one, segment.low, 1) for one in item.ins]
            pending += _implied(item.table, operands, value)
    return found


def _implied(table: int, operands: list[Bits], value: int) -> list[tuple[Bits, int]]:
    """Operands that must have one value for the gate to give ``value``."""
    count = len(operands)
    rows = table if value else truth.mask(count) & ~table
    if not rows:
        return []
    sides = [(rows & truth.variable(k, count), rows & ~truth.variable(k, count)) for k in range(count)]
    return [
        (bits, int(low == 0)) for bits, (high, low) in zip(operands, sides) if not high or not low
    ]


def given(net: Net, bits: Bits, facts: Facts) -> Bits:
    """The vector as it is where the facts hold; elsewhere it may be anything."""
    order = _behind(net, bits, facts) if facts else None
    if order is None:
        return bits
    made: dict[int, Bits] = {}

    def seen(vector: Bits) -> Bits:
        parts: list[Bits] = []
        for segment in vector:
            if segment.cell is None:
                parts.append((segment,))
                continue
            whole = made.get(segment.cell) or cell_bits(segment.cell, net.items[segment.cell].width)
            places = range(segment.low, segment.low + segment.width)
            for known, run in groupby(places, key=lambda k, cell=segment.cell: facts.get((cell, k))):
                own = list(run)
                parts.append(
                    slice_bits(whole, own[0], len(own)) if known is None
                    else const_bits(-known, len(own))
                )
        return concat(parts)

    for index in order:
        item = net.items[index]
        ins = tuple(map(seen, item.ins))
        if ins == item.ins:
            continue
        net.origin = net.origins[index]
        if isinstance(item, Gate):
            made[index] = net.logic(item.table, ins, item.width)
        else:
            made[index] = net.mux(ins[0], ins[1:], item.width)
    return seen(bits)


def _behind(net: Net, bits: Bits, facts: Facts) -> list[int] | None:
    """Gates and selections that a vector is made of, in order; None for too many, or without a fact."""
    cells = {cell for cell, _ in facts}
    found: set[int] = set()
    touched = False
    pending = [segment.cell for segment in bits if segment.cell is not None]
    while pending:
        cell = pending.pop()
        touched = touched or cell in cells
        item = net.items[cell]
        if cell in found or not isinstance(item, Gate | Choice):
            continue
        found.add(cell)
        if len(found) > _MOST_ITEMS:
            return None
        pending += [segment.cell for one in item.ins for segment in one if segment.cell is not None]
    return sorted(found) if touched else None
