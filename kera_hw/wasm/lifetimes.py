"""When nobody reads a scalar any more, so that its local serves others."""
from __future__ import annotations

from collections.abc import Iterator, Mapping

from kera_hw.loops.program import (
    Block,
    Index,
    Load,
    Statement,
    Store,
    Var,
    blocks_of,
)
from kera_hw.schedule.software.statements import results_of
from kera_hw.schedule.software.vector_loops import statement_operands


def _of_index(index: Index) -> Iterator[Var]:
    return (var for axis in index for var, _ in axis.terms)


def _own(statement: Statement) -> Iterator[Var]:
    """What a statement reads, apart from the blocks inside."""
    yield from (operand for operand in statement_operands(statement) if isinstance(operand, Var))
    if isinstance(statement, Load | Store):
        yield from _of_index(statement.index)


class Lifetimes:
    """``dying[id(block)][k]``: scalars of a block that its statement k is the last to mention."""

    def __init__(self, body: Block) -> None:
        self.dying: dict[int, Mapping[int, tuple[Var, ...]]] = {}
        self._visit(body)

    def _visit(self, block: Block) -> set[Var]:
        """What the block mentions, of its own or from around."""
        last: dict[Var, int] = {}
        for k, statement in enumerate(block.body):
            mentioned = set(_own(statement))
            for inner in blocks_of(statement):
                mentioned |= self._visit(inner)
            mentioned |= set(results_of(statement))
            last.update(dict.fromkeys(mentioned, k))
        own = dict.fromkeys(var for statement in block.body for var in results_of(statement))
        kept = {operand for operand in block.yields if isinstance(operand, Var)}
        groups: dict[int, list[Var]] = {}
        for var in own:  # in order: locals are handed on in the order that they come free
            if var not in kept:
                groups.setdefault(last[var], []).append(var)
        self.dying[id(block)] = {k: tuple(vars_) for k, vars_ in groups.items()}
        return (set(last) | kept) - own.keys()
