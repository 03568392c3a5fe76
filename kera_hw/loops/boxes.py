"""Sets of buffer elements as boxes: in each dimension a base that is fixed meanwhile, and a dense range.

An access within loops covers a box when its variables run through a dense range in every dimension, each in
one dimension only. Variables of loops further out are the same for all accesses compared, so they are part of
the base. What cannot be shown to be a box counts as nothing when written and as everything when read.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kera_hw.loops.program import Affine, Index, Var, affine
from kera_hw.ops.intervals import Interval


@dataclass(frozen=True, slots=True)
class Side:
    """``base + low`` to ``base + high`` along one dimension; ``base`` has no constant."""

    base: tuple[tuple[Var, int], ...]
    low: int
    high: int

    @property
    def is_empty(self) -> bool:
        return self.low > self.high


Box = tuple[Side, ...]


Terms = tuple[tuple[Var, int], ...]


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


def covered(index: Index, loops: Mapping[Var, Interval]) -> Box | None:
    """The box that an access fills as loop variables run; None where it leaves gaps."""
    seen: set[Var] = set()
    for part in index:
        moving = sorted(_split(part, loops)[1], key=lambda item: abs(item[1]))
        reach = 0
        for var, coefficient in moving:
            if var in seen or abs(coefficient) > reach + 1:
                return None
            seen.add(var)
            reach += abs(coefficient) * (loops[var].high - loops[var].low)
    return hull(index, loops)


def within(wanted: Box, have: Iterable[Box]) -> bool:
    """Whether boxes together hold another."""
    left = [wanted] if not any(side.is_empty for side in wanted) else []
    for box in have:
        left = [piece for rest in left for piece in _minus(rest, box)]
        if not left:
            return True
    return not left


def _minus(box: Box, cut: Box) -> list[Box]:
    """What is left of a box without another, as boxes."""
    if any(a.base != b.base or a.high < b.low or b.high < a.low for a, b in zip(box, cut)):
        return [box]
    pieces: list[Box] = []
    for k, (side, other) in enumerate(zip(box, cut)):
        if side.low < other.low:
            pieces.append((*box[:k], Side(side.base, side.low, other.low - 1), *box[k + 1 :]))
        if side.high > other.high:
            pieces.append((*box[:k], Side(side.base, other.high + 1, side.high), *box[k + 1 :]))
        inside = Side(side.base, max(side.low, other.low), min(side.high, other.high))
        box = (*box[:k], inside, *box[k + 1 :])
    return pieces


def apart(first: Index, second: Index, var: Var, count: int, inner: Mapping[Var, Interval]) -> bool:
    """Whether two accesses in different rounds of ``var`` never reach the same element.

    One dimension that shows it is enough. The strong SIV test of Goff, Kennedy and Tseng, "Practical
    dependence testing" (PLDI 1991), with ranges in the place of constants.
    """
    return any(_apart_along(a, b, var, count, inner) for a, b in zip(first, second))


def _apart_along(a: Affine, b: Affine, var: Var, count: int, inner: Mapping[Var, Interval]) -> bool:
    factor = dict(a.terms).get(var, 0)
    if factor != dict(b.terms).get(var, 0):
        rounds = {**inner, var: Interval(0, count - 1)}
        one, other = hull((a,), rounds)[0], hull((b,), rounds)[0]
        return one.base == other.base and (one.high < other.low or other.high < one.low)
    one, other = (hull((part - affine(0, ((var, factor),)),), inner)[0] for part in (a, b))
    if one.base != other.base:
        return False
    # They meet where factor * (difference of rounds) is the difference of what is left.
    low, high = other.low - one.high, other.high - one.low
    if not factor:
        return low > 0 or high < 0
    step = abs(factor)
    least, most = -(-low // step), high // step  # differences of rounds that would do
    nearest = [d for d in (least, most, -1, 1) if least <= d <= most and d]
    return not any(abs(d) < count for d in nearest)
