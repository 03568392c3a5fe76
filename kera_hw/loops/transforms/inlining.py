"""A producer computed again wherever its consumer needs an element; its buffer is gone."""
from __future__ import annotations

from dataclasses import dataclass, replace

from kera_hw.loops.contents import touches, used
from kera_hw.loops.program import (
    IN_ORDER,
    Affine,
    Alloc,
    Block,
    For,
    Index,
    Load,
    LoopProgram,
    Operand,
    Statement,
    Store,
    Var,
    blocks_of,
    of_var,
    statements,
)
from kera_hw.loops.rewrite import Copier, Names, counter_value, replaced, with_block
from kera_hw.loops.transforms.reason import Refused, temporary_named

MOST_STATEMENTS = 1 << 14
"""Statements that a program may grow to by computing again."""


@dataclass(frozen=True, slots=True)
class _Producer:
    """``block.body[place]`` writes element ``index`` of the buffer in each round of ``counters``."""

    block: Block
    place: int
    counters: tuple[Var, ...]
    body: tuple[Statement, ...]
    index: Index
    value: Operand


def inline(program: LoopProgram, buffer: str) -> LoopProgram:
    """Every load of a temporary as the computation of its element.

    One nest writes the temporary, an element a round, and nothing else; what it reads stays as it is until
    the last load of the temporary.
    """
    temporary_named(program, buffer)
    producer = _found(program.body, buffer)
    rest = producer.block.body[producer.place + 1 :]
    read = {item.buffer for item in statements(Block(producer.body)) if isinstance(item, Load)}
    for item in statements(Block(rest)):
        if isinstance(item, Store) and item.buffer in read:
            raise Refused(f"`{item.buffer}`, from which `{buffer}` is computed, is written later.")
    loads = sum(isinstance(item, Load) and item.buffer == buffer for item in statements(program.body))
    size = sum(1 for _ in statements(Block(producer.body)))
    if loads * size + sum(1 for _ in statements(program.body)) > MOST_STATEMENTS:
        raise Refused(f"`{buffer}` is read {loads} times, and {size} statements compute an element.")
    names = Names(program)

    def change(block: Block, place: int) -> list[Statement] | None:
        return [] if block is producer.block and place == producer.place else None

    without = replaced(program.body, change)
    assert without is not None
    return replace(program, body=_computed(without, buffer, producer, names))


def _found(block: Block, buffer: str) -> _Producer:
    """The one nest that writes a buffer, in the block that declares it."""
    for statement in block.body:
        if isinstance(statement, Alloc) and statement.buffer.name == buffer:
            return _producer(block, buffer)
        for inner in blocks_of(statement):
            if any(isinstance(item, Alloc) and item.buffer.name == buffer for item in statements(inner)):
                return _found(inner, buffer)
    raise Refused(f"There is no temporary `{buffer}`.")


def _producer(block: Block, buffer: str) -> _Producer:
    writers = [
        place for place, statement in enumerate(block.body)
        if any(isinstance(item, Store) and item.buffer == buffer for item in statements(Block((statement,))))
    ]
    if len(writers) != 1:
        raise Refused(f"`{buffer}` is written by {len(writers)} statements of its block, not by one.")
    (place,) = writers
    counters: list[Var] = []
    body: tuple[Statement, ...] = (block.body[place],)
    while len(body) == 1 and isinstance(body[0], For):
        loop = body[0]
        if loop.carried or not loop.count:
            raise Refused(f"Rounds of `{loop.var.name}` do not write an element of `{buffer}` each.")
        if loop.schedule != IN_ORDER:
            raise Refused(f"It is said already how rounds of `{loop.var.name}` run, which would be gone.")
        counters.append(loop.var)
        body = loop.body.body
    *before, last = body
    others = [item for item in statements(Block(tuple(before))) if isinstance(item, Store)]
    own = {item.buffer.name for item in statements(Block(tuple(before))) if isinstance(item, Alloc)}
    foreign = [item.buffer for item in others if item.buffer not in own]
    if foreign or not isinstance(last, Store) or last.buffer != buffer:
        at = f"`{foreign[0]}` is written" if foreign else "something is done"
        raise Refused(f"Beside `{buffer}`, {at} where it is written.")
    if any(touches(item, buffer) for item in before):
        raise Refused(f"`{buffer}` is read where it is written.")
    moved = [part - part.constant for part in last.index if part.terms]
    if len(moved) != len(counters) or set(moved) != set(map(of_var, counters)):
        raise Refused(f"`{buffer}` is not written at one counter an axis.")
    return _Producer(block, place, tuple(counters), tuple(before), last.index, last.value)


def _computed(block: Block, buffer: str, producer: _Producer, names: Names) -> Block:
    """Without the buffer: neither declared nor loaded from."""
    made: list[Statement] = []
    values: dict[Var, Operand] = {}
    for original in block.body:
        statement = Copier(values).statement(original) if values else original
        if isinstance(statement, Alloc) and statement.buffer.name == buffer:
            continue
        if isinstance(statement, Load) and statement.buffer == buffer:
            before, values[statement.result] = _element(producer, statement.index, names)
            made += before
            continue
        for which, inner in enumerate(blocks_of(statement)):
            statement = with_block(statement, which, _computed(inner, buffer, producer, names))
        made.append(statement)
    return Block(tuple(made), tuple(map(Copier(values).operand, block.yields)))


def _element(producer: _Producer, index: Index, names: Names) -> tuple[list[Statement], Operand]:
    """Statements that compute the element at ``index``, and it."""
    places: dict[Var, Affine] = {}
    for written, wanted in zip(producer.index, index):
        if written.terms:
            places[written.terms[0][0]] = wanted - written.constant
    block = Block(producer.body, (producer.value,))
    before: list[Statement] = []
    values: dict[Var, Operand] = {}
    for var in producer.counters:
        if var in used(block):
            made, values[var] = counter_value(names, var.name, places[var])
            before += made
    copied = Copier(values, names, places).block(block)
    return [*before, *copied.body], copied.yields[0]
