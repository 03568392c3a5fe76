"""How many vectors of a loop's rounds go side by side, statement by statement.

A round is often one chain of operations, each of which waits for the one before. A processor looks ahead only
so far, so that chains side by side finish in the time of one, as long as registers hold what is alive in all.
"""
from __future__ import annotations

from kera_hw.loops.program import Block, Load, Op, Store, Var
from kera_hw.schedule.software.vector_loops import VectorLoop, statement_operands

MOST_COPIES = 4


def side_by_side(block: Block, loop: VectorLoop, registers: int) -> int:
    """1, 2 or 4 vectors of rounds of a loop with that body; ``registers`` can hold one each."""
    if not all(isinstance(statement, Op | Load | Store) for statement in block.body):
        return 1
    alive = most_alive(block, loop)
    copies = MOST_COPIES
    while copies > 1 and copies * alive > registers:
        copies //= 2
    return copies


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
