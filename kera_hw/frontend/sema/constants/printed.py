"""The record of what was printed, read back as lines."""
from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from kera_hw.frontend.sema.constants.values import format_value
from kera_hw.interp.codes import from_words
from kera_hw.ops.spec import Array
from kera_hw.types import Type, bit_width, element_type, numpy_dtype, shape_of


def read_record(
    labels: Sequence[str], types: Sequence[Sequence[Type]], count: Array, numbers: Array, words: Array
) -> list[tuple[int, str]]:
    """(item, line) of everything printed, in order. The arrays have a leading axis of items."""
    found: list[tuple[int, str]] = []
    for item in np.flatnonzero(count).tolist():
        for entry in range(int(count[item])):
            number = int(numbers[item, entry])
            row, values = words[item, entry], list[str]()
            for kind in types[number]:
                size = prod(shape_of(kind))
                values.append(format_value(kind, _value(kind, row[:size])))
                row = row[size:]
            label = labels[number]
            line = f"{label}: {', '.join(values)}" if label and values else label or ", ".join(values)
            found.append((item, line))
    return found


def _value(kind: Type, words: Array) -> Array:
    element = element_type(kind)
    width, size_bytes = bit_width(element), numpy_dtype(element).itemsize
    bits = words.astype(np.uint64) & np.uint64((1 << width) - 1)
    return from_words(bits.astype(np.dtype(f"u{size_bytes}")), element).reshape(shape_of(kind))
