"""Words of 64 bits, and products of two of them in two."""
from __future__ import annotations

from kera_hw.legal.native import unsigned
from kera_hw.legal.values import Value
from kera_hw.legal.writer import Writer
from kera_hw.loops.program import Operand
from kera_hw.ops.expansions.integers import product_128
from kera_hw.ops.intervals import type_interval

WORD = unsigned(64)

Wide = tuple[Operand, Operand]
"""The upper and the lower word."""


def word(operand: Operand) -> Value:
    """A native word as a value of rules."""
    return Value(WORD, operand, type_interval(WORD), True)


def product(to: Writer, a: Operand, b: Operand) -> Wide:
    high, low = product_128(to, word(a), word(b))
    assert isinstance(high, Value) and isinstance(low, Value)
    return to.settled(high), to.settled(low)
