"""Where a vector gate falls apart: runs of bits with the same constants, repetitions and complements.

``c ? x ^ K : x`` is a multiplexer on paper and, bit by bit, a wire or an exclusive or. A gate is cut wherever
an operand turns constant, or turns into the bits of another operand or into their complement, so that each
run's function is simplified by itself.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from kera_hw.schedule.fpga.bits import Bits, Segment

_WORTH = 4
"""Of how many bits one must share operands for a gate to be cut there: whole vectors fit adders better."""

Complement = Callable[[Segment], Segment | None]
"""What a bit is the complement of, if it comes from an inverter."""
_Role = tuple[int, bool] | int | None
"""Of a bit beside those of the operands before it: a constant, (which of them it is, inverted), or new."""


def bits(vector: Bits) -> Iterator[Segment]:
    """The bits of a vector, one by one."""
    for cell, low, width in vector:
        if cell is None:
            for i in range(width):
                yield Segment(None, low >> i & 1, 1)
        else:
            for i in range(width):
                yield Segment(cell, low + i, 1)


def edges(operands: Sequence[Bits], width: int, complement: Complement) -> list[int]:
    """Where runs begin and end, with 0 and ``width``."""
    if width == 1 or not _may_differ(operands, complement):
        return [0, width]
    columns = [list(bits(vector)) for vector in operands]
    rows = [column * width if len(column) == 1 else column for column in columns]
    roles = [_roles([row[i] for row in rows], complement) for i in range(width)]
    sharing = sum(any(isinstance(role, tuple) for role in found) for found in roles)
    if sharing * _WORTH < width:
        roles = [[role if isinstance(role, int) else None for role in found] for found in roles]
    return [0, *(i for i in range(1, width) if roles[i] != roles[i - 1]), width]


def _may_differ(operands: Sequence[Bits], complement: Complement) -> bool:
    """Whether any bit is constant, or two operands have to do with one cell."""
    seen: set[int] = set()
    for vector in operands:
        cells: set[int] = set()
        for segment in vector:
            if segment.cell is None:
                return True
            cells.add(segment.cell)
            plain = complement(Segment(segment.cell, segment.low, 1))
            if plain is not None and plain.cell is not None:
                cells.add(plain.cell)
        if not seen.isdisjoint(cells):
            return True
        seen |= cells
    return False


def _roles(column: Sequence[Segment], complement: Complement) -> list[_Role]:
    """Each operand's bit, seen beside the others'."""
    found: list[_Role] = []
    plain: list[tuple[Segment, bool]] = []
    for bit in column:
        if bit.cell is None:
            found.append(bit.low)
            continue
        under = complement(bit)
        own = (bit, False) if under is None else (under, True)
        first = next((k for k, (other, _) in enumerate(plain) if other == own[0]), None)
        found.append(None if first is None else (first, own[1] != plain[first][1]))
        plain.append(own)
    return found
