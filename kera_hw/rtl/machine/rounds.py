"""One round of a loop as a flat design, with the code before and after the loop merged into it.

A round is what an item is to a pipeline: every ``initiation_interval`` cycles one starts. What is carried from
round to round is state, and so is what a loop reads from outside: the first round takes it from the ports, or
from the code before, which costs no cycle of a recurrence. The code after the loop works in every round; the
result is that of the round in which ``done`` is high. Rounds that start after it, because the exit is seen only
when it leaves the pipeline, change nothing that lasts.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal as OneOf

from kera_hw.graph.node import Export, Ref
from kera_hw.graph.store import Store as GraphStore
from kera_hw.loops.program import COUNTER, Block, Buffer, For, Statement, Store, Var, While, statements
from kera_hw.rtl.lower.budget import Meter
from kera_hw.rtl.lower.builder import width_of
from kera_hw.rtl.lower.design import FlatDesign, FlatLeaf, FlatState, LoweringError
from kera_hw.rtl.lower.flatten import (
    Flattener,
    _place as place_buses,
    _widths as widths_of,
    parameter_buses,
    result_buses,
)
from kera_hw.rtl.lower.floats import lowering as floats
from kera_hw.rtl.machine.parts import Kept, Parts
from kera_hw.rtl.machine.walk import Elements, Scope, Walker, blank, contents
from kera_hw.support import Diagnostic
from kera_hw.types import BOOL, IntType, Type

Pace = OneOf["counted", "until"]

FIRST, LAST, OVER, ROUND, DONE = "first", "last", "over", "round", "done"
"""Buses beside the ports: whether a round is the first of its item, the last of a counted loop, one beyond the
most of another, and its number; whether the result is there."""


@dataclass(frozen=True, slots=True)
class Region:
    """A round, and how many there are: ``rounds`` exactly, or at most before that which finds the exit."""

    flat: FlatDesign
    pace: Pace
    rounds: int
    loop: For | While


class _Inside(Scope):
    """A round's own values; those from outside are held in states from the first round on, once asked for."""

    def __init__(self, outside: Scope, hold: _States) -> None:
        super().__init__()
        self._outside, self._states = outside, hold

    def scalar(self, var: Var) -> Ref:
        found = self.scalars.get(var)
        return self._states.held(self._outside.scalar(var), var.name) if found is None else found

    def shape(self, name: str) -> tuple[int, ...]:
        found = self.buffers.get(name)
        return self._outside.shape(name) if found is None else found.shape

    def element(self, name: str, place: int) -> Ref:
        found = self.buffers.get(name)
        if found is not None:
            return found.items[place]
        return self._states.held(self._outside.element(name, place), f"{name}_{place}")

    def elements(self, name: str) -> tuple[Ref, ...]:
        found = self.buffers.get(name)
        if found is not None:
            return found.items
        return tuple(
            self._states.held(item, f"{name}_{k}") for k, item in enumerate(self._outside.elements(name))
        )

    def own(self, name: str) -> None:
        """Makes the buffer one of the round's own values."""
        self.buffers[name] = Elements(self.shape(name), self.elements(name))


class _States:
    """The states of a round, in order, with what each takes next."""

    def __init__(self, flattener: Flattener, first: Ref, taken: int) -> None:
        self._builder, self._flattener = flattener.builder, flattener
        self._first, self._taken = first, taken
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
        return number, self._flattener._select(self._first, initial, state)

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
    export: Export, parts: Parts, store: GraphStore, interval: int = 1, carry_logic: bool = False
) -> Region | Diagnostic:
    """The region of an export with one loop that stays. A Diagnostic (K06xx, K07xx) where there is none."""
    saved = store.origin
    try:
        return _Region(export, parts, store, interval, carry_logic).build()
    except LoweringError as problem:
        return problem.diagnostic
    finally:
        store.origin = saved


