"""Each value once: operations and loads that a block, or one around it, has done already are not done again.

What is stored is known until another store to the buffer. Within a loop nothing is known of what the loop
stores, but what its own round has loaded or stored before.
"""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kera_hw.loops.program import (
    Alloc,
    Block,
    Carried,
    For,
    If,
    Index,
    Load,
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
from kera_hw.loops.rewrite import as_affine

Key = tuple[object, ...]
Known = dict[Key, tuple[Operand, ...]]
"""What an operation, or a load, gave."""


def without_repeats(program: LoopProgram) -> LoopProgram:
    """The program in which no value is computed or loaded again where it is at hand."""
    return replace(program, body=_Rewriting().block(program.body, {}))


class _Rewriting:
    def __init__(self) -> None:
        self._same: dict[Var, Operand] = {}

    def block(self, block: Block, known: Known) -> Block:
        """``known``: what is at hand before it."""
        known = dict(known)
        body: list[Statement] = []
        for statement in block.body:
            body += self._statement(statement, known)
        return Block(tuple(body), tuple(map(self._operand, block.yields)))

    def _operand(self, operand: Operand) -> Operand:
        return self._same.get(operand, operand) if isinstance(operand, Var) else operand

    def _index(self, index: Index) -> Index:
        read = {var for part in index for var, _ in part.terms if var in self._same}
        same = {var: as_affine(self._same[var]) for var in read}
        return tuple(part.replace(same) for part in index) if same else index

    def _statement(self, statement: Statement, known: Known) -> Iterable[Statement]:
        match statement:
            case Alloc():
                return (statement,)
            case Op():
                operands, results = tuple(map(self._operand, statement.operands)), statement.results
                key = (statement.opcode, operands, statement.attrs, tuple(var.type for var in results))
                return self._once(replace(statement, operands=operands), results, key, known)
            case Load():
                made = replace(statement, index=self._index(statement.index))
                return self._once(made, (made.result,), (made.buffer, made.index), known)
            case Store(value=value):
                made = replace(statement, index=self._index(statement.index), value=self._operand(value))
                _forget(known, {made.buffer})
                known[made.buffer, made.index] = (made.value,)
                return (made,)
            case For(carried=carried, body=body):
                _forget(known, _stored(statement))
                return (replace(statement, carried=self._carried(carried), body=self.block(body, known)),)
            case While(carried=carried, condition=condition, body=body):
                _forget(known, _stored(statement))
                return (replace(
                    statement, carried=self._carried(carried), condition=self.block(condition, known),
                    body=self.block(body, known),
                ),)  # fmt: skip
            case If(condition=condition, then=then, otherwise=otherwise):
                made = replace(
                    statement, condition=self._operand(condition), then=self.block(then, known),
                    otherwise=self.block(otherwise, known),
                )  # fmt: skip
                _forget(known, _stored(statement))
                return (made,)

    def _once(
        self, statement: Op | Load, results: tuple[Var, ...], key: Key, known: Known
    ) -> tuple[Statement, ...]:
        if key in known:
            self._same |= zip(results, known[key])
            return ()
        known[key] = results
        return (statement,)

    def _carried(self, carried: tuple[Carried, ...]) -> tuple[Carried, ...]:
        return tuple(replace(one, initial=self._operand(one.initial)) for one in carried)


def _stored(statement: Statement) -> set[str]:
    """Buffers that are stored to inside."""
    inside = (item for block in blocks_of(statement) for item in statements(block))
    return {item.buffer for item in inside if isinstance(item, Store)}


def _forget(known: Known, buffers: set[str]) -> None:
    """What was in those buffers."""
    for key in [key for key in known if key[0] in buffers]:
        del known[key]
