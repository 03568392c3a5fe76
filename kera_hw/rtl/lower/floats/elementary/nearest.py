"""Rounding the functions' fixed-point results to f32: no value is half-way, so one bit decides.

An elementary function's value at a float is rational only where it is trivially known; those arguments are
kept from half-way points by the tables. So there is no sticky bit: the bit below the last is added.
"""
from __future__ import annotations

from kera_hw.graph.node import Ref
from kera_hw.rtl.lower.floats.wires import Wires

_KEPT = 25
"""Bits of a significand and the one below it."""


def round_positive(wires: Wires, value: Ref, point: int, field: Ref) -> Ref:
    """Magnitude bits of the f32 nearest to a positive number: subnormal, infinite or zero where it is.

    The number is value / 2^point, at least 1, times 2^(field - 127): ``field`` is its exponent field if it is
    below 2. It may be as large as its type allows; every doubling costs a multiplexer.
    """
    top = wires.range(value)[1].bit_length() - 1
    kept = wires.piece(value, point, point - _KEPT + 1)
    base = wires.difference(field, wires.integer(1))
    for position in range(point + 1, top + 1):
        reached = wires.digit(value, position)
        kept = wires.choose(reached, wires.piece(value, position, position - _KEPT + 1), kept)
        base = wires.choose(reached, wires.sum_of(field, wires.integer(position - point - 1)), base)
    low, high = wires.range(base)
    if low < 0:
        subnormal = wires.is_below(base, wires.integer(0))
        shift = wires.choose(subnormal, wires.difference(wires.integer(0), base), wires.integer(0))
        kept = wires.lowered_by(kept, wires.fit(shift, (0, -low)))
        base = wires.fit(wires.choose(subnormal, wires.integer(0), base), (0, high))
    rounded = wires.lowered(wires.sum_of(kept, wires.integer(1)), 1)
    magnitude = wires.piece(wires.sum_of(wires.raised(base, 23), rounded), 30, 0)
    if high < 254:
        return magnitude
    return wires.choose(wires.is_below(wires.integer(253), base), wires.integer(255 << 23), magnitude)
