"""Leading zeros and a variable shift of numbers of any width (``words``)."""
from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from kera_hw.graph.node import Ref
from kera_hw.rtl.lower.builder import Builder, width_of
from kera_hw.rtl.lower.floats import words
from kera_hw.rtl.lower.floats.words import Wide
from kera_hw.types import BOOL, IntType


def leading_zeros(builder: Builder, number: Wide) -> Ref:
    """Zeros above the highest set bit, the width for zero, in the smallest type that holds the width."""
    width = number.width_bits
    kind = IntType.holding(0, width)
    if width <= words.MOST_BITS:
        return builder.cast(builder.op("bits.clz", number.word), kind)
    low = width - words.MOST_BITS
    upper = words.extract_word(builder, number, width - 1, low)
    lower = leading_zeros(builder, words.extract(builder, number, low - 1, 0))
    offset = builder.op("integer.add", builder.cast(lower, kind), builder.const(kind, words.MOST_BITS))
    empty = builder.op("compare.eq", upper, builder.const(upper.type, 0))
    return builder.select(empty, offset, builder.cast(builder.op("bits.clz", upper), kind))


def _right(builder: Builder, number: Wide, amount: int) -> Wide:
    width = number.width_bits
    if amount >= width:
        return words.constant(builder, 0, width)
    return words.resize(builder, words.extract(builder, number, width - 1, amount), width)


def shift_right_sticky(builder: Builder, number: Wide, amount: Ref) -> tuple[Wide, Ref]:
    """``number >> amount``, and whether a set bit fell out. The amount is unsigned.

    A stage tells what it drops while it moves, so the lost bits need neither a mask nor a wider shifter. An
    amount past the last stage becomes the greatest one, which moves everything out.
    """
    width = number.width_bits
    bits = min(width_of(amount.type), width.bit_length())
    amount = _capped(builder, amount, bits)
    lost: list[Ref] = []
    for low in range((bits - 1) // 2 * 2, -1, -2):
        flags = [builder.op("bits.test", amount, index=i) for i in range(low, min(low + 2, bits))]
        moves = [k << low for k in range(1 << len(flags))]
        lost.append(_dropped(builder, number, flags, moves))
        choices = [_right(builder, number, k) if k else number for k in moves]
        for flag in flags:
            choices = [words.select(builder, flag, y, x) for x, y in zip(choices[::2], choices[1::2])]
        (number,) = choices
    return number, words.tree(builder, "bits.or", lost)


def _capped(builder: Builder, amount: Ref, bits: int) -> Ref:
    """The smaller of an amount and 2^bits - 1."""
    width = width_of(amount.type)
    if width <= bits:
        return amount
    upper = builder.op("bits.extract", amount, high=width - 1, low=bits)
    far = builder.op("compare.ne", upper, builder.const(upper.type, 0))
    near = builder.op("bits.extract", amount, high=bits - 1, low=0)
    return builder.op("bits.or", near, words.spread(builder, far, bits).word)


def _dropped(builder: Builder, number: Wide, flags: Sequence[Ref], moves: Sequence[int]) -> Ref:
    """Whether a stage that moves by ``moves[flags]`` drops a set bit."""
    width = number.width_bits
    parts: list[Ref] = []  # whether bits between one move and the next are set
    for low, high in pairwise(moves):
        low, high = min(low, width), min(high, width)
        if low < high:
            parts.append(words.any_set(builder, words.extract(builder, number, high - 1, low)))
        else:
            parts.append(builder.const(BOOL, 0))
    if len(flags) == 1:
        return builder.op("bits.and", flags[0], parts[0])
    low_flag, high_flag = flags
    first = builder.op("bits.and", parts[0], builder.op("bits.or", *flags))
    second = builder.op("bits.and", parts[1], high_flag)
    third = builder.op("bits.and", parts[2], builder.op("bits.and", low_flag, high_flag))
    return words.tree(builder, "bits.or", (first, second, third))
