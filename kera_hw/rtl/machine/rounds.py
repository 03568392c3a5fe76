"""One round of a loop as a flat design, with the code before and after the loop merged into it.

A round is what an item is to a pipeline: every ``initiation_interval`` cycles one starts. What is carried
from round to round is state, and so is what a loop reads from outside: the first round takes it from the
ports, or from the code before, which costs no cycle of a recurrence. The code after the loop works in every
round; the result is that of the round in which ``done`` is high. Rounds that start after it, because the exit
is seen only when it leaves the pipeline, change nothing that lasts.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kera_hw.graph.node import Export, Ref
from kera_hw.graph.store import Store as GraphStore
from kera_hw.loops.program import Block, For, LoopProgram, Statement, Store, Var, While, statements
from kera_hw.ops.intervals import Interval
from kera_hw.rtl.lower import scalars
from kera_hw.rtl.lower.budget import Meter
from kera_hw.rtl.lower.builder import Builder, carrier, width_of
from kera_hw.rtl.lower.design import FlatDesign, FlatLeaf, FlatState, LoweringError
from kera_hw.rtl.lower.division import PatientBuilder
from kera_hw.rtl.lower.floats import lowering as floats
from kera_hw.rtl.lower.ports import bus_widths, parameter_buses, place_leaves, result_buses
from kera_hw.rtl.lower.storage import Elements, Storage, words_of
from kera_hw.rtl.lower.walk import Walker
from kera_hw.rtl.machine.parts import Kept, Parts
from kera_hw.support import Diagnostic
from kera_hw.types import BOOL, FixType, IntType, Type

FIRST, LAST, OVER, ROUND, DONE = "first", "last", "over", "round", "done"
"""Buses beside the ports: whether a round is the first of its item, the last of a counted loop, one beyond
the most of another, and its number; whether the result is there."""

MOST_HELD_BITS = 8192
"""What a round may hold in registers, from round to round."""


@dataclass(frozen=True, slots=True)
class RoundDesign:
    """A round, and how many there are: ``rounds`` exactly, or at most before that which finds the exit."""

    flat: FlatDesign
    counted: bool
    rounds: int
    program: LoopProgram
    loop: For | While
    rests: bool = False
    """Whether the last round is one after the loop's own, in which the code behind the loop works."""

    @property
    def flags(self) -> tuple[tuple[str, int], ...]:
        """The first inputs, which say which round it is."""
        return self.flat.in_buses[: 3 if self.counted else 2]


class _HeldElements(Elements):
    """A buffer from outside whose elements are held from the first round on, once asked for."""

    def __init__(self, builder: Builder, source: Elements, states: _States) -> None:
        super().__init__(builder, source.buffer)
        self._source, self._states = source, states

    def item(self, position: int) -> Ref:
        """An element."""
        found = self.items[position]
        if found is None:
            name = f"{self.buffer.name}_{position}"
            found = self.items[position] = self._states.held(self._source.item(position), name)
        return found


class _States:
    """The states of a round, in order, with what each takes next."""

    def __init__(self, builder: Builder, first: Ref, taken: int) -> None:
        self._builder, self._first, self._taken = builder, first, taken
        self._held: dict[Ref, Ref] = {}
        self.states: list[FlatState] = []
        self.nexts: list[Ref | None] = []

    def add(self, name: str, kind: Type, initial: int = 0) -> tuple[int, Ref]:
        """A new state: its number, and what it is in this round. Its next value is to be set."""
        store = self._builder.store
        ref = store.param(self._taken + len(self.states), kind)
        self.states.append(FlatState(_plain(name), width_of(kind), kind, initial, store.origin))
        self.nexts.append(None)
        return len(self.nexts) - 1, ref

    def carried(self, initial: Ref, name: str) -> tuple[int, Ref]:
        """A state that the first round finds at ``initial``."""
        number, state = self.add(name, initial.type)
        return number, chosen(self._builder, self._first, initial, state)

    def held(self, value: Ref, name: str) -> Ref:
        """A value of the first round, in every round."""
        if self._builder.value(value) is not None:
            return value
        found = self._held.get(value)
        if found is None:
            number, found = self.carried(value, name)
            self.nexts[number] = found
            self._held[value] = found
        return found


def region_of(
    export: Export, parts: Parts, store: GraphStore, interval: int = 1, carry_logic: bool = False,
    rests: bool = False,
) -> RoundDesign | Diagnostic:
    """The region of an export with one loop that stays. A Diagnostic (K06xx, K07xx) where there is none.

    ``rests``: what stands behind a counted loop has a round of its own, in which it finds what the loop
    leaves in the loop's registers: no path leads through a round and that code, and what both compute of
    these registers is computed once.
    """
    saved = store.origin
    try:
        return _Region(export, parts, store, interval, carry_logic, rests).build()
    except LoweringError as problem:
        return problem.diagnostic
    finally:
        store.origin = saved


