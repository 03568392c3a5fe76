"""How many vectors of a loop's rounds go side by side, statement by statement, and with what in registers.

A round is often one chain of operations, each of which waits for the one before. A processor looks ahead only
so far, so that chains side by side finish in the time of one, as long as registers hold what is alive in all,
and the constants, of which a machine can't fetch one for each operation.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kera_hw.loops.program import Block, Literal, Load, Op, Operand, Store, Var
from kera_hw.schedule.software.vector_loops import VectorLoop, statement_operands

MOST_COPIES = 4
_KEPT = 3
"""Of so many constants one has to have a register."""


@dataclass(frozen=True, slots=True)
class Side:
    """``copies`` of a vector side by side, and registers for so many constants."""

    copies: int
    constants: int = 0


def side_by_side(block: Block, loop: VectorLoop, registers: int) -> Side:
    """1, 2 or 4 vectors of rounds of a loop with that body; ``registers`` can hold one each.

    Four only where there is room beside them for what is the same in all lanes, of constants for a part: the
    others are read where they lie.
    """
    if not all(isinstance(statement, Op | Load | Store) for statement in block.body):
        return Side(1)
    alive = most_alive(block, loop)
    constants = len(set(_constants(block, loop)))
    others = len(set(_alike(block, loop))) - constants
    copies = MOST_COPIES
    while copies > 1 and copies * alive + (others + -(-constants // _KEPT) if copies > 2 else 0) > registers:
        copies //= 2
    return Side(copies, max(0, registers - copies * alive - others))


def _alike(block: Block, loop: VectorLoop) -> Iterator[Operand]:
    """What operations on lanes read that is the same in all lanes."""
    for statement in block.body:
        if isinstance(statement, Op) and not loop.varying.isdisjoint(statement.results):
            yield from (item for item in statement.operands if item not in loop.varying)


def _constants(block: Block, loop: VectorLoop) -> Iterator[Operand]:
    return (item for item in _alike(block, loop) if isinstance(item, Literal))


def most_alive(block: Block, loop: VectorLoop) -> int:
    """How many scalars with a value a lane are yet to be read, at most, in a block without control."""
    alive, most = set[Var](), 1
    for statement in reversed(block.body):
        if isinstance(statement, Op):
            alive.difference_update(statement.results)
        elif isinstance(statement, Load):
            alive.discard(statement.result)
        for operand in statement_operands(statement):
            if isinstance(operand, Var) and operand in loop.varying and operand != loop.var:
                alive.add(operand)
        most = max(most, len(alive))
    return most
