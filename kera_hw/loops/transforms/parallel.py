"""Rounds that run at once: lanes of a vector, threads, a grid and its blocks."""
from __future__ import annotations

from dataclasses import replace
from typing import cast

from kera_hw.loops.dependences import conflicts
from kera_hw.loops.program import (
    Block,
    For,
    LoopProgram,
    On,
    Schedule,
    Statement,
    Store,
    While,
    with_condition,
)
from kera_hw.loops.rewrite import Names
from kera_hw.loops.transforms.nests import tiled
from kera_hw.loops.transforms.reason import Refused, with_loop

_MACHINES = ("threads", "grid", "block")


def parallelise(program: LoopProgram, loop: str, on: str) -> LoopProgram:
    """Rounds on threads, on a grid, or on the blocks of one."""
    if on not in _MACHINES:
        raise Refused(f"Rounds run on {', '.join(_MACHINES)}, not on `{on}`.")
    schedule = Schedule(cast(On, on))
    return with_loop(program, loop, lambda whole: [replace(proved_parallel(whole), schedule=schedule)])


def vectorise(program: LoopProgram, loop: str, lanes: int) -> LoopProgram:
    """Rounds in groups of ``lanes`` that go through the body side by side; a rest goes round by round.

    Loops within the body go the same number of rounds in all lanes. Nothing may be stored by some lanes only.
    """
    names = Names(program)

    def change(loop_: For) -> list[Statement]:
        whole = proved_parallel(loop_)
        if not 1 < lanes <= whole.count:
            raise Refused(f"`{loop}` has {whole.count} rounds, which do not fill {lanes} lanes.")
        _check_uniform(whole)
        if lanes == whole.count:
            return [replace(whole, schedule=Schedule("vector"))]
        pieces, *rest = tiled(whole, names, lanes)
        (inner,) = pieces.body.body
        assert isinstance(inner, For)
        return [replace(pieces, body=Block((replace(inner, schedule=Schedule("vector")),))), *rest]

    return with_loop(program, loop, change)


def proved_parallel(loop: For) -> For:
    """The loop as one whose rounds do not touch what others write. Raises Refused where some may."""
    if loop.parallel:
        return loop
    if loop.carried:
        raise Refused(f"`{loop.var.name}` carries `{loop.carried[0].inner.name}` from round to round.")
    for access, _, span in conflicts(loop.body, loop.body, loop.var, loop.var, loop.count):
        if (span.low, span.high) != (0, 0):
            raise Refused(f"Rounds of `{loop.var.name}` may meet in `{access.buffer}`.")
    return replace(loop, parallel=True)


def _check_uniform(loop: For) -> None:
    """Lanes do the same statements."""
    for statement, condition in with_condition(loop.body):
        if isinstance(statement, While):
            raise Refused(f"A `while` within `{loop.var.name}` goes other rounds in other lanes.")
        if isinstance(statement, Store) and condition:
            raise Refused(f"A store to `{statement.buffer}` within `{loop.var.name}` has a condition.")
        if isinstance(statement, For) and statement.schedule.on == "vector":
            raise Refused(f"`{statement.var.name}` within `{loop.var.name}` is a vector already.")
