"""How many rounds items take in a loop that ends by a condition, as the reference evaluator counts them."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kera_hw.loops.evaluator import Evaluation, Frame, evaluate, reset_states
from kera_hw.loops.program import Block, LoopProgram, While
from kera_hw.ops.spec import Array

Counts = NDArray[np.int64]


class RoundCounter:
    """Counts the rounds of one loop, item after item; a stream's state goes on from item to item."""

    def __init__(self, program: LoopProgram, loop: While) -> None:
        self._program, self._loop = program, loop
        self.reset()

    def reset(self) -> None:
        """Begins again with a stream's first item."""
        self._states: Sequence[Array] = reset_states(self._program, 1)

    def take(self, args: Sequence[Array], items: int) -> Counts:
        """For each item the rounds in which the condition holds; ``args`` are leaves, batch-first."""
        if not self._states:
            return self._run(args, (), items)[0]
        found = [np.zeros(0, np.int64)]
        for item in range(items):
            counts, self._states = self._run([arg[item : item + 1] for arg in args], self._states, 1)
            found.append(counts)
        return np.concatenate(found)

    def _run(
        self, args: Sequence[Array], states: Sequence[Array], lanes: int
    ) -> tuple[Counts, list[Array]]:
        evaluation = _Counting(self._loop, lanes)
        _, after = evaluate(evaluation, self._program, args, states)
        return evaluation.counts, after


class _Counting(Evaluation):
    """Counts how often the body of one loop runs, for each item."""

    def __init__(self, loop: While, lanes: int) -> None:
        super().__init__(lanes)
        self.counts: Counts = np.zeros(lanes, np.int64)
        self._body = loop.body

    def run(self, block: Block, frame: Frame) -> list[Array]:
        """The block's yields."""
        if block is self._body:
            places = frame.map_to(0)
            np.add.at(self.counts, np.arange(frame.count) if places is None else places, 1)
        return super().run(block, frame)
