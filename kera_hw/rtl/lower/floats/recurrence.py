"""Digit recurrences on integers: quotient and square root, one bit a row, each row one carry chain.

Both are non-restoring: a row adds or subtracts by the sign of the row before it, so no row waits for a
comparison. The operand carries a 1 above its top bit, which turns the row's sign bit over: it is at once the
digit and the next row's subtract control.

Ercegovac and Lang, "Digital Arithmetic", 2004, chapters 5 and 6.
"""
from __future__ import annotations

from kera_hw.graph.node import Ref
from kera_hw.rtl.lower.builder import Builder
from kera_hw.rtl.lower.floats import words
from kera_hw.rtl.lower.floats.words import Wide
from kera_hw.types import BOOL


def divide(builder: Builder, a: Wide, b: Wide, count: int, below: int = 0) -> tuple[Wide, Ref]:
    """``floor(a / b * 2^(count - 1))``, which has ``count`` bits, and whether a remainder is left.

    ``a`` and ``b`` have one width, and a < 2b. The bits of the dividend below ``a`` are all ``below``.
    """
    width = b.width_bits
    divisor = words.join(builder, words.constant(builder, 1, 1), b)
    total = words.subtract(builder, words.resize(builder, a, width + 1), divisor)
    positive = words.bit(builder, total, width)
    digits = [positive]
    for _ in range(count - 1):
        twice = words.join(builder, words.resize(builder, total, width), words.constant(builder, below, 1))
        total = words.add_or_subtract(builder, twice, divisor, positive)
        positive = words.bit(builder, total, width)
        digits.append(positive)
    rest = words.resize(builder, total, width)
    restored = words.select(builder, positive, words.constant(builder, 0, width), b)
    remains = words.any_set(builder, words.add(builder, rest, restored))
    return words.gather(builder, digits), remains


def square_root(builder: Builder, radicand: Wide, leads: bool = False) -> Wide:
    """``floor(sqrt(radicand))``, of half as many bits; the radicand has an even width.

    ``leads``: one of the radicand's two highest bits is known to be set. Row i works on i + 3 bits: what is
    left, two more bits of the radicand, and the root so far, complemented for a subtraction, above two ones:
    -(4q + 1) is 4 * ~q + 3, so that no carry comes in.
    """
    count = radicand.width_bits // 2
    ones = words.constant(builder, 0b11, 2)
    pairs = [words.extract(builder, radicand, low + 1, low) for low in range(2 * count - 2, -1, -2)]
    digits = [builder.const(BOOL, 1) if leads else words.any_set(builder, pairs[0])]
    rest = words.add(builder, pairs[0], ones)
    for pair in pairs[1:]:
        left = words.join(builder, rest, pair)
        root = words.gather(builder, [builder.const(BOOL, 1), *digits])
        operand = words.join(builder, words.invert_if(builder, digits[-1], root), ones)
        total = words.add(builder, left, operand)
        width = total.width_bits
        digits.append(words.bit(builder, total, width - 1))
        rest = words.resize(builder, total, width - 1)
    return words.gather(builder, digits)
