"""One made thing in several engines at once, which must give the same bits."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kera_hw.numerics.arrays import Array
from tests.loop_programs import same_bits


class Engine(Protocol):
    """Runs one function on items, and keeps its state from call to call."""

    def reset(self) -> None: ...
    def run(self, params: Sequence[Array], items: int) -> list[Array]: ...


class Alike:
    """Engines as one; the results are the first one's."""

    def __init__(self, engines: Sequence[Engine]) -> None:
        self.engines = list(engines)

    def reset(self) -> None:
        for one in self.engines:
            one.reset()

    def run(self, params: Sequence[Array], items: int) -> list[Array]:
        """Raises AssertionError where engines differ."""
        found, *others = (one.run(params, items) for one in self.engines)
        for other in others:
            assert all(same_bits(*pair) for pair in zip(found, other, strict=True)), "engines differ"
        return found
