"""Statements of a loop program in native operations as PTX: what one thread does."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kera_hw.cpu_gpu.ptx.code import Code, register_type
from kera_hw.cpu_gpu.ptx.scalars import RULES, Held, Source, typed
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
from kera_hw.schedule.software.vector_loops import ITEM, flat_terms
from kera_hw.types import BoolType, IntType, Type


class Place(NamedTuple):
    """Where a buffer begins: a state space, a register with an address in it, bytes behind that."""

    space: str
    base: str
    offset: int = 0


class Body:
    """Writes statements. ``places``: of all buffers that they reach."""

    def __init__(self, code: Code, program: LoopProgram, places: Mapping[str, Place]) -> None:
        self.code = code
        self._buffers = {buffer.name: buffer for buffer in program.buffers}
        outside = (item.buffer for item in program.body.body if isinstance(item, Alloc))
        self._buffers |= {buffer.name: buffer for buffer in outside}
        self._places = places
        self._held: dict[Var, Held] = {}

    # Scalars

    def source(self, operand: Operand) -> Source:
        held = operand if isinstance(operand, Literal) else self._held[operand]
        return Source(self.code, operand.type, held)

    def hold(self, var: Var, register: str) -> None:
        """A scalar that somebody else computed."""
        self._held[var] = Held(register)

    def take(self, var: Var, place: Place) -> None:
        """A scalar that an earlier region left in memory."""
        kind = var.type
        if isinstance(kind, BoolType):
            word = self._loaded(place.space, unsigned(8), _address(place))
            self.hold(var, self.code.give("setp.ne.u32", word, "0"))
        else:
            self.hold(var, self._loaded(place.space, kind, _address(place)))

    def leave(self, var: Var, place: Place) -> None:
        """A scalar for later regions."""
        kind, source = var.type, self.source(var)
        if isinstance(kind, BoolType):
            word = self.code.give("selp.b32", "1", "0", source.read())
            self.code.op(f"st.{place.space}.u8", _address(place), word)
        else:
            self.code.op(f"st.{place.space}.{_stored(kind)}", _address(place), source.register())

    def _move(self, register: str, kind: Type, value: str) -> None:
        self.code.op(f"mov.{register_type(kind)}", register, value)

    # Statements

    def block(self, block: Block) -> None:
        for statement in block.body:
            self._statement(statement)

    def _statement(self, statement: Statement) -> None:
        if not isinstance(statement, Alloc) and statement.place is not None:
            self.code.comment(f"{statement.place.path}:{statement.place.line}")
        match statement:
            case Op():
                self._op(statement)
            case Load(result=result, buffer=name, index=index):
                buffer = self._buffers[name]
                space, address = self._element(buffer, index)
                self.hold(result, self._loaded(space, buffer.element, address))
            case Store(buffer=name, index=index, value=value):
                buffer = self._buffers[name]
                space, address = self._element(buffer, index)
                self.code.op(f"st.{space}.{_stored(buffer.element)}", address, self._bits(value))
            case Alloc(buffer=buffer):
                self._buffers[buffer.name] = buffer
            case For():
                self._for(statement)
            case While():
                self._while(statement)
            case If():
                self._if(statement)

    def _op(self, op: Op) -> None:
        (result,) = op.results
        signature = Signature(op.opcode, tuple(operand.type for operand in op.operands), result.type)
        rule = RULES.get(op.opcode)
        assert rule is not None, f"{op.opcode} is no operation of PTX"
        self._held[result] = rule(self.code, [self.source(operand) for operand in op.operands], signature)

    # Memory

    def _element(self, buffer: Buffer, index: Index) -> tuple[str, str]:
        """The space and the address of an element."""
        place, size_bytes = self._places[buffer.name], element_bytes(buffer.element)
        constant, terms = flat_terms(buffer, index)
        terms.pop(ITEM, None)  # the place is that of the item
        base = place.base
        for var, coefficient in terms.items():
            held = self.source(var).read()
            step = str(coefficient * size_bytes)
            if register_type(var.type) == "b64":
                base = self.code.give("mad.lo.s64", held, step, base)
            elif typed(var.type) == "s32" and abs(coefficient * size_bytes) < 1 << 31:
                base = self.code.give("mad.wide.s32", held, step, base)
            else:
                wide = self.code.give(f"cvt.{typed(var.type)[0]}64.{typed(var.type)}", held)
                base = self.code.give("mad.lo.s64", wide, step, base)
        return place.space, self._address(base, place.offset + constant * size_bytes)

    def _address(self, base: str, offset: int) -> str:
        """An offset in the instruction where that takes it: 32 bits with a sign."""
        if not -(1 << 31) <= offset < 1 << 31:
            base, offset = self.code.give("add.s64", base, str(offset)), 0
        return _address(Place("", base, offset))

    def _loaded(self, space: str, kind: Type, address: str) -> str:
        if isinstance(kind, IntType) and kind.width_bits < 32:
            result = self.code.new("b32")
            self.code.op(f"ld.{space}.{'s' if kind.signed else 'u'}{kind.width_bits}", result, address)
            return result
        return self.code.give(f"ld.{space}.{_stored(kind)}", address)

    def _bits(self, value: Operand) -> str:
        """A value to be stored, in a register."""
        source = self.source(value)
        if isinstance(value, Literal):
            return source.register()
        return source.read(loose=True)

    # Control

    def _for(self, loop: For) -> None:
        self._carry(loop.carried)
        if loop.count:
            counter = self.code.give("mov.u64", "0")
            self.hold(loop.var, counter)
            again = self.code.label()
            self.code.place(again)
            self.block(loop.body)
            self._advance(loop.carried, loop.body)
            self.code.op("add.u64", counter, counter, "1")
            self.code.op("bra", again, guard=self.code.give("setp.lt.u64", counter, str(loop.count)))
        self._hand_out(loop.carried)

    def _while(self, loop: While) -> None:
        self._carry(loop.carried)
        rounds = self.code.give("mov.u64", "0")
        again, done = self.code.label(), self.code.label()
        self.code.place(again)
        self.code.op("bra", done, guard=self.code.give("setp.ge.u64", rounds, str(loop.most)))
        self.block(loop.condition)
        self.code.op("bra", done, guard=f"!{self.source(loop.condition.yields[0]).read()}")
        self.block(loop.body)
        self._advance(loop.carried, loop.body)
        self.code.op("add.u64", rounds, rounds, "1")
        self.code.op("bra", again)
        self.code.place(done)
        self._hand_out(loop.carried)

    def _if(self, branch: If) -> None:
        results = {var: self.code.new(register_type(var.type)) for var in branch.results}
        otherwise, done = self.code.label(), self.code.label()
        self.code.op("bra", otherwise, guard=f"!{self.source(branch.condition).read()}")
        self._arm(branch.then, results)
        if branch.otherwise.body or results:
            self.code.op("bra", done)
            self.code.place(otherwise)
            self._arm(branch.otherwise, results)
        else:
            self.code.place(otherwise)
        self.code.place(done)
        for var, register in results.items():
            self.hold(var, register)

    def _arm(self, arm: Block, results: dict[Var, str]) -> None:
        self.block(arm)
        for (var, register), value in zip(results.items(), arm.yields):
            self._move(register, var.type, self.source(value).read())

    def _carry(self, carried: Sequence[Carried]) -> None:
        """Registers for what is carried, which begin as the initial values."""
        for one in carried:
            register = self.code.new(register_type(one.inner.type))
            self._move(register, one.inner.type, self.source(one.initial).read())
            self.hold(one.inner, register)

    def _advance(self, carried: Sequence[Carried], body: Block) -> None:
        """The next values, all read before any is replaced."""
        inner = [self._held[one.inner].register for one in carried]
        values = [self.source(value).read() for value in body.yields]
        for k, (one, value) in enumerate(zip(carried, values)):
            if value in inner[:k]:
                values[k] = self.code.new(register_type(one.inner.type))
                self._move(values[k], one.inner.type, value)
        for one, register, value in zip(carried, inner, values):
            if register != value:
                self._move(register, one.inner.type, value)

    def _hand_out(self, carried: Sequence[Carried]) -> None:
        """What was carried goes on under the name that it has after the loop."""
        for one in carried:
            self._held[one.outer] = self._held[one.inner]


def _address(place: Place) -> str:
    return f"{place.base}{place.offset:+}" if place.offset else place.base


def _stored(kind: Type) -> str:
    """The type of a store, and of a load that need not extend."""
    if isinstance(kind, IntType) and kind.width_bits < 32:
        return f"u{kind.width_bits}"
    return register_type(kind)
