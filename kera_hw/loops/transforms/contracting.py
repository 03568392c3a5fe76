"""Temporaries that shrink: to what a round needs of its own, and to nothing where that is a scalar.

After "array contraction" as Lefebvre and Feautrier describe it ("Automatic storage management for parallel
programs", Parallel Computing 1998), in the two cases in which rounds plainly share nothing.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import zip_longest

from kera_hw.loops.contents import touched, touches
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
    Operand,
    Statement,
    Store,
    Var,
    blocks_of,
    of_var,
    statements,
)
from kera_hw.loops.rewrite import Copier, changed, with_block
from kera_hw.loops.transforms.reason import Refused, temporary_named

_Key = tuple[tuple[int, frozenset[tuple[Var, int]]], ...]


def contract(program: LoopProgram, buffer: str) -> LoopProgram:
    """A temporary without what is not needed of it.

    What is loaded after it was stored, with no other store between, is taken as a scalar. If nothing is
    loaded then, the temporary is gone. Otherwise, where each round of the loop around all accesses has a
    slice to itself, it becomes that slice, declared in the round.
    """
    whole = temporary_named(program, buffer)

    def change(block: Block) -> Block | None:
        return contracted(block, whole) if any(item == Alloc(whole) for item in block.body) else None

    body = changed(program.body, change)
    assert body is not None
    return replace(program, body=body)


def contracted(block: Block, whole: Buffer) -> Block:
    """The block that declares a temporary, with less of it. Raises Refused where all of it is needed."""
    buffer = whole.name
    found = _forwarded(block, buffer, {})
    left = [item for item in found.body if touches(item, buffer)]
    if not any(isinstance(item, Load) and item.buffer == buffer for item in statements(Block(tuple(left)))):
        return _without(found, buffer)
    sliced = _sliced(left[0], whole) if len(left) == 1 else None
    if sliced is not None:
        old = Alloc(whole)
        kept = (sliced if item is left[0] else item for item in found.body if item != old)
        return replace(found, body=tuple(kept))
    if found is block:
        raise Refused(f"`{buffer}` is read in another round or place than it is written.")
    return found


def _key(index: Index) -> _Key:
    return tuple((part.constant, frozenset(part.terms)) for part in index)


def _forwarded(
    block: Block, buffer: str, before: Mapping[_Key, tuple[Index, Operand]]
) -> Block:
    """Loads of what was stored at the same index, replaced by that; ``before`` is known from outside."""
    known = dict(before)
    values: dict[Var, Operand] = {}
    made: list[Statement] = []
    for original in block.body:
        statement = Copier(values).statement(original) if values else original
        if not touches(statement, buffer):
            made.append(statement)
            continue
        match statement:
            case Store(index=index, value=value):
                known = {key: item for key, item in known.items() if _apart(item[0], index)}
                known[_key(index)] = index, value
            case Load(result=result, index=index) if _key(index) in known:
                values[result] = known[_key(index)][1]
                continue
            case _:
                pass
        inside, parts = known, blocks_of(statement)
        if any(_stores(part, buffer) for part in parts):
            known = {}
            if not isinstance(statement, If):  # whose later rounds see what earlier ones stored
                inside = known
        for which, inner in enumerate(parts):
            part = _forwarded(inner, buffer, inside)
            if part is not inner:
                statement = with_block(statement, which, part)
        made.append(statement)
    if all(new is old for new, old in zip_longest(made, block.body)):
        return block  # the same one, so that what is known of it stays known
    return Block(tuple(made), tuple(map(Copier(values).operand, block.yields)))


def _stores(block: Block, buffer: str) -> bool:
    inside = statements(block) if buffer in touched(block) else ()
    return any(isinstance(item, Store) and item.buffer == buffer for item in inside)


def _apart(one: Index, two: Index) -> bool:
    """Whether two indices are surely of different elements."""
    differences = [a - b for a, b in zip(one, two)]
    return any(not part.terms and part.constant for part in differences)


def _without(block: Block, buffer: str) -> Block:
    """Neither declared nor stored to."""
    kept: list[Statement] = []
    for statement in block.body:
        if isinstance(statement, Alloc) and statement.buffer.name == buffer:
            continue
        if isinstance(statement, Store) and statement.buffer == buffer:
            continue
        if touches(statement, buffer):
            for which, inner in enumerate(blocks_of(statement)):
                statement = with_block(statement, which, _without(inner, buffer))
        kept.append(statement)
    return replace(block, body=tuple(kept))


# Slices


def _sliced(loop: Statement, whole: Buffer) -> For | None:
    """The loop that has all accesses, with a slice of the buffer in each round; None if rounds share some."""
    if not isinstance(loop, For):
        return None
    accesses = (item for item in statements(loop.body) if isinstance(item, (Load, Store)))
    indices = [item.index for item in accesses if item.buffer == whole.name]
    for axis in range(len(whole.shape)):
        offsets = {index[axis] - of_var(loop.var) for index in indices}
        if len(offsets) == 1 and not next(iter(offsets)).terms:
            shape = (*whole.shape[:axis], *whole.shape[axis + 1 :])
            inside = _at(loop.body, whole.name, axis)
            own = Alloc(replace(whole, shape=shape))
            return replace(loop, body=replace(inside, body=(own, *inside.body)))
    return None


def _at(block: Block, buffer: str, axis: int) -> Block:
    """Accesses of the buffer without an axis."""
    made: list[Statement] = []
    for statement in block.body:
        if isinstance(statement, (Load, Store)) and statement.buffer == buffer:
            index: tuple[Affine, ...] = statement.index
            statement = replace(statement, index=(*index[:axis], *index[axis + 1 :]))
        for which, inner in enumerate(blocks_of(statement)):
            statement = with_block(statement, which, _at(inner, buffer, axis))
        made.append(statement)
    return replace(block, body=tuple(made))
