"""Rounding the functions' fixed-point results to f32: no value is half-way, so one bit decides.

An elementary function's value at a float is rational only where it is trivially known; those arguments are
kept from half-way points by the tables. So there is no sticky bit: the bit below the last is added.
"""
from __future__ import annotations

from kera_hw.graph.node import Ref
from kera_hw.rtl.lower.floats.elementary.exact import Exact

_KEPT = 25
"""Bits of a significand and the one below it."""


def round_positive(exact: Exact, value: Ref, point: int, field: Ref) -> Ref:
    """Magnitude bits of the f32 nearest to a positive number: subnormal, infinite or zero where it is.

    The number is value / 2^point, at least 1, times 2^(field - 127): ``field`` is its exponent field if it is
    below 2. It may be as large as its type allows; every doubling costs a multiplexer.
    """
    top = exact.range(value)[1].bit_length() - 1
    kept = exact.bits(value, point, point - _KEPT + 1)
    base = exact.sub(field, exact.const(1))
    for position in range(point + 1, top + 1):
        reached = exact.bit(value, position)
        kept = exact.select(reached, exact.bits(value, position, position - _KEPT + 1), kept)
        base = exact.select(reached, exact.add(field, exact.const(position - point - 1)), base)
    low, high = exact.range(base)
    if low < 0:
        subnormal = exact.less(base, exact.const(0))
        shift = exact.select(subnormal, exact.sub(exact.const(0), base), exact.const(0))
        kept = exact.variable_shr(kept, exact.fit(shift, (0, -low)))
        base = exact.fit(exact.select(subnormal, exact.const(0), base), (0, high))
    rounded = exact.shr(exact.add(kept, exact.const(1)), 1)
    magnitude = exact.bits(exact.add(exact.shl(base, 23), rounded), 30, 0)
    if high < 254:
        return magnitude
    return exact.select(exact.less(exact.const(253), base), exact.const(255 << 23), magnitude)
