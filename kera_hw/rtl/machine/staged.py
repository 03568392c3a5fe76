"""Rounds of an outer loop as regions of their own, each on buffers of its own, so that they can overlap.

A loop whose rounds build on each other by way of a buffer is written out. A region that writes every element
of a buffer, once, and has read before what it overwrites, then writes another buffer instead: what it reads
and what it makes are apart, and are there for different items at once. Which elements an access reaches is
found by counting: indices that depend on counters alone are computed for all rounds of a nest.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

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
    LoopProgram,
    Op,
    Operand,
    Statement,
    Store,
    Var,
    While,
    statements,
)
from kera_hw.loops.rewrite import Names, touches
from kera_hw.loops.transforms.parallel import proved_parallel
from kera_hw.loops.transforms.plan import Step, apply_step
from kera_hw.loops.transforms.reason import Refused
from kera_hw.ops.registry import OPS
from kera_hw.ops.spec import Array, EvalCall
from kera_hw.rtl.machine.nests import NoProcess, Regions, nests_of, touched
from kera_hw.rtl.machine.spread import Spread
from kera_hw.rtl.machine.tidy import named_apart
from kera_hw.types import IntType

MOST_STAGES = 32
"""Rounds of a loop up to which each may be a region."""
_MOST_ROUNDS = 1 << 17
"""Rounds of a nest up to which its accesses are counted: bounds the time that takes."""


def staged(regions: Regions) -> Spread | None:
    """With the rounds of outer loops as regions that can overlap; None where none build on each other so."""
    program, steps = regions.program, list[Step]()
    for loop in _outer(regions):
        step = Step("unroll", (loop.var.name,), f"{loop.count} stages that overlap")
        try:
            program = apply_step(program, step, claimed=False)
        except Refused:
            continue
        steps.append(step)
    if not steps:
        return None
    try:
        found = nests_of(_apart(program))
    except NoProcess:
        return None
    writers = [name for nest in found.nests for name in touched(nest, Store)]
    return Spread(tuple(steps), found) if len(writers) == len(set(writers)) else None


def _outer(regions: Regions) -> Iterator[For]:
    """The outermost loops around others of which a round needs what those before have made."""
    loops = [nest.levels[0].loop for nest in regions.nests if len(nest.levels) > 1]
    loops += [group.loop for group in regions.groups]
    for loop in dict.fromkeys(map(id, loops)):
        found = next(item for item in loops if id(item) == loop)
        outermost = any(item is found for item in regions.program.body.body)
        if outermost and 1 < found.count <= MOST_STAGES and not _side_by_side(found):
            yield found


def _side_by_side(loop: For) -> bool:
    try:
        return proved_parallel(loop).parallel
    except Refused:
        return False


# Buffers


def _apart(program: LoopProgram) -> LoopProgram:
    """Whatever overwrites a buffer as a whole writes another one; the last of these has its name."""
    names, body = Names(program), list(program.body.body)
    own = {item.buffer.name: item.buffer for item in body if isinstance(item, Alloc)}
    made: list[Buffer] = []
    for buffer in (*own.values(), *program.of_kind("result")):
        users = [k for k, item in enumerate(body) if touches(item, buffer.name)]
        whole = [k for k in users if _overwrites(body[k], buffer, body[:k])]
        if users[:1] == whole[:1]:
            whole = whole[1:]  # begins the first of them
        if not whole:
            continue
        fresh = [replace(buffer, name=names.fresh(buffer.name), kind="temp") for _ in whole]
        made += fresh
        versions = [*(item.name for item in fresh), buffer.name]
        for k in users:
            before = sum(place < k for place in whole)
            after = before + (k in whole)
            (body[k],) = named_apart(
                Block((body[k],)), {buffer.name: versions[before]}, {buffer.name: versions[after]}
            ).body
    return replace(program, body=replace(program.body, body=(*map(Alloc, made), *body)))


def _overwrites(statement: Statement, buffer: Buffer, before: Sequence[Statement]) -> bool:
    """Whether a loop stores every element once, and loads none that it has stored."""
    if not isinstance(statement, For):
        return False
    found = accesses_of(_nest_of(statement), buffer, before)
    if found is None:
        return False
    stores = [item for item in found if item.stores]
    if sum(len(item.elements) for item in stores) != buffer.size:
        return False
    when = np.full(buffer.size, -1, np.int64)
    for item in stores:
        when[item.elements] = item.when
    if (when < 0).any():
        return False
    return all((item.when < when[item.elements]).all() for item in found if not item.stores)


def _nest_of(loop: For) -> list[For]:
    """The loops of a nest without code around the inner ones; the innermost may have others inside."""
    found = [loop]
    while not loop.carried and len(loop.body.body) == 1 and isinstance(loop.body.body[0], For):
        loop = loop.body.body[0]
        found.append(loop)
    return found


@dataclass(frozen=True, slots=True)
class Accesses:
    """Of one load or store: by round the element, row-major, and when: earlier ones count less."""

    stores: bool
    elements: Array
    when: Array


def accesses_of(
    loops: Sequence[For], buffer: Buffer, before: Sequence[Statement]
) -> list[Accesses] | None:
    """The accesses of a perfect nest to a buffer; None where data decide about them.

    ``before``: what stands before the nest, of which scalars that are constants are known inside.
    """
    counts = [loop.count for loop in loops]
    rounds = prod(counts)
    if rounds > _MOST_ROUNDS:
        return None
    grid = np.indices(counts, dtype=np.int64).reshape(len(counts), rounds)
    counting = _Counting(rounds, buffer)
    for item in before:
        if isinstance(item, Op):
            counting.op(item)
    counting.values |= {loop.var: row for loop, row in zip(loops, grid)}
    if not counting.block(loops[-1].body):
        return None
    total = max(1, counting.number)
    at = np.arange(rounds, dtype=np.int64) * total
    return [Accesses(stores, elements, at + number) for stores, elements, number in counting.found]


class _Counting:
    """Computes what depends on counters alone, for all rounds at once."""

    def __init__(self, rounds: int, buffer: Buffer) -> None:
        self.values: dict[Var, Array] = {}
        self.found: list[tuple[bool, Array, int]] = []
        self.number = 0
        self._rounds, self._buffer = rounds, buffer

    def block(self, block: Block) -> bool:
        """Whether all accesses to the buffer are known."""
        return all(map(self._statement, block.body))

    def _statement(self, statement: Statement) -> bool:
        self.number += 1
        match statement:
            case Op():
                self.op(statement)
            case Load(buffer=name, index=index) | Store(buffer=name, index=index):
                if name == self._buffer.name:
                    elements = self._elements(index)
                    if elements is None:
                        return False
                    self.found.append((isinstance(statement, Store), elements, self.number))
            case For():
                if touches(statement, self._buffer.name):
                    for round_ in range(statement.count):
                        self.values[statement.var] = np.full(self._rounds, round_, np.int64)
                        self._forget(statement.body)
                        if not self.block(statement.body):
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

    def op(self, op: Op) -> None:
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
