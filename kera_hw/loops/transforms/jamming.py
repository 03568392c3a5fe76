"""Rounds of an outer loop side by side within one inner loop: what they all read is read once for all."""
from __future__ import annotations

from dataclasses import replace

from kera_hw.loops.contents import used
from kera_hw.loops.program import (
    COUNTER,
    IN_ORDER,
    Block,
    For,
    LoopProgram,
    Operand,
    Statement,
    Var,
    of_var,
)
from kera_hw.loops.rewrite import Copier, Names, counter_value
from kera_hw.loops.transforms.nests import MOST_COPIES, rest_of
from kera_hw.loops.transforms.parallel import proved_parallel
from kera_hw.loops.transforms.reason import Refused, with_loop


def unroll_and_jam(program: LoopProgram, loop: str, factor: int) -> LoopProgram:
    """``factor`` rounds of a loop at a time, their inner loops as one.

    Rounds that depend on each other may not run side by side. A loop for the rest comes after.
    """
    names = Names(program)

    def change(outer: For) -> list[Statement]:
        whole = proved_parallel(outer)
        if not 1 < factor <= min(whole.count, MOST_COPIES):
            raise Refused(f"`{loop}` has {whole.count} rounds, of which {factor} cannot go side by side.")
        inner = [item for item in whole.body.body if isinstance(item, For)]
        if len(inner) != 1:
            raise Refused(f"`{loop}` has {len(inner)} loops in its body, not one.")
        if inner[0].schedule != IN_ORDER:
            raise Refused(f"It is said already how rounds of `{inner[0].var.name}` run.")
        pieces, rest = divmod(whole.count, factor)
        made: list[Statement] = [_jammed(whole, names, pieces, factor)]
        if rest:
            made.append(rest_of(whole, names, rest, pieces * factor))
        return made

    return with_loop(program, loop, change)


def _jammed(whole: For, names: Names, pieces: int, factor: int) -> For:
    counter = Var(names.fresh(whole.var.name), COUNTER)
    before: list[Statement] = []
    loops: list[For] = []
    after: list[Statement] = []
    counters: dict[Var, Var] = {}  # of the loops that all rounds share, once there are any
    (inner,) = (item for item in whole.body.body if isinstance(item, For))
    for k in range(factor):
        place = of_var(counter) * factor + k
        values: dict[Var, Operand] = {}
        if whole.var in used(whole.body):
            made, values[whole.var] = counter_value(names, whole.var.name, place)
            before += made
        side = before
        copied = Copier(values, names, {whole.var: place}, counters).block(whole.body).body
        if not k:
            first = next(item for item in copied if isinstance(item, For))
            counters = dict(zip(_chain(inner), _chain(first)))
        for statement in copied:
            if isinstance(statement, For):
                loops.append(statement)
                side = after
            else:
                side.append(statement)
    return For(counter, pieces, (), Block((*before, _side_by_side(loops), *after)), True, whole.place)


def _side_by_side(loops: list[For]) -> For:
    """Copies of one loop with one counter, round by round, and so the one loop in each body if it has one."""
    first = loops[0]
    bodies = [one.body for one in loops]
    inner = [[item for item in body.body if isinstance(item, For)] for body in bodies]
    if len(inner[0]) == 1:
        parts = [_around(body, loop) for body, (loop,) in zip(bodies, inner)]
        made = [item for part in parts for item in part[0]]
        made.append(_side_by_side([loop for (loop,) in inner]))
        made += [item for part in parts for item in part[1]]
    else:
        made = [item for body in bodies for item in body.body]
    carried = tuple(item for one in loops for item in one.carried)
    yields = tuple(item for body in bodies for item in body.yields)
    return replace(first, carried=carried, body=Block(tuple(made), yields))


def _chain(loop: For) -> list[Var]:
    """Counters of a loop, of the one loop in its body if it has one, and so on."""
    inner = [item for item in loop.body.body if isinstance(item, For)]
    return [loop.var, *(_chain(inner[0]) if len(inner) == 1 else ())]


def _around(body: Block, loop: For) -> tuple[list[Statement], list[Statement]]:
    """What stands before a loop of a body, and after it."""
    place = next(k for k, item in enumerate(body.body) if item is loop)
    return list(body.body[:place]), list(body.body[place + 1 :])
