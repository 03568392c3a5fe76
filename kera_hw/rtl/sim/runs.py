"""What neighbours of a simulated design do, and what came of a run."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kera_hw.rtl.sim.words import Words

FAULT_PORT = "kera_fault"
"""The input that says which planted fault is in effect."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """How the neighbours behave: chances of valid and ready (percent), seed, cycle of a reset in mid-flight.

    After a reset the items are driven again from the first; what was in flight must be gone. There are
    ``resets`` of them, each up to twice as many cycles after the one before as the first is after the start.
    ``in_turn``: the channels of an item are served one after another, each when the one before is through.
    """

    valid_percent: int = 100
    ready_percent: int = 100
    seed: int = 1
    reset_at_cycle: int | None = None
    resets: int = 1
    in_turn: bool = False

    @property
    def unhindered(self) -> bool:
        """Whether nothing ever stalls, so that every item takes exactly the planned latency."""
        return self.valid_percent >= 100 and self.ready_percent >= 100 and not self.in_turn


UNHINDERED = Traffic()
"""Neighbours that never wait."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What the bench saw go wrong, the cycle, and the number of results that had come until then."""

    message: str
    cycle: int
    item: int


@dataclass(frozen=True, slots=True)
class SimRun:
    """Results per output bus as [items, words].

    In cycles: when each item's first beat was accepted, its result's first beat taken, and its last.
    """

    outputs: tuple[Words, ...]
    accept_cycles: NDArray[np.uint64]
    emit_cycles: NDArray[np.uint64]
    finish_cycles: NDArray[np.uint64]
    cycles: int
    fault: Fault | None
