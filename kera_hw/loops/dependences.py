"""Which rounds of two loops, or of one, touch the same element: distances between rounds, by ranges.

The strong SIV test with ranges for what else moves, and the GCD test on their steps: Goff, Kennedy, Tseng,
"Practical dependence testing", PLDI 1991. Where two accesses move by different steps, all rounds may meet.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import gcd

from kera_hw.loops.boxes import hull
from kera_hw.loops.program import (
    Affine,
    Alloc,
    Block,
    Index,
    Load,
    Store,
    Var,
    affine,
    statements,
)
from kera_hw.loops.spans import moving
from kera_hw.ops.intervals import Interval

EVERY = Interval(-(1 << 62), 1 << 62)
NONE = Interval(1, 0)


@dataclass(frozen=True, slots=True)
class Access:
    buffer: str
    index: Index
    writes: bool


def accesses(block: Block) -> list[Access]:
    """Loads and stores of buffers that are not the block's own."""
    own = {item.buffer.name for item in statements(block) if isinstance(item, Alloc)}
    return [
        Access(item.buffer, item.index, isinstance(item, Store)) for item in statements(block)
        if isinstance(item, (Load, Store)) and item.buffer not in own
    ]


def distances(a: Index, b: Index, i: Var, j: Var, count: int, inner: Mapping[Var, Interval]) -> Interval:
    """All ``j - i`` for which ``b`` in round j may touch what ``a`` does in round i; empty if there are none.

    Both loops run ``count`` rounds. ``inner`` are variables that move within a round; all others are the same
    in every round.
    """
    found = Interval(1 - count, count - 1)
    still = {var: Affine(span.low) for var, span in inner.items() if span.low == span.high}
    for first, second in zip(a, b):
        found = found.meet(_along(first.replace(still), second.replace(still), i, j, count, inner))
    return NONE if found.empty else found


def _along(
    a: Affine, b: Affine, i: Var, j: Var, count: int, inner: Mapping[Var, Interval]
) -> Interval:
    step, other = dict(a.terms).get(i, 0), dict(b.terms).get(j, 0)
    if step != other:
        moved = {**inner, i: Interval(0, count - 1), j: Interval(0, count - 1)}
        one, two = hull((a,), moved)[0], hull((b,), moved)[0]
        separate = one.base == two.base and (one.high < two.low or two.high < one.low)
        grain = gcd(step, other, *(factor for part in (a, b) for var, factor in part.terms if var in inner))
        apart = one.base == two.base and grain and (a.constant - b.constant) % grain
        return NONE if separate or apart else EVERY
    rests = a - affine(0, ((i, step),)), b - affine(0, ((j, step),))
    if rests[0] == rests[1] and _is_numeral([(step, count), *_moves(rests[0], inner)]):
        return Interval(0, 0)
    one, two = (hull((rest,), inner)[0] for rest in rests)
    if one.base != two.base:
        return EVERY
    # step * i + one = step * j + two, so step * (j - i) = one - two: a multiple of `grain`, off by `offset`.
    low, high = one.low - two.high, one.high - two.low
    grain = gcd(*(factor for rest in rests for var, factor in rest.terms if var in inner))
    offset = rests[0].constant - rests[1].constant
    if step < 0:
        step, low, high, offset = -step, -high, -low, -offset
    if step == 0:
        aligned = offset % grain == 0 if grain else True
        return EVERY if low <= 0 <= high and aligned else NONE
    rounds = Interval(-(-low // step), high // step).meet(Interval(1 - count, count - 1))
    return _solutions(step, rounds, offset, grain)


def _moves(part: Affine, inner: Mapping[Var, Interval]) -> list[tuple[int, int]]:
    """Factors of what moves, with how many values it takes."""
    spans = [(factor, inner[var]) for var, factor in part.terms if var in inner]
    return [(factor, span.high - span.low + 1) for factor, span in spans]


def _is_numeral(digits: list[tuple[int, int]]) -> bool:
    """Whether sums of factor * digit tell the digits: each factor exceeds all that lower ones add up to."""
    reach = 0
    for factor, count in sorted((abs(factor), count) for factor, count in digits if count > 1):
        if factor <= reach:
            return False
        reach += factor * (count - 1)
    return True


def _solutions(step: int, span: Interval, offset: int, grain: int) -> Interval:
    """The ends of all d in ``span`` with ``step * d`` a multiple of ``grain`` off ``offset`` (GCD test)."""
    if not grain:
        return span  # one - two is a constant, and the ends are exact
    common = gcd(step, grain)
    if offset % common:
        return NONE
    period = grain // common
    first = offset // common * pow(step // common, -1, period) % period if period > 1 else 0
    return Interval(span.low + (first - span.low) % period, span.high - (span.high - first) % period)


def conflicts(
    first: Block, second: Block, i: Var, j: Var, count: int
) -> Iterator[tuple[Access, Access, Interval]]:
    """Accesses of two bodies, at least one a store, with the distances at which they meet."""
    others: dict[str, list[Access]] = {}
    for access in accesses(second):
        others.setdefault(access.buffer, []).append(access)
    pairs = [
        (a, b) for a in accesses(first) for b in others.get(a.buffer, ()) if a.writes or b.writes
    ]
    wanted = {var for pair in pairs for access in pair for part in access.index for var, _ in part.terms}
    inner = {**moving(first, wanted), **moving(second, wanted)} if wanted else {}
    for a, b in pairs:
        span = distances(a.index, b.index, i, j, count, inner)
        if not span.empty:
            yield a, b, span
