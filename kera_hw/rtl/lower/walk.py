"""A loop program walked with symbols for values: loops are unrolled, branches made selects.

Every scalar is a reference to a node being made, every buffer its elements or a memory. Counters of the loops
that are walked are numbers, so that an index of such counters costs nothing.
"""
from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager

from kera_hw.graph.node import Ref
from kera_hw.loops.program import (
    COUNTER,
    Alloc,
    Block,
    Buffer,
    For,
    If,
    Load,
    Op,
    Operand,
    Statement,
    Store,
    Var,
    While,
    blocks_of,
    statements,
)
from kera_hw.loops.program import Index as ProgramIndex
from kera_hw.rtl.lower import operations, scalars
from kera_hw.rtl.lower.budget import Meter
from kera_hw.rtl.lower.builder import Builder, carrier
from kera_hw.rtl.lower.general import General
from kera_hw.rtl.lower.places import Held, Sum
from kera_hw.rtl.lower.storage import Elements, Kept, Storage, Table, words_of
from kera_hw.rtl.lower.switches import Asked, arms_of, number_asked
from kera_hw.types import BOOL, FixType, IntType, Type

_HOLDING = {"integer.min": "high", "integer.max": "low"}

Scalars = Callable[[Var], Ref]
Buffers = Callable[[str], Storage]


