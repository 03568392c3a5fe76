"""What blocks name, found once a block: transforms share what they leave alone, and it stays known."""
from __future__ import annotations

from collections.abc import KeysView, Mapping

from kera_hw.loops.program import (
    Alloc,
    Block,
    For,
    If,
    Load,
    Op,
    Statement,
    Store,
    Var,
    While,
    blocks_of,
)


def defined(block: Block) -> KeysView[str]:
    """Names of the scalars and buffers that a block defines, inner ones included, in order."""
    known = block.contents.defined
    if known is None:
        known = block.contents.defined = _defined(block)
    return known.keys()


def used(block: Block) -> frozenset[Var]:
    """Scalars that a block uses as operands, index expressions not counted."""
    return _read(block)[0]


def indexing(block: Block) -> frozenset[Var]:
    """Scalars that a block uses in index expressions."""
    return _read(block)[1]


def touched(block: Block) -> frozenset[str]:
    """Buffers that a block loads from or stores to."""
    known = block.contents.touched
    if known is None:
        found: set[str] = set()
        for statement in block.body:
            if isinstance(statement, Load | Store):
                found.add(statement.buffer)
            for inner in blocks_of(statement):
                found |= touched(inner)
        known = block.contents.touched = frozenset(found)
    return known


def touches(statement: Statement, buffer: str) -> bool:
    """Whether a statement, or one within it, loads from a buffer or stores to it."""
    if isinstance(statement, Load | Store):
        return statement.buffer == buffer
    if isinstance(statement, Op | Alloc):
        return False
    return any(buffer in touched(inner) for inner in blocks_of(statement))


def _defined(block: Block) -> Mapping[str, None]:
    found: dict[str, None] = {}
    for statement in block.body:
        match statement:
            case Op(results=results):
                for var in results:
                    found[var.name] = None
            case Load(result=result):
                found[result.name] = None
            case Store():
                pass
            case Alloc(buffer=buffer):
                found[buffer.name] = None
            case For(carried=carried) | While(carried=carried):
                if isinstance(statement, For):
                    found[statement.var.name] = None
                for item in carried:
                    found[item.inner.name] = found[item.outer.name] = None
            case If(results=results):
                for var in results:
                    found[var.name] = None
        for inner in blocks_of(statement):
            found.update(dict.fromkeys(defined(inner)))
    return found


def _read(block: Block) -> tuple[frozenset[Var], frozenset[Var]]:
    known = block.contents.read
    if known is not None:
        return known
    operands: set[Var] = set()
    indices: set[Var] = set()
    found = [*block.yields]
    for statement in block.body:
        match statement:
            case Op():
                found += statement.operands
            case Load(index=index):
                indices.update([var for part in index for var, _ in part.terms])
            case Store(index=index, value=value):
                found.append(value)
                indices.update([var for part in index for var, _ in part.terms])
            case For(carried=carried) | While(carried=carried):
                found += [item.initial for item in carried]
            case If(condition=condition):
                found.append(condition)
            case Alloc():
                pass
        for inner in blocks_of(statement):
            one, two = _read(inner)
            operands |= one
            indices |= two
    operands.update([one for one in found if isinstance(one, Var)])
    known = block.contents.read = frozenset(operands), frozenset(indices)
    return known
