"""How a target wants its loop programs written, where several ways give the same bits."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kera_hw.ops.spec import Expansion


@dataclass(frozen=True)
class LoweringOptions:
    """What is free in a program.

    ``expanding``: operations that are written out by their expansions, ``expansions`` those that take the
    place of the registry's. ``unrolled``: all loops are going to be, so that what is joined in any order is
    written for trees, and an index that is data stays the value it is. ``roomy``: memory costs little, so
    that an image is copied with room around it where windows look beyond its edge. ``most``: how many scalars
    and buffers there are at most.
    """

    expanding: frozenset[str] = frozenset()
    expansions: Mapping[str, Expansion] = field(default_factory=dict[str, Expansion])
    unrolled: bool = False
    roomy: bool = False
    most: int | None = None


PLAIN = LoweringOptions()


class TooLong(Exception):
    """A program has more statements than its options allow."""
