"""Between values and bus words: packing as the Verilog interface defines it, vectorised over items.

Words are those of ``kera_hw.rtl.sim.words``: uint32, least significant first, one row an item.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kera_hw.driver.sampling import from_bits, to_bits
from kera_hw.rtl.lower.design import FlatLeaf
from kera_hw.rtl.sim.words import words_of

Array = np.ndarray[Any, np.dtype[Any]]


def pack_leaves(
    leaves: Sequence[FlatLeaf], columns: Sequence[Array], buses: Sequence[tuple[str, int]], items: int
) -> dict[str, Array]:
    """Words of every bus. ``columns[i]`` holds the values of ``leaves[i]``, one an item, in storage dtype."""
    words = {name: np.zeros((items, words_of(width)), np.uint64) for name, width in buses}
    for leaf, column in zip(leaves, columns, strict=True):
        bits, target = to_bits(leaf.type, column), words[leaf.bus]
        position, left = leaf.low, leaf.width_bits
        while left > 0:
            word, offset = divmod(position, 32)
            taken = min(left, 32 - offset)
            target[:, word] |= (bits & np.uint64((1 << taken) - 1)) << np.uint64(offset)
            bits = bits >> np.uint64(taken)
            position, left = position + taken, left - taken
    return {name: array.astype(np.uint32) for name, array in words.items()}


def unpack_leaves(leaves: Sequence[FlatLeaf], words: dict[str, Array]) -> list[Array]:
    """The value column of every leaf, in storage dtype; the inverse of ``pack_leaves``."""
    return [from_bits(leaf.type, _extract(words[leaf.bus].astype(np.uint64), leaf)) for leaf in leaves]


def _extract(words: Array, leaf: FlatLeaf) -> Array:
    bits = np.zeros(len(words), np.uint64)
    position, done = leaf.low, 0
    while done < leaf.width_bits:
        word, offset = divmod(position, 32)
        taken = min(leaf.width_bits - done, 32 - offset)
        part = (words[:, word] >> np.uint64(offset)) & np.uint64((1 << taken) - 1)
        bits |= part << np.uint64(done)
        position, done = position + taken, done + taken
    return bits