class Walker:
    """Walks blocks. ``scalars`` and ``buffers`` are asked, once each, for what comes from outside of them.

    ``tables``: constants are read by address, wherever data decides which element is.
    """

    def __init__(
        self, builder: Builder, meter: Meter, scalars: Scalars | None = None, buffers: Buffers | None = None,
        tables: bool = False, general: General | None = None,
    ) -> None:
        self.builder = builder
        self.meter = meter
        self.storage: dict[str, Storage] = {}
        self.tables = tables
        self._outside = scalars, buffers
        self._place = builder.store.origin
        self._values: dict[Var, Ref | Held | Asked] = {}
        self._counts: dict[Var, int] = {}
        self._conditions: list[Ref] = []
        self._stored: dict[int, tuple[str, ...]] = {}
        self._general = general or General()

    # Scalars

    def define(self, var: Var, value: Ref) -> None:
        """What a scalar is; a counter may be in a narrower type than its own."""
        self._values[var] = value

    def operand(self, operand: Operand) -> Ref:
        """A scalar as an operation takes it: floats as their bits."""
        if not isinstance(operand, Var):
            return self._literal(operand.type, operand.bits)
        count = self._counts.get(operand)
        if count is not None:
            return self.builder.const(COUNTER, count)
        value = self._value(operand)
        if not isinstance(value, Ref):
            value = self._values[operand] = value.made(self.builder)
        kind = carrier(operand.type)
        return value if value.type == kind else self.builder.cast(value, kind)

    def _literal(self, kind: Type, bits: int) -> Ref:
        return self.builder.const(carrier(kind), bits)

    def _value(self, var: Var) -> Ref | Held | Asked:
        found = self._values.get(var)
        if found is None:
            outside, _ = self._outside
            assert outside is not None, f"{var.name} is not defined"
            found = self._values[var] = outside(var)
        return found

    def _index(self, index: ProgramIndex) -> list[Sum]:
        return [self._sum(part.constant, part.terms) for part in index]

    def _sum(self, constant: int, terms: Iterable[tuple[Var, int]]) -> Sum:
        left: list[tuple[Ref | Held, int]] = []
        for var, step in terms:
            count = self._counts.get(var)
            if count is None:
                value = self._value(var)
                assert not isinstance(value, Asked), "bools are no indices"
                count = None if isinstance(value, Held) else self.builder.value(value)
                if count is None:
                    left.append((value, step))
                    continue
            constant += count * step
        return Sum(constant, tuple(left))

    # Buffers

    def buffer(self, name: str) -> Storage:
        found = self.storage.get(name)
        if found is None:
            _, outside = self._outside
            assert outside is not None, f"{name} is not there"
            found = self.storage[name] = outside(name)
        return found

    def constant(self, buffer: Buffer, table: bool = False) -> Storage:
        """A constant's elements, or a table of them."""
        words = words_of(buffer)
        if self.tables or table:
            return Table(self.builder, buffer, words)
        kind = carrier(buffer.element)
        return Elements(self.builder, buffer, [self.builder.const(kind, word) for word in words])

    # Statements

    def block(self, block: Block) -> list[Ref]:
        """What the block yields."""
        self.run(block.body)
        return [self.operand(operand) for operand in block.yields]

    def run(self, body: Sequence[Statement]) -> None:
        self.meter.visited(len(body))
        for statement in body:
            if not isinstance(statement, Alloc):
                self.builder.store.origin = statement.place or self._place
            match statement:
                case Op():
                    self._op(statement)
                case Load(result=result, buffer=name, index=index):
                    self._values[result] = self.buffer(name).load(self._index(index))
                case Store(buffer=name, index=index, value=value):
                    self._store(name, index, self.operand(value))
                case Alloc(buffer=buffer):
                    self._alloc(buffer)
                case For():
                    self._for(statement)
                case While():
                    self._while(statement)
                case If():
                    self._if(statement)

    def _alloc(self, buffer: Buffer) -> None:
        """A temporary is new in each round, unless somebody keeps it in a memory."""
        if not isinstance(self.storage.get(buffer.name), Kept):
            self.storage[buffer.name] = Elements(self.builder, buffer)

    def _store(self, name: str, index: ProgramIndex, value: Ref) -> None:
        target = self.buffer(name)
        condition = self._condition() if isinstance(target, Kept) else None
        target.store(self._index(index), value, condition)

    def _op(self, op: Op) -> None:
        hold = _HOLDING.get(op.opcode)
        if hold is not None and self._hold(op, hold):
            return
        if op.opcode == "compare.eq" and self._ask(op):
            return
        args = [self.operand(operand) for operand in op.operands]
        kinds = [operand.type for operand in op.operands]
        for var, value in zip(op.results, self.apply(op.opcode, kinds, [v.type for v in op.results],
                                                     dict(op.attrs), args)):
            self._values[var] = value

    def _hold(self, op: Op, side: str) -> bool:
        """Leave a bound by a constant until more than an index wants it."""
        value, limit = op.operands
        if not isinstance(value, Var) or isinstance(limit, Var) or value in self._counts:
            return False
        bound, found = self.builder.value(self.operand(limit)), self._value(value)
        if isinstance(found, Held) and (side == "high" or found.low is not None):
            return False
        if not isinstance(found, Held):
            if isinstance(found, Asked) or self.builder.value(found) is not None or found.type != limit.type:
                return False
            found = Held(found, None, None, self.builder.store.origin)
        low, high = (bound, found.high) if side == "low" else (found.low, bound)
        self._values[op.results[0]] = Held(found.source, low, high, found.origin)
        return True

    def _ask(self, op: Op) -> bool:
        """Leave a comparison with a number until more than a branch by number wants it."""
        asked = number_asked(op)
        if asked is None or not isinstance(op.operands[0].type, IntType):
            return False
        value = self.operand(asked[0])
        if self.builder.value(value) is not None or self.builder.range(value).low < 0:
            return False
        self._values[op.results[0]] = Asked(*asked[:1], value, asked[1], self.builder.store.origin)
        return True

    def apply(
        self, opcode: str, kinds: Sequence[Type], results: Sequence[Type], attrs: operations.Attributes,
        args: Sequence[Ref],
    ) -> list[Ref]:
        """A scalar operation by its circuit, or by the program that its expansion is."""
        if operations.has_circuit(opcode, [*kinds, *results]):
            return operations.apply(self.builder, opcode, kinds, results, attrs, args)
        program = self._general.program_of(opcode, kinds, attrs)
        lacking = operations.lacks_unit(opcode, [*kinds, *results])
        inner = Walker(self.builder, self.meter, tables=self.tables or lacking, general=self._general)
        inner.storage.update({buffer.name: inner.constant(buffer) for buffer in program.constants})
        for var, value in zip(program.params, args):
            inner.define(var, value)
        if not lacking:
            return inner.block(program.body)
        what = f"`{opcode.partition('.')[2]}` on {operations.float_type([*kinds, *results])}"
        with self.meter.writing(what):
            return inner.block(program.body)

    # Structure

    def _for(self, loop: For) -> None:
        carried = [self.operand(item.initial) for item in loop.carried]
        for count in range(loop.count):
            self._counts[loop.var] = count
            for item, value in zip(loop.carried, carried):
                self._values[item.inner] = value
            carried = self.block(loop.body)
        for item, value in zip(loop.carried, carried):
            self._values[item.outer] = value

    def _while(self, loop: While) -> None:
        carried = [self.operand(item.initial) for item in loop.carried]
        kinds = [item.inner.type for item in loop.carried]
        active = self.builder.const(BOOL, 1)
        for _ in range(loop.most):
            for item, value in zip(loop.carried, carried):
                self._values[item.inner] = value
            (goes_on,) = self.block(loop.condition)
            active = self.builder.op("bits.and", active, goes_on)
            if self.builder.value(active) == 0:
                break
            after: list[Ref] = []
            with self.guarded(active, self._stored_in(loop)):
                after = self.block(loop.body)
            self.builder.store.origin = loop.place or self._place
            carried = [self._choose(kind, active, new, old) for kind, new, old in zip(kinds, after, carried)]
        for item, value in zip(loop.carried, carried):
            self._values[item.outer] = value

    def _if(self, branch: If) -> None:
        asked = self._values.get(branch.condition) if isinstance(branch.condition, Var) else None
        arms = arms_of(branch, asked) if isinstance(asked, Asked) else None
        if isinstance(asked, Asked) and arms is not None:
            self._by_number(branch, asked.value, arms)
            return
        condition = self.operand(branch.condition)
        known = self.builder.value(condition)
        if known is not None:
            self._results(branch, self.block(branch.then if known else branch.otherwise))
            return
        inverse = self.builder.op("bits.not", condition) if self._has_memory(branch) else condition
        sides = self._sides(branch, [(condition, branch.then), (inverse, branch.otherwise)],
                            lambda kind, items: self._choose(kind, condition, *items))
        self._results(branch, sides)

    def _by_number(self, branch: If, selector: Ref, arms: Sequence[Block]) -> None:
        """One of several blocks; what leads to each is a comparison that only memories need."""
        last = len(arms) - 1
        conditions = [selector] * len(arms)
        if self._has_memory(branch):
            for number in range(len(arms)):
                verb = "eq" if number < last else "ge"
                limit = self.builder.const(selector.type, number)
                conditions[number] = self.builder.op(f"compare.{verb}", selector, limit)

        def choose(kind: Type, items: Sequence[Ref]) -> Ref:
            raws = [scalars.raw_of(self.builder, item) for item in items]
            return self._typed(kind, self.builder.pick(selector, raws))

        self._results(branch, self._sides(branch, list(zip(conditions, arms)), choose))

    def _results(self, branch: If, values: Sequence[Ref]) -> None:
        for var, value in zip(branch.results, values):
            self._values[var] = value

    def _sides(
        self, branch: If, sides: Sequence[tuple[Ref, Block]], choose: Callable[[Type, Sequence[Ref]], Ref]
    ) -> list[Ref]:
        """What a branch gives and leaves in buffers: chosen among what its sides do."""
        names = self._stored_in(branch)
        self.meter.visited(len(sides) * sum(len(storage.items) for _, storage in self._elements(names)) // 64)
        before = {name: storage.items for name, storage in self._elements(names)}
        entries = {name: [bank.seen for bank in storage.banks] for name, storage in self._kept()}
        after: dict[str, list[list[Ref | None]]] = {name: [] for name in before}
        given: list[list[Ref]] = []
        for condition, side in sides:
            for name, storage in self._elements(names):
                storage.items = list(before[name])
            for name, storage in self._kept():
                for bank, version in zip(storage.banks, entries[name]):
                    bank.seen = version
            with self.under(condition):
                given.append(self.block(side))
            for name, storage in self._elements(names):
                after[name].append(storage.items)
        self.builder.store.origin = branch.place or self._place
        for name, storage in self._elements(names):
            storage.items = [
                self._merged(storage.buffer.element, column, choose) for column in zip(*after[name])
            ]
        for _, storage in self._kept():
            for bank in storage.banks:
                bank.seen = bank.head
        return [choose(var.type, column) for var, column in zip(branch.results, zip(*given))]

    def _merged(
        self, kind: Type, column: Sequence[Ref | None], choose: Callable[[Type, Sequence[Ref]], Ref]
    ) -> Ref | None:
        """Where a side has written nothing, nobody reads what it left."""
        there = next((item for item in column if item is not None), None)
        if there is None or all(item is there for item in column):
            return there
        return choose(kind, [there if item is None else item for item in column])

    @contextmanager
    def under(self, condition: Ref) -> Generator[None]:
        """What is written to memories meanwhile is written under a condition."""
        self._conditions.append(condition)
        try:
            yield
        finally:
            self._conditions.pop()

    @contextmanager
    def guarded(self, condition: Ref, names: Iterable[str]) -> Generator[None]:
        """What is written meanwhile, to the buffers named too, is written under a condition."""
        before = {name: list(storage.items) for name, storage in self._elements(names)}
        with self.under(condition):
            yield
        for name, storage in self._elements(before):
            storage.items = [
                new if old is None or new is None or new is old
                else self._choose(storage.buffer.element, condition, new, old)
                for new, old in zip(storage.items, before[name])
            ]

    def _condition(self) -> Ref | None:
        """That of the place at work; None where everything leads to it."""
        found: Ref | None = None
        for condition in self._conditions:
            found = condition if found is None else self.builder.op("bits.and", found, condition)
        return found

    def _choose(self, kind: Type, condition: Ref, then: Ref, otherwise: Ref) -> Ref:
        """A choice between fixed-point numbers is one between integers."""
        raws = (scalars.raw_of(self.builder, item) for item in (then, otherwise))
        return self._typed(kind, self.builder.select(condition, *raws))

    def _typed(self, kind: Type, raw: Ref) -> Ref:
        return scalars.of_raw(self.builder, raw, kind) if isinstance(kind, FixType) else raw

    # What is known of statements

    def _elements(self, names: Iterable[str]) -> list[tuple[str, Elements]]:
        found = ((name, self.storage.get(name)) for name in names)
        return [(name, storage) for name, storage in found if isinstance(storage, Elements)]

    def _kept(self) -> list[tuple[str, Kept]]:
        return [(name, storage) for name, storage in self.storage.items() if isinstance(storage, Kept)]

    def _has_memory(self, statement: Statement) -> bool:
        return any(isinstance(self.storage.get(name), Kept) for name in self._stored_in(statement))

    def _stored_in(self, statement: Statement) -> tuple[str, ...]:
        """The buffers from outside that a statement writes."""
        found = self._stored.get(id(statement))
        if found is None:
            inside = [item for block in blocks_of(statement) for item in statements(block)]
            own = {item.buffer.name for item in inside if isinstance(item, Alloc)}
            names = (item.buffer for item in inside if isinstance(item, Store))
            found = self._stored[id(statement)] = tuple(n for n in dict.fromkeys(names) if n not in own)
            for name in found:
                self.buffer(name)
        return found
