"""Parity networks: many XORs of the same bits, built together from shared sub-parities.

Every output is the set of bits whose parity it is. Subsets of two to four bits that several outputs have in
common become one gate each, most saving first, as long as every output still fits its depth.

The greedy choice of what to share is that of Paar, "Optimized arithmetic for Reed-Solomon encoders", ISIT
1997.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from kera_hw.ops.spec import Array

Gate = tuple[int, ...]
"""Signals (inputs first, then gates in order) whose parity it is."""

_PAIRS = 16
"""Pairs of signals from which groups are grown at each step."""


@dataclass
class Network:
    """Gates over ``inputs`` bits, and the signal each output is (-1 for a constant 0)."""

    inputs: int
    gates: list[Gate] = field(default_factory=list[Gate])
    outputs: list[int] = field(default_factory=list[int])


def depth_needed(size: int, arity: int) -> int:
    """Levels of gates of ``arity`` inputs that a parity of ``size`` bits takes."""
    depth = 0
    while arity**depth < size:
        depth += 1
    return depth


def build(rows: Sequence[Sequence[int]], inputs: int, arity: int, tries: int) -> Network:
    """The cheapest network found in ``tries`` attempts (deterministic)."""
    best: Network | None = None
    for seed in range(max(1, tries)):
        found = _attempt(rows, inputs, arity, seed)
        if best is None or len(found.gates) < len(best.gates):
            best = found
    assert best is not None
    return best


class _Attempt:
    """One greedy construction. ``matrix[r, v]`` says whether output r still holds signal v."""

    def __init__(self, rows: Sequence[Sequence[int]], inputs: int, arity: int, seed: int) -> None:
        self.arity = arity
        self.room = np.array([arity ** depth_needed(len(row), arity) for row in rows], dtype=np.float32)
        self.inputs = inputs
        self.levels = np.zeros(inputs, dtype=np.int64)
        self.matrix = np.zeros((len(rows), inputs), dtype=np.float32)
        for r, row in enumerate(rows):
            self.matrix[r, list(row)] = 1
        self.load = np.zeros(len(rows), dtype=np.float32)
        self.gates: list[Gate] = []
        self.noise = np.random.default_rng(seed) if seed else None

    def rows_of(self, group: Sequence[int]) -> Array:
        """Outputs that hold the whole group and still fit their depth with it as one signal."""
        levels = self.levels[group]
        change = self.arity ** (int(levels.max()) + 1) - int((self.arity**levels).sum())
        having = self.matrix[:, group].all(axis=1)
        return having & (self.load + change <= self.room)

    def gain(self, group: Sequence[int]) -> float:
        """LUTs saved: every output loses len - 1 terms, a LUT being arity - 1 terms."""
        count = int(self.rows_of(group).sum())
        return count * (len(group) - 1) / (self.arity - 1) - 1

    def best_group(self) -> list[int] | None:
        """The group that saves most among those grown from the most frequent pairs."""
        self.load = self.matrix @ (self.arity**self.levels).astype(np.float32)
        common = self.matrix.T @ self.matrix
        upper = np.triu(common, 1)
        if self.noise is not None:
            upper *= 1 + 0.15 * self.noise.random(upper.shape, dtype=np.float32)
        count = min(_PAIRS, upper.size)
        flat = np.argpartition(upper, upper.size - count, axis=None)[upper.size - count :]
        best: list[int] | None = None
        best_gain = 1e-9
        for position in flat:
            i, j = divmod(int(position), common.shape[0])
            if common[i, j] < 2 or i >= j:
                continue
            for group in self._grown(i, j):
                gain = self.gain(group)
                if gain > best_gain:
                    best, best_gain = group, gain
        return best

    def _grown(self, i: int, j: int) -> list[list[int]]:
        """The pair, and the pair grown by the signals most often beside it, up to the arity."""
        group = [i, j]
        found = [list(group)]
        having = self.matrix[:, i] * self.matrix[:, j]
        while len(group) < self.arity:
            beside = having @ self.matrix
            beside[group] = 0
            following = int(beside.argmax())
            if beside[following] < 2:
                break
            group.append(following)
            having = having * self.matrix[:, following]
            found.append(list(group))
        return found

    def add_gate(self, group: Sequence[int]) -> int:
        """A new signal: the parity of the group."""
        self.gates.append(tuple(group))
        level = int(self.levels[list(group)].max()) + 1
        self.levels = np.append(self.levels, level)
        self.matrix = np.hstack([self.matrix, np.zeros((self.matrix.shape[0], 1), dtype=np.float32)])
        return self.matrix.shape[1] - 1

    def share(self) -> None:
        while (group := self.best_group()) is not None:
            rows = self.rows_of(group)
            signal = self.add_gate(group)
            for v in group:
                self.matrix[rows, v] = 0
            self.matrix[rows, signal] = 1

    def finish(self) -> Network:
        """Join what is left of every output, shallow signals first."""
        outputs: list[int] = []
        done: dict[tuple[int, ...], int] = {}
        for r in range(self.matrix.shape[0]):
            left = [int(v) for v in np.flatnonzero(self.matrix[r])]
            while len(left) > 1:
                left.sort(key=lambda v: (int(self.levels[v]), v))
                take = self.arity if len(left) <= self.arity else 2 + (len(left) - 2) % (self.arity - 1)
                group = tuple(left[: max(2, min(take, len(left)))])
                signal = done.get(group)
                if signal is None:
                    signal = self.add_gate(group)
                    done[group] = signal
                left = [*left[len(group) :], signal]
            outputs.append(left[0] if left else -1)
        return Network(self.inputs, self.gates, outputs)


def _attempt(rows: Sequence[Sequence[int]], inputs: int, arity: int, seed: int) -> Network:
    attempt = _Attempt(rows, inputs, arity, seed)
    attempt.share()
    return attempt.finish()
