"""Items that take turns in several units: when each comes and goes, and which functions can have units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kera_hw.driver.options import TargetOptions
from kera_hw.graph import Export
from kera_hw.rtl.emit.rounds import Rounds
from kera_hw.support import Diagnostic, KeraError


@dataclass(frozen=True, slots=True)
class Times:
    """Of items that are offered and taken without a pause: cycles from each to its result and to the next."""

    latency: NDArray[np.int64]
    gap: NDArray[np.int64]


def in_turn(latencies: NDArray[np.uint64], units: int, kept: bool = False) -> Times:
    """Items of these latencies in so many units; each waits for those before it.

    ``kept``: a register in front takes an item that waits for its unit, as where no ready follows another.
    """
    accepted: list[int] = []
    taken: list[int] = []
    free = 0  # the cycle in which the next item may be accepted
    for number, latency in enumerate(latencies.tolist()):
        start = max(free, taken[number - units] + 1) if number >= units else free
        accepted.append(free if kept else start)
        taken.append(max(start + latency, taken[-1] + 1 if taken else 0))
        free = start + 1
    came = np.asarray(accepted, np.int64)
    return Times(np.asarray(taken, np.int64) - came, np.diff(came))


def check_units(export: Export, options: TargetOptions, rounds: Rounds | None) -> None:
    """Raises KeraError (K0908) where units are asked for and items cannot take turns in any."""
    if options.units is None:
        return
    if export.state:
        reason = "each of its items needs the state that the one before leaves"
    elif rounds is None or rounds.kind != "until":
        reason = "its circuit has no loop that ends by a condition"
    elif options.interface == "none":
        reason = "with `--interface none` nothing tells when a unit may take an item"
    else:
        return
    message = f"`{export.name}` cannot have units (`--units`): {reason}."
    fix = "Leave the option out; it is for functions with a `while` loop that ends early."
    raise KeraError([Diagnostic("K0908", message, notes=(fix,))])