class _Region:
    def __init__(
        self, export: Export, parts: Parts, store: GraphStore, interval: int, carry_logic: bool
    ) -> None:
        self._export, self._parts, self._store = export, parts, store
        self._meter = Meter(export.name)
        self._flattener = Flattener(store, self._meter, interval, carry_logic)
        self._builder = self._flattener.builder
        self._outside = Scope()
        self._walker = Walker(self._flattener, self._outside)

    def build(self) -> Region:
        (before, kept), = self._parts.before
        loop, builder = kept.loop, self._builder
        counted = isinstance(loop, For)
        flags = [(FIRST, BOOL), (LAST if counted else OVER, BOOL)]
        if counted:
            flags.append((ROUND, IntType.holding(0, loop.count - 1)))
        ports = place_buses(parameter_buses(self._export))
        inputs = [*(FlatLeaf(bus, 0, width_of(kind), kind) for bus, kind in flags), *ports]
        params = [self._store.param(k, leaf.type) for k, leaf in enumerate(inputs)]
        first, limit, *rest = params[: len(flags)]
        self._states = _States(self._flattener, first, len(inputs))
        self._enter(params[len(flags) :], ports)
        self._walker.block(Block(before))
        inside = _Inside(self._outside, self._states)
        self._walker.scope = inside
        stored = {item.buffer for item in statements(_inner(loop)) if isinstance(item, Store)}
        later = {item.buffer for item in statements(Block(self._parts.after)) if isinstance(item, Store)}
        carried = self._carry_buffers(inside, [name for name in stored if name in self._outside.buffers])
        for name in later - stored:
            if name in self._outside.buffers:
                inside.own(name)
        numbers: list[int] = []
        for item in loop.carried:
            number, ref = self._states.carried(self._initial(item.initial), item.inner.name)
            inside.scalars[item.inner] = ref
            numbers.append(number)
        if counted:
            inside.scalars[loop.var] = builder.cast(rest[0], COUNTER)
            self._round(loop.body, numbers, carried)
            inside.scalars.update((c.outer, self._next(n)) for c, n in zip(loop.carried, numbers))
            done, commits = limit, limit
        else:
            done, commits = self._until(loop, kept, limit, numbers, carried)
        self._walker.block(Block(self._parts.after))
        self._persist(commits)
        return self._finish(loop, inputs, flags, done)

    def _initial(self, item: object) -> Ref:
        scope, self._walker.scope = self._walker.scope, self._outside
        ref = self._walker.operand(item)  # type: ignore[arg-type]
        self._walker.scope = scope
        return ref

    def _next(self, number: int) -> Ref:
        found = self._states.nexts[number]
        assert found is not None
        return found

    def _round(self, body: Block, numbers: Sequence[int], carried: dict[str, list[int]]) -> None:
        """One round of a body: its yields, and the buffers that it writes, are the next values of states."""
        for number, value in zip(numbers, self._walker.block(body)):
            self._states.nexts[number] = value
        for name, places in carried.items():
            for number, value in zip(places, self._walker.scope.elements(name)):
                self._states.nexts[number] = value

    def _until(
        self, loop: While, kept: Kept, over: Ref, numbers: Sequence[int], carried: dict[str, list[int]]
    ) -> tuple[Ref, Ref]:
        """Whether the loop is done, and whether this is the round that found it, and no later one."""
        builder, inside = self._builder, self._walker.scope
        (goes_on,) = self._walker.block(loop.condition)
        if kept.guard is not None:
            goes_on = builder.op("bits.and", goes_on, self._walker.operand(kept.guard))
        done = builder.op("bits.or", over, builder.op("bits.xor", goes_on, builder.const(BOOL, 1)))
        buffers = dict(inside.buffers)
        self._round(loop.body, numbers, carried)
        inside.buffers = buffers  # what the round that ends the loop found, nothing else is seen after it
        inside.scalars.update((c.outer, inside.scalars[c.inner]) for c in loop.carried)
        if not self._parts.program.of_kind("state"):
            return done, done
        number, alive = self._states.carried(builder.const(BOOL, 1), "alive")
        commits = builder.op("bits.and", alive, done)
        self._states.nexts[number] = builder.op("bits.and", alive, builder.op("bits.xor", done, builder.const(BOOL, 1)))
        return done, commits

    def _carry_buffers(self, inside: _Inside, names: Iterable[str]) -> dict[str, list[int]]:
        """Buffers that the loop writes, each element a state."""
        found: dict[str, list[int]] = {}
        for name in sorted(names):
            shape, items, numbers = self._outside.shape(name), self._outside.elements(name), list[int]()
            refs: list[Ref] = []
            for k, item in enumerate(items):
                number, ref = self._states.carried(item, f"{name}_{k}")
                numbers.append(number)
                refs.append(ref)
            inside.buffers[name] = Elements(shape, tuple(refs))
            found[name] = numbers
        return found

    # Ports and states of a stream

    def _enter(self, params: Sequence[Ref], leaves: Sequence[FlatLeaf]) -> None:
        """The buffers of the program as they are before the first statement."""
        builder, scope, ports = self._builder, self._outside, iter(zip(params, leaves))
        self._lasting: list[tuple[Buffer, list[int]]] = []
        for buffer in self._parts.program.buffers:
            match buffer.kind:
                case "param":
                    taken = [next(ports) for _ in range(buffer.size)]
                    items = tuple(floats.entering(builder, leaf.type, ref) for ref, leaf in taken)
                    scope.buffers[buffer.name] = Elements(buffer.shape, items)
                case "state":
                    initial = contents(builder, buffer).items
                    numbers, refs = list[int](), list[Ref]()
                    for k, item in enumerate(initial):
                        raw = builder.value(item)
                        assert raw is not None, "an initial state is constant"
                        width = width_of(item.type)
                        name = buffer.name if not buffer.shape else f"{buffer.name}_{k}"
                        number, ref = self._states.add(name, item.type, raw & ((1 << width) - 1))
                        numbers.append(number)
                        refs.append(ref)
                    scope.buffers[buffer.name] = Elements(buffer.shape, tuple(refs))
                    self._lasting.append((buffer, numbers))
                case "const":
                    scope.buffers[buffer.name] = contents(builder, buffer)
                case _:
                    scope.buffers[buffer.name] = blank(builder, buffer)
        self._before = dict(scope.buffers)

    def _persist(self, commits: Ref) -> None:
        """The stream's states take what the item leaves in them, once it is done."""
        for buffer, numbers in self._lasting:
            olds = self._before[buffer.name].items
            for number, old, new in zip(numbers, olds, self._walker.scope.elements(buffer.name)):
                self._states.nexts[number] = self._flattener._select(commits, new, old)

    def _finish(
        self, loop: For | While, inputs: Sequence[FlatLeaf], flags: Sequence[tuple[str, Type]], done: Ref
    ) -> Region:
        builder, export = self._builder, self._export
        buses = result_buses(export)
        outputs = [FlatLeaf(DONE, 0, 1, BOOL), *place_buses(buses)]
        values = [
            ref for buffer in self._parts.program.of_kind("result")
            for ref in self._walker.scope.elements(buffer.name)
        ]
        results = [done]
        for leaf, ref in zip(outputs[1:], values, strict=True):
            self._store.origin = self._store.origins.get(ref.node)
            results.append(floats.leaving(builder, leaf.type, ref))
        self._store.origin = None
        states, nexts = self._states.states, self._states.nexts
        assert None not in nexts, "every state has a next value"
        kinds = [leaf.type for leaf in inputs] + [state.type for state in states]
        region = self._store.region(kinds, [*results, *(ref for ref in nexts if ref is not None)])
        general = {name: n / self._meter.operations for name, n in self._meter.general.items() if n}
        counted = isinstance(loop, For)
        flat = FlatDesign(
            name=export.name, region=region, inputs=tuple(inputs), outputs=tuple(outputs),
            states=tuple(states),
            in_buses=(*widths_of(list(flags)), *widths_of(parameter_buses(export))),
            out_buses=((DONE, 1), *widths_of(buses)), origins=self._store.origins, general=general,
        )
        return Region(flat, "counted" if counted else "until", loop.count if counted else loop.most, loop)


def _inner(loop: For | While) -> Block:
    blocks: tuple[Statement, ...] = (loop,)
    return Block(blocks)


def _plain(name: str) -> str:
    """A name as identifiers have them."""
    return "".join(c if c.isalnum() else "_" for c in name)
