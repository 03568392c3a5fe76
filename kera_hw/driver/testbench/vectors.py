"""Items for an exported bench and what the interpreter makes of them, as numbers on the buses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kera_hw.driver.hardware import HardwareDesign
from kera_hw.driver.interp_target import InterpExecutor
from kera_hw.driver.packing import pack_leaves
from kera_hw.driver.rtl_target import pack_inputs, scalar_columns
from kera_hw.driver.sampling import draw_items, edge_value, map_leaves
from kera_hw.driver.units import in_turn
from kera_hw.driver.values import flatten_named
from kera_hw.interp import flatten_value
from kera_hw.rtl.sim.words import Words, from_words

SEED = 1
# Each leaf takes its corners one after another: zeros, the least and greatest numbers and their neighbours.
_EDGES = 12


@dataclass(frozen=True, slots=True)
class Vectors:
    """The items in order, each a number by input bus, and the results expected, by output bus.

    ``latencies`` are the cycles of each item, where they are not the same for all, and ``gaps`` those to the
    next, if items are offered and taken without a pause.
    """

    items: tuple[Mapping[str, int], ...]
    expected: tuple[Mapping[str, int], ...]
    latencies: tuple[int, ...] | None = None
    gaps: tuple[int, ...] | None = None


def make_vectors(design: HardwareDesign, random: int, given: Sequence[str]) -> Vectors:
    """The user's items, corner items and ``random`` random ones, with the interpreter's results.

    Raises KeraError where the interpreter cannot evaluate the function, or an item does not fit.
    """
    export = design.export
    inputs, count = draw_items(export, random, SEED, given)
    edges = {name: edge_value(kind, _EDGES) for name, kind in export.params}
    inputs = {name: _joined(edges[name], inputs[name]) for name in inputs}
    count += _EDGES
    results = InterpExecutor(design.program, export).run(inputs, count)
    columns = scalar_columns(flatten_value(export.result, results, count), count)
    outputs = [(port.name, port.width) for port in design.emitted.data_outputs]
    words = pack_leaves(design.leaves[1], columns, outputs, count)
    given_buses = [port.name for port in design.emitted.data_inputs]
    own, units = design.latencies(inputs, count), 1 if design.rounds is None else design.rounds.units
    times = None if own is None else in_turn(own, units)
    return Vectors(
        _rows(dict(zip(given_buses, pack_inputs(design, inputs, count), strict=True)), count),
        _rows(words, count),
        None if times is None else tuple(times.latency.tolist()),
        None if times is None else (*times.gap.tolist(), int(times.latency[-1]) + 1),
    )


def _joined(first: Any, second: Any) -> Any:
    """Two batches of one structure as one."""
    rest = iter([array for _, array in flatten_named(first)])
    return map_leaves(second, lambda array: np.concatenate([next(rest), array]))


def _rows(words: Mapping[str, Words], count: int) -> tuple[dict[str, int], ...]:
    columns = {name: from_words(array) for name, array in words.items()}
    return tuple({name: column[k] for name, column in columns.items()} for k in range(count))
