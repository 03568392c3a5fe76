"""Values of vectors in simulation: of one item plain integers, of a batch of items NumPy arrays.

Values are not negative. Arrays are uint64 up to 64 bits and Python integers (dtype object) above.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kera_hw.schedule.fpga.bits import Bits, bits_width

# An int, or an array of uint64 or of Python integers: NumPy's operators work alike on all three.
Value = Any


def array(values: Sequence[int], width: int) -> Value:
    """A batch of values of ``width`` bits."""
    if width <= 64:
        return np.array(values, dtype=np.uint64)
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def gather(bits: Bits, values: Mapping[int, Value], count: int | None) -> Value:
    """A vector put together from its segments; ``count`` items, or one plain integer for None."""
    width = bits_width(bits)
    total: Value = 0 if count is None else array([0] * count, width)
    position = 0
    for segment in bits:
        mask = (1 << segment.width) - 1
        if segment.cell is None:
            part: Value = segment.low & mask
        else:
            part = (values[segment.cell] >> segment.low) & mask
        if count is not None and not isinstance(part, int):
            part = part.astype(object if width > 64 else np.uint64)
        total = total | (part << position)
        position += segment.width
    return total


def unpacked(value: Value, count: int) -> list[int]:
    """One plain integer for each of ``count`` items."""
    return [int(v) for v in np.broadcast_to(np.asarray(value, dtype=object), count)]


def batch_size(operands: Sequence[Value]) -> int | None:
    """The number of items where any of the operands is a batch."""
    return next((len(v) for v in operands if not isinstance(v, int)), None)


def widen(value: Value) -> Value:
    """The same values as Python integers, which no operation can overflow."""
    return value if isinstance(value, int) else value.astype(object)


def narrow(value: Value, width: int) -> Value:
    """Values below 2^width in the representation of that width."""
    if isinstance(value, int):
        return value
    return value.astype(np.uint64 if width <= 64 else object)


def like(value: Value, operands: Sequence[Value], width: int) -> Value:
    """``value`` as a batch where the operands are one (an expression may be constant)."""
    count = batch_size(operands)
    if isinstance(value, int) and count is not None:
        return array([value] * count, width)
    return value


def spread(value: Value, bits: Bits, width: int) -> Value:
    """A single bit repeated to the width; other vectors as they are."""
    if bits_width(bits) == 1 and width > 1:
        ones = (1 << width) - 1
        return widen(value) * ones if width > 64 else value * ones
    return value


def signed(value: Value, bits: Bits) -> Value:
    """Two's complement."""
    width = bits_width(bits)
    return value - ((value >> width - 1 & 1) << width) if width else value


def choose(select: Value, choices: Sequence[Value]) -> Value:
    """``choices[select]``; a select past the end takes the last choice."""
    if isinstance(select, int):
        return choices[min(select, len(choices) - 1)]
    index = np.minimum(select, len(choices) - 1).astype(np.intp)
    rows = np.stack([np.broadcast_to(choice, index.shape) for choice in choices])
    return rows[index, np.arange(len(index))]


def lookup(address: Value, contents: Sequence[int], width: int) -> Value:
    """``contents[address]`` cut to the width; 0 past the end."""
    mask = (1 << width) - 1
    if isinstance(address, int):
        return contents[address] & mask if address < len(contents) else 0
    table = array([*(value & mask for value in contents), 0], width)
    return table[np.minimum(address, len(contents)).astype(np.intp)]
