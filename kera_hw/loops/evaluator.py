"""Runs a loop program: the level's reference, which knows ``OPS[...].evaluate`` and nothing of any target.

Everything runs for many *lanes* at once: the items of a batch, times the rounds of the parallel loops around.
A parallel loop makes lanes, a branch and a loop's early end choose some; a *frame* says for each of its lanes
which lane of the frame around it belongs to. A value or buffer made in a frame is seen from inner frames
through those maps. Loops that are not parallel run round by round, in all lanes together.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

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
)
from kera_hw.ops.registry import OPS
from kera_hw.ops.spec import Array, EvalCall, RegionLike
from kera_hw.types import FixType, FloatType, IntType, numpy_dtype


@dataclass(slots=True)
class Lanes:
    """What an operation's ``evaluate`` sees: a batch of lanes, and no regions to run."""

    batch: int

    def run(self, region: RegionLike, args: Sequence[Array], batch: int | None = None) -> list[Array]:
        raise AssertionError("a scalar operation runs no region")


@dataclass(slots=True)
class Frame:
    """Lanes, each within one of ``outer``'s; ``parent`` is absent in the outermost frame."""

    count: int
    outer: Frame | None = None
    parent: Array | None = None
    depth: int = 0
    maps: dict[int, Array] = field(default_factory=dict[int, Array])

    def inner(self, parent: Array) -> Frame:
        return Frame(len(parent), self, parent, self.depth + 1)

    def map_to(self, depth: int) -> Array | None:
        """For each lane its lane in the frame of that depth around; None where they are the same."""
        if depth == self.depth:
            return None
        found = self.maps.get(depth)
        if found is None:
            assert self.outer is not None and self.parent is not None
            above = self.outer.map_to(depth)
            found = self.parent if above is None else above[self.parent]
            self.maps[depth] = found
        return found


class Evaluation:
    """One run of a program's body, with the values and the storage of its buffers."""

    def __init__(self, lanes: int) -> None:
        self.root = Frame(lanes)
        self.values: dict[Var, tuple[Array, int]] = {}  # by lane of the frame of that depth
        self.storage: dict[str, tuple[Array, int]] = {}

    # Values

    def get(self, operand: Operand, frame: Frame) -> Array:
        if isinstance(operand, Literal):
            return np.broadcast_to(literal_value(operand), (frame.count,))
        value, depth = self.values[operand]
        places = frame.map_to(depth)
        return value if places is None else value[places]

    def set(self, var: Var, value: Array, frame: Frame) -> None:
        self.values[var] = (value, frame.depth)

    def _position(self, expression: Affine, frame: Frame) -> Array | int:
        """An index in each lane, or one for all."""
        total: Array | int = expression.constant
        for var, coefficient in expression.terms:
            total = total + self.get(var, frame).astype(np.int64) * coefficient
        return total

    def _cell(self, name: str, index: Index, frame: Frame) -> tuple[Array, tuple[Array | int, ...]]:
        """A buffer's storage, and where in it the lanes' element lies."""
        array, depth = self.storage[name]
        places = frame.map_to(depth)
        lane = np.arange(frame.count) if places is None else places
        return array, (lane, *(self._position(part, frame) for part in index))

    # Statements

    def run(self, block: Block, frame: Frame) -> list[Array]:
        """The block's yields."""
        for statement in block.body:
            self._statement(statement, frame)
        return [self.get(operand, frame) for operand in block.yields]

    def run_statement(self, statement: Statement) -> None:
        """One statement in every lane."""
        self._statement(statement, self.root)

    def _statement(self, statement: Statement, frame: Frame) -> None:
        match statement:
            case Op():
                self._op(statement, frame)
            case Load(result=result, buffer=name, index=index):
                array, cell = self._cell(name, index, frame)
                self.set(result, array[cell], frame)
            case Store(buffer=name, index=index, value=value):
                array, cell = self._cell(name, index, frame)
                array[cell] = self.get(value, frame)
            case Alloc(buffer=buffer):
                self.storage[buffer.name] = (empty(buffer, frame.count), frame.depth)
            case For():
                self._for(statement, frame)
            case While():
                self._while(statement, frame)
            case If():
                self._if(statement, frame)

    def _op(self, op: Op, frame: Frame) -> None:
        args = tuple(self.get(operand, frame) for operand in op.operands)
        kinds = tuple(operand.type for operand in op.operands)
        types = tuple(result.type for result in op.results)
        call = EvalCall(Lanes(frame.count), args, kinds, types, dict(op.attrs))
        for result, value in zip(op.results, OPS[op.opcode].evaluate(call)):
            self.set(result, value, frame)

    def _for(self, loop: For, frame: Frame) -> None:
        if loop.parallel and not loop.carried:
            if loop.count:
                inside = frame.inner(np.repeat(np.arange(frame.count), loop.count))
                self.set(loop.var, np.tile(np.arange(loop.count, dtype=np.int64), frame.count), inside)
                self.run(loop.body, inside)
            return
        values = [self.get(item.initial, frame) for item in loop.carried]
        for round_ in range(loop.count):
            self.set(loop.var, np.broadcast_to(np.int64(round_), (frame.count,)), frame)
            for item, value in zip(loop.carried, values):
                self.set(item.inner, value, frame)
            values = self.run(loop.body, frame)
        for item, value in zip(loop.carried, values):
            self.set(item.outer, value, frame)

    def _while(self, loop: While, frame: Frame) -> None:
        """Lanes whose condition has failed keep what they have and take no further part."""
        values = [self.get(item.initial, frame).copy() for item in loop.carried]
        active = np.arange(frame.count)
        for _ in range(loop.most):
            inside = frame.inner(active)
            for item, value in zip(loop.carried, values):
                self.set(item.inner, value[active], inside)
            (going,) = self.run(loop.condition, inside)
            if not going.all():
                active = active[going]
                inside = frame.inner(active)
                for item, value in zip(loop.carried, values):
                    self.set(item.inner, value[active], inside)
            if not len(active):
                break
            for value, new in zip(values, self.run(loop.body, inside)):
                value[active] = new
        for item, value in zip(loop.carried, values):
            self.set(item.outer, value, frame)

    def _if(self, branch: If, frame: Frame) -> None:
        condition = self.get(branch.condition, frame)
        outs = [np.zeros(frame.count, numpy_dtype(result.type)) for result in branch.results]
        for block, chosen in ((branch.then, condition), (branch.otherwise, ~condition)):
            lanes = np.flatnonzero(chosen)
            if len(lanes):
                for out, value in zip(outs, self.run(block, frame.inner(lanes))):
                    out[lanes] = value
        for result, out in zip(branch.results, outs):
            self.set(result, out, frame)


