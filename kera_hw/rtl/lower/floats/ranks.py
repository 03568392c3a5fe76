"""Variable shifts in ranks of one multiplexer each, coarse ones first.

A 4:1 multiplexer a bit takes two LUTs, a 2:1 one that ends in an adder none (the carry cell holds it); so two
bits of the amount are used at a time, and the lowest one alone.
"""
from __future__ import annotations

from kera_hw.graph.node import Ref
from kera_hw.rtl.lower.floats.wires import Wires


def rank_bounds(bits: int, last_alone: bool = True) -> list[tuple[int, int]]:
    """(highest, lowest) bit of the amount that each rank uses: pairs, and ``last_alone`` bit 0 by itself."""
    bounds: list[tuple[int, int]] = []
    high = bits - 1
    while high >= 0:
        low = high - 1 if high >= 1 + last_alone else high
        bounds.append((high, low))
        high = low - 1
    return bounds


def shift_left(wires: Wires, value: Ref, amount: Ref) -> Ref:
    """``value << amount`` in the value's width; the amount is unsigned."""
    for high, low in rank_bounds(wires.width(amount)):
        value = _move(wires, "bits.shl", value, amount, high, low)
    return value


def _move(wires: Wires, opcode: str, value: Ref, amount: Ref, high: int, low: int) -> Ref:
    if high == low:
        moved = wires.builder.op(opcode, value, wires.const(1 << low, max(1, (1 << low).bit_length())))
        return wires.select(wires.bit(amount, low), moved, value)
    step = wires.bits(amount, high, low)
    return wires.builder.op(opcode, value, wires.cat(step, wires.const(0, low)) if low else step)


def shift_right(wires: Wires, value: Ref, amount: Ref) -> Ref:
    """``value >> amount``: arithmetic on a signed value; the amount is unsigned."""
    for high, low in rank_bounds(wires.width(amount)):
        value = _move(wires, "bits.shr", value, amount, high, low)
    return value


def shift_right_sticky(
    wires: Wires, value: Ref, amount: Ref, fill: Ref | None = None
) -> tuple[Ref, Ref]:
    """``value >> amount``, and whether a bit unlike the ``fill`` fell off.

    ``fill`` is the sign of a signed value; None goes with an unsigned one. The sticky bit is gathered rank by
    rank from what each drops, so it is there one level after the value.
    """
    sticky = wires.flag(False)
    body = wires.width(value) - (fill is not None)
    for high, low in rank_bounds(wires.width(amount)):
        dropped = _falls_off(wires, wires.resize(value, body), fill, wires.bits(amount, high, low), low)
        sticky = wires.either(sticky, dropped)
        value = _move(wires, "bits.shr", value, amount, high, low)
    return value, sticky


def _falls_off(wires: Wires, body: Ref, fill: Ref | None, step: Ref, low: int) -> Ref:
    """Whether a shift by ``step << low`` drops a bit that is not ``fill``."""
    found = wires.flag(False)
    flags = [wires.bit(step, k) for k in range(wires.width(step))]
    for count in range(1, 1 << len(flags)):
        bottom, top = (count - 1) << low, min(wires.width(body), count << low)
        if bottom >= wires.width(body):
            continue
        unlike = _unlike(wires, wires.bits(body, top - 1, bottom), fill)
        found = wires.either(found, wires.both(_reaches(wires, flags, count), unlike))
    return found


def _unlike(wires: Wires, piece: Ref, fill: Ref | None) -> Ref:
    """Whether any bit differs from the fill: three bits and the fill make one LUT."""
    if fill is None:
        return wires.any(piece)
    width = wires.width(piece)
    found = [
        wires.any(wires.flip_if(fill, wires.bits(piece, min(low + 3, width) - 1, low)))
        for low in range(0, width, 3)
    ]
    return wires.either(*found)


def funnel_right(wires: Wires, number: Ref, amount: Ref, width: int) -> tuple[Ref, Ref]:
    """The low ``width`` bits of ``number >> amount``, and whether a set bit fell off below.

    What lies above the result must be 0 for the amount given. Every rank keeps only what later ranks may
    still move into the result.
    """
    sticky = wires.flag(False)
    for high, low in rank_bounds(wires.width(amount), last_alone=False):
        flags = [wires.bit(amount, k) for k in range(low, high + 1)]
        kept = width + (1 << low) - 1
        sticky = wires.either(sticky, _drops(wires, number, flags, low))
        choices = [
            wires.window(number, kept - 1 + (k << low), k << low) for k in range(1 << len(flags))
        ]
        # Bits of one vector: conditions that a four-way multiplexer waits for together.
        step = wires.bits(amount, high, low)
        for k in range(len(flags)):
            flag = wires.bit(step, k)
            choices = [wires.select(flag, b, a) for a, b in zip(choices[::2], choices[1::2])]
        (number,) = choices
    return wires.extended(number, width), sticky


def _drops(wires: Wires, number: Ref, flags: list[Ref], low: int) -> Ref:
    """Whether a set bit lies below the place a rank moves to bit 0."""
    body = wires.width(number)
    found = wires.flag(False)
    for count in range(1, 1 << len(flags)):
        bottom, top = (count - 1) << low, min(body, count << low)
        if bottom >= body:
            continue
        piece = wires.any(wires.bits(number, top - 1, bottom))
        found = wires.either(found, wires.both(piece, _reaches(wires, flags, count)))
    return found


def _reaches(wires: Wires, flags: list[Ref], count: int) -> Ref:
    """Whether the number that one or two flags spell (lowest first) is at least ``count``."""
    if len(flags) == 1:
        return flags[0]
    return (wires.either(*flags), flags[1], wires.both(*flags))[count - 1]
