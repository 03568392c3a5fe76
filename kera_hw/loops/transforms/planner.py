"""Chooses a plan for no target in particular: loops joined, buffers gone, values computed where needed.

Steps are taken as long as one makes the work of ``cost`` less. Each records the fact that it was taken for.
Memories, vectors, threads and pipelines are for the planners of targets, which know the machine.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from kera_hw.loops.claims import has_claims
from kera_hw.loops.contents import touched
from kera_hw.loops.program import (
    Alloc,
    Block,
    For,
    LoopProgram,
    Statement,
    Store,
    While,
    blocks_of,
    statements,
)
from kera_hw.loops.rewrite import with_block
from kera_hw.loops.transforms.contracting import contracted
from kera_hw.loops.transforms.cost import Cost, Costs, cost_of
from kera_hw.loops.transforms.fusing import joined
from kera_hw.loops.transforms.plan import Plan, Step, apply_step, program_hash
from kera_hw.loops.transforms.reason import Refused


@dataclass(frozen=True, slots=True)
class Planned:
    """A program, what a plan of these steps made of it, and what both cost."""

    before: LoopProgram
    after: LoopProgram
    steps: tuple[Step, ...] = ()

    @property
    def plan(self) -> Plan:
        return Plan(self.before.name, program_hash(self.before), self.steps)

    @property
    def costs(self) -> tuple[Cost, Cost]:
        return cost_of(self.before), cost_of(self.after)


def planned(program: LoopProgram, alone: Callable[[For], bool] = lambda _: False) -> Planned:
    """The program with loops joined, buffers gone, and cheap producers computed where they are used.

    A program of which something is claimed already is planned already, and stays as it is. ``alone``: loops
    of which a target wants to plan each by itself, so that no two of them are joined.
    """
    chooser = _Chooser(alone)
    body = program.body
    if has_claims(program):
        return Planned(program, program)
    while True:
        before = len(chooser.steps)
        body = chooser.joined(body, 1)
        body = chooser.contracted(body, 1)
        if len(chooser.steps) > before:
            continue
        found = chooser.inlined(replace(program, body=body))
        if found is None:
            return Planned(program, replace(program, body=body), tuple(chooser.steps))
        body = found.body


class _Chooser:
    """Steps taken so far, and what is known of blocks and statements; both are values, so it stays true.

    Joining and contracting concern one block, so whole programs are not rewritten for each of their steps.
    """

    def __init__(self, alone: Callable[[For], bool]) -> None:
        self.steps: list[Step] = []
        self._alone = alone
        self._costs = Costs()
        self._done: dict[tuple[str, int], Block] = {}  # by identity, as in Costs: what stays

    def joined(self, block: Block, often: int) -> Block:
        """Neighbouring loops with as many rounds as one, where that may be; then within each statement."""
        if ("joined", id(block)) in self._done:
            return block
        body: list[Statement] = []
        last: int | None = None  # the loop before, if nothing but declarations has come since
        for statement in block.body:
            if isinstance(statement, For):
                before = body[last] if last is not None else None
                if isinstance(before, For) and (whole := self._joined(before, statement, often)) is not None:
                    assert last is not None
                    body.append(whole)
                    del body[last]
                else:
                    body.append(statement)
                last = len(body) - 1
                continue
            if not isinstance(statement, Alloc):
                last = None
            body.append(statement)
        found = self._within(Block(tuple(body), block.yields), block, often, self.joined)
        if found is block:
            self._done["joined", id(block)] = block
        return found

    def _joined(self, one: For, two: For, often: int) -> For | None:
        if one.count != two.count or not one.count or (self._alone(one) and self._alone(two)):
            return None
        try:
            whole, looks_back = joined(one, two)
        except Refused:
            return None
        if looks_back:
            return None  # one block does not show that the program stays sound
        stored = {item.buffer for item in statements(one.body) if isinstance(item, Store)}
        passed = sorted(stored & touched(two.body))
        made = f"; {', '.join(f'`{item}`' for item in passed)} is used as it is made" if passed else ""
        reason = f"{one.count * often} rounds less{made}"
        self.steps.append(Step("fuse", (one.var.name, two.var.name), reason))
        return whole

    def contracted(self, block: Block, often: int) -> Block:
        """Temporaries of a block without what is not needed of them; then those within each statement."""
        if ("contracted", id(block)) in self._done:
            return block
        found = block
        for item in block.body:
            if isinstance(item, Alloc):
                try:
                    after = contracted(found, item.buffer)
                except Refused:
                    continue
                saved = self._costs.block(found).minus(self._costs.block(after))
                if saved.rank > (0, 0):
                    reason = f"each round reads of `{item.buffer.name}` what it wrote: {_freed(saved, often)}"
                    self.steps.append(Step("contract", (item.buffer.name,), reason))
                    found = after
        found = self._within(found, block, often, self.contracted)
        if found is block:
            self._done["contracted", id(block)] = block
        return found

    @staticmethod
    def _within(block: Block, was: Block, often: int, change: Callable[[Block, int], Block]) -> Block:
        """The block with those inside its statements changed; the one it was, if nothing is."""
        body: list[Statement] = []
        for statement in block.body:
            rounds = statement.count if isinstance(statement, For) else 1
            rounds = statement.most if isinstance(statement, While) else rounds
            for which, inner in enumerate(blocks_of(statement)):
                part = change(inner, often * rounds)
                if part is not inner:
                    statement = with_block(statement, which, part)
            body.append(statement)
        if len(body) == len(was.body) and all(new is old for new, old in zip(body, was.body)):
            return was
        return replace(block, body=tuple(body))

    def inlined(self, program: LoopProgram) -> LoopProgram | None:
        """The first temporary whose elements are cheaper computed where they are read, so computed."""
        before = self._costs.of(program)
        for name in [item.buffer.name for item in statements(program.body) if isinstance(item, Alloc)]:
            try:
                step = Step("inline", (name,))
                after = apply_step(program, step, claimed=False)
            except Refused:
                continue
            saved = before.minus(self._costs.of(after))
            if saved.rank > (0, 0):
                more = f"{-saved.operations} operations" if saved.operations < 0 else "no operation"
                where = f"elements of `{name}` are computed where they are read"
                reason = f"{where}, for {more} more: {_freed(saved)}"
                self.steps.append(replace(step, reason=reason))
                return after
        return None


def _freed(saved: Cost, often: int = 1) -> str:
    return f"{saved.held_bytes} bytes not held, {saved.moved_bytes * often} not moved"
