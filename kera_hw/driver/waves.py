"""Waveforms of simulated circuits: of the items asked for, or of those that fail."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeGuard

from kera_hw.driver.messages import shown
from kera_hw.driver.options import Executor
from kera_hw.driver.rtl_target import RtlExecutor
from kera_hw.driver.sampling import map_leaves
from kera_hw.driver.shrink import Mismatch
from kera_hw.support import Diagnostic, KeraError

SUFFIXES = (".vcd", ".fst")
# Of a comparison that finds nothing, when no item is asked for: enough to see a pipeline fill and run.
FIRST_ITEMS = 32


def check_wave(wave: Path) -> Path:
    """The path if its suffix says which format it is to have. Raises KeraError (K0908)."""
    if wave.suffix not in SUFFIXES:
        message = f"A waveform (`--wave`) is a file ending in .vcd or .fst; {shown(str(wave))} is not."
        raise KeraError([Diagnostic("K0908", message)])
    return wave


def has_wave(executor: Executor) -> TypeGuard[RtlExecutor]:
    """Whether the target simulates a circuit."""
    return isinstance(executor, RtlExecutor)


def trace_items(executor: Executor, inputs: Mapping[str, Any], batch: int, wave: Path) -> None:
    """Writes the waveform of the items. Raises KeraError (K0908) for a target that has no signals."""
    if not has_wave(executor):
        message = "A waveform (`--wave`) is that of a simulated circuit; name a target such as rtl."
        raise KeraError([Diagnostic("K0908", message)])
    executor.trace(inputs, batch, check_wave(wave))


def trace_comparison(
    executors: Mapping[str, Executor],
    mismatches: tuple[Mismatch, ...],
    inputs: Mapping[str, Any],
    batch: int,
    asked: int,
    wave: Path,
) -> int:
    """Writes the smallest failing items on the circuit that fails, else the first items on the first circuit.

    ``asked`` is how many of the first items were asked for by name. Returns how many items were written.
    """
    circuits = {name: item for name, item in executors.items() if has_wave(item)}
    failed = next((item for item in mismatches if item.target in circuits), None)
    chosen = next(iter(circuits.values()), next(iter(executors.values())))
    if failed is not None:
        chosen = circuits[failed.target]
    elif mismatches:
        failed = mismatches[0]  # what differs from the circuit has no signals, so the circuit is shown
    if failed is not None:
        count = failed.item + 1
        trace_items(chosen, failed.inputs, count, wave)
        return count
    count = min(batch, asked or FIRST_ITEMS)
    trace_items(chosen, map_leaves(inputs, lambda array: array[:count]), count, wave)
    return count
