"""Temporaries that shrink: to what a round needs of its own, and to nothing where that is a scalar.

After "array contraction" as Lefebvre and Feautrier describe it ("Automatic storage management for parallel
programs", Parallel Computing 1998), in the two cases in which rounds plainly share nothing.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import zip_longest

from kera_hw.loops.program import (
    Affine,
    Alloc,
    Block,
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
from kera_hw.loops.rewrite import Copier, replaced, touches, with_block
from kera_hw.loops.transforms.reason import Refused, temporary_named

_Key = tuple[tuple[int, frozenset[tuple[Var, int]]], ...]


def contract(program: LoopProgram, buffer: str) -> LoopProgram:
    """A temporary without what is not needed of it.

    What is loaded after it was stored, with no other store between, is taken as a scalar. If nothing is
    loaded then, the temporary is gone. Otherwise, where each round of the loop around all accesses has a
    slice to itself, it becomes that slice, declared in the round.
    """
    whole = temporary_named(program, buffer)
    found = replace(program, body=_forwarded(program.body, buffer, {}))
    if not any(isinstance(item, Load) and item.buffer == buffer for item in statements(found.body)):
        return replace(found, body=_without(found.body, buffer))
    sliced = replaced(found.body, lambda block, place: _sliced(block, place, whole.name))
    if sliced is not None:
        return replace(found, body=_without_declaration(sliced, buffer, len(whole.shape)))
    if found == program:
        raise Refused(f"`{buffer}` is read in another round or place than it is written.")
    return found


def _key(index: Index) -> _Key:
    return tuple((part.constant, frozenset(part.terms)) for part in index)


def _forwarded(block: Block, buffer: str, before: Mapping[_Key, tuple[Index, Operand]]) -> Block:
    """Loads of what was stored at the same index, replaced by that; ``before`` is known from outside."""
    known = dict(before)
    values: dict[Var, Operand] = {}
    made: list[Statement] = []
    for original in block.body:
        statement = Copier(values).statement(original) if values else original
        match statement:
            case Store(buffer=name, index=index, value=value) if name == buffer:
                known = {key: item for key, item in known.items() if _apart(item[0], index)}
                known[_key(index)] = index, value
            case Load(result=result, buffer=name, index=index) if name == buffer and _key(index) in known:
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
    return any(isinstance(item, Store) and item.buffer == buffer for item in statements(block))


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
        for which, inner in enumerate(blocks_of(statement)):
            part = _without(inner, buffer)
            if part is not inner:
                statement = with_block(statement, which, part)
        kept.append(statement)
    if all(new is old for new, old in zip_longest(kept, block.body)):
        return block
    return replace(block, body=tuple(kept))


# Slices


def _sliced(block: Block, place: int, buffer: str) -> list[Statement] | None:
    """The loop at a place with a slice of the buffer in each round, if it has all accesses."""
    loop = block.body[place]
    declared = [item for item in block.body if isinstance(item, Alloc) and item.buffer.name == buffer]
    if not isinstance(loop, For) or not declared or not touches(loop, buffer):
        return None
    if sum(touches(item, buffer) for item in block.body) != 1:
        return None
    accesses = (item for item in statements(loop.body) if isinstance(item, (Load, Store)))
    indices = [item.index for item in accesses if item.buffer == buffer]
    whole = declared[0].buffer
    for axis in range(len(whole.shape)):
        offsets = {index[axis] - of_var(loop.var) for index in indices}
        if len(offsets) == 1 and not next(iter(offsets)).terms:
            shape = (*whole.shape[:axis], *whole.shape[axis + 1 :])
            inside = _at(loop.body, buffer, axis)
            own = Alloc(replace(whole, shape=shape))
            return [replace(loop, body=replace(inside, body=(own, *inside.body)))]
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


def _without_declaration(block: Block, buffer: str, rank: int) -> Block:
    """Without the declaration of the rank that the buffer had."""

    def change(inner: Block, place: int) -> list[Statement] | None:
        item = inner.body[place]
        is_old = isinstance(item, Alloc) and item.buffer.name == buffer and len(item.buffer.shape) == rank
        return [] if is_old else None

    found = replaced(block, change)
    assert found is not None
    return found
