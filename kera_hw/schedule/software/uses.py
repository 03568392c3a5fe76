"""Who reads each scalar of a program: what selection needs to know to write two operations as one."""
from __future__ import annotations

from collections.abc import Iterable

from kera_hw.loops.program import Block, Load, Op, Operand, Statement, Store, Var, blocks_of
from kera_hw.schedule.software.vector_loops import statement_operands


class Uses:
    """``chosen``: comparisons that nothing reads but one selection of the same block, which goes by them.

    ``entries``: a number's low bits that nothing reads but the index of one load.

    ``merged``: sums with a product that nothing reads but one, which gives their addend otherwise.
    """

    def __init__(self, body: Block) -> None:
        self._readers: dict[Var, list[Statement | None]] = {}
        self.chosen: set[Var] = set()
        self.merged: set[Var] = set()
        self.entries: set[Var] = set()
        self._indices: set[Var] = set()
        self._note_block(body)
        self._choose(body)

    def readers(self, var: Var) -> list[Statement | None]:
        """Statements that read a scalar, one for each time; None for an index, or what a block gives."""
        return self._readers.get(var, [])

    def _note_block(self, block: Block) -> None:
        for statement in block.body:
            self._note(statement_operands(statement), statement)
            if isinstance(statement, Load | Store):
                index = [var for axis in statement.index for var, _ in axis.terms]
                self._indices.update(index if isinstance(statement, Load) else ())
                self._note(index, None)
            for inner in blocks_of(statement):
                self._note_block(inner)
        self._note(block.yields, None)

    def _note(self, operands: Iterable[Operand], by: Statement | None) -> None:
        for operand in operands:
            if isinstance(operand, Var):
                self._readers.setdefault(operand, []).append(by)

    def _choose(self, block: Block) -> None:
        compared = {
            statement.results[0] for statement in block.body
            if isinstance(statement, Op) and statement.opcode.startswith("compare.")
        }
        sums = {
            statement.results[0]: statement for statement in block.body
            if isinstance(statement, Op) and statement.opcode == "floating.fma"
        }
        for statement in block.body:
            if isinstance(statement, Op) and statement.opcode == "bits.and":
                (result,) = statement.results
                if len(self.readers(result)) == 1 and result in self._indices:
                    self.entries.add(result)
            if isinstance(statement, Op) and statement.opcode == "control.select":
                condition, then, otherwise = statement.operands
                added = sums.get(then) if isinstance(then, Var) and len(self.readers(then)) == 1 else None
                if added is not None and added.operands[2] == otherwise:
                    self.merged.add(added.results[0])
                if condition in compared and len(self.readers(condition)) == 1:
                    assert isinstance(condition, Var)
                    self.chosen.add(condition)
            for inner in blocks_of(statement):
                self._choose(inner)
