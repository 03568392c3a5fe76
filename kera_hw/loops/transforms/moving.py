"""Statements moved into loops and out of them."""
from __future__ import annotations

from dataclasses import replace

from kera_hw.loops.contents import defined, indexing, used
from kera_hw.loops.program import Block, For, Load, LoopProgram, Op, Statement, Store, Var, statements
from kera_hw.loops.transforms.reason import Refused, with_loop


def sink(program: LoopProgram, loop: str) -> LoopProgram:
    """What stands in a loop's body before the one loop in it, done in each round of that one."""

    def change(outer: For) -> list[Statement]:
        last = outer.body.body[-1] if len(outer.body.body) > 1 else None
        if not isinstance(last, For) or last.carried:
            raise Refused(f"The body of `{loop}` is not something and then a loop that carries nothing.")
        stored = _stored(last.body)
        before: list[Load | Op] = []
        for item in outer.body.body[:-1]:
            if not isinstance(item, Load | Op):
                raise Refused(f"`{loop}` does more before `{last.var.name}` than to compute values.")
            if isinstance(item, Load) and item.buffer in stored:
                raise Refused(f"`{last.var.name}` stores to `{item.buffer}`, which is loaded before it.")
            before.append(item)
        given = {var for item in before for var in _results(item)}
        if not given.isdisjoint(outer.body.yields):
            raise Refused(f"`{loop}` hands on what it computes before `{last.var.name}`.")
        inner = replace(last, body=replace(last.body, body=(*before, *last.body.body)))
        return [replace(outer, body=replace(outer.body, body=(inner,)))]

    return with_loop(program, loop, change)


def hoist(program: LoopProgram, loop: str) -> LoopProgram:
    """What is the same in each round of a loop, done once before it."""

    def change(outer: For) -> list[Statement]:
        if not outer.count:
            raise Refused(f"`{loop}` has no rounds.")
        moving = {outer.var.name, *defined(outer.body), *(item.inner.name for item in outer.carried)}
        stored = _stored(outer.body)
        before: list[Statement] = []
        kept: list[Statement] = []
        for item in outer.body.body:
            whole = Block((item,))
            same = all(var.name not in moving for var in (*used(whole), *indexing(whole)))
            changes = isinstance(item, Load) and (item.buffer in stored or item.buffer in moving)
            if isinstance(item, Load | Op) and same and not changes:
                before.append(item)
                moving -= {var.name for var in _results(item)}
            else:
                kept.append(item)
        if not before:
            raise Refused(f"Nothing is the same in each round of `{loop}`.")
        return [*before, replace(outer, body=replace(outer.body, body=tuple(kept)))]

    return with_loop(program, loop, change)


def _stored(block: Block) -> set[str]:
    return {item.buffer for item in statements(block) if isinstance(item, Store)}


def _results(item: Load | Op) -> tuple[Var, ...]:
    return item.results if isinstance(item, Op) else (item.result,)
