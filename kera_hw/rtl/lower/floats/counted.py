"""Integers to floats: the two's complement is moved up rank by rank, and never negated.

A negative is complemented within the first move. Moved up with ones from below, its complement is one less
than its magnitude throughout, which rounding makes good with the increment it does anyway. The exponent needs
no subtraction either: the moves not made, read as a number, count up from the format's bias.
"""
from __future__ import annotations

from kera_hw.graph.node import Ref
from kera_hw.rtl.lower.floats.fields import Format
from kera_hw.rtl.lower.floats.wires import Wires, uint


def counted(wires: Wires, form: Format, bits: Ref, negative: Ref) -> Ref:
    """Magnitude bits of the integer of which ``bits`` is the two's complement, to nearest even."""
    source = wires.width(bits)
    count = max(1, (source - 1).bit_length())
    value = wires.resize(bits, 1 << count)
    if source < 1 << count:  # copies of the sign above: complemented, they are the zeros wanted there
        value = wires.cat(wires.spread(negative, (1 << count) - source), bits)
    stays: list[Ref] = []  # of each move: whether it is not made
    if count > 1:  # the longest move alone: its multiplexer has room for the complement
        half = 1 << (count - 1)
        upper, lower = wires.high_bits(value, half), wires.low_bits(value, half)
        stays.append(_unlike(wires, upper, negative))
        upper = wires.select(stays[0], upper, lower)
        lower = wires.select(stays[0], lower, wires.const(0, half))
        value = wires.cat(wires.flip_if(negative, upper), wires.flip_if(negative, lower))
    else:
        value = wires.flip_if(negative, value)
    missing = form.fraction_bits + 3 - (1 << count)
    if missing > 0:
        value = wires.cat(value, wires.spread(negative, missing))
    for high, low in _bounds(count - 2):
        rank = _tests(wires, value, high, low)
        if high == low:
            value = wires.select(rank[0], value, _filled(wires, value, 1 << low, negative))
        else:
            value = _four_way(wires, value, rank, low, negative)
        stays += rank
    return _rounded(wires, form, value, stays, negative)


def _unlike(wires: Wires, piece: Ref, negative: Ref) -> Ref:
    """Whether any bit differs from the sign: three of them and the sign make one LUT."""
    bits = [wires.differ(wires.bit(piece, k), negative) for k in range(wires.width(piece))]
    groups = [wires.either(*bits[low : low + 3]) for low in range(0, len(bits), 3)]
    return wires.either(*groups)


def _some(wires: Wires, piece: Ref) -> Ref:
    """Whether any bit is set, as a sum of bits: the flag is wanted as it is, not its complement."""
    return wires.either(*(wires.bit(piece, k) for k in range(wires.width(piece))))


def _bounds(high: int) -> list[tuple[int, int]]:
    """(highest, lowest) move of each rank: pairs, and one alone at the end; bit 0 is left to rounding."""
    bounds: list[tuple[int, int]] = []
    while high >= 1:
        low = high - 1 if high >= 2 else high
        bounds.append((high, low))
        high = low - 1
    return bounds


def _tests(wires: Wires, value: Ref, high: int, low: int) -> list[Ref]:
    """Which moves of a rank are not made: some of as many highest bits are set."""
    far = _some(wires, wires.high_bits(value, 1 << high))
    if high == low:
        return [far]
    top, near = wires.width(value), 1 << low
    after = _some(wires, wires.bits(value, top - (1 << high) - 1, top - (1 << high) - near))
    return [far, wires.select(far, _some(wires, wires.high_bits(value, near)), after)]


def _filled(wires: Wires, value: Ref, places: int, fill: Ref) -> Ref:
    """Moved up, with copies of the fill from below."""
    return wires.cat(wires.low_bits(value, wires.width(value) - places), wires.spread(fill, places))


def _four_way(wires: Wires, value: Ref, rank: list[Ref], low: int, fill: Ref) -> Ref:
    step = wires.cat(*rank)  # bits of one vector: conditions that a four-way multiplexer waits for together
    far, near = wires.bit(step, 1), wires.bit(step, 0)
    moved = [value, *(_filled(wires, value, k << low, fill) for k in (1, 2, 3))]
    return wires.select(
        far, wires.select(near, moved[0], moved[1]), wires.select(near, moved[2], moved[3])
    )


def _rounded(wires: Wires, form: Format, value: Ref, stays: list[Ref], negative: Ref) -> Ref:
    """The last move, rounding, and the exponent, in one addition."""
    fraction, width = form.fraction_bits, wires.width(value)
    extra = width - 1 - fraction
    top = wires.bit(value, width - 1)
    here = wires.bits(value, extra + fraction - 1, extra)
    chosen = wires.select(top, here, wires.bits(value, extra + fraction - 2, extra - 1))
    half = wires.select(top, wires.bit(value, extra - 1), wires.bit(value, extra - 2))
    lowest = wires.select(top, wires.bit(value, extra), wires.bit(value, extra - 1))
    rest = wires.both(top, wires.differ(wires.bit(value, extra - 2), negative))
    if extra > 2:
        rest = wires.either(rest, _unlike(wires, wires.low_bits(value, extra - 2), negative))
    up = wires.select(
        negative,
        wires.either(half, wires.unless(lowest, rest)),
        wires.both(half, wires.either(lowest, rest)),
    )
    hidden = wires.either(top, wires.bit(value, width - 2))
    offset, field = form.bias - 1, form.exponent_bits
    present = wires.either(hidden, negative)
    assert offset % 2 == 0, "the hidden bit stands in the offset's lowest place"
    high_part = wires.select(present, wires.const(offset >> 1, field - 1), wires.const(0, field - 1))
    number = wires.cat(*stays, top)
    kind = uint(form.width - 1)
    total = wires.add(
        wires.cat(wires.resize(number, field), wires.const(0, fraction)),
        wires.cat(high_part, hidden, chosen),
        wires.cast(up, kind),
    )
    most = (1 << (len(stays) + 1)) - 1
    if most < form.top - offset - 1:
        return total
    limit = wires.const(form.top - offset - 1, len(stays) + 1)
    return wires.select(wires.less(number, limit), total, wires.const(form.infinity, form.width - 1))
