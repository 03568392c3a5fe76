"""Streams that keep nothing but what came in: many items at once, from the inputs themselves.

A delay line holds inputs of earlier items. Where each element of every state is one, ``in_blocks`` gives the
program of a block of items, a parallel loop over them without a state: what a state held is loaded from where
the input of that item lies. Code for blocks begins when the longest delay is past, and then puts the states
as they would be, for the items that are left.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from kera_hw.loops.contents import indexing, used
from kera_hw.loops.program import (
    COUNTER,
    Affine,
    Block,
    Buffer,
    For,
    Index,
    Load,
    LoopProgram,
    Op,
    Statement,
    Store,
    Var,
    blocks_of,
    of_var,
    statements,
)
from kera_hw.loops.rewrite import Names, with_block
from kera_hw.types import Type

ITEMS = 256
"""Of a block: more than any vector has lanes, few enough to be left over."""
_MOST_MOVES = 1 << 12
"""Elements that loops move, as far as they are followed."""
_MOST_DELAY = 1 << 10


@dataclass(frozen=True, slots=True)
class Delayed:
    """A parameter's value ``items`` items ago."""

    param: str
    items: int


@dataclass(frozen=True, slots=True)
class _Old:
    """What an element of a state holds as the item begins."""

    state: str
    element: int


Source = Delayed | _Old | None
"""None for anything else."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """``program``: of ``ITEMS`` items, its parameters by leaf as the stream's, with those in ``windows``
    beginning ``history`` items before the block; these are there with their types. ``states``: by element
    what they hold as an item begins."""

    program: LoopProgram
    history: int
    windows: Mapping[str, Type]
    states: Mapping[str, tuple[Delayed, ...]]


class _Other(Exception):
    """The stream keeps something else."""


def in_blocks(program: LoopProgram) -> Blocks | None:
    """The lowered program of a stream for blocks of items; None where it keeps something else."""
    states = program.of_kind("state")
    if not states or not all(state.size for state in states):
        return None  # one without elements is read where nothing runs
    try:
        return _Rewriting(program, states).blocks()
    except _Other:
        return None


class _Rewriting:
    """Statements are followed in order twice: what states hold at the end, and then what is read of them."""

    def __init__(self, program: LoopProgram, states: list[Buffer]) -> None:
        self._program = program
        self._buffers = {buffer.name: buffer for buffer in program.buffers}
        self._names = Names(program)
        self._states = {state.name for state in states}
        self._begin: dict[str, list[Source]] = {
            state.name: [_Old(state.name, k) for k in range(state.size)] for state in states
        }
        end = self._followed(self._begin)
        self._delays = {
            name: tuple(self._delay(end, _Old(name, k), 0) for k in range(len(elements)))
            for name, elements in self._begin.items()
        }
        found = [delay for elements in self._delays.values() for delay in elements]
        self._windows = {delay.param: self._buffers[delay.param].element for delay in found}
        self._history = max((delay.items for delay in found), default=0)
        self._item = Var(self._names.fresh("t"), COUNTER)

    def _delay(self, end: Mapping[str, list[Source]], source: Source, items: int) -> Delayed:
        """What an element holds at the beginning, by what it was given at the end of the item before."""
        while isinstance(source, _Old):
            source, items = end[source.state][source.element], items + 1
            if items > _MOST_DELAY:
                raise _Other
        if source is None:
            raise _Other
        return Delayed(source.param, items)

    # What states hold

    def _followed(self, begin: Mapping[str, list[Source]]) -> dict[str, list[Source]]:
        holds = {name: list(elements) for name, elements in begin.items()}
        for _ in self._steps(holds):
            pass
        return holds

    def _steps(self, holds: dict[str, list[Source]]) -> Iterator[Statement]:
        """Statements of the body that do not move what states hold, each when they hold what it finds."""
        scalars: dict[Var, Source] = {}
        for statement in self._program.body.body:
            if self._moves(statement):
                for one, counters in _rounds(statement):
                    self._move(one, counters, scalars, holds)
                continue
            if any(isinstance(item, Store) and item.buffer in self._states for item in _all(statement)):
                raise _Other
            if isinstance(statement, Load):
                self._move(statement, {}, scalars, holds)
            yield statement

    def _moves(self, statement: Statement) -> bool:
        """Whether it does nothing but store in states."""
        if isinstance(statement, For):
            plain = not statement.carried and statement.count * len(statement.body.body) <= _MOST_MOVES
            inner = statement.body.body
            return plain and all(isinstance(item, Load) or self._moves(item) for item in inner)
        return isinstance(statement, Store) and statement.buffer in self._states

    def _move(
        self, one: Load | Store, counters: Mapping[Var, int], scalars: dict[Var, Source],
        holds: dict[str, list[Source]],
    ) -> None:
        buffer = self._buffers.get(one.buffer)
        element = None if buffer is None else _element(buffer, one.index, counters)
        if isinstance(one, Store):
            if element is None or not isinstance(one.value, Var):
                raise _Other
            holds[one.buffer][element] = scalars.get(one.value)
        elif buffer is not None and buffer.kind == "param" and buffer.size == 1:
            scalars[one.result] = Delayed(buffer.name, 0)
        elif one.buffer in holds and element is not None:
            scalars[one.result] = holds[one.buffer][element]
        else:
            scalars[one.result] = None

    # What is read

    def blocks(self) -> Blocks:
        holds = {name: list(elements) for name, elements in self._begin.items()}
        body = [self._rewritten(statement, holds) for statement in self._steps(holds)]
        rounds = For(self._item, ITEMS, (), _without_unread(Block(tuple(body))), parallel=True)
        buffers = tuple(
            replace(buffer, shape=self._shape(buffer)) if buffer.kind in ("param", "result") else buffer
            for buffer in self._program.buffers if buffer.kind != "state"
        )
        program = replace(self._program, buffers=buffers, body=Block((rounds,)))
        return Blocks(program, self._history, self._windows, self._delays)

    def _shape(self, buffer: Buffer) -> tuple[int, ...]:
        if buffer.name in self._windows:
            return (self._history + ITEMS,)
        return (ITEMS, *buffer.shape)

    def _rewritten(self, statement: Statement, holds: Mapping[str, list[Source]]) -> Statement:
        if isinstance(statement, Load) and statement.buffer in self._states:
            return self._window(statement, holds[statement.buffer])
        if isinstance(statement, Load) and statement.buffer in self._windows:
            return replace(statement, index=(of_var(self._item) + self._history,))
        if isinstance(statement, Load | Store):
            buffer = self._buffers.get(statement.buffer)
            if buffer is not None and buffer.kind in ("param", "result"):
                return replace(statement, index=(of_var(self._item), *statement.index))
        for which, block in enumerate(blocks_of(statement)):
            inner = tuple(self._rewritten(item, holds) for item in block.body)
            statement = with_block(statement, which, replace(block, body=inner))
        return statement

    def _window(self, load: Load, elements: list[Source]) -> Load:
        """Of a state's element what it holds then: an input, the further back the further along the state."""
        held = [
            self._delays[one.state][one.element] if isinstance(one, _Old) else one for one in elements
        ]
        buffer = self._buffers[load.buffer]
        first = held[0]
        step = held[1].items - first.items if len(held) > 1 and first and held[1] else 0
        along = _flat(buffer, load.index)
        if first is None:
            raise _Other
        place = of_var(self._item) + (self._history - first.items)
        element = _element(buffer, load.index, {})
        if element is not None:
            one = held[element]
            if one is None:
                raise _Other
            return replace(load, buffer=one.param, index=(of_var(self._item) + (self._history - one.items),))
        if any(one != Delayed(first.param, first.items + k * step) for k, one in enumerate(held)):
            raise _Other
        return replace(load, buffer=first.param, index=(place + along * -step,))


