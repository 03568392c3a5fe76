"""Statements of a loop program in native operations, as what one thread does."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Generic

from kera_hw.cpu_gpu.gpu.byte_products import WORD_BYTES, ByteProducts, byte_products
from kera_hw.cpu_gpu.gpu.writer import Held, Place, R, Scalar, Step, Writer
from kera_hw.legal.native import Signature, unsigned
from kera_hw.loops.program import (
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
)
from kera_hw.schedule.software.layout import element_bytes
from kera_hw.schedule.software.statements import StatementWalk
from kera_hw.schedule.software.vector_loops import ITEM, flat_terms
from kera_hw.types import BOOL, BoolType

_BYTE, _WORD = unsigned(8), unsigned(32)


class Body(StatementWalk, Generic[R]):
    """Writes statements. ``places``: of all buffers that they reach. ``byte_products``: how many loops sum
    four products of bytes at a time."""

    def __init__(self, writer: Writer[R], program: LoopProgram, places: Mapping[str, Place[R]]) -> None:
        super().__init__(program)
        self._writer = writer
        outside = (item.buffer for item in program.body.body if isinstance(item, Alloc))
        self._buffers |= {buffer.name: buffer for buffer in outside}
        self._places = places
        self._held: dict[Var, Held[R]] = {}
        self.byte_products = 0

    # Scalars

    def scalar(self, operand: Operand) -> Scalar[R]:
        return Scalar(operand.type, operand if isinstance(operand, Literal) else self._held[operand])

    def hold(self, var: Var, held: Held[R]) -> None:
        """A scalar that somebody else computed."""
        self._held[var] = held

    def take(self, var: Var, place: Place[R]) -> None:
        """A scalar that an earlier region left in memory."""
        if isinstance(var.type, BoolType):
            byte = Scalar(_BYTE, self._writer.load(_BYTE, place, ()))
            nothing: Scalar[R] = Scalar(_BYTE, Literal(_BYTE, 0))
            op = Signature("compare.ne", (_BYTE, _BYTE), BOOL)
            self.hold(var, self._writer.compute(op, [byte, nothing]))
        else:
            self.hold(var, self._writer.load(var.type, place, ()))

    def leave(self, var: Var, place: Place[R]) -> None:
        """A scalar for later regions."""
        value = self.scalar(var)
        if isinstance(var.type, BoolType):
            value = Scalar(_BYTE, self._writer.compute(Signature("convert.cast", (BOOL,), _BYTE), [value]))
        self._writer.store(value.type, place, (), value)

    # Statements

    def block(self, block: Block) -> None:
        for statement in block.body:
            self._statement(statement)

    def _statement(self, statement: Statement) -> None:
        if not isinstance(statement, Alloc) and statement.place is not None:
            self._writer.comment(f"{statement.place.path}:{statement.place.line}")
        super()._statement(statement)

    def _load(self, load: Load) -> None:
        buffer = self._buffers[load.buffer]
        self.hold(load.result, self._writer.load(buffer.element, *self._element(buffer, load.index)))

    def _store(self, store: Store) -> None:
        buffer = self._buffers[store.buffer]
        place, steps = self._element(buffer, store.index)
        self._writer.store(buffer.element, place, steps, self.scalar(store.value))

    def _op(self, op: Op) -> None:
        (result,) = op.results
        signature = Signature(op.opcode, tuple(operand.type for operand in op.operands), result.type)
        self._held[result] = self._writer.compute(signature, [self.scalar(one) for one in op.operands])

    def _element(self, buffer: Buffer, index: Index) -> tuple[Place[R], list[Step[R]]]:
        """Where an element lies."""
        place, size_bytes = self._places[buffer.name], element_bytes(buffer.element)
        constant, terms = flat_terms(buffer, index)
        terms.pop(ITEM, None)  # the place is that of the item
        steps = [(self.scalar(var), coefficient * size_bytes) for var, coefficient in terms.items()]
        return replace(place, offset=place.offset + constant * size_bytes), steps

    # Control

    def _for(self, loop: For) -> None:
        self._carry(loop.carried)
        products = byte_products(loop, self._buffers) if self._writer.has_byte_products else None
        if products is None:
            self._rounds(loop, 0, loop.count)
        else:
            behind = products.before + WORD_BYTES * products.words
            self._rounds(loop, 0, products.before)
            self._words(loop, products)
            self._rounds(loop, behind, loop.count - behind)
        self._hand_out(loop.carried)

    def _rounds(self, loop: For, first: int, count: int) -> None:
        """So many from one on."""
        if not count:
            return
        with self._writer.counted(count) as counter:
            if first:
                kind = loop.var.type
                operands: list[Scalar[R]] = [Scalar(kind, counter), Scalar(kind, Literal(kind, first))]
                counter = self._writer.compute(Signature("integer.add", (kind, kind), kind), operands)
            self.hold(loop.var, counter)
            self.block(loop.body)
            self._advance(loop.carried, loop.body)

    def _words(self, loop: For, products: ByteProducts) -> None:
        """Four rounds at once."""
        (carried,) = loop.carried
        total = self._held[carried.inner]
        self.byte_products += 1
        first, second = products.factors
        with self._writer.counted(products.words) as counter:
            words = self._word(first, loop.var, counter, products), self._word(
                second, loop.var, counter, products
            )
            scalar = Scalar(carried.inner.type, total)
            kinds = first.result.type, second.result.type
            found = self._writer.sum_of_products(scalar, words, kinds)
            self._writer.move(total.register, Scalar(carried.inner.type, found))

    def _word(self, factor: Load, var: Var, counter: Held[R], products: ByteProducts) -> Held[R]:
        """Four bytes of a factor."""
        buffer = self._buffers[factor.buffer]
        constant, terms = flat_terms(buffer, factor.index)
        terms.pop(ITEM, None)
        del terms[var]
        place = self._places[buffer.name]
        steps = [(self.scalar(other), coefficient) for other, coefficient in terms.items()]
        steps.append((Scalar(var.type, counter), WORD_BYTES))
        place = replace(place, offset=place.offset + constant + products.before)
        return self._writer.load(_WORD, place, steps)

    def _while(self, loop: While) -> None:
        self._carry(loop.carried)
        with self._writer.repeated(loop.most) as leave_unless:
            self.block(loop.condition)
            leave_unless(self.scalar(loop.condition.yields[0]))
            self.block(loop.body)
            self._advance(loop.carried, loop.body)
        self._hand_out(loop.carried)

    def _if(self, branch: If) -> None:
        results = {var: self._writer.register(var.type) for var in branch.results}
        with self._writer.either(self.scalar(branch.condition)) as otherwise:
            self._arm(branch.then, results)
            if branch.otherwise.body or results:
                otherwise()
                self._arm(branch.otherwise, results)
        for var, register in results.items():
            self.hold(var, Held(register))

    def _arm(self, arm: Block, results: dict[Var, R]) -> None:
        self.block(arm)
        for register, value in zip(results.values(), arm.yields):
            self._writer.move(register, self.scalar(value))

    def _carry(self, carried: Sequence[Carried]) -> None:
        """Registers for what is carried, which begin as the initial values."""
        made: list[tuple[Var, R]] = []
        for one in carried:
            register = self._writer.register(one.inner.type)
            self._writer.move(register, self.scalar(one.initial))
            made.append((one.inner, register))
        for inner, register in made:
            self.hold(inner, Held(register))

    def _advance(self, carried: Sequence[Carried], body: Block) -> None:
        """The next values, all read before any is replaced."""
        inner = [self._held[one.inner].register for one in carried]
        values = [self.scalar(value) for value in body.yields]
        for k, value in enumerate(values):
            if isinstance(value.held, Held) and value.held.register in inner[:k]:
                register = self._writer.register(value.type)
                self._writer.move(register, value)
                values[k] = Scalar(value.type, Held(register))
        for register, value in zip(inner, values):
            if value.held != Held(register):
                self._writer.move(register, value)

    def _hand_out(self, carried: Sequence[Carried]) -> None:
        """What was carried goes on under the name that it has after the loop."""
        for one in carried:
            self._held[one.outer] = self._held[one.inner]
