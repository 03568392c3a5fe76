"""What costs a circuit nothing computed where it is read, and sums whose first term is one of their rounds.

A conversion is wires, so converted elements need neither a memory nor rounds that copy them. An integer's sum
that begins with its first term has a multiplier and ports for it alone; one that begins with zero has not.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kera_hw.loops.contents import indexing, used
from kera_hw.loops.program import (
    Affine,
    Alloc,
    Block,
    Carried,
    For,
    Literal,
    Load,
    LoopProgram,
    Op,
    Operand,
    Statement,
    Store,
    Var,
    of_var,
    statements,
)
from kera_hw.loops.rewrite import Copier, changed
from kera_hw.loops.transforms.inlining import inline
from kera_hw.loops.transforms.reason import Refused
from kera_hw.types import BoolType, IntType


def wired(program: LoopProgram) -> LoopProgram:
    """The program without memories of converted elements, its integers' sums begun with zero."""
    for buffer in [item.buffer for item in statements(program.body) if isinstance(item, Alloc)]:
        if _is_converted(program, buffer.name):
            try:
                program = inline(program, buffer.name)
            except Refused:
                continue
    while (body := changed(program.body, _begun_with_zero)) is not None:
        program = replace(program, body=body)
    return program


def _is_wires(op: Op) -> bool:
    """Whether an operation takes no cell: a value's bits again, cut off or repeated."""
    if op.opcode == "convert.bitcast":
        return True
    if op.opcode != "convert.cast":
        return False
    return isinstance(op.results[0].type, IntType) and isinstance(op.operands[0].type, IntType | BoolType)


def _is_converted(program: LoopProgram, buffer: str) -> bool:
    """Whether one nest writes the buffer, of elements loaded and converted."""
    writers = [
        item for item in statements(program.body)
        if isinstance(item, For) and any(
            isinstance(inner, Store) and inner.buffer == buffer for inner in item.body.body
        )
    ]
    made = writers[0].body.body if len(writers) == 1 else ()
    ops = [item for item in made if isinstance(item, Op)]
    loads = sum(isinstance(item, Load) for item in made)
    return bool(ops) and all(map(_is_wires, ops)) and loads + len(ops) + 1 == len(made)


def _begun_with_zero(block: Block) -> Block | None:
    """The block with one sum that began with its first term a round longer; None where there is none."""
    for place, loop in enumerate(block.body):
        if not isinstance(loop, For):
            continue
        before, behind = block.body[:place], block.body[place + 1 :]
        found = _longer(before, loop)
        if found is None:
            continue
        rest = before[: len(before) - len(found.body.body) + 1]
        others = Block((*rest, replace(loop, carried=()), *behind), block.yields)
        gone = {var for item in before[len(rest) :] for var in _results(item)}
        if not gone & (used(others) | indexing(others)):
            return replace(block, body=(*rest, found, *behind))
    return None


def _results(item: Statement) -> tuple[Var, ...]:
    return (item.result,) if isinstance(item, Load) else item.results if isinstance(item, Op) else ()


def _longer(before: Sequence[Statement], loop: For) -> For | None:
    """The loop with a round for what the last statements before it compute: its term before the first."""
    if len(loop.carried) != 1 or len(loop.body.body) < 2 or loop.var in used(loop.body):
        return None
    (carried,), (*terms, last) = loop.carried, loop.body.body
    if not (
        isinstance(last, Op) and last.opcode == "integer.add" and loop.body.yields == last.results
        and isinstance(last.results[0].type, IntType) and isinstance(carried.initial, Var)
        and last.operands[0] == carried.inner and all(isinstance(item, Load | Op) for item in terms)
        and len(before) >= len(terms)
    ):
        return None
    first = before[len(before) - len(terms) :]
    values: dict[Var, Operand] = {}
    for made, known in zip(terms, first):
        copied = Copier(values, None, {loop.var: Affine(-1)}).statement(made)
        if isinstance(copied, Load) and isinstance(known, Load):
            values[copied.result] = known.result
            copied = replace(copied, result=known.result)
        elif isinstance(copied, Op) and isinstance(known, Op) and len(copied.results) == len(known.results):
            values.update(zip(copied.results, known.results))
            copied = replace(copied, results=known.results)
        if copied != known:
            return None
    if not isinstance(last.operands[1], Var) or values.get(last.operands[1]) != carried.initial:
        return None
    begun = Carried(carried.inner, Literal(carried.inner.type, 0), carried.outer)
    body = Copier({}, None, {loop.var: of_var(loop.var) + -1}).block(loop.body)
    return replace(loop, count=loop.count + 1, carried=(begun,), body=body)
