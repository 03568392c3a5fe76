"""Leading zeros and a variable shift to the right of vectors of any width."""
from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from kera_hw.graph.node import Ref
from kera_hw.rtl.lower.floats.wires import Wires


def shift_right_sticky(wires: Wires, value: Ref, amount: Ref) -> tuple[Ref, Ref]:
    """``value >> amount``, and whether a set bit fell out. The amount is unsigned.

    A stage tells what it drops while it moves, so the lost bits need neither a mask nor a wider shifter. An
    amount past the last stage becomes the greatest one, which moves everything out.
    """
    bits = min(wires.width(amount), wires.width(value).bit_length())
    amount = _capped(wires, amount, bits)
    lost: list[Ref] = []
    for low in range((bits - 1) // 2 * 2, -1, -2):
        flags = [wires.bit(amount, i) for i in range(low, min(low + 2, bits))]
        moves = [k << low for k in range(1 << len(flags))]
        lost.append(_dropped(wires, value, flags, moves))
        choices = [_right(wires, value, k) if k else value for k in moves]
        for flag in flags:
            choices = [wires.select(flag, y, x) for x, y in zip(choices[::2], choices[1::2])]
        (value,) = choices
    return value, wires.tree("bits.or", lost)


def _right(wires: Wires, value: Ref, amount: int) -> Ref:
    width = wires.width(value)
    if amount >= width:
        return wires.const(0, width)
    return wires.extended(wires.bits(value, width - 1, amount), width)


def _capped(wires: Wires, amount: Ref, bits: int) -> Ref:
    """The smaller of an amount and 2^bits - 1."""
    width = wires.width(amount)
    if width <= bits:
        return amount
    far = wires.any(wires.bits(amount, width - 1, bits))
    return wires.either(wires.low_bits(amount, bits), wires.spread(far, bits))


def _dropped(wires: Wires, value: Ref, flags: Sequence[Ref], moves: Sequence[int]) -> Ref:
    """Whether a stage that moves by ``moves[flags]`` drops a set bit."""
    width = wires.width(value)
    parts: list[Ref] = []  # whether bits between one move and the next are set
    for low, high in pairwise(moves):
        low, high = min(low, width), min(high, width)
        parts.append(wires.any(wires.bits(value, high - 1, low)) if low < high else wires.flag(False))
    if len(flags) == 1:
        return wires.both(flags[0], parts[0])
    low_flag, high_flag = flags
    first = wires.both(parts[0], wires.either(*flags))
    second = wires.both(parts[1], high_flag)
    third = wires.both(parts[2], wires.both(low_flag, high_flag))
    return wires.tree("bits.or", (first, second, third))
