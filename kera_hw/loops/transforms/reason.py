"""A transform's refusal, and how loops and buffers are found by name."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kera_hw.loops.program import Alloc, Block, Buffer, For, LoopProgram, Statement, statements
from kera_hw.loops.rewrite import replaced


class Refused(Exception):
    """A transform that would change a bit, or does not fit; the message names what is in the way."""


def loop_named(program: LoopProgram, name: str) -> For:
    for statement in statements(program.body):
        if isinstance(statement, For) and statement.var.name == name:
            return statement
    raise Refused(f"There is no loop `{name}`.")


def temporary_named(program: LoopProgram, name: str) -> Buffer:
    for statement in statements(program.body):
        if isinstance(statement, Alloc) and statement.buffer.name == name:
            return statement.buffer
    raise Refused(f"There is no temporary `{name}`.")


def with_loop(
    program: LoopProgram, name: str, change: Callable[[For], list[Statement]]
) -> LoopProgram:
    """The program with a loop replaced."""
    loop = loop_named(program, name)

    def at(block: Block, place: int) -> list[Statement] | None:
        return change(loop) if block.body[place] is loop else None

    body = replaced(program.body, at)
    assert body is not None
    return replace(program, body=body)
