"""Changing loop programs: substitution, fresh copies, and a statement replaced where it stands."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import is_

from kera_hw.loops.contents import defined, indexing, used
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
)
from kera_hw.types import IntType


class Names:
    """Names that a program does not have yet."""

    def __init__(self, program: LoopProgram) -> None:
        self._taken = {buffer.name for buffer in program.buffers} | defined(program.body)
        self._next = 0

    def fresh(self, stem: str) -> str:
        """A name after another one: ``i3`` gives ``i3_1``."""
        stem = stem.partition("_")[0]
        while True:
            self._next += 1
            name = f"{stem}_{self._next}"
            if name not in self._taken:
                self._taken.add(name)
                return name


class Copier:
    """Copies statements with other names for what they define, and values for what they use.

    With ``names`` absent, definitions keep theirs: for moving code, not for doubling it. ``places`` are
    expressions that take a scalar's place in indices. ``counters``: what those of some loops are called.
    """

    def __init__(
        self, values: Mapping[Var, Operand], names: Names | None = None,
        places: Mapping[Var, Affine] | None = None, counters: Mapping[Var, Var] = {},
    ) -> None:
        self.values = dict(values)
        self.names = names
        self.places = dict(places or {})
        self.counters = counters
        self.buffers: dict[str, str] = {}

    def block(self, block: Block) -> Block:
        """The block's copy; the block itself where nothing in it has another name."""
        if self.names is None and self._leaves(block):
            return block
        body = tuple([self.statement(statement) for statement in block.body])
        yields = self.operands(block.yields)
        if self.names is None and yields is block.yields and all(map(is_, body, block.body)):
            return block
        return Block(body, yields)

    def _leaves(self, block: Block) -> bool:
        """Whether nothing that the block uses has another value."""
        values, indices = self.values.keys(), indexing(block)
        left = values.isdisjoint(used(block)) and values.isdisjoint(indices)
        return left and self.places.keys().isdisjoint(indices)

    def operand(self, operand: Operand) -> Operand:
        return self.values.get(operand, operand) if isinstance(operand, Var) else operand

    def operands(self, operands: tuple[Operand, ...]) -> tuple[Operand, ...]:
        """All of them; the same tuple where none has another value."""
        values = self.values
        made = tuple([values.get(one, one) if isinstance(one, Var) else one for one in operands])
        return operands if all(map(is_, made, operands)) else made

    def index(self, index: Index) -> Index:
        """The same tuple where nothing in it has another value."""
        made = tuple([self._part(part) for part in index])
        return index if all(map(is_, made, index)) else made

    def _part(self, part: Affine) -> Affine:
        values, places = self.values, self.places
        for var, _ in part.terms:
            if var in values or var in places:
                return substituted(part, lambda var: places.get(var) or values.get(var, var))
        return part

    def _define(self, var: Var) -> Var:
        if self.names is None:
            return var
        made = self.values[var] = Var(self.names.fresh(var.name), var.type)
        return made

    def _count(self, var: Var) -> Var:
        """The counter of a loop. A name is taken in any case, so that all copies have the same ones."""
        made, known = self._define(var), self.counters.get(var)
        if known is None:
            return made
        self.values[var] = known
        return known

    def _results(self, results: tuple[Var, ...]) -> tuple[Var, ...]:
        return results if self.names is None else tuple([self._define(var) for var in results])

    def _enter(self, carried: tuple[Carried, ...]) -> None:
        if self.names is not None:
            for item in carried:
                self._define(item.inner)

    def _carried(self, carried: tuple[Carried, ...], initial: list[Operand]) -> tuple[Carried, ...]:
        """The same tuple where nothing in it has another name."""
        if self.names is None and all(
            item.initial is first and item.inner not in self.values for item, first in zip(carried, initial)
        ):
            return carried
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
            case For(var=var, count=count, carried=carried, body=body):
                initial = [self.operand(item.initial) for item in carried]
                counter = self._count(var)
                self._enter(carried)
                inside = self.block(body)
                after = self._carried(carried, initial)
                if moved and inside is body and after is carried:
                    return statement
                parallel, place, schedule = statement.parallel, statement.place, statement.schedule
                return For(counter, count, after, inside, parallel, place, schedule)
            case While(most=most, carried=carried, condition=condition, body=body, place=place):
                initial = [self.operand(item.initial) for item in carried]
                self._enter(carried)
                test, inside = self.block(condition), self.block(body)
                after = self._carried(carried, initial)
                if moved and test is condition and inside is body and after is carried:
                    return statement
                return While(most, after, test, inside, place)
            case If(condition=condition, then=then, otherwise=otherwise, results=results, place=place):
                asked, first, second = self.operand(condition), self.block(then), self.block(otherwise)
                if moved and asked is condition and first is then and second is otherwise:
                    return statement
                return If(asked, first, second, self._results(results), place)

    def _buffer(self, buffer: Buffer) -> Buffer:
        assert self.names is not None
        self.buffers[buffer.name] = self.names.fresh(buffer.name)
        return replace(buffer, name=self.buffers[buffer.name])


def substituted(part: Affine, value: Callable[[Var], Operand | Affine]) -> Affine:
    """An index expression with others, or scalars, in the place of its variables."""
    constant = part.constant
    total: dict[Var, int] = {}
    for var, coefficient in part.terms:
        found = value(var)
        if isinstance(found, Var):
            total[found] = total.get(found, 0) + coefficient
            continue
        place = as_affine(found) if isinstance(found, Literal) else found
        constant += place.constant * coefficient
        for inner, factor in place.terms:
            total[inner] = total.get(inner, 0) + factor * coefficient
    return Affine(constant, tuple([(var, c) for var, c in total.items() if c]))


def as_affine(value: Operand) -> Affine:
    """A scalar as an index expression."""
    if isinstance(value, Var):
        return Affine(0, ((value, 1),))
    assert isinstance(value.type, IntType)
    return Affine(value.type.wrap(value.bits))


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


def exchanged(
    block: Block, loop: For, instead: Callable[[], Sequence[Statement]], after: Mapping[Var, Operand] = {}
) -> Block | None:
    """The block with others in the place of a loop, wherever it stands; None if it does not.

    ``after``: of what the loop gave, once ``instead`` was called.
    """
    for place, statement in enumerate(block.body):
        if statement is loop:
            made, rest = instead(), Block(block.body[place + 1 :], block.yields)
            rest = Copier(after).block(rest) if after else rest
            return Block((*block.body[:place], *made, *rest.body), rest.yields)
        for which, inner in enumerate(blocks_of(statement)):
            if loop.var.name not in defined(inner):
                continue
            found = exchanged(inner, loop, instead, after)
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
        case For(var, count, carried, _, parallel, place, schedule):
            return For(var, count, carried, block, parallel, place, schedule)
        case While(most, carried, condition, body, place):
            return While(most, carried, *((block, body) if which == 0 else (condition, block)), place)
        case If(condition, then, otherwise, results, place):
            return If(condition, *((block, otherwise) if which == 0 else (then, block)), results, place)
        case _:
            raise AssertionError("a statement without blocks")
