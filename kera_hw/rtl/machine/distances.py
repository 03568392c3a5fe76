"""How many rounds lie between two accesses to one word of a memory, of which one is a write.

Two writes keep their order as well, where more than one statement writes.

Exactly, by the addresses of all rounds: they are computed at once from the counters, by the operations' own
evaluation. What depends on data has no such distance, and counts as next to each other.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kera_hw.loops.contents import touches
from kera_hw.loops.evaluator import Evaluation
from kera_hw.loops.program import Affine, Buffer, Literal, Load, Op, Statement, Store, Var
from kera_hw.rtl.machine.nests import Nest, Regions, touched

FAR = 1 << 30
"""Of a memory that is only read, or that one statement alone reaches."""
_MOST_ROUNDS = 2_000_000
_Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Placed:
    """A statement of a nest, and the rounds in which it counts."""

    statement: Statement
    rounds: NDArray[Any]


def least_distance(regions: Regions, buffer: Buffer) -> int:
    """The least of all regions that read a memory and write it, in every round of loops around them."""
    found = FAR
    for number, nest in enumerate(regions.nests):
        loops = [group.loop for group in regions.around(number)]
        if prod(loop.count for loop in loops) * nest.rounds > _MOST_ROUNDS:
            loops = []  # with counters unknown, what depends on them counts as next to each other
        for counts in product(*(range(loop.count) for loop in loops)):
            outer = {loop.var: count for loop, count in zip(loops, counts)}
            found = min(found, _distance(nest, buffer, outer))
    return found


def _distance(nest: Nest, buffer: Buffer, outer: Mapping[Var, int]) -> int:
    whole = nest.body.body
    inside = [item for item in whole if touches(item, buffer.name)]
    if not inside or nest.rounds == 1 or buffer.name not in touched(nest, Store):
        return FAR
    if nest.rounds > _MOST_ROUNDS:
        return 1
    evaluation = Evaluation(nest.rounds)
    counters = _counters(nest, evaluation)
    for var, count in outer.items():
        evaluation.set(var, np.full(nest.rounds, count, np.int64), evaluation.root)
    for statement in nest.before:
        if isinstance(statement, Op):
            _try(evaluation, statement)
    found: list[tuple[_Numbers, _Numbers, bool]] = []
    for placed in _placed(nest, counters):
        statement = placed.statement
        match statement:
            case Op():
                _try(evaluation, statement)
            case Load(buffer=name, index=index) | Store(buffer=name, index=index) if name == buffer.name:
                place = Affine()
                for extent, part in zip(buffer.shape, index):
                    place = place * extent + part
                address = _address(evaluation, place)
                if address is None:
                    return 1
                found.append((address[placed.rounds], placed.rounds, isinstance(statement, Store)))
            case _ if touches(statement, buffer.name):
                return 1
            case _:
                pass
    writes = [write for *_, write in found]
    return _nearest(found) if any(writes) and len(writes) > 1 else FAR


def _counters(nest: Nest, evaluation: Evaluation) -> list[_Numbers]:
    """Which of each loop's rounds every round is; one more than are counted has the number 0."""
    left, found = nest.rounds, list[_Numbers]()
    rounds = np.arange(nest.rounds, dtype=np.int64)
    for level in nest.levels:
        left //= level.rounds
        found.append(rounds // left % level.rounds)
        evaluation.set(level.loop.var, np.where(found[-1] < level.loop.count, found[-1], 0), evaluation.root)
    return found


def _placed(nest: Nest, counters: Sequence[_Numbers]) -> Iterator[_Placed]:
    """Statements in the order of a round: before inner loops in their first round, behind in their last."""
    every = np.arange(nest.rounds, dtype=np.int64)
    behind: list[_Placed] = []
    for number, level in enumerate(nest.levels):
        body, inner = level.loop.body.body, range(number + 1, len(nest.levels))
        if level.inside is None:
            yield from (_Placed(item, every) for item in body)
            continue
        first = np.logical_and.reduce([counters[k] == 0 for k in inner])
        last = np.logical_and.reduce([counters[k] == nest.levels[k].rounds - 1 for k in inner])
        yield from (_Placed(item, np.flatnonzero(first)) for item in body[: level.inside])
        behind = [_Placed(item, np.flatnonzero(last)) for item in body[level.inside + 1 :]] + behind
    yield from behind


def _try(evaluation: Evaluation, op: Op) -> None:
    """Evaluate an operation on counters; nothing where it depends on data."""
    if all(isinstance(item, Literal) or item in evaluation.values for item in op.operands):
        evaluation.run_statement(op)


def _address(evaluation: Evaluation, place: Affine) -> _Numbers | None:
    total = np.full(evaluation.root.count, place.constant, np.int64)
    for var, factor in place.terms:
        if var not in evaluation.values:
            return None
        total += factor * evaluation.get(var, evaluation.root).astype(np.int64)
    return total


def _nearest(found: Sequence[tuple[_Numbers, _Numbers, bool]]) -> int:
    """The least distance of two rounds that touch one address, one of them writing."""
    addresses = np.concatenate([address for address, _, _ in found])
    rounds = np.concatenate([where for _, where, _ in found])
    writes = np.concatenate([np.full(len(where), write) for _, where, write in found])
    order = np.lexsort((rounds, addresses))
    addresses, rounds, writes = addresses[order], rounds[order], writes[order]
    begins = np.flatnonzero(np.append(True, (np.diff(addresses) != 0) | (np.diff(rounds) != 0)))
    any_write = np.logical_or.reduceat(writes, begins)
    addresses, rounds = addresses[begins], rounds[begins]
    meets = (np.diff(addresses) == 0) & (any_write[1:] | any_write[:-1])
    gaps = np.diff(rounds)[meets]
    return int(gaps.min()) if len(gaps) else FAR
