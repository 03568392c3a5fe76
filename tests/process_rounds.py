"""Rounds of loops that stay loops, run on their flat designs as the controllers run them.

Of a process items are lanes. What a round may not rely on is filled with noise: states, and memories, before
they are written. Results are the unsigned bits of elements.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from kera_hw.graph import Export
from kera_hw.interp import run_region
from kera_hw.loops.program import Buffer
from kera_hw.numerics.arrays import Array
from kera_hw.rtl.emit.process import Repeat, outermost
from kera_hw.rtl.lower.design import FlatLeaf, FlatState
from kera_hw.rtl.lower.ports import parameter_buses, place_leaves, result_buses
from kera_hw.rtl.machine.nest_round import RegionDesign, exchange_bus
from kera_hw.rtl.machine.nests import Regions
from kera_hw.rtl.machine.rounds import RoundDesign
from kera_hw.types import FloatType, IntType, Type, bit_width, numpy_dtype


def words_of(array: Array, kind: Type) -> Array:
    """The unsigned bits of elements, lanes first."""
    size = array.dtype.itemsize
    unsigned = np.ascontiguousarray(array).view(f"u{size}").astype(np.uint64)
    return (unsigned & np.uint64((1 << bit_width(kind)) - 1)).reshape(len(array), -1)


class Run:
    """One item in every lane. ``results``: the bits of every result buffer's elements."""

    def __init__(
        self, export: Export, regions: Regions, designs: Sequence[RegionDesign], args: Sequence[Array],
        lanes: int, seed: int = 0,
    ) -> None:
        self._designs, self._lanes = designs, lanes
        self._noise = np.random.default_rng(seed)
        self._values: dict[object, Array] = {}  # by bus of an exchange, or by a port's bus and bit
        self._memories: dict[str, Array] = {}
        self._states: dict[int, list[Array]] = {}
        program = regions.program
        leaves = iter(place_leaves(parameter_buses(export)))
        self._streams = {
            f"take_{buffer.name.removeprefix('in.')}": array.reshape(lanes, -1)
            for buffer, array in zip(program.of_kind("param"), args, strict=True)
        }
        for buffer, array in zip(program.of_kind("param"), args, strict=True):
            words = words_of(array, buffer.element)
            words = words.astype(numpy_dtype(IntType(bit_width(buffer.element), False)))
            kept = next((item for item in regions.memories if item.name == buffer.name), buffer)
            for name, place in _banks(kept):
                share = words.reshape(lanes, *buffer.shape)[(slice(None), *place)]
                self._memories[name] = share.reshape(lanes, -1)
            for k in range(buffer.size):
                leaf = next(leaves)
                self._values[leaf.bus, leaf.low] = carried(array.reshape(lanes, -1)[:, k], leaf.type)
        repeats = [
            Repeat(exchange_bus(group.loop.var), group.loop.count, group.first, group.last)
            for group in regions.groups
        ]
        self._sequence(0, len(designs) - 1, repeats)
        leaves = iter(place_leaves(result_buses(export)))
        self.results: list[Array] = []
        kept = {buffer.name: buffer for buffer in regions.memories}
        for buffer in program.of_kind("result"):
            own = [next(leaves) for _ in range(buffer.size)]
            if buffer.name in kept:
                self.results.append(self._memory(kept[buffer.name]))
            else:
                columns = [self._values[leaf.bus, leaf.low] for leaf in own]
                self.results.append(np.stack([words_of(c, buffer.element)[:, 0] for c in columns], 1))

    def _memory(self, buffer: Buffer) -> Array:
        """All words, put together again from banks."""
        whole = np.zeros((self._lanes, *buffer.shape), np.uint64)
        for name, place in _banks(buffer):
            share = whole[(slice(None), *place)]
            share[...] = self._memories[name].reshape(share.shape)
        return whole.reshape(self._lanes, -1)

    def _sequence(self, first: int, last: int, repeats: Sequence[Repeat]) -> None:
        at = first
        while at <= last:
            found = outermost(repeats, at)
            if found is None:
                self._region(at)
                at += 1
                continue
            for number in range(found.count):
                self._values[found.bus] = np.full(self._lanes, number)
                self._sequence(found.first, found.last, [one for one in repeats if one is not found])
            at = found.last + 1

    def _region(self, number: int) -> None:
        design = self._designs[number]
        flat, counts = design.flat, [level.loop.count for level in design.nest.levels]
        states = self._states.setdefault(number, [self._random(state.type) for state in flat.states])
        given = flat.inputs[3 * len(counts) :]
        stream = None if design.stream is None else given[-1]
        given = given if stream is None else given[:-1]
        outer = [
            self._values[leaf.bus if leaf.bus.startswith("x_") else (leaf.bus, leaf.low)] for leaf in given
        ]
        outer = [array.astype(numpy_dtype(leaf.type)) for array, leaf in zip(outer, given)]
        memories = [memory.name for memory in flat.memories]
        for memory in flat.memories:
            if memory.name not in self._memories:
                kind = IntType(memory.word_bits, False)
                noise = [self._random(kind) for _ in range(memory.entries)]
                self._memories[memory.name] = np.stack(noise, 1)
        outputs: dict[FlatLeaf, Array] = {}
        for number_of_round, place in enumerate(np.ndindex(*counts)):
            levels = range(len(counts))
            first = [not any(place[k:]) for k in levels]
            last = [all(place[j] == counts[j] - 1 for j in range(k, len(counts))) for k in levels]
            flags = [np.full(self._lanes, value, numpy_dtype(leaf.type))
                     for value, leaf in zip([*first, *last, *place], flat.inputs)]
            element = [] if stream is None else [
                carried(self._streams[stream.bus][:, number_of_round], stream.type)
            ]
            args = [*flags, *outer, *element, *states, *(self._memories[name] for name in memories)]
            found = run_region(flat.region, args, self._lanes)
            made = len(flat.outputs)
            states = list(found[made : made + len(states)])
            self._memories.update(zip(memories, found[made + len(states) :], strict=True))
            outputs = dict(zip(flat.outputs, found[:made]))
        self._states[number] = states
        for leaf, array in outputs.items():
            if leaf.bus == "done":
                assert np.all(array)
            self._values[leaf.bus if leaf.bus.startswith("x_") else (leaf.bus, leaf.low)] = array

    def _random(self, kind: Type) -> Array:
        bits = self._noise.integers(0, 1 << min(62, bit_width(kind)), self._lanes)
        if isinstance(kind, IntType):
            return np.array([kind.wrap(int(item)) for item in bits]).astype(numpy_dtype(kind))
        return (bits & 1).astype(numpy_dtype(kind))


