"""A recurrence over many items as stretches side by side: guess where each starts, run all at once, check.

Every stretch is a lane of one batch. If each lane ends in the state that the next one was started from, all
items are right, whatever the guesses came from: the first lane's start is given, and so on by induction.
Lanes whose start was wrong run again from where the lane before ended.

Three ways to guess, each tried where the one before left many lanes wrong: a short run over the items before
the lane, since most recurrences forget (filters, shift registers, memories, machines that return to idle);
the lane's effect on a state, read off three more runs, where every bit is kept, flipped or replaced, or the
number is multiplied and added to (counters, accumulators, histograms); and the same for a map that mixes bits
by exclusive or (feedback shift registers, checksums). What none of these finds has no short cut here.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from kera_hw.interp.codes import from_words, pack, same_rows, storage, unpack
from kera_hw.interp.evaluator import Context, Tape
from kera_hw.numerics.arrays import Array
from kera_hw.types import FloatType, Type, bit_width, element_type, shape_of

LEAST_ITEMS = 64  # fewer are run one by one
_MOST_LANES = 2048
_MOST_ELEMENTS = 1 << 20  # of the state in all lanes: what caches hold
_LEAST_STEPS = 48
_MOST_LINEAR_BITS = 64
_STEPS_A_ROW = 4  # for each row of the longest tensor, so that lanes outlast shift registers
_MOST_PASSES = 12  # over all lanes, before giving up
_SEED = 0x9E37_79B9_7F4A_7C15


@dataclass(frozen=True, slots=True, eq=False)
class LaneStep:
    """One item of a recurrence: the next state from (feeds, state), and in ``full`` the kept values after it.

    ``kept_leaves`` are the leaves to keep as they are before each item, ``rows`` those of the longest tensor
    that forgets row by row. The programs may overwrite the state they are given.
    """

    kinds: tuple[Type, ...]
    kept_leaves: tuple[int, ...]
    rows: int
    advance: Tape
    full: Tape


@dataclass(frozen=True, slots=True)
class Trace:
    """Items of a recurrence: kept leaves before each item, then kept values; and the state at the end."""

    kept: list[Array]
    end: list[Array]


def run_lanes(step: LaneStep, feeds: Sequence[Array], start: Sequence[Array], items: int) -> Trace | None:
    """The items from a start state (a batch of one); None where no guess is right for most lanes."""
    size = sum(prod(shape_of(kind)) for kind in step.kinds)
    most = min(_MOST_LANES, _MOST_ELEMENTS // (size + 1) + 1)
    steps = min(items, max(_LEAST_STEPS, _STEPS_A_ROW * step.rows, -(-items // most)))
    lanes = -(-items // steps)
    run = _Run(step, [_by_step(feed, lanes, steps) for feed in feeds], start, lanes, steps)
    run.last_steps = items - (lanes - 1) * steps
    return Trace([_by_item(values, items) for values in run.kept], run.end) if run.settle() else None


def _by_step(feed: Array, lanes: int, steps: int) -> Array:
    """[step, lane, ...] of values by item; past the end the last one again."""
    missing = lanes * steps - len(feed)
    if missing:
        feed = np.concatenate([feed, np.repeat(feed[-1:], missing, axis=0)])
    return np.ascontiguousarray(feed.reshape(lanes, steps, *feed.shape[1:]).swapaxes(0, 1))


def _by_item(values: Array, items: int) -> Array:
    steps, lanes = values.shape[:2]
    return values.swapaxes(0, 1).reshape(steps * lanes, *values.shape[2:])[:items]


class _Run:
    """The lanes of one recurrence: where each starts, where it ended, and what it left."""

    def __init__(
        self, step: LaneStep, feeds: list[Array], start: Sequence[Array], lanes: int, steps: int
    ) -> None:
        self.step, self.feeds, self.lanes, self.steps = step, feeds, lanes, steps
        self.last_steps = steps  # of the last lane; what it does beyond is of no account
        self.starts = [np.repeat(leaf, lanes, axis=0) for leaf in start]
        self.ends: list[Array] = []
        self.kept: list[Array] = []
        self.end: list[Array] = []
        self._moved = np.arange(lanes)
        self._replaced = np.zeros(lanes, np.bool_)

    def settle(self) -> bool:
        """Whether all lanes came to start where the one before them ended."""
        everyone = np.arange(self.lanes)
        if self.lanes > 1:
            self._start_after(self._advance(self.starts, everyone, self.steps - self.steps // 4))
        self._record(everyone)
        guesses = [self._separate_ends, *([self._linear_ends] if self._is_narrow() else [])]
        before, budget = self.lanes, _MOST_PASSES * self.lanes
        while (wrong := self._wrong()) and budget > 0:
            stuck = wrong > max(4, before // 2)
            self._start_after(guesses.pop(0)() if stuck and guesses else self.ends)
            self._record(self._moved)
            before, budget = wrong, budget - max(len(self._moved), self.lanes // 16)
        return not wrong

    def _wrong(self) -> int:
        """How many lanes did not start where the lane before ended."""
        right = np.ones(self.lanes - 1, np.bool_)
        for start, end in zip(self.starts, self.ends, strict=True):
            right &= same_rows(start[1:], end[:-1])
        return int(np.count_nonzero(~right))

    def _start_after(self, ends: Sequence[Array]) -> None:
        """Start every lane but the first where the one before is said to end; note which ones moved."""
        moved = np.zeros(self.lanes, np.bool_)
        for position, end in enumerate(ends):
            new = np.concatenate([self.starts[position][:1], end[:-1]])
            moved |= ~same_rows(new, self.starts[position])
            self.starts[position] = new
        self._moved = np.flatnonzero(moved)

    def _advance(self, states: Sequence[Array], lanes: Array, first: int = 0) -> list[Array]:
        """The states after the steps from ``first`` on, the feeds of each being those of a lane."""
        context, current = Context(len(lanes)), [np.array(leaf) for leaf in states]
        whole = len(lanes) == self.lanes
        for k in range(first, self.steps):
            feeds = [feed[k] if whole else feed[k][lanes] for feed in self.feeds]
            current = context.execute(self.step.advance, [*feeds, *current])
        return current

    def _record(self, chosen: Array) -> None:
        """Run some lanes from their start, in ascending order, and keep what they leave."""
        context, whole = Context(len(chosen)), len(chosen) == self.lanes
        target = slice(None) if whole else chosen
        current = [np.array(leaf[target]) for leaf in self.starts]
        for k in range(self.steps):
            if k == self.last_steps and chosen[-1] == self.lanes - 1:
                self.end = [leaf[-1:].copy() for leaf in current]
            values = context.execute(self.step.full, [*(feed[k][target] for feed in self.feeds), *current])
            kept = [*(current[leaf] for leaf in self.step.kept_leaves), *values[len(current):]]
            if not self.kept:
                self.kept = [np.empty((self.steps, self.lanes, *v.shape[1:]), v.dtype) for v in kept]
            for place, value in zip(self.kept, kept, strict=True):
                place[k, target] = value
            current = values[: len(current)]
        if self.last_steps == self.steps and chosen[-1] == self.lanes - 1:
            self.end = [leaf[-1:].copy() for leaf in current]
        if whole:
            self.ends = [np.array(leaf) for leaf in current]
        else:
            for place, value in zip(self.ends, current, strict=True):
                place[chosen] = value

    def _separate_ends(self) -> list[Array]:
        """Where lanes end if each number of the state is changed by itself alone."""
        random = np.random.Generator(np.random.PCG64(_SEED))
        probes: list[list[Array]] = [[], [], []]
        for start, kind in zip(self.starts, self.step.kinds, strict=True):
            words = storage(start)
            noise = np.frombuffer(random.bytes(words.nbytes), words.dtype).reshape(words.shape)
            for probe, changed in zip(probes, (words + words.dtype.type(1), ~words, noise), strict=True):
                probe.append(from_words(changed, kind))
        everyone = np.tile(np.arange(self.lanes), len(probes))
        found = self._advance([np.concatenate(leaves) for leaves in zip(*probes, strict=True)], everyone)
        shapes = [(len(probes), *leaf.shape) for leaf in self.ends]
        after = [leaf.reshape(shape) for leaf, shape in zip(found, shapes, strict=True)]
        self._replaced = np.ones(self.lanes, np.bool_)
        for leaf, ends in zip(after, self.ends, strict=True):
            for probe in leaf:
                self._replaced &= same_rows(probe, ends)
        return [
            separate_ends(kind, start, [probe[position] for probe in probes], end, list(after[position]))
            for position, (kind, start, end) in enumerate(
                zip(self.step.kinds, self.starts, self.ends, strict=True)
            )
        ]

    def _is_narrow(self) -> bool:
        exact = not any(isinstance(element_type(kind), FloatType) for kind in self.step.kinds)
        return exact and sum(map(bit_width, self.step.kinds)) <= _MOST_LINEAR_BITS

    def _linear_ends(self) -> list[Array]:
        """Where lanes end if one matrix over bits maps the difference of two starts to that of their ends.

        Lanes that replace the state whatever it was need no matrix.
        """
        kinds = self.step.kinds
        width = sum(map(bit_width, kinds))
        basis = np.concatenate([[np.uint64(0)], np.uint64(1) << np.arange(width, dtype=np.uint64)])
        lane = int(np.argmin(self._replaced))
        columns = pack(self._advance(unpack(basis, kinds), np.full(width + 1, lane)), kinds, width + 1)
        images = [int(column) for column in columns[1:] ^ columns[0]]
        starts = [int(code) for code in pack(self.starts, kinds, self.lanes)]
        ends = [int(code) for code in pack(self.ends, kinds, self.lanes)]
        current = starts[0]
        for number, start in enumerate(starts):
            change = 0 if self._replaced[number] else current ^ start
            current = ends[number]
            while change:
                lowest = change & -change
                current ^= images[lowest.bit_length() - 1]
                change ^= lowest
            ends[number] = current
        return unpack(np.array(ends, np.uint64), kinds)


def separate_ends(
    kind: Type, start: Array, probes: Sequence[Array], end: Array, after: Sequence[Array]
) -> Array:
    """Ends of a chain of lanes for one leaf, from where each lane took its start and three other states.

    The probes are the start with 1 added, with all bits inverted, and noise. Of each element, lanes either
    keep, flip or replace bits, or multiply and add; the kind that fits more lanes is taken for all.
    """
    x0, e0 = storage(start), storage(end)
    (x1, x2, x3), (e1, e2, e3) = map(storage, probes), map(storage, after)
    if isinstance(element_type(kind), FloatType):
        held: Array = (e0 == x0) & (e1 == x1) & (e2 == x2) & (e3 == x3)
        return from_words(_bits_chain(np.where(held, ~(x0 ^ x0), x0 ^ x0), e0, x0), kind)
    mask: Array = e0 ^ e2
    bitwise = ((e0 ^ e1) == (mask & (x0 ^ x1))) & ((e0 ^ e3) == (mask & (x0 ^ x3)))
    factor = e1 - e0
    affine = storage(from_words(e3 - e0, kind)) == storage(from_words(factor * (x3 - x0), kind))
    scaled = np.count_nonzero(affine, axis=0) > np.count_nonzero(bitwise, axis=0)
    chained = np.where(scaled, _affine_chain(factor, e0 - factor * x0, x0), _bits_chain(mask, e0, x0))
    known = np.maximum(np.count_nonzero(affine, axis=0), np.count_nonzero(bitwise, axis=0)) * 2 > len(x0)
    return from_words(np.where(known, chained, e0), kind)


def _bits_chain(mask: Array, ends: Array, starts: Array) -> Array:
    """Ends of lanes x -> (x & mask) ^ rest, each starting where the one before ended."""
    mask, rest = mask.copy(), ends ^ (mask & starts)
    reach = 1
    while reach < len(mask):
        rest[reach:] = rest[reach:] ^ (mask[reach:] & rest[:-reach])
        mask[reach:] = mask[reach:] & mask[:-reach]
        reach *= 2
    return rest ^ (mask & starts[:1])


def _affine_chain(factor: Array, offset: Array, starts: Array) -> Array:
    """Ends of lanes x -> factor * x + offset, each starting where the one before ended."""
    factor, offset = factor.copy(), offset.copy()
    reach = 1
    while reach < len(factor):
        offset[reach:] = factor[reach:] * offset[:-reach] + offset[reach:]
        factor[reach:] = factor[reach:] * factor[:-reach]
        reach *= 2
    return factor * starts[:1] + offset
