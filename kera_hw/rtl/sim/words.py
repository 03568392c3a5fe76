"""Bit vectors as rows of 32-bit words, least significant first: how values travel to and from a bench."""
from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

WORD_BITS = 32
Words = NDArray[np.uint32]


def words_of(width_bits: int) -> int:
    """Words that hold a vector of ``width_bits``."""
    return (width_bits + WORD_BITS - 1) // WORD_BITS


def to_words(values: Iterable[int], width_bits: int) -> Words:
    """Integers (taken modulo 2^width) as an array [items, words]."""
    size, mask = 4 * words_of(width_bits), (1 << width_bits) - 1
    data = b"".join((value & mask).to_bytes(size, "little") for value in values)
    return np.frombuffer(data, dtype="<u4").reshape(-1, words_of(width_bits))


def from_words(words: Words) -> list[int]:
    """The inverse of ``to_words``: unsigned integers, one a row."""
    data, size = np.ascontiguousarray(words, dtype="<u4").tobytes(), 4 * words.shape[1]
    return [int.from_bytes(data[k : k + size], "little") for k in range(0, len(data), size)] if size else []
