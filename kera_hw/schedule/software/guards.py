"""Rounds that a condition leaves as they were, skipped by it: a branch in the place of many selections.

Where a convolution's window reaches over the edge, every sum of a tile is chosen between what it becomes and
what it was. The part of that question that is the same in all lanes is asked once a round.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kera_hw.loops.program import (
    Block,
    For,
    If,
    Literal,
    Load,
    LoopProgram,
    Op,
    Operand,
    Statement,
    Var,
    blocks_of,
    statements,
)
from kera_hw.loops.rewrite import Names, with_block
from kera_hw.schedule.software.vector_loops import Plan, plan_vectors
from kera_hw.types import BoolType

_LEAST_SAVED = 2
"""Selections that go, for a branch to be worth it; and as many of the round's statements go as one of"""
_MOST_BESIDE = 10
"""(where products are sums of many operations, a branch around all of them cost more than it saved)."""


def guarded_rounds(program: LoopProgram, vector_bits: int) -> LoopProgram:
    """The program with such branches in loops that run as vectors of so many bits."""
    if not any(isinstance(item, For) and _chooses(item) for item in statements(program.body)):
        return program
    plan = plan_vectors(program, vector_bits)
    return replace(program, body=_block(program.body, plan, None, Names(program)))


def _chooses(loop: For) -> bool:
    """Whether all that a loop's round gives is chosen."""
    chosen = {
        item.results[0] for item in loop.body.body if isinstance(item, Op) and item.opcode == "control.select"
    }
    return bool(loop.carried) and chosen.issuperset(loop.body.yields)


def _block(block: Block, plan: Plan, varying: frozenset[Var] | None, names: Names) -> Block:
    """``varying``: what differs from lane to lane, None outside of lanes."""
    return replace(block, body=tuple(_statement(item, plan, varying, names) for item in block.body))


def _statement(
    statement: Statement, plan: Plan, varying: frozenset[Var] | None, names: Names
) -> Statement:
    vector = plan.get(id(statement))
    inside = vector.varying if vector is not None else varying
    if isinstance(statement, For) and varying is not None:
        found = _guarded(statement, varying, names)
        if found is not None:
            return found
    for which, block in enumerate(blocks_of(statement)):
        statement = with_block(statement, which, _block(block, plan, inside, names))
    return statement


def _guarded(loop: For, varying: frozenset[Var], names: Names) -> For | If | None:
    """A branch around the loop, or in it around what its round does, by the strictest condition there is.

    One from outside is the same for all rounds.
    """
    body = [item for item in loop.body.body if isinstance(item, Op | Load)]
    if len(body) < len(loop.body.body) or not loop.carried:
        return None
    made = [item.results[0] if isinstance(item, Op) else item.result for item in body]
    asked = dict.fromkeys(
        operand for item in body if isinstance(item, Op) for operand in item.operands
        if isinstance(operand, Var) and isinstance(operand.type, BoolType)
    )
    around = [condition for condition in asked if condition not in made]
    for condition in (*around, *reversed(made)):
        if not isinstance(condition.type, BoolType) or condition in varying:
            continue
        _, unchanged = _simplified(body, loop.body.yields, condition, False)
        if unchanged != tuple(one.inner for one in loop.carried):
            continue
        before = _needed(body, condition)
        rest = [item for item in body if item not in before]
        after, yields = _simplified(rest, loop.body.yields, condition, True)
        saved = _selections(rest) - _selections(after)
        if saved < _LEAST_SAVED or saved * _MOST_BESIDE < len(rest):
            continue
        if condition in around:
            return _around(replace(loop, body=Block(tuple(after), yields)), condition, names)
        results = tuple(Var(names.fresh("v"), one.inner.type) for one in loop.carried)
        branch = If(condition, Block(tuple(after), yields), Block((), unchanged), results, loop.place)
        return replace(loop, body=Block((*before, branch), results))
    return None


def _around(loop: For, condition: Var, names: Names) -> If:
    """The loop, or what it starts from."""
    results = tuple(one.outer for one in loop.carried)
    carried = tuple(replace(one, outer=Var(names.fresh("v"), one.outer.type)) for one in loop.carried)
    then = Block((replace(loop, carried=carried),), tuple(one.outer for one in carried))
    unchanged = tuple(one.initial for one in carried)
    return If(condition, then, Block((), unchanged), results, loop.place)


def _selections(body: Sequence[Op | Load]) -> int:
    return sum(isinstance(item, Op) and item.opcode == "control.select" for item in body)


def _needed(body: Sequence[Op | Load], condition: Var) -> list[Op | Load]:
    """What computes the condition, in order."""
    wanted, found = {condition}, list[Op | Load]()
    for item in reversed(body):
        made = item.results if isinstance(item, Op) else (item.result,)
        if wanted.isdisjoint(made):
            continue
        found.append(item)
        if isinstance(item, Op):
            wanted.update(operand for operand in item.operands if isinstance(operand, Var))
        else:
            wanted.update(var for part in item.index for var, _ in part.terms)
    return found[::-1]


def _simplified(
    body: Sequence[Op | Load], yields: tuple[Operand, ...], condition: Var, value: bool
) -> tuple[list[Op | Load], tuple[Operand, ...]]:
    """A round where the condition has that value, without the choices that are then settled."""
    same: dict[Var, Operand] = {condition: Literal(condition.type, int(value))}
    kept: list[Op | Load] = []
    for item in body:
        if isinstance(item, Load):
            kept.append(item)
            continue
        operands = tuple(same.get(one, one) if isinstance(one, Var) else one for one in item.operands)
        found = None if condition in item.results else _settled(item.opcode, operands)
        if found is not None:
            same[item.results[0]] = found
        elif condition not in item.results:
            kept.append(replace(item, operands=operands))
    return kept, tuple(same.get(one, one) if isinstance(one, Var) else one for one in yields)


def _settled(opcode: str, operands: tuple[Operand, ...]) -> Operand | None:
    """What an operation gives by a bool that is known."""
    if opcode == "control.select" and isinstance(operands[0], Literal):
        return operands[1] if operands[0].bits else operands[2]
    if opcode in ("bits.and", "bits.or") and isinstance(operands[0].type, BoolType):
        ruling = 0 if opcode == "bits.and" else 1
        for one, other in (operands, operands[::-1]):
            if isinstance(one, Literal):
                return one if one.bits == ruling else other
    return None
