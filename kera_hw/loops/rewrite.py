"""Changing loop programs: substitution, fresh copies, and a statement replaced where it stands."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import is_

from kera_hw.loops.program import (
    COUNTER,
    Affine,
    Alloc,
    Block,
    Buffer,
    Carried,
    For,
    If,
    Index,
    Literal,
    Load,
    LoopProgram,
    Op,
    Operand,
    Statement,
    Store,
    Var,
    While,
    blocks_of,
    statements,
)
from kera_hw.types import IntType


class Names:
    """Names that a program does not have yet."""

    def __init__(self, program: LoopProgram) -> None:
        self._taken = {buffer.name for buffer in program.buffers} | set(defined(program.body))
        self._next = 0

    def fresh(self, stem: str) -> str:
        """A name after another one: ``i3`` gives ``i3_1``."""
        while True:
            self._next += 1
            name = f"{stem.split('_')[0]}_{self._next}"
            if name not in self._taken:
                self._taken.add(name)
                return name


def defined(block: Block) -> Iterator[str]:
    """Names of the scalars and buffers that a block defines, inner ones included."""
    for statement in statements(block):
        match statement:
            case Op(results=results):
                yield from (var.name for var in results)
            case Load(result=result):
                yield result.name
            case Alloc(buffer=buffer):
                yield buffer.name
            case For(var=var, carried=carried):
                yield var.name
                yield from _carried_names(carried)
            case While(carried=carried):
                yield from _carried_names(carried)
            case If(results=results):
                yield from (var.name for var in results)
            case Store():
                pass


def _carried_names(carried: tuple[Carried, ...]) -> Iterator[str]:
    for item in carried:
        yield item.inner.name
        yield item.outer.name


class Copier:
    """Copies statements with other names for what they define, and values for what they use.

    With ``names`` absent, definitions keep theirs: for moving code, not for doubling it. ``places`` are
    expressions that take a scalar's place in indices.
    """

    def __init__(
        self, values: Mapping[Var, Operand], names: Names | None = None,
        places: Mapping[Var, Affine] | None = None,
    ) -> None:
        self.values = dict(values)
        self.names = names
        self.places = dict(places or {})
        self.buffers: dict[str, str] = {}

    def block(self, block: Block) -> Block:
        """The block's copy; the block itself where nothing in it has another name."""
        body = tuple([self.statement(statement) for statement in block.body])
        yields = self.operands(block.yields)
        if self.names is None and yields is block.yields and all(map(is_, body, block.body)):
            return block
        return Block(body, yields)

    def operand(self, operand: Operand) -> Operand:
        return self.values.get(operand, operand) if isinstance(operand, Var) else operand

    def operands(self, operands: tuple[Operand, ...]) -> tuple[Operand, ...]:
        """All of them; the same tuple where none has another value."""
        values = self.values
        for operand in operands:
            if isinstance(operand, Var) and operand in values:
                return tuple([self.operand(operand) for operand in operands])
        return operands

    def index(self, index: Index) -> Index:
        """The same tuple where nothing in it has another value."""
        made = tuple([self._part(part) for part in index])
        return index if all(map(is_, made, index)) else made

    def _part(self, part: Affine) -> Affine:
        for var, _ in part.terms:
            if var in self.values or var in self.places:
                return part.replace({var: self._place(var) for var, _ in part.terms})
        return part

    def _place(self, var: Var) -> Affine:
        return self.places[var] if var in self.places else as_affine(self.operand(var))

    def _define(self, var: Var) -> Var:
        if self.names is None:
            return var
        made = Var(self.names.fresh(var.name), var.type)
        self.values[var] = made
        return made

    def _results(self, results: tuple[Var, ...]) -> tuple[Var, ...]:
        return results if self.names is None else tuple([self._define(var) for var in results])

    def _carried(self, carried: tuple[Carried, ...], initial: list[Operand]) -> tuple[Carried, ...]:
        return tuple([
            Carried(self.values_of(item.inner), first, self._define(item.outer))
            for item, first in zip(carried, initial)
        ])

    def values_of(self, var: Var) -> Var:
        found = self.values.get(var, var)
        assert isinstance(found, Var)
        return found

    def statement(self, statement: Statement) -> Statement:
        """The statement's copy; the statement itself where nothing in it has another name."""
        moved = self.names is None
        match statement:
            case Op(results=results, opcode=opcode, operands=operands, attrs=attrs, place=place):
                inputs = self.operands(operands)
                if moved and inputs is operands:
                    return statement
                return Op(self._results(results), opcode, inputs, attrs, place)
            case Load(result=result, buffer=name, index=index, place=place):
                where = self.index(index)
                if moved and where is index:
                    return statement
                return Load(self._define(result), self.buffers.get(name, name), where, place)
            case Store(buffer=name, index=index, value=value, place=place):
                where, stored = self.index(index), self.operand(value)
                if moved and where is index and stored is value:
                    return statement
                return Store(self.buffers.get(name, name), where, stored, place)
            case Alloc(buffer=buffer):
                return statement if moved else Alloc(self._buffer(buffer))
            case _:
                copied = self._with_blocks(statement)
                same = moved and all(map(is_, blocks_of(copied), blocks_of(statement)))
                return statement if same and copied == statement else copied

    def _with_blocks(self, statement: For | While | If) -> For | While | If:
        match statement:
            case For(var=var, carried=carried, body=body):
                initial = [self.operand(item.initial) for item in carried]
                counter = self._define(var)
                for item in carried:
                    self._define(item.inner)
                inside = self.block(body)
                return replace(statement, var=counter, body=inside, carried=self._carried(carried, initial))
            case While(carried=carried, condition=condition, body=body):
                initial = [self.operand(item.initial) for item in carried]
                for item in carried:
                    self._define(item.inner)
                test, inside = self.block(condition), self.block(body)
                after = self._carried(carried, initial)
                return replace(statement, condition=test, body=inside, carried=after)
            case If(condition=condition, then=then, otherwise=otherwise, results=results):
                asked, first, second = self.operand(condition), self.block(then), self.block(otherwise)
                return replace(statement, condition=asked, then=first, otherwise=second,
                               results=self._results(results))

    def _buffer(self, buffer: Buffer) -> Buffer:
        assert self.names is not None
        self.buffers[buffer.name] = self.names.fresh(buffer.name)
        return replace(buffer, name=self.buffers[buffer.name])


