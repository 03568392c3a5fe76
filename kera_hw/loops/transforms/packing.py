"""A tile of a buffer copied into a local one, from which a loop's body reads it."""
from __future__ import annotations

from dataclasses import replace

from kera_hw.loops.boxes import Box, Side, hull
from kera_hw.loops.program import (
    COUNTER,
    Affine,
    Alloc,
    Block,
    Buffer,
    For,
    Load,
    LoopProgram,
    Statement,
    Store,
    Var,
    blocks_of,
    of_var,
    statements,
)
from kera_hw.loops.rewrite import Names, with_block
from kera_hw.loops.spans import affine_span, spans_within
from kera_hw.loops.transforms.reason import Refused, buffer_named, with_loop
from kera_hw.loops.verifier import verify_loops


def pack(program: LoopProgram, loop: str, buffer: str) -> LoopProgram:
    """At the head of each round, what the round reads of a buffer is copied into a temporary of the round.

    Everything that is read lies in one box, whose corner is the same throughout the round.
    """
    whole, names = buffer_named(program, buffer), Names(program)
    ranges = spans_within(program.body)

    def change(outer: For) -> list[Statement]:
        inside = list(statements(outer.body, that_run=True))
        if any(isinstance(item, Alloc) and item.buffer.name == buffer for item in inside):
            raise Refused(f"`{buffer}` belongs to a round of `{loop}` already.")
        if any(isinstance(item, Store) and item.buffer == buffer for item in inside):
            raise Refused(f"`{buffer}` is written within `{loop}`.")
        loads = [item for item in inside if isinstance(item, Load) and item.buffer == buffer]
        if not loads:
            raise Refused(f"`{buffer}` is not read within `{loop}`.")
        moving = {var: ranges[var] for var in spans_within(outer.body) if var in ranges}
        box = _tile(whole, [hull(item.index, moving) for item in loads], loop)
        for side, extent in zip(box, whole.shape):
            low = affine_span(Affine(side.low, side.base), ranges)
            high = affine_span(Affine(side.high, side.base), ranges)
            if low is None or high is None or low.low < 0 or high.high >= extent:
                raise Refused(f"The tile of `{buffer}` around what `{loop}` reads may lie outside of it.")
        local = Buffer(names.fresh(buffer), whole.element, tuple(side.high - side.low + 1 for side in box))
        body = _redirected(outer.body, buffer, local, box)
        return [replace(outer, body=replace(body, body=(*_copy(whole, local, box, names), *body.body)))]

    found = with_loop(program, loop, change)
    if whole.kind in ("temp", "result"):  # between what is read, there may be what nobody has written
        faults = verify_loops(found)
        if faults:
            raise Refused(f"The tile of `{buffer}` around what `{loop}` reads has gaps: {faults[0]}")
    return found


def _tile(whole: Buffer, boxes: list[Box], loop: str) -> Box:
    """One box around all."""
    sides: list[Side] = []
    for axis in range(len(whole.shape)):
        along = [box[axis] for box in boxes]
        if any(side.base != along[0].base for side in along):
            raise Refused(f"`{loop}` reads `{whole.name}` in places that move apart along axis {axis}.")
        sides.append(Side(along[0].base, min(s.low for s in along), max(s.high for s in along)))
    return tuple(sides)


def _copy(whole: Buffer, local: Buffer, box: Box, names: Names) -> list[Statement]:
    counters = [Var(names.fresh("i"), COUNTER) for _ in local.shape]
    value = Var(names.fresh("v"), whole.element)
    source = tuple(of_var(var) + Affine(side.low, side.base) for var, side in zip(counters, box))
    copied: tuple[Statement, ...] = (
        Load(value, whole.name, source), Store(local.name, tuple(map(of_var, counters)), value)
    )
    for var, extent in zip(reversed(counters), reversed(local.shape)):
        copied = (For(var, extent, (), Block(copied), parallel=True),)
    return [Alloc(local), *copied]


def _redirected(block: Block, buffer: str, local: Buffer, box: Box) -> Block:
    """Loads of the buffer from the local one instead."""
    made: list[Statement] = []
    for statement in block.body:
        if isinstance(statement, Load) and statement.buffer == buffer:
            index = tuple(part - Affine(side.low, side.base) for part, side in zip(statement.index, box))
            statement = replace(statement, buffer=local.name, index=index)
        for which, inner in enumerate(blocks_of(statement)):
            statement = with_block(statement, which, _redirected(inner, buffer, local, box))
        made.append(statement)
    return replace(block, body=tuple(made))
