"""Cheap elements computed again where they are read, in place of rows of them that lie in memory.

A store of a vector takes as long as two operations on it or more, and the load of what it was computed from
as long as its own load. So what one operation gives is computed twice rather than kept.
"""
from __future__ import annotations

from collections.abc import Iterator

from kera_hw.loops.program import (
    Alloc,
    Block,
    Buffer,
    For,
    Load,
    LoopProgram,
    Op,
    Store,
    While,
    blocks_of,
    statements,
)
from kera_hw.loops.transforms.cost import WEIGHTS
from kera_hw.loops.transforms.plan import Step, apply_step
from kera_hw.loops.transforms.planner import Planned
from kera_hw.loops.transforms.reason import Refused

_LEAST_ELEMENTS = 256
"""Of a temporary: what is shorter stays in registers, or near them."""
_MOST_OPERATIONS = 1
"""That give an element."""
_MOST_READ = 2
"""Times that an element is read."""


def computed_again(program: LoopProgram) -> Planned:
    """The program without temporaries whose elements one operation gives and few read, and the steps."""
    steps: list[Step] = []
    after = program
    made = [item.buffer for item in statements(program.body) if isinstance(item, Alloc)]
    for buffer in reversed(made):
        if buffer.size < _LEAST_ELEMENTS or not _is_cheap(after, buffer):
            continue
        reason = f"an element of `{buffer.name}` is computed in the time of storing it"
        step = Step("inline", (buffer.name,), reason)
        try:
            after = apply_step(after, step, claimed=False)
        except Refused:
            continue
        steps.append(step)
    return Planned(program, after, tuple(steps))


def _is_cheap(program: LoopProgram, buffer: Buffer) -> bool:
    makers = [block for block in _blocks(program.body)
              if any(isinstance(item, Store) and item.buffer == buffer.name for item in block.body)]
    if len(makers) != 1:
        return False
    made = makers[0].body
    operations = [item for item in made if isinstance(item, Op)]
    if not all(isinstance(item, Op | Load | Store) for item in made) or len(operations) > _MOST_OPERATIONS:
        return False
    if any(item.opcode in WEIGHTS for item in operations):
        return False
    return 0 < _reads(program.body, buffer.name) <= _MOST_READ * buffer.size


def _blocks(block: Block) -> Iterator[Block]:
    yield block
    for statement in block.body:
        for inner in blocks_of(statement):
            yield from _blocks(inner)


def _reads(block: Block, buffer: str) -> int:
    """How many elements are loaded, those loaded twice in a block counted once."""
    loads = [item for item in block.body if isinstance(item, Load) and item.buffer == buffer]
    total = len({item.index for item in loads})
    for statement in block.body:
        rounds = statement.count if isinstance(statement, For) else 1
        rounds = statement.most if isinstance(statement, While) else rounds
        total += rounds * sum(_reads(inner, buffer) for inner in blocks_of(statement))
    return total
