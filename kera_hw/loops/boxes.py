"""Sets of buffer elements as boxes: in each dimension a base that is fixed meanwhile, and a dense range.

An access within loops covers a box once its variables together run through a dense range in every dimension,
each in one dimension only; until then the box has steps left over (``2*i`` before ``j < 2`` joins it).
Variables of loops further out are the same for all accesses compared, so they are part of the base. What
cannot be shown to be a box counts as nothing when written and as everything when read.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from kera_hw.loops.program import Affine, Index, Var
from kera_hw.ops.intervals import Interval

Terms = tuple[tuple[Var, int], ...]


@dataclass(frozen=True, slots=True)
class Side:
    """``base + low`` to ``base + high`` along one dimension; ``base`` has no constant.

    With ``steps`` (size, how many) the range is repeated at those distances, and is not dense.
    """

    base: Terms
    low: int
    high: int
    steps: tuple[tuple[int, int], ...] = ()

    @property
    def is_empty(self) -> bool:
        return self.low > self.high

    def grown(self, var: Var, rounds: Interval) -> Side:
        """Over all rounds of a loop whose variable is part of the base."""
        factor = dict(self.base)[var]
        first = min(factor * rounds.low, factor * rounds.high)
        base = tuple(item for item in self.base if item[0] != var)
        steps = (*self.steps, (abs(factor), rounds.high - rounds.low + 1))
        return Side(base, self.low + first, self.high + first, steps).joined()

    def joined(self) -> Side:
        """Steps no longer than the range are part of it."""
        high, left = self.high, sorted(self.steps)
        while left and left[0][0] <= high - self.low + 1:
            size, count = left.pop(0)
            high += size * (count - 1)
        return Side(self.base, self.low, high, tuple(left))


Box = tuple[Side, ...]


def _split(part: Affine, inner: Mapping[Var, Interval]) -> tuple[Terms, list[tuple[Var, int]]]:
    """The terms that stay as they are meanwhile, in order of name, and those that move."""
    fixed = sorted(((var, c) for var, c in part.terms if var not in inner), key=lambda item: item[0].name)
    return tuple(fixed), [(var, c) for var, c in part.terms if var in inner]


def hull(index: Index, inner: Mapping[Var, Interval]) -> Box:
    """A box that holds every element an access reaches while ``inner`` variables take their values."""
    sides: list[Side] = []
    for part in index:
        base, moving = _split(part, inner)
        low = high = part.constant
        for var, coefficient in moving:
            ends = sorted((inner[var].low * coefficient, inner[var].high * coefficient))
            low, high = low + ends[0], high + ends[1]
        sides.append(Side(base, low, high))
    return tuple(sides)


def grown(box: Box, var: Var, rounds: Interval) -> Box | None:
    """A box written in every round of a loop, over all rounds; None where it moves along two dimensions."""
    sides = [side.grown(var, rounds) if dict(side.base).get(var) else side for side in box]
    return tuple(sides) if sum(one is not two for one, two in zip(sides, box)) <= 1 else None


Spans = Mapping[Var, Interval]


def within(wanted: Box, have: Iterable[Box], spans: Spans = {}) -> bool:  # noqa: B006 - never changed
    """Whether boxes together hold another; ``spans`` tells what variables of its base run through."""
    left = [wanted] if not any(side.is_empty for side in wanted) else []
    for part in [dense for box in have for dense in _dense(box)]:
        left = [piece for rest in left for piece in _minus(rest, part, spans)]
    return not left


MOST_PIECES = 256
"""Dense pieces of a box with steps that are looked at one by one."""


def _dense(box: Box) -> list[Box]:
    """The box itself, or its pieces where a few make it up; nothing where that would be many."""
    pieces: list[Box] = [()]
    for side in box:
        sides = [replace(side, steps=())]
        for size, count in side.steps:
            if count * len(sides) * len(pieces) > MOST_PIECES:
                return []
            shifts = [size * k for k in range(count)]
            sides = [
                replace(one, low=one.low + by, high=one.high + by) for one in sides for by in shifts
            ]
        pieces = [(*piece, one) for piece in pieces for one in sides]
    return pieces


def _minus(box: Box, cut: Box, spans: Spans) -> list[Box]:
    """What is left of a box without another, as boxes."""
    shared = [_shared(side, other, spans) for side, other in zip(box, cut)]
    if any(side is None for side in shared):
        return [box]
    pieces: list[Box] = []
    for k, inside in enumerate(shared):
        assert inside is not None
        side = box[k]
        if side.low < inside.low:
            pieces.append((*box[:k], Side(side.base, side.low, inside.low - 1), *box[k + 1 :]))
        if side.high > inside.high:
            pieces.append((*box[:k], Side(side.base, inside.high + 1, side.high), *box[k + 1 :]))
        box = (*box[:k], inside, *box[k + 1 :])
    return pieces


def _shared(side: Side, other: Side, spans: Spans) -> Side | None:
    """What two sides have in common, as far as that can be said."""
    if side.base == other.base:
        both = Side(side.base, max(side.low, other.low), min(side.high, other.high))
        return None if both.is_empty else both
    # One from fixed bounds holds one that moves within them.
    if other.base or any(var not in spans for var, _ in side.base):
        return None
    whole = hull((Affine(side.low, side.base), Affine(side.high, side.base)), spans)
    return side if other.low <= whole[0].low and whole[1].high <= other.high else None


def joined(boxes: Sequence[Box]) -> list[Box]:
    """Boxes that differ in one dimension, where they touch or overlap, as one."""
    left, found = list(boxes), list[Box]()
    while left:
        box = left.pop()
        for other in left:
            both = _both(box, other)
            if both is not None:
                left.remove(other)
                left.append(both)
                break
        else:
            found.append(box)
    return found


def _both(a: Box, b: Box) -> Box | None:
    unlike = [k for k, (one, two) in enumerate(zip(a, b)) if one != two]
    if not unlike:
        return a
    (k, *more) = unlike
    one, two = a[k], b[k]
    if more or (one.base, one.steps) != (two.base, two.steps):
        return None
    if one.high + 1 < two.low or two.high + 1 < one.low:
        return None
    side = Side(one.base, min(one.low, two.low), max(one.high, two.high), one.steps).joined()
    return (*a[:k], side, *a[k + 1 :])
