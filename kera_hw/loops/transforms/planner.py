"""Chooses a plan for no target in particular: loops joined, buffers gone, values computed where needed.

Steps are taken as long as one makes the work of ``cost`` less. Each records the fact that it was taken for.
Memories, vectors, threads and pipelines are for the planners of targets, which know the machine.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kera_hw.loops.claims import has_claims
from kera_hw.loops.program import Alloc, Block, For, LoopProgram, Store, blocks_of, statements
from kera_hw.loops.rewrite import touches
from kera_hw.loops.transforms.cost import Cost, Costs, cost_of
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
    chooser, steps = _Chooser(program), list[Step]()
    while (step := chooser.take()) is not None:
        steps.append(step)
    plan = Plan(program.name, program_hash(program), tuple(steps))
    return Planned(program, chooser.program, plan)


class _Chooser:
    """A program on its way, and which steps need not be tried again."""

    def __init__(self, program: LoopProgram) -> None:
        self.program = program
        self.costs = Costs()
        self.claimed = has_claims(program)
        self.refused: set[Step] = set()

    def take(self) -> Step | None:
        """The first step in order that may be taken and makes the work less, taken."""
        before = self.costs.of(self.program)
        for step in _candidates(self.program):
            if step in self.refused:
                continue
            try:
                after = apply_step(self.program, step, self.claimed)
            except Refused:
                self.refused.add(step)
                continue
            cost = self.costs.of(after)
            if cost.rank < before.rank:
                taken = replace(step, reason=_reason(self.program, step, before.minus(cost)))
                self.program = after
                self._forget(step.transform)
                return taken
            self.refused.add(step)
        return None

    def _forget(self, transform: str) -> None:
        """What was refused and may be taken now, after a step.

        Loops joined have more accesses, and no other pair becomes legal by that. A buffer that is gone is no
        matter of another that could not be contracted.
        """
        if transform == "inline":
            self.refused.clear()
        self.refused = {step for step in self.refused if step.transform == transform}


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
