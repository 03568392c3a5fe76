"""Branches by number: a chain of comparisons that a selector of blocks was written as, found again."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kera_hw.graph.node import Origin, Ref
from kera_hw.loops.program import Block, If, Op, Operand, Var
from kera_hw.rtl.lower.builder import Builder

_LEAST_ARMS = 3
"""Of two blocks one condition chooses."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Whether a value is a number: made only where more than a branch by number needs it."""

    operand: Operand
    value: Ref
    number: int
    origin: Origin | None

    def made(self, builder: Builder) -> Ref:
        """The comparison, credited to its own place."""
        outside, builder.store.origin = builder.store.origin, self.origin
        limit = builder.const(self.value.type, self.number)
        found = builder.op("compare.eq", self.value, limit)
        builder.store.origin = outside
        return found


def number_asked(op: Op) -> tuple[Operand, int] | None:
    """The operand and the small number that an operation compares it with."""
    if op.opcode != "compare.eq" or isinstance(op.operands[1], Var):
        return None
    return op.operands[0], op.operands[1].bits


def arms_of(branch: If, asked: Asked) -> list[Block] | None:
    """The blocks for 0, 1, ... and for all numbers beyond; None where a branch is not by number."""
    if asked.number:
        return None
    arms = [branch.then, *_later(branch, asked.operand)]
    return arms if len(arms) >= _LEAST_ARMS else None


def _later(branch: If, selector: Operand) -> Iterator[Block]:
    number = 1
    while (inner := _asks(branch.otherwise, selector, number)) is not None:
        branch, number = inner, number + 1
        yield branch.then
    yield branch.otherwise


def _asks(block: Block, selector: Operand, number: int) -> If | None:
    """The branch that is all of a block and asks for a number."""
    match block.body:
        case (Op() as asked, If() as inner):
            same = number_asked(asked) == (selector, number) and inner.condition == asked.results[0]
            return inner if same and block.yields == inner.results else None
        case _:
            return None
