"""Chooses a plan for no target in particular: loops joined, buffers gone, values computed where needed.

Steps are taken as long as one makes the work of ``cost`` less. Each records the fact that it was taken for.
Memories, vectors, threads and pipelines are for the planners of targets, which know the machine.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kera_hw.loops.program import Alloc, Block, For, LoopProgram, Store, blocks_of, statements
from kera_hw.loops.rewrite import touches
from kera_hw.loops.transforms.cost import Cost, cost_of
from kera_hw.loops.transforms.plan import Plan, Step, apply_step, program_hash
from kera_hw.loops.transforms.reason import Refused


@dataclass(frozen=True, slots=True)
class Planned:
    """A program, what a plan made of it, and what both cost."""

    before: LoopProgram
    after: LoopProgram
    plan: Plan

    @property
    def costs(self) -> tuple[Cost, Cost]:
        return cost_of(self.before), cost_of(self.after)


def planned(program: LoopProgram) -> Planned:
    """The program with loops joined, buffers gone, and cheap producers computed where they are used."""
    found, steps = program, list[Step]()
    refused: set[Step] = set()
    while True:
        taken = _next(found, refused)
        if taken is None:
            return Planned(program, found, Plan(program.name, program_hash(program), tuple(steps)))
        found, step = taken
        steps.append(step)
        if step.transform == "fuse":  # which adds accesses to loops, and makes no other pair legal
            refused = {item for item in refused if item.transform == "fuse"}
        else:
            refused.clear()


def _next(program: LoopProgram, refused: set[Step]) -> tuple[LoopProgram, Step] | None:
    """The first step in order that may be taken and makes the work less."""
    before = cost_of(program)
    for step in _candidates(program):
        if step in refused:
            continue
        try:
            after = apply_step(program, step)
        except Refused:
            refused.add(step)
            continue
        cost = cost_of(after)
        if cost.rank < before.rank:
            return after, Step(step.transform, step.arguments, _reason(program, step, before.minus(cost)))
        refused.add(step)
    return None


def _candidates(program: LoopProgram) -> Iterator[Step]:
    yield from _neighbours(program.body)
    temporaries = [item.buffer.name for item in statements(program.body) if isinstance(item, Alloc)]
    for transform in ("contract", "inline"):
        for name in temporaries:
            yield Step(transform, (name,))


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


def _reason(program: LoopProgram, step: Step, saved: Cost) -> str:
    """The fact behind a step."""
    name = str(step.arguments[0])
    match step.transform:
        case "fuse":
            first, second = (_loop(program, str(item)) for item in step.arguments)
            stored = {item.buffer for item in statements(first.body) if isinstance(item, Store)}
            passed = sorted(item for item in stored if touches(second, item))
            made = f"; {', '.join(f'`{item}`' for item in passed)} is used as it is made" if passed else ""
            return f"{saved.rounds} rounds less{made}"
        case "contract":
            return f"each round reads of `{name}` what it wrote: {_freed(saved)}"
        case _:
            more = -saved.operations
            price = f"for {more} operations more" if more > 0 else "for no operation more"
            return f"elements of `{name}` are computed where they are read, {price}: {_freed(saved)}"


def _freed(saved: Cost) -> str:
    return f"{saved.held_bytes} bytes not held, {saved.moved_bytes} not moved"


def _loop(program: LoopProgram, name: str) -> For:
    return next(
        item for item in statements(program.body) if isinstance(item, For) and item.var.name == name
    )