def _rounds(statement: Statement) -> Iterator[tuple[Load | Store, dict[Var, int]]]:
    """What loops of moves do, in order, with the numbers of their rounds."""
    if isinstance(statement, Load | Store):
        yield statement, {}
    elif isinstance(statement, For):
        for k in range(statement.count):
            for inner in statement.body.body:
                for one, counters in _rounds(inner):
                    yield one, {**counters, statement.var: k}


def _flat(buffer: Buffer, index: Index) -> Affine:
    """An element's number in row-major order."""
    found, stride = Affine(), 1
    for extent, axis in zip(reversed(buffer.shape), reversed(index)):
        found += axis * stride
        stride *= extent
    return found


def _element(buffer: Buffer, index: Index, counters: Mapping[Var, int]) -> int | None:
    """The same where all variables are known."""
    found = _flat(buffer, index).replace({var: Affine(value) for var, value in counters.items()})
    return None if found.terms else found.constant


def _all(statement: Statement) -> Iterator[Statement]:
    yield from statements(Block((statement,)))


def _without_unread(block: Block) -> Block:
    """Loads and operations gone whose results nobody reads, as those of what states were given are."""
    while True:
        read = used(block) | indexing(block)
        kept = tuple(
            item for item in block.body
            if not (isinstance(item, Load) and item.result not in read)
            and not (isinstance(item, Op) and read.isdisjoint(item.results))
        )
        if len(kept) == len(block.body):
            return block
        block = replace(block, body=kept)
