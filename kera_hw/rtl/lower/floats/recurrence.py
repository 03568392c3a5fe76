"""Digit recurrences on integers: quotient and square root, one bit a row, each row one carry chain.

Both are non-restoring: a row adds or subtracts by the sign of the row before it, so no row waits for a
comparison. The operand carries a 1 above its top bit, which turns the row's sign bit over: it is at once the
digit and the next row's subtract control.

Ercegovac and Lang, "Digital Arithmetic", 2004, chapters 5 and 6.
"""
from __future__ import annotations

from kera_hw.graph.node import Ref
from kera_hw.rtl.lower.floats.wires import Wires


def divide(wires: Wires, a: Ref, b: Ref, count: int, below: int = 0) -> tuple[Ref, Ref]:
    """``floor(a / b * 2^(count - 1))``, which has ``count`` bits, and whether a remainder is left.

    ``a`` and ``b`` have one width, and a < 2b. The bits of the dividend below ``a`` are all ``below``.
    """
    width = wires.width(b)
    divisor = wires.cat(wires.const(1, 1), b)
    total = wires.subtract(wires.extended(a, width + 1), divisor)
    positive = wires.bit(total, width)
    digits = [positive]
    for _ in range(count - 1):
        twice = wires.cat(wires.low_bits(total, width), wires.const(below, 1))
        # A difference where the digit before was a 1, else a sum: one chain.
        total = wires.add(twice, wires.flip_if(positive, divisor), wires.cast(positive, divisor.type))
        positive = wires.bit(total, width)
        digits.append(positive)
    restored = wires.select(positive, wires.const(0, width), b)
    remains = wires.any(wires.add(wires.low_bits(total, width), restored))
    return wires.cat(*digits), remains


def square_root(wires: Wires, radicand: Ref, leads: bool = False) -> Ref:
    """``floor(sqrt(radicand))``, of half as many bits; the radicand has an even width.

    ``leads``: one of the radicand's two highest bits is known to be set. Row i works on i + 3 bits: what is
    left, two more bits of the radicand, and the root so far, complemented for a subtraction, above two ones:
    -(4q + 1) is 4 * ~q + 3, so that no carry comes in.
    """
    count = wires.width(radicand) // 2
    ones = wires.const(0b11, 2)
    pairs = [wires.bits(radicand, low + 1, low) for low in range(2 * count - 2, -1, -2)]
    digits = [wires.flag(True) if leads else wires.any(pairs[0])]
    rest = wires.add(pairs[0], ones)
    for pair in pairs[1:]:
        root = wires.cat(wires.flag(True), *digits)
        operand = wires.cat(wires.flip_if(digits[-1], root), ones)
        total = wires.add(wires.cat(rest, pair), operand)
        width = wires.width(total)
        digits.append(wires.bit(total, width - 1))
        rest = wires.low_bits(total, width - 1)
    return wires.cat(*digits)
