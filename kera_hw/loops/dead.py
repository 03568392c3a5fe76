"""What nobody needs, found from the end: stores are needed, and what computes what they store and where."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kera_hw.loops.program import (
    Alloc,
    Block,
    Carried,
    For,
    If,
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


def without_dead(program: LoopProgram) -> LoopProgram:
    """The program without operations, loads, carried values, branches and loops whose results nobody needs;
    the same one where there are none."""
    search = _Search()
    body = search.block(program.body, program.body.yields)
    return program if body is program.body else replace(program, body=body)


class _Search:
    def __init__(self) -> None:
        self._needed: set[Var] = set()
        """By what comes later, inner blocks and those around them alike: no two scalars have one name."""

    def _need(self, operands: Iterable[Operand]) -> None:
        self._needed.update([one for one in operands if isinstance(one, Var)])

    def block(self, block: Block, yields: tuple[Operand, ...]) -> Block:
        """``yields``: of what the block gives, what is needed of it."""
        self._need(yields)
        kept: list[Statement] = []
        same = yields is block.yields
        for statement in reversed(block.body):
            found = self._statement(statement)
            same = same and found is statement
            if found is not None:
                kept.append(found)
        return block if same else Block(tuple(reversed(kept)), yields)

    def _statement(self, statement: Statement) -> Statement | None:
        match statement:
            case Op(results=results, operands=operands):
                if self._needed.isdisjoint(results):
                    return None
                self._need(operands)
            case Load(result=result, index=index):
                if result not in self._needed:
                    return None
                self._need([var for part in index for var, _ in part.terms])
            case Store(value=value, index=index):
                self._need((value,))
                self._need([var for part in index for var, _ in part.terms])
            case Alloc():
                pass
            case For(carried=carried, body=body):
                kept, (inside,) = self._rounds(carried, (body,))
                if not kept and not inside.body:
                    return None
                if inside is not body:
                    return replace(statement, carried=kept, body=inside)
            case While(carried=carried, condition=condition, body=body):
                kept, (asked, inside) = self._rounds(carried, (condition, body))
                if asked is not condition or inside is not body:
                    return replace(statement, carried=kept, condition=asked, body=inside)
            case If(condition=condition, then=then, otherwise=otherwise, results=results):
                if self._needed.isdisjoint(results) and not _stores(statement):
                    return None
                self._need((condition,))
                first, second = self.block(then, then.yields), self.block(otherwise, otherwise.yields)
                if first is not then or second is not otherwise:
                    return replace(statement, then=first, otherwise=second)
        return statement

    def _rounds(
        self, carried: tuple[Carried, ...], blocks: tuple[Block, ...]
    ) -> tuple[tuple[Carried, ...], list[Block]]:
        """What a loop carries that its rounds need, or what follows; and its blocks, of which the last gives
        it. What is carried only for itself is needed by nobody."""
        *conditions, body = blocks
        needed = [item.outer in self._needed for item in carried]
        while True:
            whole = all(needed)
            yields = tuple([one for one, kept in zip(body.yields, needed) if kept])
            made = self.block(body, body.yields if whole else yields)
            asked = [self.block(condition, condition.yields) for condition in reversed(conditions)]
            more = [kept or item.inner in self._needed for item, kept in zip(carried, needed)]
            if more == needed:
                break
            needed = more
        kept = carried if whole else tuple([item for item, one in zip(carried, needed) if one])
        self._need([item.initial for item in kept])
        return kept, [*asked, made]


def _stores(statement: Statement) -> bool:
    inside = (item for block in blocks_of(statement) for item in statements(block))
    return any(isinstance(item, Store) for item in inside)
