"""What regions need not do: loops that give nothing, stores that nobody reads, copies of what is a result.

Programs for pipelines keep these, where they cost nothing; as a region each is a pass over a memory.
"""
from __future__ import annotations

from dataclasses import replace

from kera_hw.loops.contents import indexing, touches, used
from kera_hw.loops.program import (
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
from kera_hw.loops.rewrite import with_block
from kera_hw.rtl.lower import ports
from kera_hw.types import bit_width


def tidied(program: LoopProgram) -> LoopProgram:
    """The program without any of these."""
    body = _without_dead_stores(program.body)
    program = _results_in_place(replace(program, body=body))
    return replace(program, body=_without_dead_loops(program.body))


def named_apart(block: Block, loads: dict[str, str], stores: dict[str, str]) -> Block:
    """With other buffers in the place of those that are loaded from, and of those that are stored to."""
    body: list[Statement] = []
    for statement in block.body:
        if isinstance(statement, Load):
            statement = replace(statement, buffer=loads.get(statement.buffer, statement.buffer))
        elif isinstance(statement, Store):
            statement = replace(statement, buffer=stores.get(statement.buffer, statement.buffer))
        for which, inner in enumerate(blocks_of(statement)):
            statement = with_block(statement, which, named_apart(inner, loads, stores))
        body.append(statement)
    return replace(block, body=tuple(body))


def _without_dead_stores(block: Block) -> Block:
    """Without stores that another to the same element follows in the block, nothing read between."""
    body: list[Statement] = []
    later: dict[str, list[Store]] = {}  # that come for sure, nothing of their buffer read before
    for statement in reversed(block.body):
        if isinstance(statement, Store):
            known = later.setdefault(statement.buffer, [])
            if any(item.index == statement.index for item in known):
                continue
            known.append(statement)
        else:
            for inner in statements(Block((statement,))):
                if isinstance(inner, Load):
                    later.pop(inner.buffer, None)
            for which, inside in enumerate(blocks_of(statement)):
                made = _without_dead_stores(inside)
                if made is not inside:
                    statement = with_block(statement, which, made)
        body.append(statement)
    same = len(body) == len(block.body) and all(a is b for a, b in zip(reversed(body), block.body))
    return block if same else replace(block, body=tuple(reversed(body)))


def _without_dead_loops(block: Block) -> Block:
    """Without what stores nothing and gives nothing that is used."""
    needed = used(block) | indexing(block)
    body: list[Statement] = []
    for statement in block.body:
        if isinstance(statement, For):
            gives = any(item.outer in needed for item in statement.carried)
            stores = any(isinstance(item, Store) for item in statements(Block((statement,))))
            if not gives and not stores:
                continue
            inner = _without_dead_loops(statement.body)
            if inner is not statement.body:
                statement = replace(statement, body=inner)
        body.append(statement)
    same = len(body) == len(block.body) and all(a is b for a, b in zip(body, block.body))
    return block if same else replace(block, body=tuple(body))


def _results_in_place(program: LoopProgram) -> LoopProgram:
    """A temporary that is copied to a result at the end, and used no more, is that result."""
    body = list(program.body.body)
    own = {item.buffer.name: item.buffer for item in body if isinstance(item, Alloc)}
    results = {
        buffer.name: buffer for buffer in program.of_kind("result")
        if buffer.size * bit_width(buffer.element) > ports.WIDEST_VALUE_BITS  # others are in registers
    }
    names: dict[str, str] = {}
    for place in reversed(range(len(body))):
        others = [item for k, item in enumerate(body) if k != place]
        copied = _copies(body[place])
        for source, target in copied:
            one, two = own.get(source.buffer), results.get(target.buffer)
            if one is None or two is None or not _alike(one, two):
                continue
            if one.name in names or two.name in names.values():
                continue
            once = sum(item[0].buffer == one.name for item in copied) == 1
            if not once or any(touches(item, two.name) for item in others):
                continue
            if _stores(body[place], one.name, two.name) != 1:
                continue  # what is copied may be overwritten behind it, which the result is not
            if any(touches(item, one.name) for item in body[place + 1 :]):
                continue
            names[one.name] = two.name
            body[place] = _without_copy(body[place], source, target)
    if not names:
        return program
    kept = tuple(item for item in body if not (isinstance(item, Alloc) and item.buffer.name in names))
    return replace(program, body=named_apart(replace(program.body, body=kept), names, names))


def _alike(one: Buffer, two: Buffer) -> bool:
    return (one.element, one.shape, one.storage) == (two.element, two.shape, two.storage)


def _copies(statement: Statement) -> list[tuple[Load, Store]]:
    """Loads and stores of a nest of loops that copy all of a buffer of as many axes, element by element."""
    counters: list[tuple[Var, int]] = []
    while isinstance(statement, For) and not statement.carried:
        counters.append((statement.var, statement.count))
        body = statement.body.body
        if len(body) == 1 and isinstance(body[0], For):
            statement = body[0]
            continue
        index = tuple(of_var(var) for var, _ in counters)
        loads = {item.result: item for item in body if isinstance(item, Load) and item.index == index}
        others = [item for item in body if not isinstance(item, Load)]
        return [
            (loads[item.value], item) for item in others
            if isinstance(item, Store) and item.index == index and isinstance(item.value, Var)
            and item.value in loads and sum(_reads(other, item.value) for other in body) == 1
        ]
    return []


def _stores(statement: Statement, *buffers: str) -> int:
    """How many stores to any of these are in a statement."""
    return sum(isinstance(item, Store) and item.buffer in buffers for item in statements(Block((statement,))))


def _reads(statement: Statement, var: Var) -> bool:
    block = Block((statement,))
    return var in used(block) | indexing(block)


def _without_copy(statement: Statement, source: Load, target: Store) -> Statement:
    assert isinstance(statement, For)
    body = tuple(
        _without_copy(item, source, target) if isinstance(item, For) else item
        for item in statement.body.body if item is not source and item is not target
    )
    return replace(statement, body=replace(statement.body, body=body))