def _banks(buffer: Buffer) -> Iterator[tuple[str, tuple[slice, ...]]]:
    """The names of a memory's banks, and what lies in each."""
    banks = buffer.storage.banks
    assert all(bank.spread == "cyclic" for bank in banks)
    for numbers in np.ndindex(*(bank.count for bank in banks)):
        place = [slice(None)] * len(buffer.shape)
        for bank, number in zip(banks, numbers):
            place[bank.axis] = slice(number, None, bank.count)
        yield ".".join((buffer.name, *map(str, numbers))), tuple(place)


class Rounds:
    """A loop that stays one, its states kept from item to item; items come one at a time."""

    def __init__(self, export: Export, region: RoundDesign) -> None:
        self._region, self._leaves = region, place_leaves(parameter_buses(export))
        self._states = [_reset(state) for state in region.flat.states]

    def item(self, args: Sequence[Array], beyond: int) -> list[Array]:
        """The bits of every result's elements; ``beyond`` rounds start after that which ends a ``while``."""
        region, flat, leaves = self._region, self._region.flat, iter(self._leaves)
        outer = [carried(column, next(leaves).type) for array in args for column in array.reshape(1, -1).T]
        outputs: list[Array] | None = None
        last = region.rounds - 1 if region.counted else region.rounds
        left, number = 0 if region.counted else beyond, 0
        while outputs is None or left:
            assert outputs is not None or number <= last, "the loop never ends"
            flags = [number == 0, number >= last, *([number] if region.counted else [])]
            told = zip(flags, flat.inputs)
            given = [np.array([flag]).astype(numpy_dtype(leaf.type)) for flag, leaf in told]
            found = run_region(flat.region, [*given, *outer, *self._states], 1)
            self._states = list(found[len(flat.outputs) :])
            left -= outputs is not None
            if outputs is None and found[0][0]:
                outputs = list(found[1 : len(flat.outputs)])
            number += 1
        results, pending = list[Array](), iter(outputs)
        for buffer in region.program.of_kind("result"):
            own = [words_of(next(pending), buffer.element)[:, 0] for _ in range(buffer.size)]
            results.append(np.stack(own, 1))
        return results


def _reset(state: FlatState) -> Array:
    kind = state.type
    value = kind.wrap(state.initial) if isinstance(kind, IntType) else state.initial
    return np.array([value]).astype(numpy_dtype(kind))


def carried(column: Array, kind: Type) -> Array:
    """An element as a leaf of its port carries it."""
    if column.dtype.kind == "f" and not isinstance(kind, FloatType):
        column = np.ascontiguousarray(column).view(f"u{column.dtype.itemsize}")
    return column.astype(numpy_dtype(kind))
