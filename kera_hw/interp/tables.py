"""A recurrence of few bits as a table: every transition evaluated at once, then looked up item by item."""
from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from kera_hw.interp.codes import pack, unpack
from kera_hw.interp.evaluator import Context, Tape
from kera_hw.numerics.arrays import Array
from kera_hw.types import Type, bit_width

_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Transitions by number: at (state << bits of feeds | feeds), the next state shifted likewise."""

    kinds: tuple[Type, ...]
    feed_kinds: tuple[Type, ...]
    transitions: Sequence[int]

    def walk(
        self, feeds: Sequence[Array], start: Sequence[Array], items: int
    ) -> tuple[list[Array], list[Array]]:
        """The state leaves before each item, and those at the end."""
        shift = sum(map(bit_width, self.feed_kinds))
        first = int(pack(start, self.kinds, 1)[0]) << shift
        given, transitions = pack(feeds, self.feed_kinds, items).tolist(), self.transitions

        def follow(state: int, feed: int) -> int:
            return transitions[state | feed]

        codes = list(accumulate(given, follow, initial=first))
        states = unpack(np.array(codes, np.uint64) >> np.uint64(shift), self.kinds)
        return [leaf[:-1] for leaf in states], [leaf[-1:] for leaf in states]


def tabulate(kinds: tuple[Type, ...], feed_kinds: tuple[Type, ...], advance: Tape) -> Table:
    """The table of ``advance``, which gives the next leaves of the kinds from (feeds, leaves)."""
    shift = sum(map(bit_width, feed_kinds))
    size = 1 << (shift + sum(map(bit_width, kinds)))
    transitions = array("Q")
    for first in range(0, size, _CHUNK):
        codes = np.arange(first, min(size, first + _CHUNK), dtype=np.uint64)
        following = Context(len(codes)).execute(advance, unpack(codes, (*feed_kinds, *kinds)))
        transitions.frombytes((pack(following, kinds, len(codes)) << np.uint64(shift)).tobytes())
    # A list is quicker to read, an array an eighth of the size.
    return Table(kinds, feed_kinds, transitions if size > _CHUNK else transitions.tolist())
