"""Joins whatever loops may be joined, then lets buffers vanish: a plan that never has to be thought about."""
from __future__ import annotations

from collections.abc import Iterator

from kera_hw.loops.program import Alloc, Block, For, LoopProgram, blocks_of, statements
from kera_hw.loops.transforms.plan import Step, apply_plan
from kera_hw.loops.transforms.reason import Refused


def fused(program: LoopProgram) -> tuple[LoopProgram, list[Step]]:
    """The program with loops joined and buffers gone, and the steps that did it."""
    steps: list[Step] = []
    refused: set[Step] = set()
    while (found := _first_legal(program, refused)) is not None:
        program, step = found
        steps.append(step)
    for buffer in [item.buffer.name for item in statements(program.body) if isinstance(item, Alloc)]:
        step = Step("contract", (buffer,))
        try:
            program = apply_plan(program, [step])
        except Refused:
            continue
        steps.append(step)
    return program, steps


def _first_legal(program: LoopProgram, refused: set[Step]) -> tuple[LoopProgram, Step] | None:
    for step in _neighbours(program.body):
        if step in refused:
            continue
        try:
            return apply_plan(program, [step]), step
        except Refused:
            refused.add(step)  # joining others does not make it legal: it only adds accesses
    return None


def _neighbours(block: Block) -> Iterator[Step]:
    """Pairs of loops with as many rounds and only declarations between, outer ones first."""
    before: For | None = None
    for statement in block.body:
        if isinstance(statement, For):
            if before is not None and before.count == statement.count:
                yield Step("fuse", (before.var.name, statement.var.name))
            before = statement
        elif not isinstance(statement, Alloc):
            before = None
    for statement in block.body:
        for inner in blocks_of(statement):
            yield from _neighbours(inner)
