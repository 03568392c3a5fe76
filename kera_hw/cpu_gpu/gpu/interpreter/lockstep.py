"""Who runs next: all at the lowest statement together, until they meet others; barriers that all must reach.

Those who run are threads of PTX, each with a course of its own, or waves of AMDGCN. Whoever has gone a
different way is at another statement. At a barrier each waits for all of its block.
"""
from __future__ import annotations

from abc import ABC, abstractmethod
from enum import IntEnum
from typing import NoReturn

import numpy as np

from kera_hw.cpu_gpu.gpu.interpreter.stop import Stop
from kera_hw.numerics.arrays import Array

MOST_STEPS = 50_000_000
"""Statements that a launch may run, each counted once for all that are at it."""


class Course(IntEnum):
    """What one of those who run is about."""

    RUNS = 0
    WAITS = 1
    IS_DONE = 2


Some = Array | None
"""Numbers of those who are meant; None for all."""


def each(some: Some) -> Array | slice:
    """As an index."""
    return slice(None) if some is None else some


class Lockstep(ABC):
    """``of_a_block`` of ``count`` make up a block. ``epoch``: how many barriers each has passed."""

    def __init__(self, count: int, of_a_block: int, statements: int) -> None:
        self.count, self._of_a_block, self._statements = count, of_a_block, statements
        self.epoch = np.zeros(count, np.int32)
        self._at = np.zeros(count, np.int64)
        self._course = np.full(count, Course.RUNS, np.int8)

    @abstractmethod
    def step(self, at: int, some: Some) -> int | None:
        """One statement; the next one, or None where some were sent, ended or wait. Raises Stop."""

    @abstractmethod
    def fault(self, at: int, message: str) -> NoReturn:
        """Raises KeraError (K0708)."""
        raise NotImplementedError

    def go(self, steps: int) -> int:
        """To the end of all; how many steps are left."""
        while True:
            running = self._course == Course.RUNS
            if not running.any():
                if not (self._course == Course.WAITS).any():
                    return steps
                self._release()
                continue
            low = int(self._at[running].min())
            together = running & (self._at == low)
            others = self._at[running & ~together]
            limit = int(others.min()) if len(others) else self._statements
            some = None if together.all() else np.flatnonzero(together)
            steps = self._straight(low, limit, some, steps)

    def _straight(self, at: int, limit: int, some: Some, steps: int) -> int:
        """From statement ``at`` on, until they part, wait or end, or come to where others are."""
        while at < limit:
            steps -= 1
            if steps < 0:
                self.fault(at, "the launch has not ended within the steps that it may take")
            try:
                next_ = self.step(at, some)
            except Stop as stop:
                self.fault(at, str(stop))
            if next_ is None:
                return steps
            at = next_
        self._at[each(some)] = at
        return steps

    # What statements do

    def send(self, some: Some, chosen: Some, at: int, target: int) -> None:
        """The chosen to the target, the others of some to the statement behind."""
        self._at[each(some)], self._at[each(chosen)] = at + 1, target

    def end(self, some: Some, chosen: Some, at: int) -> None:
        self._at[each(some)] = at + 1
        self._course[each(chosen)] = Course.IS_DONE

    def wait(self, some: Some, chosen: Some, at: int) -> None:
        """The chosen at a barrier."""
        self.send(some, chosen, at, at)
        self._course[each(chosen)] = Course.WAITS

    def _release(self) -> None:
        """Every block goes on behind its barrier, if all of it is there."""
        course = self._course.reshape(-1, self._of_a_block)
        at = self._at.reshape(-1, self._of_a_block)
        waits = course == Course.WAITS
        there = waits.any(axis=1)
        first = at[np.arange(len(at)), waits.argmax(axis=1)]
        bad = there & ~(waits & (at == first[:, None])).all(axis=1)
        if bad.any():
            which = int(np.flatnonzero(bad)[0])
            come = int((waits[which] & (at[which] == first[which])).sum())
            what = f"{come} of {self._of_a_block} {self.who} of a block come to this barrier"
            self.fault(int(first[which]), what)
        moving = np.repeat(there, self._of_a_block)
        self._course[moving] = Course.RUNS
        self._at[moving] += 1
        self.epoch[moving] += 1

    who = "threads"
    """What those are called who run."""
