"""Which loops of a program stay loops, and what stands before and after each.

A loop stays a loop where unrolling it would make more operations than a pipeline should have. Branches around
such a loop are taken apart: both sides are computed, since no operation has a bad input, a ``while`` of the
side not taken has no round, and what is stored depends on the condition.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from kera_hw.loops.program import (
    Block,
    For,
    If,
    Literal,
    LoopProgram,
    Op,
    Operand,
    Statement,
    Store,
    Var,
    While,
    blocks_of,
    statements,
)
from kera_hw.loops.rewrite import Names
from kera_hw.rtl.lower.budget import weight_of
from kera_hw.types import BOOL

Keeps = Callable[[For | While], bool]
"""Whether a loop stays one."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A loop that stays one; a ``while`` runs if ``guard`` holds, where there is one."""

    loop: For | While
    guard: Operand | None = None


@dataclass(frozen=True, slots=True)
class Parts:
    """A program in order: straight code, which may hold loops to unroll, between loops that stay.

    ``is_innermost``: no loop that stays holds another.
    """

    program: LoopProgram
    before: tuple[tuple[tuple[Statement, ...], Kept], ...]
    after: tuple[Statement, ...]
    is_innermost: bool


def operation_count(statement: Statement) -> int:
    """Operations that unrolling makes of a statement."""
    match statement:
        case Op(results=results, opcode=opcode, operands=operands):
            by_constant = len(operands) > 1 and isinstance(operands[1], Literal)
            return weight_of(opcode, results[0].type, by_constant)
        case For(count=count, body=body):
            return count * sum(map(operation_count, body.body))
        case While(most=most, condition=condition, body=body):
            return most * sum(map(operation_count, (*condition.body, *body.body)))
        case _:
            return sum(operation_count(item) for block in blocks_of(statement) for item in block.body)


def loops_over(limit: int) -> Keeps:
    """Keeps loops of more operations than that, and nothing inside a loop that is not kept."""
    return lambda loop: operation_count(loop) > limit


def parts_of(program: LoopProgram, keeps: Keeps) -> Parts:
    """The program around the loops that stay."""
    split = _Split(Names(program), keeps)
    split.block(program.body, None)
    loops = [kept.loop for _, kept in split.before]
    inner = (item for loop in loops for item in statements(Block((loop,))) if item is not loop)
    innermost = not any(isinstance(item, (For, While)) and keeps(item) for item in inner)
    return Parts(program, tuple(split.before), tuple(split.straight), innermost)


class _Split:
    def __init__(self, names: Names, keeps: Keeps) -> None:
        self._names, self._keeps = names, keeps
        self.before: list[tuple[tuple[Statement, ...], Kept]] = []
        self.straight: list[Statement] = []

    def _has_kept(self, statement: Statement) -> bool:
        inner = statements(Block((statement,)))
        return any(isinstance(item, (For, While)) and self._keeps(item) for item in inner)

    def block(self, block: Block, guard: Operand | None) -> None:
        for statement in block.body:
            self._statement(statement, guard)

    def _statement(self, statement: Statement, guard: Operand | None) -> None:
        if not self._has_kept(statement):
            self.straight.append(_guarded(statement, guard))
            return
        match statement:
            case For() | While():
                if isinstance(statement, For):  # all of its rounds run, whatever the guard
                    inside = _guarded(statement, guard)
                    assert isinstance(inside, For)
                    statement = inside
                self.before.append((tuple(self.straight), Kept(statement, guard)))
                self.straight = []
            case If(condition=condition, then=then, otherwise=otherwise, results=results):
                self.block(then, self._both(guard, condition))
                self.block(otherwise, self._both(guard, self._not(condition)))
                for result, one, two in zip(results, then.yields, otherwise.yields):
                    self.straight.append(Op((result,), "control.select", (condition, one, two)))
            case _:
                raise AssertionError("no loop stands in a statement without blocks")

    def _op(self, opcode: str, *operands: Operand) -> Var:
        result = Var(self._names.fresh("v"), BOOL)
        self.straight.append(Op((result,), opcode, operands))
        return result

    def _not(self, condition: Operand) -> Operand:
        return self._op("bits.not", condition)

    def _both(self, guard: Operand | None, condition: Operand) -> Operand:
        return condition if guard is None else self._op("bits.and", guard, condition)


def _guarded(statement: Statement, guard: Operand | None) -> Statement:
    """The statement, what it stores under the condition."""
    if guard is None or not any(isinstance(item, Store) for item in statements(Block((statement,)))):
        return statement
    if isinstance(statement, Store):
        return If(guard, Block((statement,)), Block(()))
    if isinstance(statement, (For, While)):
        return _with_stores(statement, guard)
    assert isinstance(statement, If)
    sides = (_guarded_block(side, guard) for side in (statement.then, statement.otherwise))
    then, otherwise = sides
    return replace(statement, then=then, otherwise=otherwise)


def _with_stores(loop: For | While, guard: Operand) -> For | While:
    return replace(loop, body=_guarded_block(loop.body, guard))


def _guarded_block(block: Block, guard: Operand) -> Block:
    return replace(block, body=tuple(_guarded(item, guard) for item in block.body))
