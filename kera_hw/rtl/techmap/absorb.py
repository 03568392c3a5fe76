"""A gate seen through an adder's operand that holds more than the gate's own bits.

The operand of ``a + (flag ? ~b : b)`` is often wider than b: above the gate's bits stand constants, or the
flag itself, its complement, or bits of something else. All of them are what the same gate gives for some
constant, or those bits, in b's place, so the whole operand is one gate over b padded with constants, and fits
the adder's cells.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

from kera_hw.schedule.fpga.bits import Bits, Segment, bits_width, concat, slice_bits

View = tuple[tuple[Bits, ...], int]
"""One-bit leaves, and a table over them."""
Views = Callable[[Segment], Sequence[View]]


def through(
    leaves: Sequence[Bits], table: int, main: int, bits: Bits, views: Views
) -> tuple[Bits, ...] | None:
    """The leaves under which ``table`` gives ``bits``, which holds slices of gate ``main``, if there are any.

    One-bit leaves stay as they are (broadcast); wide ones get constants where ``bits`` has other things.
    ``views`` gives other bits as functions of few bits.
    """
    wide = [k for k, leaf in enumerate(leaves) if bits_width(leaf) > 1]
    if not wide:
        return None
    parts: list[list[Bits]] = [[] for _ in leaves]
    for segment in bits:
        if segment.cell == main:
            for k in wide:
                parts[k].append(slice_bits(leaves[k], segment.low, segment.width))
            continue
        carried = _carried(leaves, table, wide, segment)
        if carried is not None:
            for k, piece in zip(wide, carried):
                parts[k].append(piece)
            continue
        for values in _bitwise(leaves, table, wide, segment, views):
            if values is None:
                return None
            for k, value in zip(wide, values):
                parts[k].append((Segment(None, value, 1),))
    return tuple(concat(parts[k]) if k in wide else leaf for k, leaf in enumerate(leaves))


def _carried(
    leaves: Sequence[Bits], table: int, wide: Sequence[int], segment: Segment
) -> list[Bits] | None:
    """What the wide leaves show so that the gate passes a foreign segment on, whatever the single ones do."""
    if segment.cell is None:
        return None
    single = [k for k in range(len(leaves)) if k not in wide]
    for roles in product((0, 1, None), repeat=len(wide)):  # a constant, or the segment itself
        if None in roles and all(
            _gives(table, dict(zip(wide, roles)), dict(zip(single, values)), bit)
            for values in product((0, 1), repeat=len(single)) for bit in (0, 1)
        ):
            full = (1 << segment.width) - 1
            return [
                (segment,) if role is None else (Segment(None, full * role, segment.width),) for role in roles
            ]
    return None


def _gives(table: int, roles: dict[int, int | None], single: dict[int, int], bit: int) -> bool:
    """Whether the table shows ``bit`` where roles of None show it too."""
    index = sum((bit if role is None else role) << k for k, role in roles.items())
    index |= sum(value << k for k, value in single.items())
    return table >> index & 1 == bit


def _bitwise(
    leaves: Sequence[Bits], table: int, wide: Sequence[int], segment: Segment, views: Views
) -> list[tuple[int, ...] | None]:
    """For each bit of a segment, constants for the wide leaves that make the table give it."""
    if segment.cell is None:
        ones = [((), segment.low >> i & 1) for i in range(segment.width)]
        return [_constants(leaves, table, wide, [one]) for one in ones]
    if segment.width > 1:
        return [None]
    return [_constants(leaves, table, wide, views(segment))]


def _constants(
    leaves: Sequence[Bits], table: int, wide: Sequence[int], views: Sequence[View]
) -> tuple[int, ...] | None:
    single = [k for k in range(len(leaves)) if k not in wide]
    for inner, function in views:
        places = [next((k for k in single if leaves[k] == leaf), None) for leaf in inner]
        if None in places:
            continue
        for values in product((0, 1), repeat=len(wide)):
            if _agrees(table, function, places, single, dict(zip(wide, values))):
                return values
    return None


def _agrees(
    table: int, function: int, places: Sequence[int | None], single: Sequence[int], fixed: dict[int, int]
) -> bool:
    """Whether the table with its wide leaves fixed is the function, for all values of the single ones."""
    for values in product((0, 1), repeat=len(single)):
        chosen = {**fixed, **dict(zip(single, values))}
        want = sum(chosen[k] << i for i, k in enumerate(places) if k is not None)
        got = sum(value << k for k, value in chosen.items())
        if table >> got & 1 != function >> want & 1:
            return False
    return True
