"""A loop program walked with symbols for values: loops are unrolled, branches made selects.

Every scalar is a reference to a node being made, every buffer its elements or a memory. Counters of the loops
that are walked are numbers, so that an index of such counters costs nothing.
"""
from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import AbstractContextManager, contextmanager

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
from kera_hw.lower.fragment import Fragment
from kera_hw.rtl.lower import operations, scalars
from kera_hw.rtl.lower.budget import WIRES_A_STEP, Meter
from kera_hw.rtl.lower.builder import Builder, carrier
from kera_hw.rtl.lower.general import General
from kera_hw.rtl.lower.joins import Delays, Join, join_of, joined
from kera_hw.rtl.lower.places import Held, Sum
from kera_hw.rtl.lower.storage import Condition, Elements, Kept, Storage, Table, on_condition, words_of
from kera_hw.rtl.lower.switches import Asked, arms_of, number_asked
from kera_hw.types import BOOL, FixType, IntType, Type

_HOLDING = {"integer.min": "high", "integer.max": "low"}

Scalars = Callable[[Var], Ref]
Buffers = Callable[[str], Storage]
Choose = Callable[[Type, Sequence[Ref]], Ref]
"""One of the values that the sides of a branch give."""


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
        self._values: dict[str, Ref | Held | Asked] = {}  # by a scalar's name, as are counts
        self._counts: dict[str, int] = {}
        self._conditions: list[Condition] = []
        self._stored: dict[int, tuple[str, ...]] = {}
        self._circuits: dict[int, operations.Circuit] = {}
        self._places: dict[int, tuple[int, list[tuple[str, int]]]] = {}
        self._joins: dict[int, Join | None] = {}
        self._delays = Delays(builder)
        self._general = general or General()

    # Scalars

    def define(self, var: Var, value: Ref) -> None:
        """What a scalar is; a counter may be in a narrower type than its own."""
        self._values[var.name] = value

    def operand(self, operand: Operand) -> Ref:
        """A scalar as an operation takes it: floats as their bits."""
        if not isinstance(operand, Var):
            return self._literal(operand.type, operand.bits)
        count = self._counts.get(operand.name)
        if count is not None:
            return self.builder.const(COUNTER, count)
        value = self._value(operand)
        if not isinstance(value, Ref):
            value = self._values[operand.name] = value.made(self.builder)
        kind = carrier(operand.type)
        return value if value.type == kind else self.builder.cast(value, kind)

    def _literal(self, kind: Type, bits: int) -> Ref:
        return self.builder.const(carrier(kind), bits)

    def _value(self, var: Var) -> Ref | Held | Asked:
        found = self._values.get(var.name)
        if found is None:
            outside, _ = self._outside
            assert outside is not None, f"{var.name} is not defined"
            found = self._values[var.name] = outside(var)
        return found

    def _index(self, index: ProgramIndex) -> list[Sum]:
        return [self._sum(part.constant, part.terms) for part in index]

    def _sum(self, constant: int, terms: Iterable[tuple[Var, int]]) -> Sum:
        left: list[tuple[Ref | Held, int]] = []
        for var, step in terms:
            count = self._counts.get(var.name)
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
                case Load():
                    self._load(statement)
                case Store():
                    self._store(statement)
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

    def _load(self, load: Load) -> None:
        source = self.buffer(load.buffer)
        place = self._place_of(load, source) if isinstance(source, Elements) else None
        if place is None:
            index, under = self._index(load.index), self._conditions
            found = source.load(index, under) if isinstance(source, Kept) else source.load(index)
            self._values[load.result.name] = found
        else:
            assert isinstance(source, Elements)
            self._values[load.result.name] = source.item(place)

    def _store(self, store: Store) -> None:
        target, value = self.buffer(store.buffer), self.operand(store.value)
        place = self._place_of(store, target) if isinstance(target, Elements) else None
        if place is not None:
            assert isinstance(target, Elements)
            target.items[place] = value
        elif isinstance(target, Kept):
            target.store(self._index(store.index), value, self._conditions)
        else:
            assert isinstance(target, Elements), f"{store.buffer} is a constant"
            target.store(self._index(store.index), value)

    def _place_of(self, access: Load | Store, elements: Elements) -> int | None:
        """The element that an access names, if counters alone decide which."""
        known = self._places.get(id(access))
        if known is None:
            total = elements.place(access.index)
            terms = [(var.name, step) for var, step in total.terms]
            known = self._places[id(access)] = total.constant, terms
        place, terms = known
        for name, step in terms:
            count = self._counts.get(name)
            if count is None:
                return None
            place += count * step
        return place

    def _op(self, op: Op) -> None:
        hold = _HOLDING.get(op.opcode)
        if hold is not None and self._hold(op, hold):
            return
        if op.opcode == "compare.eq" and self._ask(op):
            return
        circuit = self._circuits.get(id(op))
        if circuit is None:
            circuit = self._circuits[id(op)] = self.circuit(op)
        for var, value in zip(op.results, circuit([self.operand(operand) for operand in op.operands])):
            self._values[var.name] = value

    def _hold(self, op: Op, side: str) -> bool:
        """Leave a bound by a constant until more than an index wants it."""
        value, limit = op.operands
        if not isinstance(value, Var) or isinstance(limit, Var) or value.name in self._counts:
            return False
        bound, found = self.builder.value(self.operand(limit)), self._value(value)
        if isinstance(found, Held) and (side == "high" or found.low is not None):
            return False
        if not isinstance(found, Held):
            if isinstance(found, Asked) or self.builder.value(found) is not None or found.type != limit.type:
                return False
            found = Held(found, None, None, self.builder.store.origin)
        low, high = (bound, found.high) if side == "low" else (found.low, bound)
        self._values[op.results[0].name] = Held(found.source, low, high, found.origin)
        return True

    def _ask(self, op: Op) -> bool:
        """Leave a comparison with a number until more than a branch by number wants it."""
        asked = number_asked(op)
        if asked is None or not isinstance(op.operands[0].type, IntType):
            return False
        value = self.operand(asked[0])
        if self.builder.value(value) is not None or self.builder.range(value).low < 0:
            return False
        self._values[op.results[0].name] = Asked(*asked[:1], value, asked[1], self.builder.store.origin)
        return True

    def circuit(self, op: Op) -> operations.Circuit:
        """How an operation is made: by a circuit of its own, or by the program that its expansion is."""
        kinds, results = [operand.type for operand in op.operands], [var.type for var in op.results]
        attrs, every = dict(op.attrs), [*kinds, *results]
        found = operations.circuit_of(self.builder, op.opcode, kinds, results, attrs)
        if found is not None:
            return found
        program = self._general.program_of(op.opcode, kinds, attrs)
        if not operations.lacks_unit(op.opcode, every):
            return lambda args: self._inside(program, args, self.tables)
        what = f"`{op.opcode.partition('.')[2]}` on {operations.float_type(every)}"

        def general(args: Sequence[Ref]) -> list[Ref]:
            """What the arithmetic takes is noted, its tables are read by address."""
            with self.meter.writing(what):
                return self._inside(program, args, True)

        return general

    def _inside(self, program: Fragment, args: Sequence[Ref], tables: bool) -> list[Ref]:
        inner = Walker(self.builder, self.meter, tables=tables, general=self._general)
        inner.storage.update({buffer.name: inner.constant(buffer) for buffer in program.constants})
        for var, value in zip(program.params, args):
            inner.define(var, value)
        return inner.block(program.body)

    # Structure

    def _for(self, loop: For) -> None:
        join = self._join(loop)
        if join is not None:
            self._joined(loop, join)
            return
        carried = [self.operand(item.initial) for item in loop.carried]
        for count in range(loop.count):
            self._counts[loop.var.name] = count
            for item, value in zip(loop.carried, carried):
                self._values[item.inner.name] = value
            carried = self.block(loop.body)
        for item, value in zip(loop.carried, carried):
            self._values[item.outer.name] = value

    def _joined(self, loop: For, join: Join) -> None:
        """A loop that joins terms, in whatever order they are there soonest."""
        terms = [[self.operand(item.initial)] for item in loop.carried]
        self._collect(loop, join, terms)
        for item, op, found in zip(loop.carried, join.ops, terms):
            self.builder.store.origin = op.place or self._place
            circuit = self.circuit(op)

            def combine(a: Ref, b: Ref, circuit: operations.Circuit = circuit) -> Ref:
                return circuit([a, b])[0]

            self._values[item.outer.name] = joined(self.builder, self._delays, op.opcode, found, combine)

    def _collect(self, loop: For, join: Join, terms: Sequence[list[Ref]]) -> None:
        """The terms of all rounds, in order, for each value that is carried."""
        for count in range(loop.count):
            self._counts[loop.var.name] = count
            self.run(join.work)
            if join.inner is not None:
                self._collect(*join.inner, terms)
                self.run(join.after)
            for found, term in zip(terms, join.terms):
                found.append(self.operand(term))

    def _join(self, loop: For) -> Join | None:
        if id(loop) not in self._joins:
            self._joins[id(loop)] = join_of(loop)
        return self._joins[id(loop)]

    def _while(self, loop: While) -> None:
        carried = [self.operand(item.initial) for item in loop.carried]
        kinds = [item.inner.type for item in loop.carried]
        active = self.builder.const(BOOL, 1)
        for _ in range(loop.most):
            for item, value in zip(loop.carried, carried):
                self._values[item.inner.name] = value
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
            self._values[item.outer.name] = value

    def _if(self, branch: If) -> None:
        asked = self._values.get(branch.condition.name) if isinstance(branch.condition, Var) else None
        arms = arms_of(branch, asked) if isinstance(asked, Asked) else None
        if isinstance(asked, Asked) and arms is not None:
            self._by_number(branch, asked.value, arms)
            return
        condition = self.operand(branch.condition)
        known = self.builder.value(condition)
        if known is not None:
            self._results(branch, self.block(branch.then if known else branch.otherwise))
            return
        ways = [on_condition(condition)] * 2
        if self._has_memory(branch):
            ways[1] = Condition(condition, 0, self.builder.op("bits.not", condition))
        sides = list(zip(ways, (branch.then, branch.otherwise)))
        self._results(branch, self._sides(
            branch, sides, lambda kind, items: self._choose(kind, condition, *items)
        ))

    def _by_number(self, branch: If, selector: Ref, arms: Sequence[Block]) -> None:
        """One of several blocks; what leads to each is a comparison that only memories need."""
        last = len(arms) - 1
        ways = [Condition(selector, number, selector) for number in range(len(arms))]
        if self._has_memory(branch):
            for number in range(len(arms)):
                limit = self.builder.const(selector.type, number)
                holds = self.builder.op(f"compare.{'ge' if number == last else 'eq'}", selector, limit)
                ways[number] = Condition(selector, number, holds)

        def choose(kind: Type, items: Sequence[Ref]) -> Ref:
            raws = [scalars.raw_of(self.builder, item) for item in items]
            return self._typed(kind, self.builder.pick(selector, raws))

        self._results(branch, self._sides(branch, list(zip(ways, arms)), choose))

    def _results(self, branch: If, values: Sequence[Ref]) -> None:
        for var, value in zip(branch.results, values):
            self._values[var.name] = value

    def _sides(
        self, branch: If, sides: Sequence[tuple[Condition, Block]], choose: Choose
    ) -> list[Ref]:
        """What a branch gives and leaves in buffers: chosen among what its sides do."""
        names = self._stored_in(branch)
        wires = len(sides) * sum(len(storage.items) for _, storage in self._elements(names))
        self.meter.visited(wires // WIRES_A_STEP)
        before = {name: storage.items for name, storage in self._elements(names)}
        after: dict[str, list[list[Ref | None]]] = {name: [] for name in before}
        given: list[list[Ref]] = []
        for condition, side in sides:
            for name, storage in self._elements(names):
                storage.items = list(before[name])
            with self._in_branch(condition):
                given.append(self.block(side))
            for name, storage in self._elements(names):
                after[name].append(storage.items)
        self.builder.store.origin = branch.place or self._place
        for name, storage in self._elements(names):
            storage.items = [
                self._merged(storage.buffer.element, column, choose) for column in zip(*after[name])
            ]
        return [choose(var.type, column) for var, column in zip(branch.results, zip(*given))]

    def _merged(self, kind: Type, column: Sequence[Ref | None], choose: Choose) -> Ref | None:
        """Where a side has written nothing, nobody reads what it left."""
        there = next((item for item in column if item is not None), None)
        if there is None or all(item is there for item in column):
            return there
        return choose(kind, [there if item is None else item for item in column])

    def under(self, holds: Ref) -> AbstractContextManager[None]:
        """What is written to memories meanwhile is written where ``holds``."""
        return self._in_branch(on_condition(holds))

    @contextmanager
    def _in_branch(self, condition: Condition) -> Generator[None]:
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
