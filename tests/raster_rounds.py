"""Stencils that run in step, round by round on their flat design, as the controller runs them.

Items are lanes. Windows hold noise before they are filled.
"""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kera_hw.interp import run_region
from kera_hw.numerics.arrays import Array
from kera_hw.rtl.lower.design import FlatLeaf
from kera_hw.rtl.machine.raster_round import RasterRound
from kera_hw.types import IntType, Type, bit_width, numpy_dtype
from tests.process_rounds import carried, words_of


def run_rounds(design: RasterRound, args: Sequence[Array], lanes: int, seed: int = 0) -> list[Array]:
    """The bits of every result's elements; ``args`` are the parameters' leaves, items first."""
    raster, flat = design.raster, design.flat
    noise = np.random.default_rng(seed)
    program = raster.stencils.program
    streams: dict[str, Array] = {}
    small: list[Array] = []
    for buffer, array in zip(program.of_kind("param"), args, strict=True):
        columns = array.reshape(lanes, -1)
        if buffer.name in raster.stencils.streamed:
            streams[f"in_{buffer.name.removeprefix('in.')}"] = columns
        else:
            small += list(columns.T)
    given = flat.inputs[len(design.counters) + len(design.takes) :]
    outer = [carried(column, leaf.type) for column, leaf in zip(small, given, strict=True)]
    states = [_random(noise, state.type, lanes) for state in flat.states]
    memories = [
        np.stack([_random(noise, IntType(m.word_bits, False), lanes) for _ in range(m.entries)], 1)
        for m in flat.memories
    ]
    taken = dict.fromkeys(streams, 0)
    found: list[list[Array]] = [[] for _ in design.gives]
    ended = [False] * len(design.gives)
    for place in np.ndindex(*raster.counts):
        counts = [np.full(lanes, at, numpy_dtype(leaf.type)) for at, leaf in zip(place, flat.inputs)]
        elements: list[Array] = []
        for take, leaf in zip(design.takes, flat.inputs[len(counts) :]):
            if all(first <= at <= last for at, (first, last) in zip(place, take.spans)):
                elements.append(carried(streams[take.port][:, taken[take.port]], leaf.type))
                taken[take.port] += 1
            else:
                elements.append(_random(noise, leaf.type, lanes))
        values = run_region(flat.region, [*counts, *elements, *outer, *states, *memories], lanes)
        outputs: dict[str, tuple[FlatLeaf, Array]] = {
            leaf.bus: (leaf, value) for leaf, value in zip(flat.outputs, values)
        }
        made = len(flat.outputs)
        states = list(values[made : made + len(states)])
        memories = list(values[made + len(states) :])
        for k, give in enumerate(design.gives):
            if outputs[give.there][1][0]:
                assert not ended[k], "nothing follows the last element"
                leaf, value = outputs[give.bus]
                found[k].append(words_of(value, leaf.type)[:, 0])
                ended[k] = bool(outputs[give.ends][1][0])
    assert all(ended), "the last element is marked"
    assert all(taken[port] == columns.shape[1] for port, columns in streams.items()), "all beats are taken"
    return [np.stack(elements, 1) for elements in found]


def _random(noise: np.random.Generator, kind: Type, lanes: int) -> Array:
    bits = noise.integers(0, 1 << min(62, bit_width(kind)), lanes)
    if isinstance(kind, IntType):
        return np.array([kind.wrap(int(item)) for item in bits]).astype(numpy_dtype(kind))
    return (bits & 1).astype(numpy_dtype(kind))