def chosen(builder: Builder, condition: Ref, then: Ref, otherwise: Ref) -> Ref:
    """A choice; between fixed-point numbers it is one between integers."""
    kind = then.type
    found = builder.select(condition, *(scalars.raw_of(builder, item) for item in (then, otherwise)))
    return scalars.of_raw(builder, found, kind) if isinstance(kind, FixType) else found


class _Region:
    def __init__(
        self, export: Export, parts: Parts, store: GraphStore, interval: int, carry_logic: bool, rests: bool
    ) -> None:
        self._rests = rests
        self._export, self._parts, self._store = export, parts, store
        self._meter = Meter(export.name)
        self._builder = PatientBuilder(store, interval, carry_logic, self._meter)
        self._outside = Walker(self._builder, self._meter)
        self._inside = Walker(self._builder, self._meter, self._held_scalar, self._held_buffer)

    def _held_scalar(self, var: Var) -> Ref:
        return self._states.held(self._outside.operand(var), var.name)

    def _held_buffer(self, name: str) -> Storage:
        found = self._outside.buffer(name)
        if not isinstance(found, Elements) or found.buffer.kind == "const":
            return found
        return _HeldElements(self._builder, found, self._states)

    def build(self) -> RoundDesign:
        (before, kept), = self._parts.before
        loop, builder, inside = kept.loop, self._builder, self._inside
        counted = isinstance(loop, For)
        flags: list[tuple[str, Type]] = [(FIRST, BOOL), (LAST if counted else OVER, BOOL)]
        if counted:
            flags.append((ROUND, IntType.holding(0, loop.count - 1)))
        ports = place_leaves(parameter_buses(self._export))
        inputs = [*(FlatLeaf(bus, 0, width_of(kind), kind) for bus, kind in flags), *ports]
        params = [self._store.param(k, leaf.type) for k, leaf in enumerate(inputs)]
        first, limit, *rest = params[: len(flags)]
        self._states = _States(builder, first, len(inputs))
        self._enter(params[len(flags) :], ports)
        self._outside.run(before)
        later = _stored(self._parts.after)
        carried = self._carry_buffers(_stored((loop,)))
        for name in later:
            if name not in carried and name in self._outside.storage:
                self._own(name)
        numbers: list[int] = []
        starts: list[Ref] = []
        for item in loop.carried:
            number, ref = self._states.carried(self._outside.operand(item.initial), item.inner.name)
            inside.define(item.inner, ref)
            numbers.append(number)
            starts.append(ref)
        if counted:
            builder.assume(rest[0], Interval(0, loop.count - 1))
            inside.define(loop.var, rest[0])
            before = {name: list(self._elements(name).items) for name in carried}
            self._round(loop.body, numbers, carried)
            for item, number, start in zip(loop.carried, numbers, starts):
                inside.define(item.outer, start if self._rests else self._next(number))
            if self._rests:
                for name, items in before.items():
                    self._elements(name).items = items
            done = commits = limit
        else:
            done, commits = self._until(loop, kept, limit, numbers, carried)
        inside.run(self._parts.after)
        self._persist(commits)
        return self._finish(loop, inputs, flags, done)

    def _next(self, number: int) -> Ref:
        found = self._states.nexts[number]
        assert found is not None
        return found

    def _elements(self, name: str) -> Elements:
        """A buffer in the round."""
        found = self._inside.buffer(name)
        assert isinstance(found, Elements)
        return found

    def _own(self, name: str) -> None:
        """Lets the round write a buffer from outside."""
        held = self._elements(name)
        items = [held.item(k) for k in range(held.buffer.size)]
        self._inside.storage[name] = Elements(self._builder, held.buffer, items)

    def _round(self, body: Block, numbers: Sequence[int], carried: Mapping[str, Sequence[int]]) -> None:
        """One round of a body: its yields, and the buffers that it writes, are the next values of states."""
        for number, value in zip(numbers, self._inside.block(body)):
            self._states.nexts[number] = value
        for name, places in carried.items():
            elements = self._elements(name)
            for place, number in enumerate(places):
                self._states.nexts[number] = elements.item(place)

    def _until(
        self, loop: While, kept: Kept, over: Ref, numbers: Sequence[int],
        carried: Mapping[str, Sequence[int]],
    ) -> tuple[Ref, Ref]:
        """Whether the loop is done, and whether this is the round that found it, and no later one."""
        builder, inside = self._builder, self._inside
        (goes_on,) = inside.block(loop.condition)
        if kept.guard is not None:
            goes_on = builder.op("bits.and", goes_on, inside.operand(kept.guard))
        done = builder.op("bits.or", over, builder.op("bits.not", goes_on))
        before = {name: list(self._elements(name).items) for name in carried}
        self._round(loop.body, numbers, carried)
        # What the round finds that ends the loop is what the loop leaves.
        for name, items in before.items():
            self._elements(name).items = items
        for item in loop.carried:
            inside.define(item.outer, inside.operand(item.inner))
        if not self._lasting:
            return done, done
        number, alive = self._states.carried(builder.const(BOOL, 1), "alive")
        self._states.nexts[number] = builder.op("bits.and", alive, builder.op("bits.not", done))
        return done, builder.op("bits.and", alive, done)

    def _carry_buffers(self, names: Iterable[str]) -> dict[str, list[int]]:
        """Buffers that the loop writes, each element a state."""
        found: dict[str, list[int]] = {}
        for name in names:
            outside = self._outside.storage.get(name)
            if outside is None:
                continue  # one of the loop's own
            assert isinstance(outside, Elements)
            pairs = [
                self._states.carried(outside.item(k), f"{name}_{k}") for k in range(outside.buffer.size)
            ]
            self._inside.storage[name] = Elements(self._builder, outside.buffer, [ref for _, ref in pairs])
            found[name] = [number for number, _ in pairs]
        return found

    # Ports and states of a stream

    def _enter(self, params: Sequence[Ref], leaves: Sequence[FlatLeaf]) -> None:
        """The buffers of the program as they are before the first statement."""
        builder, storage, ports = self._builder, self._outside.storage, iter(zip(params, leaves))
        self._lasting: list[tuple[Elements, list[int]]] = []
        for buffer in self._parts.program.buffers:
            match buffer.kind:
                case "param":
                    taken = [next(ports) for _ in range(buffer.size)]
                    items = [floats.entering(builder, leaf.type, ref) for ref, leaf in taken]
                    storage[buffer.name] = Elements(builder, buffer, items)
                case "state":
                    kind = carrier(buffer.element)
                    pairs = [
                        self._states.add(f"{buffer.name}_{k}" if buffer.shape else buffer.name, kind, word)
                        for k, word in enumerate(words_of(buffer))
                    ]
                    refs = [ref for _, ref in pairs]
                    storage[buffer.name] = Elements(builder, buffer, refs)
                    lasting = Elements(builder, buffer, refs), [number for number, _ in pairs]
                    self._lasting.append(lasting)
                case "const":
                    storage[buffer.name] = self._outside.constant(buffer)
                case _:
                    storage[buffer.name] = Elements(builder, buffer)

    def _persist(self, commits: Ref) -> None:
        """The stream's states take what the item leaves in them, once it is done."""
        for olds, numbers in self._lasting:
            news = self._elements(olds.buffer.name)
            for place, number in enumerate(numbers):
                self._states.nexts[number] = chosen(
                    self._builder, commits, news.item(place), olds.item(place)
                )

    def _finish(
        self, loop: For | While, inputs: Sequence[FlatLeaf], flags: Sequence[tuple[str, Type]], done: Ref
    ) -> RoundDesign:
        builder, export = self._builder, self._export
        buses = result_buses(export)
        outputs = [FlatLeaf(DONE, 0, 1, BOOL), *place_leaves(buses)]
        values = [
            self._elements(buffer.name).item(k)
            for buffer in self._parts.program.of_kind("result") for k in range(buffer.size)
        ]
        results = [done]
        for leaf, ref in zip(outputs[1:], values, strict=True):
            self._store.origin = self._store.origins.get(ref.node)
            results.append(floats.leaving(builder, leaf.type, ref))
        self._store.origin = None
        states, nexts = self._states.states, self._states.nexts
        bits = sum(state.width_bits for state in states)
        if bits > MOST_HELD_BITS:
            raise LoweringError(Diagnostic(
                "K0610",
                f"A round of the loop of `{export.name}` would hold {bits:,} bits in registers, more than "
                f"{MOST_HELD_BITS:,}.",
            ))
        assert None not in nexts, "every state has a next value"
        kinds = [leaf.type for leaf in inputs] + [state.type for state in states]
        region = self._store.region(kinds, [*results, *(ref for ref in nexts if ref is not None)])
        counted = isinstance(loop, For)
        flat = FlatDesign(
            name=export.name, region=region, inputs=tuple(inputs), outputs=tuple(outputs),
            states=tuple(states),
            in_buses=(*bus_widths(list(flags)), *bus_widths(parameter_buses(export))),
            out_buses=((DONE, 1), *bus_widths(buses)),
            origins=self._store.origins, general=self._meter.shares(),
        )
        rounds = loop.count + self._rests if isinstance(loop, For) else loop.most
        return RoundDesign(flat, counted, rounds, self._parts.program, loop, self._rests and counted)


def _stored(body: Sequence[Statement]) -> list[str]:
    """The buffers that statements write."""
    found = (item.buffer for item in statements(Block(tuple(body))) if isinstance(item, Store))
    return list(dict.fromkeys(found))


def _plain(name: str) -> str:
    """A name as identifiers have them."""
    return "".join(c if c.isalnum() else "_" for c in name)
