"""Rounds of an outer loop as regions of their own, each on buffers of its own, so that they can overlap.

A loop whose rounds build on each other by way of a buffer is written out. A region that writes every element
of a buffer, once, and has read before what it overwrites, then writes another buffer instead: what it reads
and what it makes are apart, and are there for different items at once.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from kera_hw.loops.contents import touches
from kera_hw.loops.program import (
    Alloc,
    Block,
    Buffer,
    For,
    LoopProgram,
    Op,
    Statement,
    Store,
)
from kera_hw.loops.rewrite import Names
from kera_hw.loops.transforms.parallel import proved_parallel
from kera_hw.loops.transforms.plan import Step, apply_step
from kera_hw.loops.transforms.reason import Refused
from kera_hw.rtl.machine.accesses import accesses_of
from kera_hw.rtl.machine.nests import NoProcess, Regions, nests_of, touched
from kera_hw.rtl.machine.spread import Spread
from kera_hw.rtl.machine.tidy import named_apart

MOST_STAGES = 32
"""Rounds of a loop up to which each may be a region."""


def staged(regions: Regions) -> Spread | None:
    """With the rounds of outer loops as regions that can overlap; None where none build on each other so."""
    program, steps = regions.program, list[Step]()
    for loop in _outer(regions):
        step = Step("unroll", (loop.var.name,), f"{loop.count} stages that overlap")
        try:
            program = apply_step(program, step, claimed=False)
        except Refused:
            continue
        steps.append(step)
    if not steps:
        return None
    try:
        found = nests_of(_apart(program))
    except NoProcess:
        return None
    writers = [name for nest in found.nests for name in touched(nest, Store)]
    return Spread(tuple(steps), found) if len(writers) == len(set(writers)) else None


def _outer(regions: Regions) -> Iterator[For]:
    """The outermost loops around others of which a round needs what those before have made."""
    loops = [nest.levels[0].loop for nest in regions.nests if len(nest.levels) > 1]
    loops += [group.loop for group in regions.groups]
    for loop in dict.fromkeys(map(id, loops)):
        found = next(item for item in loops if id(item) == loop)
        outermost = any(item is found for item in regions.program.body.body)
        if outermost and 1 < found.count <= MOST_STAGES and not _side_by_side(found):
            yield found


def _side_by_side(loop: For) -> bool:
    try:
        return proved_parallel(loop).parallel
    except Refused:
        return False


# Buffers


def _apart(program: LoopProgram) -> LoopProgram:
    """Whatever overwrites a buffer as a whole writes another one; the last of these has its name."""
    names, body = Names(program), list(program.body.body)
    own = {item.buffer.name: item.buffer for item in body if isinstance(item, Alloc)}
    made: list[Buffer] = []
    for buffer in (*own.values(), *program.of_kind("result")):
        users = [k for k, item in enumerate(body) if touches(item, buffer.name)]
        whole = [k for k in users if _overwrites(body[k], buffer, body[:k])]
        if users[:1] == whole[:1]:
            whole = whole[1:]  # begins the first of them
        if not whole:
            continue
        fresh = [replace(buffer, name=names.fresh(buffer.name), kind="temp") for _ in whole]
        made += fresh
        versions = [*(item.name for item in fresh), buffer.name]
        for k in users:
            before = sum(place < k for place in whole)
            after = before + (k in whole)
            (body[k],) = named_apart(
                Block((body[k],)), {buffer.name: versions[before]}, {buffer.name: versions[after]}
            ).body
    return replace(program, body=replace(program.body, body=(*map(Alloc, made), *body)))


def _overwrites(statement: Statement, buffer: Buffer, before: Sequence[Statement]) -> bool:
    """Whether a loop stores every element once, and loads none that it has stored."""
    if not isinstance(statement, For):
        return False
    found = accesses_of(_nest_of(statement), buffer, [item for item in before if isinstance(item, Op)])
    if found is None:
        return False
    stores = [item for item in found if item.stores]
    if sum(len(item.elements) for item in stores) != buffer.size:
        return False
    count = 1 + max(item.number for item in found)
    when = np.full(buffer.size, -1, np.int64)
    for item in stores:
        when[item.elements] = item.rounds * count + item.number
    if (when < 0).any():
        return False
    return all(
        (item.rounds * count + item.number < when[item.elements]).all() for item in found if not item.stores
    )


def _nest_of(loop: For) -> list[For]:
    """The loops of a nest without code around the inner ones; the innermost may have others inside."""
    found = [loop]
    while not loop.carried and len(loop.body.body) == 1 and isinstance(loop.body.body[0], For):
        loop = loop.body.body[0]
        found.append(loop)
    return found