def literal_value(literal: Literal) -> Array:
    """The constant in its storage type, as an array without axes."""
    kind = literal.type
    if isinstance(kind, FloatType):
        word = np.array(literal.bits, np.dtype(f"u{kind.width_bits // 8}"))
        return word.view(numpy_dtype(kind))
    raw = kind.raw if isinstance(kind, FixType) else kind
    value = raw.wrap(literal.bits) if isinstance(raw, IntType) else literal.bits
    return np.array(value).astype(numpy_dtype(kind))


def empty(buffer: Buffer, lanes: int) -> Array:
    return np.zeros((lanes, *buffer.shape), numpy_dtype(buffer.element))


def contents(buffer: Buffer) -> Array:
    """The elements of a constant, or of a state at reset."""
    dtype = numpy_dtype(buffer.element)
    return np.frombuffer(buffer.data, dtype.newbyteorder("<")).astype(dtype).reshape(buffer.shape)


def run_program(
    program: LoopProgram, args: Sequence[Array], states: Sequence[Array], lanes: int
) -> tuple[list[Array], list[Array]]:
    """Results and next states of ``lanes`` independent items, all batch-first by leaf.

    ``args`` and ``states`` are canonical arrays ``(lanes, *shape)`` in the order of the program's buffers.
    """
    return evaluate(Evaluation(lanes), program, args, states)


def evaluate(
    evaluation: Evaluation, program: LoopProgram, args: Sequence[Array], states: Sequence[Array]
) -> tuple[list[Array], list[Array]]:
    """``run_program`` by an evaluation that may watch."""
    given, lanes = (iter(args), iter(states)), evaluation.root.count
    for buffer in program.buffers:
        match buffer.kind:
            case "param":
                array = np.asarray(next(given[0]))
            case "state":
                array = np.array(next(given[1]))
            case "const":
                array = np.broadcast_to(contents(buffer), (lanes, *buffer.shape))
            case _:
                array = empty(buffer, lanes)
        evaluation.storage[buffer.name] = (array, 0)
    evaluation.run(program.body, evaluation.root)
    found = [evaluation.storage[buffer.name][0] for buffer in program.of_kind("result")]
    return found, [evaluation.storage[buffer.name][0] for buffer in program.of_kind("state")]


def reset_states(program: LoopProgram, lanes: int) -> list[Array]:
    """The states of a program before its first item."""
    return [
        np.broadcast_to(contents(buffer), (lanes, *buffer.shape)) for buffer in program.of_kind("state")
    ]
