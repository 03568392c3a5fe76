"""Streams over many items: what is known is evaluated for all items at once, what recurs by the quickest way.

The meaning is that of evaluating the region item after item (``run_items``), which stays as the way for
short sequences and as what the tests hold this to. Everything here evaluates the same nodes by
``OPS[...].evaluate``; only how many items at a time differs.
"""
from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod

import numpy as np

from kera_hw.graph import Export
from kera_hw.interp.evaluator import Context, Tape, compile_region
from kera_hw.interp.lanes import LEAST_ITEMS, LaneStep, run_lanes
from kera_hw.interp.recurrence import Group, analyse
from kera_hw.interp.tables import Table, tabulate
from kera_hw.numerics.arrays import Array
from kera_hw.ops.registry import OPS
from kera_hw.ops.spec import EvalCall
from kera_hw.types import Type, leaf_types, numpy_dtype, shape_of

BLOCK_ITEMS = 1 << 17
_BLOCK_BYTES = 1 << 27  # of the values that a block keeps for all its items
_CHUNK_ELEMENTS = 1 << 20  # of the widest value of a batch: what caches hold
_SMALL_TABLE_BITS = 12  # tables that cost next to nothing
_LARGE_TABLE_BITS = 22
_ITEM_BITS = 7  # evaluating one item alone takes as long as 2^7 entries of a table


class Stream:
    """One exported stream made ready to run; what is prepared lazily is kept."""

    def __init__(self, export: Export) -> None:
        self.export = export
        self.schedule = analyse(export)
        kept = [ref for group in self.schedule.groups for ref in (*group.feeds, *group.kept)]
        kinds = [kind for group in self.schedule.groups for kind in group.kinds]
        size = sum(_item_bytes(kind) for kind in (*(ref.type for ref in kept), *kinds))
        self.block_items = max(1024, min(BLOCK_ITEMS, _BLOCK_BYTES // (size + 1)))
        self._tables: dict[Group, Table] = {}

    def run(self, args: Sequence[Array], state: list[Array], items: int) -> tuple[list[Array], list[Array]]:
        """Result leaves of the items and the state after them, from a state (a batch of one).

        A leaf that no result depends on stays as it is.
        """
        parts: list[list[Array]] = []
        serial: set[Group] = set()  # groups that lanes did not fit before
        for first in range(0, items, self.block_items):
            count = min(self.block_items, items - first)
            rows = [args[index][first : first + count] for index in self.schedule.inputs]
            results, state = self._block(rows, state, count, serial)
            parts.append(results)
        outs = [np.concatenate(leaves) for leaves in zip(*parts, strict=True)]
        return (outs if parts else empty_results(self.export)), state

    def _block(
        self, args: Sequence[Array], state: list[Array], items: int, serial: set[Group]
    ) -> tuple[list[Array], list[Array]]:
        known, state = list(args), list(state)
        for group in self.schedule.groups:
            start = [state[leaf] for leaf in group.leaves]
            kept, end = self._group(group, known, start, items, serial)
            known += kept
            for leaf, value in zip(group.leaves, end, strict=True):
                state[leaf] = value
        return run_batch(self.schedule.results, known, items), state

    def _group(
        self, group: Group, known: list[Array], start: list[Array], items: int, serial: set[Group]
    ) -> tuple[list[Array], list[Array]]:
        """What the group keeps of each item, and its leaves at the end."""
        if not group.recurrent:
            following = run_batch(group.feed, known, items)
            following = run_batch(group.advance, [*following, *start], items)
            past = [np.concatenate([a, b[:-1]]) for a, b in zip(start, following, strict=True)]
            return past, [leaf[-1:].copy() for leaf in following]
        least = items.bit_length()
        if self._fits_table(group, max(_SMALL_TABLE_BITS, min(_LARGE_TABLE_BITS, least))):
            return self._walk(group, known, start, items)
        feeds = run_batch(group.feed, known, items)
        places = tuple(group.leaves.index(leaf) for leaf in group.kept_leaves)
        if items >= LEAST_ITEMS and group not in serial:
            step = LaneStep(group.kinds, places, group.rows, group.advance, group.step)
            trace = run_lanes(step, feeds, start, items)
            if trace is not None:
                return trace.kept, trace.end
            serial.add(group)
        if self._fits_table(group, min(_LARGE_TABLE_BITS, least + _ITEM_BITS)):
            return self._walk(group, known, start, items)
        return _one_by_one(group, places, feeds, start, items)

    def _fits_table(self, group: Group, bits: int) -> bool:
        return group in self._tables or (not group.kept and group.table_bits <= bits)

    def _walk(
        self, group: Group, known: list[Array], start: list[Array], items: int
    ) -> tuple[list[Array], list[Array]]:
        """The group by the table of its transitions, which is made once."""
        if group not in self._tables:
            kinds = tuple(ref.type for ref in group.coarse_feeds)
            self._tables[group] = tabulate(group.kinds, kinds, group.coarse)
        return self._tables[group].walk(run_batch(group.coarse_feed, known, items), start, items)


def _one_by_one(
    group: Group, places: tuple[int, ...], feeds: Sequence[Array], start: list[Array], items: int
) -> tuple[list[Array], list[Array]]:
    context, current = Context(1), [np.array(leaf) for leaf in start]
    kept: list[Array] = []
    for k in range(items):
        values = context.execute(group.step, [*(feed[k : k + 1] for feed in feeds), *current])
        row = [*(current[place] for place in places), *values[len(current):]]
        kept = kept or [np.empty((items, *value.shape[1:]), value.dtype) for value in row]
        for column, value in zip(kept, row, strict=True):
            column[k] = value[0]
        current = values[: len(current)]
    return kept, current


def run_batch(program: Tape, args: Sequence[Array], items: int) -> list[Array]:
    """A program on independent items, as many at a time as caches like."""
    count = max(64, _CHUNK_ELEMENTS // (program.widest + 1))
    if items <= count:
        return Context(items).execute(program, args)
    parts: list[list[Array]] = []
    for first in range(0, items, count):
        chunk = [arg[first : first + count] for arg in args]
        parts.append(Context(min(count, items - first)).execute(program, chunk))
    return [np.concatenate(leaves) for leaves in zip(*parts, strict=True)]


def run_items(
    export: Export, args: Sequence[Array], state: list[Array], items: int
) -> tuple[list[Array], list[Array]]:
    """Result leaves and the state after them, item after item through the region, each a batch of one."""
    outs = empty_results(export, items)
    program, context = compile_region(export.region), Context(1)
    for k in range(items):
        results = context.execute(program, [*(arg[k : k + 1] for arg in args), *state])
        for position, out in enumerate(outs):
            out[k] = results[position][0]
        state = results[len(outs):]
    return outs, state


def empty_results(export: Export, items: int = 0) -> list[Array]:
    """Room for the result leaves of so many items, zero."""
    kinds = leaf_types(export.result)
    return [np.zeros((items, *shape_of(kind)), numpy_dtype(kind)) for kind in kinds]


def initial_state(export: Export) -> list[Array]:
    """The state leaves at reset, as a batch of one."""
    context = Context(1)
    found: list[Array] = []
    for var in export.state:
        node = var.initial.node
        call = EvalCall(context, (), (), node.types, dict(node.attrs))
        found.append(OPS[node.opcode].evaluate(call)[var.initial.index])
    return found


@lru_cache(maxsize=64)
def stream_of(export: Export) -> Stream:
    """The stream made ready to run."""
    return Stream(export)


def _item_bytes(kind: Type) -> int:
    return prod(shape_of(kind)) * numpy_dtype(kind).itemsize
