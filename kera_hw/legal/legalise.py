"""A loop program in the native set: the same loops and buffers, each scalar operation written out.

Elements of buffers are of 8, 16, 32 or 64 bits: another integer lies in the next of these widths, extended; a
bool is a u8 of 0 or 1, and f16 and bf16 are their bits. Results and states hold canonical NaNs; parameters
may hold any, and so may temporaries.
"""
from __future__ import annotations

from dataclasses import replace

from kera_hw.legal.demand import demand_of
from kera_hw.legal.native import NATIVE, NOTHING_MORE, Native
from kera_hw.legal.rules import RULES
from kera_hw.legal.values import Value
from kera_hw.legal.writer import Writer
from kera_hw.loops.program import (
    Affine,
    Alloc,
    Block,
    Buffer,
    Carried,
    For,
    If,
    Index,
    Load,
    LoopProgram,
    Op,
    Operand,
    Schedule,
    Statement,
    Store,
    Var,
    While,
)
from kera_hw.loops.rewrite import substituted
from kera_hw.loops.spans import Spans
from kera_hw.ops.intervals import MaybeInterval, type_interval
from kera_hw.types import BoolType, FloatType


def legalise(program: LoopProgram, extra: Native = NOTHING_MORE) -> LoopProgram:
    """The program in operations of the native set, and of ``extra``, which the machine has as well.

    What loops say of pipelines and shared units speaks of the operations that were, and goes with them.
    Raises KeraError (K0704) for an operation that is neither native nor made of others.
    """
    return _Legalisation(program, {**NATIVE, **extra}).run()


