"""Which elements of a buffer the rounds of a nest reach, found by counting.

Indices that depend on counters alone are computed for all rounds at once. Loads of code around an inner loop
count for all of its rounds, as the pipeline makes them; stores for the first round, or behind it the last.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from kera_hw.loops.contents import touches
from kera_hw.loops.evaluator import Lanes, literal_value
from kera_hw.loops.program import (
    Affine,
    Alloc,
    Block,
    Buffer,
    For,
    If,
    Index,
    Literal,
    Load,
    Op,
    Operand,
    Statement,
    Store,
    Var,
    While,
    statements,
)
from kera_hw.ops.registry import OPS
from kera_hw.ops.spec import Array, EvalCall
from kera_hw.types import IntType

_MOST_ROUNDS = 1 << 17
"""Rounds of a nest up to which its accesses are counted: bounds the time that takes."""


@dataclass(frozen=True, slots=True)
class Accesses:
    """Of one load or store: elements by their row-major number, and the round of each.

    ``number``: of the statement, by which accesses of one round are in order.
    """

    stores: bool
    elements: Array
    rounds: Array
    number: int


def accesses_of(
    loops: Sequence[For], buffer: Buffer, before: Sequence[Statement] = ()
) -> list[Accesses] | None:
    """The accesses of a nest of loops, or of what stands before where there are none, to a buffer.

    None where data decide about them. ``before``: what stands before the nest; its scalars that are constants
    are known inside.
    """
    counts = [loop.count for loop in loops]
    rounds = prod(counts)
    if rounds > _MOST_ROUNDS:
        return None
    grid = np.indices(counts, dtype=np.int64).reshape(len(counts), rounds)
    counting = _Counting(rounds, buffer)
    if not counting.block(Block(tuple(before))):
        return None
    counting.values |= {loop.var: row for loop, row in zip(loops, grid)}
    for level, loop in enumerate(loops):
        body, inner = loop.body.body, None
        if level + 1 < len(loops):
            inner = next(k for k, item in enumerate(body) if item is loops[level + 1])
        first = (grid[level + 1 :] == 0).all(axis=0)
        last = (grid[level + 1 :] == np.array(counts[level + 1 :])[:, None] - 1).all(axis=0)
        for k, item in enumerate(body):
            if k != inner and not counting.statement(item, first if inner is None or k < inner else last):
                return None
    return counting.found


class _Counting:
    """Computes what depends on counters alone, for all rounds at once."""

    def __init__(self, rounds: int, buffer: Buffer) -> None:
        self.values: dict[Var, Array] = {}
        self.found: list[Accesses] = []
        self._number = 0
        self._rounds, self._buffer = rounds, buffer
        self._all = np.ones(rounds, np.bool_)

    def block(self, block: Block) -> bool:
        """Whether all accesses to the buffer are known."""
        return all(self.statement(item, self._all) for item in block.body)

    def statement(self, statement: Statement, stores_in: Array) -> bool:
        """The same of a statement, whose stores count in some rounds."""
        self._number += 1
        match statement:
            case Op():
                self._op(statement)
            case Load(buffer=name, index=index) | Store(buffer=name, index=index):
                if name == self._buffer.name:
                    elements, stores = self._elements(index), isinstance(statement, Store)
                    if elements is None:
                        return False
                    rounds = np.flatnonzero(stores_in if stores else self._all)
                    self.found.append(Accesses(stores, elements[rounds], rounds, self._number))
            case For():
                if touches(statement, self._buffer.name):
                    for round_ in range(statement.count):
                        self.values[statement.var] = np.full(self._rounds, round_, np.int64)
                        self._forget(statement.body)
                        if not all(self.statement(item, stores_in) for item in statement.body.body):
                            return False
            case If() | While():
                return not touches(statement, self._buffer.name)
            case Alloc():
                pass
        return True

    def _forget(self, body: Block) -> None:
        for item in statements(body):
            if isinstance(item, Op):
                for var in item.results:
                    self.values.pop(var, None)

    def _op(self, op: Op) -> None:
        """Its results, where all operands are known and these are integers."""
        args = [self._value(operand) for operand in op.operands]
        results = [var.type for var in op.results]
        if not all(isinstance(kind, IntType) for kind in results) or any(value is None for value in args):
            return
        known = tuple(value for value in args if value is not None)
        kinds = tuple(operand.type for operand in op.operands)
        call = EvalCall(Lanes(self._rounds), known, kinds, tuple(results), dict(op.attrs))
        self.values |= dict(zip(op.results, OPS[op.opcode].evaluate(call)))

    def _value(self, operand: Operand) -> Array | None:
        if isinstance(operand, Literal):
            return np.broadcast_to(literal_value(operand), (self._rounds,))
        return self.values.get(operand)

    def _elements(self, index: Index) -> Array | None:
        """The row-major number of the element in every round."""
        total = np.zeros(self._rounds, np.int64)
        for part, extent in zip(index, self._buffer.shape):
            place = self._place(part)
            if place is None:
                return None
            total = total * extent + place
        return total

    def _place(self, part: Affine) -> Array | None:
        total = np.full(self._rounds, part.constant, np.int64)
        for var, coefficient in part.terms:
            value = self.values.get(var)
            if value is None:
                return None
            total = total + value.astype(np.int64) * coefficient
        return total