def as_affine(value: Operand) -> Affine:
    """A scalar as an index expression."""
    if isinstance(value, Var):
        return Affine(0, ((value, 1),))
    assert isinstance(value.type, IntType)
    return Affine(value.type.wrap(value.bits))


def used(block: Block) -> set[Var]:
    """Scalars that a block uses as operands, index expressions not counted."""
    found: set[Var] = set()

    def take(operands: Iterator[Operand] | tuple[Operand, ...]) -> None:
        found.update(operand for operand in operands if isinstance(operand, Var))

    take(block.yields)
    for statement in statements(block):
        match statement:
            case Op(operands=operands):
                take(operands)
            case Store(value=value):
                take((value,))
            case For(carried=carried) | While(carried=carried):
                take(item.initial for item in carried)
            case If(condition=condition):
                take((condition,))
            case _:
                pass
        for inner in blocks_of(statement):
            take(inner.yields)
    return found


def indexing(block: Block) -> set[Var]:
    """Scalars that a block uses in index expressions."""
    return {
        var for item in statements(block) if isinstance(item, (Load, Store))
        for part in item.index for var, _ in part.terms
    }


def counter_value(names: Names, stem: str, expression: Affine) -> tuple[list[Statement], Operand]:
    """Statements that compute an index expression as a scalar of the counters' type, and that scalar."""
    made: list[Statement] = []
    total: Operand | None = None

    def op(opcode: str, a: Operand, b: Operand) -> Var:
        result = Var(names.fresh(stem), COUNTER)
        made.append(Op((result,), opcode, (a, b)))
        return result

    def constant(value: int) -> Literal:
        return Literal(COUNTER, value & ((1 << COUNTER.width_bits) - 1))

    for var, coefficient in expression.terms:
        value: Operand = var
        if var.type != COUNTER:
            value = Var(names.fresh(stem), COUNTER)
            made.append(Op((value,), "convert.cast", (var,), (("type", COUNTER),)))
        term: Operand = value if coefficient == 1 else op("integer.mul", value, constant(coefficient))
        total = term if total is None else op("integer.add", total, term)
    if total is None:
        return made, constant(expression.constant)
    if expression.constant:
        total = op("integer.add", total, constant(expression.constant))
    return made, total


Change = Callable[[Block, int], list[Statement] | None]
"""Of a block and a place in it: what stands there instead; None to look elsewhere."""


def replaced(block: Block, change: Change) -> Block | None:
    """The block with the first place changed that ``change`` takes; None if it takes none."""
    for place, statement in enumerate(block.body):
        instead = change(block, place)
        if instead is not None:
            return replace(block, body=(*block.body[:place], *instead, *block.body[place + 1 :]))
        parts = blocks_of(statement)
        for which, inner in enumerate(parts):
            found = replaced(inner, change)
            if found is not None:
                whole = with_block(statement, which, found)
                return replace(block, body=(*block.body[:place], whole, *block.body[place + 1 :]))
    return None


def exchanged(block: Block, target: Statement, instead: Callable[[], Sequence[Statement]]) -> Block | None:
    """The block with others in the place of one statement, wherever it stands; None if it does not."""
    for place, statement in enumerate(block.body):
        if statement is target:
            return Block((*block.body[:place], *instead(), *block.body[place + 1 :]), block.yields)
        if isinstance(statement, (Op, Load, Store)):
            continue
        for which, inner in enumerate(blocks_of(statement)):
            found = exchanged(inner, target, instead)
            if found is not None:
                whole = with_block(statement, which, found)
                return Block((*block.body[:place], whole, *block.body[place + 1 :]), block.yields)
    return None


def changed(block: Block, change: Callable[[Block], Block | None]) -> Block | None:
    """The block with the first one changed that ``change`` takes, itself or inside; None if it takes none."""
    found = change(block)
    if found is not None:
        return found
    for place, statement in enumerate(block.body):
        for which, inner in enumerate(blocks_of(statement)):
            found = changed(inner, change)
            if found is not None:
                whole = with_block(statement, which, found)
                return replace(block, body=(*block.body[:place], whole, *block.body[place + 1 :]))
    return None


def with_block(statement: Statement, which: int, block: Block) -> Statement:
    """The statement with one of its blocks (in the order of ``blocks_of``) changed."""
    match statement:
        case For():
            return replace(statement, body=block)
        case While():
            return replace(statement, condition=block) if which == 0 else replace(statement, body=block)
        case If():
            return replace(statement, then=block) if which == 0 else replace(statement, otherwise=block)
        case _:
            raise AssertionError("a statement without blocks")


def touches(statement: Statement, buffer: str) -> bool:
    """Whether a statement, or one within it, loads from a buffer or stores to it."""
    return any(
        isinstance(item, (Load, Store)) and item.buffer == buffer for item in statements(Block((statement,)))
    )
