"""A transform's refusal, and how loops and buffers are found by name."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from kera_hw.loops.contents import defined
from kera_hw.loops.program import (
    ANYWHERE,
    IN_ORDER,
    Alloc,
    Block,
    Buffer,
    For,
    LoopProgram,
    Operand,
    Schedule,
    Statement,
    Storage,
    Var,
    blocks_of,
    statements,
)
from kera_hw.loops.rewrite import exchanged, replaced


class Refused(Exception):
    """A transform that would change a bit, or does not fit; the message names what is in the way."""


def loop_named(program: LoopProgram, name: str) -> For:
    found = _loop_in(program.body, name)
    if found is None:
        raise Refused(f"There is no loop `{name}`.")
    return found


def _loop_in(block: Block, name: str) -> For | None:
    if name not in defined(block):
        return None
    for statement in block.body:
        if isinstance(statement, For) and statement.var.name == name:
            return statement
        for inner in blocks_of(statement):
            found = _loop_in(inner, name)
            if found is not None:
                return found
    return None


def plain_loop(program: LoopProgram, name: str) -> For:
    """A loop that is still to be scheduled: what says how its rounds run is said of these rounds."""
    loop = loop_named(program, name)
    if loop.schedule != IN_ORDER:
        raise Refused(f"It is said already how rounds of `{name}` run; say that after this step.")
    return loop


def buffer_named(program: LoopProgram, name: str) -> Buffer:
    for buffer in program.buffers:
        if buffer.name == name:
            return buffer
    for statement in statements(program.body):
        if isinstance(statement, Alloc) and statement.buffer.name == name:
            return statement.buffer
    raise Refused(f"There is no buffer `{name}`.")


def temporary_named(program: LoopProgram, name: str) -> Buffer:
    """A temporary that does not have its place yet."""
    for statement in statements(program.body):
        if isinstance(statement, Alloc) and statement.buffer.name == name:
            if statement.buffer.storage != ANYWHERE:
                raise Refused(f"It is said already how `{name}` lies; say that after this step.")
            return statement.buffer
    raise Refused(f"There is no temporary `{name}`.")


def with_storage(program: LoopProgram, name: str, storage: Storage) -> LoopProgram:
    """The program with a buffer lying as told."""
    changed = replace(buffer_named(program, name), storage=storage)
    if changed.kind != "temp":
        buffers = tuple(changed if buffer.name == name else buffer for buffer in program.buffers)
        return replace(program, buffers=buffers)

    def at(block: Block, place: int) -> list[Statement] | None:
        statement = block.body[place]
        return [Alloc(changed)] if isinstance(statement, Alloc) and statement.buffer.name == name else None

    body = replaced(program.body, at)
    assert body is not None
    return replace(program, body=body)


def with_loop(
    program: LoopProgram, name: str, change: Callable[[For], list[Statement]],
    after: Mapping[Var, Operand] = {},
) -> LoopProgram:
    """The program with a loop replaced that is still to be scheduled.

    ``after``: what follows takes for what the loop gave, known once ``change`` was called.
    """
    return _with_loop(program, plain_loop(program, name), change, after)


def with_schedule(program: LoopProgram, name: str, schedule: Schedule) -> LoopProgram:
    """The program with rounds of a loop running as told."""
    return _with_loop(program, loop_named(program, name), lambda loop: [replace(loop, schedule=schedule)])


def _with_loop(
    program: LoopProgram, loop: For, change: Callable[[For], list[Statement]],
    after: Mapping[Var, Operand] = {},
) -> LoopProgram:
    body = exchanged(program.body, loop, lambda: change(loop), after)
    assert body is not None
    return replace(program, body=body)
