"""Batches in parts whose parameters and results fit memory that is asked for at once."""
from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from kera_hw.loops.program import Buffer
from kera_hw.numerics.arrays import Array
from kera_hw.schedule.software.layout import element_bytes, native_dtype

BATCH_BYTES = 1 << 26
"""Of parameters, results and what items need beside them in memory at once; larger batches run in parts."""


def items_at_once(leaves: Sequence[Buffer], more_bytes: int = 0) -> int:
    """Items of a part, one at least: of these leaves, and so much more each."""
    each = more_bytes + sum(one.size * element_bytes(one.element) for one in leaves)
    return max(1, BATCH_BYTES // max(each, 1))


def in_batches(
    params: Sequence[Array], results: Sequence[Buffer], items: int, most: int,
    run: Callable[[Sequence[Array], int], Sequence[Array]],
) -> list[Array]:
    """Result leaves of shape (items, *shape), by ``run`` from parameters of ``most`` items at a time."""
    wholes = [np.empty((items, *one.shape), native_dtype(one.element)) for one in results]
    for first in range(0, items, most):
        part = slice(first, min(first + most, items))
        found = run([param[part] for param in params], part.stop - first)
        for whole, piece in zip(wholes, found):
            whole[part] = piece
    return wholes
