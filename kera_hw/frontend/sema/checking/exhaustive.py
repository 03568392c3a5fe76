"""Whether the arms of a match cover its scrutinee, by subtracting boxes.

The scrutinee is a point in a box: one integer range for each scalar in it. Each arm takes boxes away;
what is left at the end has no arm, and an arm that takes nothing is never reached.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence

from kera_hw.frontend.sema.tree import hir
from kera_hw.support import Span
from kera_hw.types import BoolType, IntType, TupleType, Type

Box = tuple[tuple[int, int], ...]
#: Beyond this many pieces a match is given up on, and asked to end with `_`.
MAX_PIECES = 4096


def domain(kind: Type) -> Box | None:
    """The box of all values; None when the type is not made of integers and bools."""
    if isinstance(kind, BoolType):
        return ((0, 1),)
    if isinstance(kind, IntType):
        return ((kind.min, kind.max),)
    if isinstance(kind, TupleType):
        parts = [domain(item) for item in kind.items]
        if all(part is not None for part in parts):
            return tuple(side for part in parts if part is not None for side in part)
    return None


def pattern_box(pattern: hir.Pattern, kind: Type) -> Box:
    """The values a pattern matches; a wildcard or name takes the whole domain."""
    if isinstance(pattern, hir.IntRange):
        return ((pattern.low, pattern.high),)
    if isinstance(pattern, hir.TuplePattern) and isinstance(kind, TupleType):
        return tuple(
            side for item, part in zip(pattern.items, kind.items) for side in pattern_box(item, part)
        )
    return domain(kind) or ()


def _subtract(box: Box, taken: Box) -> Iterator[Box]:
    """The parts of a box outside of another, disjoint."""
    overlap = [(max(a, c), min(b, d)) for (a, b), (c, d) in zip(box, taken)]
    if any(low > high for low, high in overlap):
        yield box
        return
    for axis, ((low, high), (first, last)) in enumerate(zip(box, overlap)):
        before = tuple(overlap[:axis])
        after = box[axis + 1:]
        if low < first:
            yield (*before, (low, first - 1), *after)
        if last < high:
            yield (*before, (last + 1, high), *after)


def _meets(box: Box, other: Box) -> bool:
    return all(max(a, c) <= min(b, d) for (a, b), (c, d) in zip(box, other))


def cover(kind: Type, arms: Sequence[Sequence[hir.Pattern]]) -> tuple[list[set[Span]], Box | None]:
    """For each arm the places of its alternatives that no value reaches, and a value without an arm (None
    when all have one). Alternatives inside a tuple share its place, and are reached together."""
    whole = domain(kind)
    assert whole is not None
    left: list[Box] = [whole]
    unreached: list[set[Span]] = []
    for patterns in arms:
        reached: set[Span] = set()
        for pattern in patterns:
            box = pattern_box(pattern, kind)
            if any(_meets(piece, box) for piece in left):
                reached.add(pattern.span)
            left = [part for piece in left for part in _subtract(piece, box)]
            if len(left) > MAX_PIECES:
                return [*unreached, *(set[Span]() for _ in arms[len(unreached):])], left[0]
        unreached.append({pattern.span for pattern in patterns} - reached)
    return unreached, left[0] if left else None


def takes_all(pattern: hir.Pattern, kind: Type) -> bool:
    """Whether a pattern matches every value of the type."""
    return pattern_box(pattern, kind) == domain(kind)


def example(box: Box, kind: Type) -> str:
    """A value of a box as a reader writes it."""
    text, rest = _example(list(box), kind)
    assert not rest
    return text


def _example(sides: list[tuple[int, int]], kind: Type) -> tuple[str, list[tuple[int, int]]]:
    if isinstance(kind, TupleType):
        parts: list[str] = []
        for item in kind.items:
            part, sides = _example(sides, item)
            parts.append(part)
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})", sides
    (low, high), rest = sides[0], sides[1:]
    value = 0 if low <= 0 <= high else low
    return ("true" if value else "false") if isinstance(kind, BoolType) else str(value), rest
