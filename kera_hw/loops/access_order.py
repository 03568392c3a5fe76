"""In which order a block walks through a buffer: whether it can be a FIFO, with a window a line buffer.

A producer writes every element once in row-major order. A reader that never looks further back than
``window`` elements from the furthest one it has seen needs no more of the buffer than those; a window of 1 is
a FIFO. Both are exact for counters and static rounds; scalars in an index count with all their values.

The bound on how far back a read looks is that of the storage window of a polyhedral array in one dimension:
De Greef, Catthoor, De Man, "Memory size reduction through storage order optimization", ASAP 1997.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kera_hw.loops.program import (
    Affine,
    Alloc,
    Block,
    Buffer,
    For,
    If,
    Index,
    Load,
    LoopProgram,
    Statement,
    Store,
    Var,
    blocks_of,
    statements,
)
from kera_hw.loops.spans import spans_within
from kera_hw.ops.intervals import Interval


class OutOfOrder(Exception):
    """Why a buffer is no FIFO, as a whole sentence."""


@dataclass(frozen=True, slots=True)
class Run:
    """Elements ``base`` to ``base + length``, one after another."""

    base: Affine
    length: int


def window_of(program: LoopProgram, name: str) -> int:
    """How many elements a reader of the buffer needs at a time. Raises OutOfOrder where it is no FIFO."""
    buffer, block = _home(program, name)
    writers = [(k, item) for k, item in enumerate(block.body) if _touches(item, name, Store)]
    readers = [(k, item) for k, item in enumerate(block.body) if _touches(item, name, Load)]
    if buffer.kind in ("const", "state"):
        raise OutOfOrder(f"`{name}` is a {buffer.kind}, which keeps its elements.")
    if buffer.kind != "param":
        _check_written(buffer, Block(tuple(item for _, item in writers)))
    if buffer.kind == "result":
        if readers:
            raise OutOfOrder(f"The result `{name}` is read again.")
        return 1
    if not readers:
        raise OutOfOrder(f"`{name}` is never read, and a FIFO would stay full.")
    last = max((k for k, _ in writers), default=-1)
    for place, reader in readers:
        if place in dict(writers):
            raise OutOfOrder(f"`{name}` is written and read by one statement, {words(reader)}.")
        if place < last:
            raise OutOfOrder(f"`{name}` is written again after {words(reader)} reads it.")
    window = lookback(Block(tuple(reader for _, reader in readers)), buffer) + 1
    if window >= buffer.size > 1:
        raise OutOfOrder(f"`{name}` is looked back over as a whole by {words(readers[-1][1])}.")
    return window


def words(statement: Statement) -> str:
    """A statement as messages name it."""
    match statement:
        case For(var=var):
            return f"the loop `{var.name}`"
        case Load(result=result):
            return f"the load of `{result.name}`"
        case Store(buffer=name):
            return f"a store to `{name}`"
        case _:
            return "a `while` or `if`" if blocks_of(statement) else "an operation"


def _home(program: LoopProgram, name: str) -> tuple[Buffer, Block]:
    """The buffer, and the block that it belongs to."""
    for buffer in program.buffers:
        if buffer.name == name:
            return buffer, program.body
    found = _declared(program.body, name)
    if found is None:
        raise OutOfOrder(f"There is no buffer `{name}`.")
    return found


def _declared(block: Block, name: str) -> tuple[Buffer, Block] | None:
    for statement in block.body:
        if isinstance(statement, Alloc) and statement.buffer.name == name:
            return statement.buffer, block
        for inner in blocks_of(statement):
            found = _declared(inner, name)
            if found is not None:
                return found
    return None


def _touches(statement: Statement, name: str, kind: type[Load] | type[Store]) -> bool:
    whole = statements(Block((statement,)), that_run=True)
    return any(isinstance(item, kind) and item.buffer == name for item in whole)


# Writing in order


def _check_written(buffer: Buffer, block: Block) -> None:
    run = _run(block, buffer)
    if run is None and buffer.size == 0:
        return
    if run is None or run != Run(Affine(), buffer.size):
        raise OutOfOrder(f"`{buffer.name}` is not written whole, once and in order.")


def linear(index: Index, shape: Sequence[int]) -> Affine:
    """The place of an element in row-major order."""
    place = Affine()
    for part, extent in zip(index, shape):
        place = place * extent + part
    return place


def _run(block: Block, buffer: Buffer) -> Run | None:
    """What a block writes, if that is one element after another; None if it writes nothing."""
    found: Run | None = None
    for statement in block.body:
        part = _run_of(statement, buffer)
        if part is None:
            continue
        if found is not None and part.base - found.base != Affine(found.length):
            raise OutOfOrder(f"`{buffer.name}` is not written in order by {words(statement)}.")
        found = part if found is None else Run(found.base, found.length + part.length)
    return found


def _run_of(statement: Statement, buffer: Buffer) -> Run | None:
    if isinstance(statement, Store):
        return Run(linear(statement.index, buffer.shape), 1) if statement.buffer == buffer.name else None
    if not _touches(statement, buffer.name, Store):
        return None
    if not isinstance(statement, For):
        raise OutOfOrder(f"`{buffer.name}` is written under {words(statement)}.")
    _check_in_order(statement, buffer)
    part = _run(statement.body, buffer)
    if part is None:
        return None
    step = dict(part.base.terms).get(statement.var, 0)
    if step != part.length and statement.count > 1:
        raise OutOfOrder(f"Rounds of `{statement.var.name}` do not write `{buffer.name}` in order.")
    return Run(part.base.replace({statement.var: Affine()}), part.length * statement.count)


def _check_in_order(loop: For, buffer: Buffer) -> None:
    if loop.schedule.on not in (None, "vector"):
        raise OutOfOrder(f"Rounds of `{loop.var.name}`, which touch `{buffer.name}`, run in any order.")


# Reading in order


@dataclass(frozen=True, slots=True)
class _Read:
    place: Affine
    loops: tuple[tuple[Var, int], ...]  # around it, within the statement looked at


def lookback(block: Block, buffer: Buffer) -> int:
    """How far below the furthest element seen a read of the block may lie."""
    reads = list(_reads(block, buffer, ()))
    counters = {var for read in reads for var, _ in read.loops}
    scalars = {var: span for var, span in spans_within(block).items() if var not in counters}
    furthest = 0
    for k, one in enumerate(reads):
        for n, two in enumerate(reads):
            furthest = max([furthest, *_backs(one, two, k <= n, scalars)])
    return furthest


def _reads(block: Block, buffer: Buffer, loops: tuple[tuple[Var, int], ...]) -> list[_Read]:
    found: list[_Read] = []
    for statement in block.body:
        match statement:
            case Load(buffer=name, index=index) if name == buffer.name:
                found.append(_Read(linear(index, buffer.shape), loops))
            case For(var=var, count=count, body=body):
                inside = _reads(body, buffer, (*loops, (var, count))) if count else []
                if inside:
                    _check_in_order(statement, buffer)
                found += inside
            case _:
                for inner in blocks_of(statement):
                    inside = _reads(inner, buffer, loops)
                    if inside and not isinstance(statement, If):
                        raise OutOfOrder(f"`{buffer.name}` is read in a `while`, whose rounds are not known.")
                    found += inside
    return found


def _backs(one: _Read, two: _Read, first: bool, scalars: Mapping[Var, Interval]) -> list[int]:
    """``one``'s place minus ``two``'s, at most, over all rounds in which ``one`` is not later; by level."""
    common = 0
    while common < min(len(one.loops), len(two.loops)) and one.loops[common] == two.loops[common]:
        common += 1
    a, b = dict(one.place.terms), dict(two.place.terms)
    same = one.place.constant - two.place.constant
    fixed = {var for var in {*a, *b} if var not in scalars and var not in dict(one.loops + two.loops)}
    if any(a.get(var, 0) != b.get(var, 0) for var in fixed):
        raise OutOfOrder("Reads of one buffer move by different rounds of a loop around it.")
    for var, span in scalars.items():
        for factor in (a.get(var, 0), -b.get(var, 0)):
            same += max(factor * span.low, factor * span.high)
    found: list[int] = []
    for level in range(common + 1):
        if level == common and not first:
            continue
        total = same
        for var, count in one.loops[:level]:
            total += max(0, (a.get(var, 0) - b.get(var, 0)) * (count - 1))
        rest = level
        if level < common:  # an earlier round of this loop, and any of those within
            var, count = one.loops[level]
            if count == 1:
                continue
            total += _earlier(a.get(var, 0), b.get(var, 0), count)
            rest = level + 1
        total += sum(max(0, a.get(var, 0) * (count - 1)) for var, count in one.loops[rest:])
        total += sum(max(0, -b.get(var, 0) * (count - 1)) for var, count in two.loops[rest:])
        found.append(total)
    return found


def _earlier(a: int, b: int, count: int) -> int:
    """The most that ``a * i - b * j`` can be for 0 <= i < j < count: at a corner of the triangle."""
    corners = ((0, 1), (0, count - 1), (count - 2, count - 1))
    return max(a * i - b * j for i, j in corners)
