"""Where buffers lie: placed in a memory, split into banks, doubled, or streams through line buffers.

None of this changes what a buffer holds. What is claimed beside (access order, conflict-freedom, whose the
copies are) is proved by ``claims`` once a step is taken, here as in the verifier.
"""
from __future__ import annotations

from dataclasses import replace
from typing import cast, get_args

from kera_hw.loops.access_order import OutOfOrder, window_of
from kera_hw.loops.contents import touches
from kera_hw.loops.program import (
    Alloc,
    Bank,
    Block,
    For,
    LoopProgram,
    Memory,
    Spread,
    Statement,
    Storage,
    blocks_of,
)
from kera_hw.loops.rewrite import replaced
from kera_hw.loops.transforms.reason import Refused, buffer_named, with_storage
from kera_hw.loops.verifier import verify_loops

MEMORIES: tuple[str, ...] = get_args(Memory)
SPREADS: tuple[str, ...] = get_args(Spread)


def place(program: LoopProgram, buffer: str, memory: str) -> LoopProgram:
    """A buffer in a memory."""
    if memory not in MEMORIES:
        raise Refused(f"There is no memory `{memory}`; there are: {', '.join(MEMORIES)}.")
    if memory == "fifo":
        raise Refused(f"Whether `{buffer}` can be a FIFO is for `stream` to see.")
    storage = _free(program, buffer)
    return with_storage(program, buffer, replace(storage, memory=cast(Memory, memory)))


def bank(program: LoopProgram, buffer: str, axis: int, count: int, spread: str) -> LoopProgram:
    """An axis in ``count`` banks: every count-th element (``cyclic``), or a stretch (``block``)."""
    if spread not in SPREADS:
        raise Refused(f"Banks of `{buffer}` are cyclic or block, not `{spread}`.")
    storage = _free(program, buffer)
    banks = (*storage.banks, Bank(axis, count, cast(Spread, spread)))
    return with_storage(program, buffer, replace(storage, banks=banks))


def stream(program: LoopProgram, buffer: str) -> LoopProgram:
    """A buffer whose producer and consumer agree on the order becomes a FIFO, or a line buffer.

    A parameter comes, and a result goes, in row-major order.
    """
    if buffer_named(program, buffer).storage != Storage():
        raise Refused(f"It is said already how `{buffer}` lies.")
    try:
        window = window_of(program, buffer)
    except OutOfOrder as error:
        raise Refused(str(error)) from None
    return with_storage(program, buffer, Storage("fifo", window=window))


def double_buffer(program: LoopProgram, buffer: str) -> LoopProgram:
    """A temporary twice, so that the next round of its loop may begin while one still uses its own.

    A temporary around a loop becomes one of the loop's rounds, if each writes all that it reads. One that
    belongs to no loop is doubled for the next item.
    """
    whole = buffer_named(program, buffer)
    if whole.kind != "temp":
        raise Refused(f"`{buffer}` is a {whole.kind}, which all rounds share.")
    if whole.storage.copies != 1:
        raise Refused(f"`{buffer}` is doubled already.")
    if not _in_loop(program.body, buffer, False):
        program = _into_loop(program, buffer)
    return with_storage(program, buffer, replace(whole.storage, copies=2))


def _free(program: LoopProgram, name: str) -> Storage:
    """How a buffer lies, if it is not a FIFO, nor in a memory of its own kind yet."""
    storage = buffer_named(program, name).storage
    if storage.memory == "fifo":
        raise Refused(f"`{name}` is a FIFO.")
    return storage


def _in_loop(block: Block, name: str, within: bool) -> bool:
    for statement in block.body:
        if isinstance(statement, Alloc) and statement.buffer.name == name:
            return within
        inside = within or isinstance(statement, For)
        if any(_in_loop(inner, name, inside) for inner in blocks_of(statement)):
            return True
    return False


def _into_loop(program: LoopProgram, name: str) -> LoopProgram:
    """The declaration moved into the loop that has all accesses, if there is one and that is sound."""
    declared = Alloc(buffer_named(program, name))

    def change(block: Block, place: int) -> list[Statement] | None:
        statement = block.body[place]
        if not isinstance(statement, For) or sum(touches(item, name) for item in block.body) > 1:
            return None
        if not touches(statement, name):
            return None
        body = Block((declared, *statement.body.body), statement.body.yields)
        return [replace(statement, body=body)]

    def drop(block: Block, place: int) -> list[Statement] | None:
        return [] if block.body[place] == declared else None

    dropped = replaced(program.body, drop)
    assert dropped is not None
    moved = replaced(dropped, change)
    if moved is None:
        return program
    found = replace(program, body=moved)
    return program if verify_loops(found) else found  # where a round reads what an earlier one wrote
