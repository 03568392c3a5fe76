"""Normalising rank by rank: each rank tests whether it may move, and moves, so no leading zeros are counted.

The shift is the smaller of the leading zeros and a limit, the biased exponent, which keeps subnormals where
they belong. Bit by bit from the top: a rank moves by 2^k when the 2^k highest bits are clear and at least 2^k
of the limit is left. Once a limit bit was set and the value had no use for it, what is left of the limit
exceeds all later moves together and ends to matter.
"""
from __future__ import annotations

from dataclasses import dataclass

from kera_hw.graph.node import Ref
from kera_hw.rtl.lower.floats.fields import Format
from kera_hw.rtl.lower.floats.ranks import rank_bounds
from kera_hw.rtl.lower.floats.rounding import increment
from kera_hw.rtl.lower.floats.wires import Wires
from kera_hw.types import IntType


@dataclass(frozen=True, slots=True)
class Staged:
    """A significand moved up, but for a last place that rounding moves it while it increments.

    ``value``: before that last move. ``last``: whether it is to be made. ``base``: the exponent field less
    the highest bit of ``value`` (a move by the last place and the bit it brings up cancel out).
    """

    value: Ref
    last: Ref
    base: Ref


def normalise(
    wires: Wires, value: Ref, scale: Ref, exponent_bits: int, out: Ref | None = None
) -> Staged:
    """Move the highest set bit of ``value`` to its top, as far as the exponent allows.

    ``scale`` (unsigned, at least 1) is the biased exponent that the value has when the bit *below* the top
    one is its hidden bit. Where ``out`` is set the value becomes 0 and the base all ones: an infinity.
    """
    width, bits = wires.width(value), (wires.width(value) - 1).bit_length()
    if out is not None and width > (1 << bits) - 2:  # a move by all ones, but for the last, clears the value
        missing = (1 << bits) + 1 - width
        return normalise(wires, wires.cat(value, wires.const(0, missing)), scale, exponent_bits, out)
    scale_bits = wires.width(scale)
    left = [wires.bit(scale, k) if k < scale_bits else wires.flag(False) for k in range(bits)]
    ample = wires.any(wires.bits(scale, scale_bits - 1, bits)) if scale_bits > bits else wires.flag(False)
    moves: list[Ref] = []
    for high, low in rank_bounds(bits):
        if high == 0:
            break
        decide = _pair if high > low else _single
        rank = decide(wires, value, high, left, ample)
        if out is not None:
            rank = [wires.either(move, out) for move in rank]
        for k, move in zip(range(high, low - 1, -1), rank):
            ample = wires.either(ample, wires.unless(left[k], move))
        value = _moved(wires, value, rank, low)
        moves += rank
    top, second = wires.bit(value, width - 1), wires.bit(value, width - 2)
    last = wires.unless(wires.either(ample, left[0]), top)
    if out is not None:
        last = wires.either(last, out)
    span = IntType(max(scale_bits, bits) + 1, False)
    shift = wires.cat(*moves, wires.const(0, 1)) if moves else wires.const(0, 1)
    base = wires.resize(wires.subtract(wires.cast(scale, span), wires.cast(shift, span)), exponent_bits)
    # A last move that brings up no bit leaves a subnormal, whose field is 0 (or a zero).
    empty = wires.unless(last, second)
    base = wires.select(empty, wires.const(0, exponent_bits), base)
    if out is not None:
        base = wires.either(base, wires.spread(out, exponent_bits))
    return Staged(value, last, base)


def _clear(wires: Wires, value: Ref, skip: int, count: int) -> Ref:
    """Whether ``count`` bits (as far as there are) below the ``skip`` highest are 0."""
    top = wires.width(value) - skip
    return wires.none(wires.bits(value, top - 1, max(0, top - count)))


def _single(wires: Wires, value: Ref, k: int, left: list[Ref], ample: Ref) -> list[Ref]:
    return [wires.both(_clear(wires, value, 0, 1 << k), wires.either(ample, left[k]))]


def _pair(wires: Wires, value: Ref, high: int, left: list[Ref], ample: Ref) -> list[Ref]:
    """Moves by 2^high and 2^(high - 1) of one rank, decided side by side."""
    low = high - 1
    far, near = 1 << high, 1 << low
    upper = wires.both(_clear(wires, value, 0, far), wires.either(ample, left[high]))
    after = wires.both(_clear(wires, value, far, near), wires.either(ample, left[low]))
    alone = wires.both(_clear(wires, value, 0, near), wires.either(ample, left[high], left[low]))
    return [upper, wires.select(upper, after, alone)]


def _moved(wires: Wires, value: Ref, rank: list[Ref], low: int) -> Ref:
    if len(rank) == 1:
        return wires.select(rank[0], wires.left(value, 1 << low), value)
    return wires.left(value, wires.cat(*rank, wires.const(0, low)) if low else wires.cat(*rank))


def round_staged(
    wires: Wires, form: Format, staged: Staged, sticky: Ref, marks: Ref | None = None
) -> Ref:
    """Magnitude bits of a normalised value rounded to nearest even.

    The value has its hidden bit on top, the fraction, and at least two bits more. ``marks`` (as wide as the
    fraction) is ORed into a fraction known to be 0.
    """
    value, last, fraction = staged.value, staged.last, form.fraction_bits
    extra = wires.width(value) - 1 - fraction
    assert extra >= 2, "rounding needs the bit below the fraction, before and after the last move"

    def low_any(count: int) -> Ref:
        return wires.any(wires.low_bits(value, count)) if count else wires.flag(False)

    here = wires.bits(value, extra + fraction - 1, extra)
    chosen = wires.select(last, wires.bits(value, extra + fraction - 2, extra - 1), here)
    half = wires.select(last, wires.bit(value, extra - 2), wires.bit(value, extra - 1))
    lowest = wires.select(last, wires.bit(value, extra - 1), wires.bit(value, extra))
    below = wires.either(sticky, low_any(extra - 2), wires.unless(wires.bit(value, extra - 2), last))
    up = wires.both(half, wires.either(lowest, below))
    marks = wires.const(0, fraction) if marks is None else marks
    significand = wires.cat(wires.bit(value, extra + fraction), chosen)
    return increment(wires, form, wires.cat(staged.base, marks), significand, up)