class _Legalisation:
    def __init__(self, program: LoopProgram, native: Native) -> None:
        self.program = program
        self.to = Writer(native, RULES, {buffer.name for buffer in program.buffers})
        self.emit = self.to.emit
        self.demand = demand_of(program, self.to.forms)
        self.spans = Spans(program.body)
        self.values: dict[Var, Value] = {}
        self.buffers: dict[str, tuple[Buffer, Buffer]] = {}  # as it was, as it is

    def run(self) -> LoopProgram:
        outside = [self._buffer(buffer, buffer.name) for buffer in self.program.buffers]
        with self.emit.block() as body:
            self._statements(self.program.body)
        buffers = (*outside, *self.emit.constants.values())
        return LoopProgram(self.program.name, buffers, Block(tuple(body)))

    def _buffer(self, buffer: Buffer, name: str) -> Buffer:
        made = replace(buffer, element=self.to.forms.stored(buffer.element), name=name)
        self.buffers[buffer.name] = buffer, made
        return made

    # Scalars

    def _use(self, operand: Operand) -> Value:
        """A value of its own: what is settled for one statement may not be seen from another."""
        if not isinstance(operand, Var):
            return self.to.literal(operand)
        value = self.values[operand]
        return Value(value.type, value.operand, value.span, value.settled, value.packed)

    def _define(self, var: Var, value: Value) -> None:
        if var in self.demand.settled:
            self.to.settled(value)
        elif var in self.demand.valued:
            self.to.loose(value)
        if var in self.demand.indexing:
            self._hold(value, self._span(var))
        self.values[var] = value

    def _span(self, var: Var) -> MaybeInterval:
        if isinstance(var.type, FloatType):
            return None
        found = self.spans.get(var)
        return type_interval(var.type) if found is None else found

    def _hold(self, value: Value, span: MaybeInterval) -> None:
        """An index within its range, where the native type alone would not show it."""
        shown = self.emit.range(value.operand)
        assert span is not None and shown is not None
        if shown.high > span.high:
            value.operand = self.emit.least(value.operand, span.high)
        if shown.low < span.low:
            value.operand = self.emit.most(value.operand, span.low)

    def _passed(self, operand: Operand, to: Var) -> Operand:
        """What becomes another scalar, in that one's form."""
        value = self._use(operand)
        return self.to.settled(value) if to in self.demand.settled else self.to.loose(value)

    def _received(self, var: Var, operand: Var, like: Var) -> Value:
        """A scalar that a loop or branch gives, in the form of ``like``."""
        settled = like in self.demand.settled or not self.to.forms.may_be_loose(var.type)
        return Value(var.type, operand, self._span(var), settled)

    def _index(self, index: Index) -> Index:
        return tuple(self._affine(part) for part in index)

    def _affine(self, part: Affine) -> Affine:
        return substituted(part, lambda var: self.values[var].operand) if part.terms else part

    # Statements

    def _statements(self, block: Block) -> None:
        for statement in block.body:
            self._statement(statement)

    def _statement(self, statement: Statement) -> None:
        if not isinstance(statement, Alloc):
            self.emit.place = statement.place
        match statement:
            case Op():
                inputs = [self._use(operand) for operand in statement.operands]
                spans = [self._span(result) for result in statement.results]
                found = self.to.outputs(statement.opcode, inputs, dict(statement.attrs), spans[0])
                for result, value, span in zip(statement.results, found, spans, strict=True):
                    self._define(result, Value(value.type, value.operand, span, value.settled, value.packed))
            case Load():
                self._load(statement)
            case Store():
                self._store(statement)
            case Alloc(buffer=buffer):
                self.emit.append(Alloc(self._buffer(buffer, self.emit.name("t"))))
            case For():
                self._for(statement)
            case While():
                self._while(statement)
            case If():
                self._if(statement)

    def _load(self, load: Load) -> None:
        """Temporaries hold any NaN but in f16 and bf16, and so may parameters."""
        was, buffer = self.buffers[load.buffer]
        kind = was.element
        operand: Operand = self.emit.load(buffer, self._index(load.index))
        packed = self.to.forms.is_small(kind)
        settled = True
        if isinstance(kind, BoolType):
            operand = self.emit.is_other(operand, 0)
        elif isinstance(kind, FloatType):
            settled = was.kind in ("const", "state", "result") or (packed and was.kind == "temp")
            if not packed and operand.type != kind:
                operand = self.emit.floating(operand, kind)
        self._define(load.result, Value(kind, operand, self._span(load.result), settled, packed))

    def _store(self, store: Store) -> None:
        was, buffer = self.buffers[store.buffer]
        value = self._use(store.value)
        if isinstance(was.element, BoolType):
            operand = self.emit.cast(self.to.settled(value), buffer.element)
        elif not isinstance(was.element, FloatType):
            operand = self.to.settled(value)
        elif buffer.element != was.element:
            operand = self.to.word(value)
        else:
            shown = was.kind in ("result", "state")
            operand = self.to.settled(value) if shown else self.to.loose(value)
        self.emit.store(buffer, self._index(store.index), operand)

    def _inner(self, carried: tuple[Carried, ...]) -> list[Var]:
        return [self.emit.fresh(self.to.forms.working(item.inner.type)) for item in carried]

    def _enter(self, carried: tuple[Carried, ...], inner: list[Var]) -> None:
        for item, operand in zip(carried, inner):
            self._define(item.inner, self._received(item.inner, operand, item.inner))

    def _yields(self, carried: tuple[Carried, ...], block: Block) -> tuple[Operand, ...]:
        return tuple(self._passed(value, item.inner) for item, value in zip(carried, block.yields))

    def _leave(self, carried: tuple[Carried, ...], outer: list[Var]) -> None:
        for item, operand in zip(carried, outer):
            self._define(item.outer, self._received(item.outer, operand, item.inner))

    def _for(self, loop: For) -> None:
        initial = [self._passed(item.initial, item.inner) for item in loop.carried]
        counter, inner = self.emit.counter(loop.count), self._inner(loop.carried)
        with self.emit.block() as body:
            self._define(loop.var, Value(loop.var.type, counter, self.emit.range(counter), True))
            self._enter(loop.carried, inner)
            self._statements(loop.body)
            yields = self._yields(loop.carried, loop.body)
        outer = self._inner(loop.carried)
        carried = tuple(map(Carried, inner, initial, outer))
        made = replace(
            loop, var=counter, carried=carried, body=Block(tuple(body), yields),
            schedule=Schedule(on=loop.schedule.on),
        )
        self.emit.append(made)
        self._leave(loop.carried, outer)

    def _while(self, loop: While) -> None:
        initial = [self._passed(item.initial, item.inner) for item in loop.carried]
        inner = self._inner(loop.carried)
        with self.emit.block() as test:
            self._enter(loop.carried, inner)
            self._statements(loop.condition)
            (going,) = (self.to.settled(self._use(operand)) for operand in loop.condition.yields)
        with self.emit.block() as body:
            self._enter(loop.carried, inner)
            self._statements(loop.body)
            yields = self._yields(loop.carried, loop.body)
        outer = self._inner(loop.carried)
        carried = tuple(map(Carried, inner, initial, outer))
        condition = Block(tuple(test), (going,))
        self.emit.append(replace(loop, carried=carried, condition=condition, body=Block(tuple(body), yields)))
        self._leave(loop.carried, outer)

    def _if(self, branch: If) -> None:
        condition = self.to.settled(self._use(branch.condition))
        arms: list[Block] = []
        for block in (branch.then, branch.otherwise):
            with self.emit.block() as body:
                self._statements(block)
                yields = tuple(map(self._passed, block.yields, branch.results))
            arms.append(Block(tuple(body), yields))
        results = tuple(self.emit.fresh(self.to.forms.working(var.type)) for var in branch.results)
        made = replace(branch, condition=condition, then=arms[0], otherwise=arms[1], results=results)
        self.emit.append(made)
        for var, operand in zip(branch.results, results):
            self._define(var, self._received(var, operand, var))
