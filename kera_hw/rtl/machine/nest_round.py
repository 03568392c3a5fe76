"""One round of a nest of loops as a flat design, its large buffers memories outside.

The controller counts: of every loop of the nest a round is given the counter, whether it is the first round
of the loop's run (``first``: this counter and all inside are 0), and the last (``last``). What a loop carries
is state; the first round of its run takes what it begins with, and where loops stand inside, the next value
is taken in the last round of theirs. Code around an inner loop works in every round on what does not change
meanwhile; what it stores to memories counts in the first round of the inner loop, or if it stands behind it
in the last.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kera_hw.graph.node import Export, Ref
from kera_hw.graph.store import Store as GraphStore
from kera_hw.loops.contents import defined
from kera_hw.loops.program import Alloc, Block, Buffer, For, Load, Statement, Store, Var, statements
from kera_hw.ops.intervals import Interval
from kera_hw.rtl.lower.budget import Meter
from kera_hw.rtl.lower.builder import carrier, width_of
from kera_hw.rtl.lower.design import FlatDesign, FlatLeaf, FlatState, LoweringError
from kera_hw.rtl.lower.division import PatientBuilder
from kera_hw.rtl.lower.floats import lowering as floats
from kera_hw.rtl.lower.ports import bus_widths, parameter_buses, place_leaves, result_buses
from kera_hw.rtl.lower.storage import Elements, Kept, Memory, Served, memories_of
from kera_hw.rtl.lower.walk import Walker
from kera_hw.rtl.machine.distances import least_distance
from kera_hw.rtl.machine.nests import Level, Nest, Regions, touched, used_inside, used_outside
from kera_hw.rtl.machine.rounds import MOST_HELD_BITS, chosen
from kera_hw.support import Diagnostic
from kera_hw.types import BOOL, IntType, Type

DONE = "done"


@dataclass(frozen=True, slots=True)
class RegionDesign:
    """A region's round. Its inputs are, in this order, ``first``, ``last`` and the counter of every loop,
    then scalars of other regions (``takes``), then parameters, then an element of the tensor that comes in as
    the region works (``stream``, its bus and its buffer); its outputs ``done``, scalars for others
    (``gives``), then results. Buses that scalars travel on are called after them.
    """

    nest: Nest
    flat: FlatDesign
    takes: tuple[Var, ...]
    gives: tuple[Var, ...]
    params: tuple[str, ...]
    results: tuple[str, ...]
    stream: tuple[str, Buffer] | None = None


def stream_bus(buffer: Buffer) -> str:
    """The bus of an element that comes in as a region works."""
    return f"take_{buffer.name.removeprefix('in.')}"


def exchange_bus(var: Var) -> str:
    """The bus of a scalar that goes from region to region."""
    return f"x_{var.name}"


def drivers_of(regions: Regions, buffer: Buffer) -> tuple[int, int]:
    """How many regions and channels write a memory in turn, and how many read it."""
    writers, readers = (
        sum(buffer.name in touched(nest, what) for nest in regions.nests) for what in (Store, Load)
    )
    return writers + (buffer.kind == "param"), readers + (buffer.kind == "result")


def region_designs(
    export: Export, regions: Regions, store: GraphStore, interval: int, carry_logic: bool
) -> list[RegionDesign] | Diagnostic:
    """A design for every region, or why there is none (K06xx)."""
    found: list[RegionDesign] = []
    saved = store.origin
    distances = {buffer.name: least_distance(regions, buffer) for buffer in regions.memories}
    try:
        for number in range(len(regions.nests)):
            how = export, regions, number, store, interval, carry_logic
            count = _Region(*how, 0, distances).states_needed()
            found.append(_Region(*how, count, distances).build())
    except LoweringError as problem:
        return problem.diagnostic
    finally:
        store.origin = saved
    return found


class _Region:
    def __init__(
        self, export: Export, regions: Regions, number: int, store: GraphStore, interval: int,
        carry_logic: bool, states: int, distances: Mapping[str, int],
    ) -> None:
        self._export, self._regions, self._nest, self._store = export, regions, regions.nests[number], store
        self._number, self._distances = number, distances
        self._meter = Meter(export.name)
        self._builder = PatientBuilder(store, interval, carry_logic, self._meter)
        self._takes = tuple(used_inside(self._nest))
        self._gives = tuple(used_outside(regions.nests, number))
        self._counted = states
        self._states: list[FlatState] = []
        self._nexts: list[Ref | None] = []
        self._memories: list[Kept] = []
        self._stored = touched(self._nest, Store)

    def states_needed(self) -> int:
        """How many states a round has, which memories come behind."""
        self.build()
        return len(self._states)

    def build(self) -> RegionDesign:
        nest, builder, store = self._nest, self._builder, self._store
        store.origin = None
        levels = nest.levels
        flags: list[tuple[str, Type]] = [(f"{what}{k}", BOOL) for what in ("first", "last")
                                         for k in range(len(levels))]
        flags += [(f"count{k}", IntType.holding(0, level.loop.count - 1)) for k, level in enumerate(levels)]
        wanted = touched(nest, Load)
        buses = parameter_buses(self._export)
        mine = self._small("param", wanted)
        leaves = [leaf for leaf in place_leaves(buses) if leaf.bus in {_bus_of(b) for b in mine}]
        inputs = [FlatLeaf(name, 0, width_of(kind), kind) for name, kind in flags]
        inputs += [
            FlatLeaf(exchange_bus(var), 0, width_of(var.type), carrier(var.type)) for var in self._takes
        ]
        inputs += leaves
        self._stream = next((item for item, k in self._regions.streams if k == self._number), None)
        if self._stream is not None:
            (element,) = {leaf.type for leaf in place_leaves(buses) if leaf.bus == _bus_of(self._stream)}
            inputs.append(FlatLeaf(stream_bus(self._stream), 0, width_of(element), element))
        params = [store.param(k, leaf.type) for k, leaf in enumerate(inputs)]
        count = len(levels)
        self._first, self._last = params[:count], params[count : 2 * count]
        self._counters = params[2 * count : 3 * count]
        self._taken = len(inputs)
        walker = Walker(builder, self._meter, tables=True)
        rounds = {group.loop.var: group.loop.count for group in self._regions.around(self._number)}
        for var, ref in zip(self._takes, params[3 * count :]):
            if var in rounds:
                builder.assume(ref, Interval(0, rounds[var] - 1))
            walker.define(var, ref)
        if self._stream is not None:
            taken = floats.entering(builder, inputs[-1].type, params[-1])
            walker.storage[self._stream.name] = Served(self._stream, lambda _: taken)
        self._buffers(walker, params[3 * count + len(self._takes) :], leaves)
        walker.run(nest.before)
        if levels:
            self._level(0, walker)
        walker.run(nest.after)
        return self._finish(walker, inputs)

    def _small(self, kind: str, touched_: set[str]) -> list[Buffer]:
        large = {buffer.name for buffer in self._regions.memories}
        large |= {buffer.name for buffer, _ in self._regions.streams}
        return [
            buffer for buffer in self._regions.program.buffers
            if buffer.kind == kind and buffer.name in touched_ and buffer.name not in large
        ]

    def _buffers(self, walker: Walker, refs: Sequence[Ref], leaves: Sequence[FlatLeaf]) -> None:
        """What the region finds: memories, parameters in registers, constants, results to be made."""
        builder, given = self._builder, list(zip(refs, leaves))
        found = touched(self._nest, Load) | self._stored
        at = self._taken + self._counted
        for buffer in self._regions.memories:
            if buffer.name not in found:
                continue
            banks: list[Memory] = []
            for memory in memories_of(buffer):
                # Others see what is in it, as if it stood at the ports.
                kind = "param" if buffer.kind == "param" else "result"
                writers, readers = drivers_of(self._regions, buffer)
                memory = replace(
                    memory, kind=kind, distance=self._distances[buffer.name],
                    writers=writers, readers=readers,
                )
                banks.append(Memory(builder, memory, self._store.param(at, memory.type)))
                at += 1
            self._memories.append(Kept(builder, buffer, banks))
            walker.storage[buffer.name] = self._memories[-1]
        for buffer in self._regions.program.buffers:
            if buffer.kind == "const":
                walker.storage[buffer.name] = walker.constant(buffer)
            elif buffer.name in walker.storage:
                continue
            elif buffer.kind == "param":
                own = [(ref, leaf) for ref, leaf in given if leaf.bus == _bus_of(buffer)]
                own = own[: buffer.size]
                given = [item for item in given if item not in own]
                items = [floats.entering(builder, leaf.type, ref) for ref, leaf in own]
                if items:
                    walker.storage[buffer.name] = Elements(builder, buffer, items)
            else:
                walker.storage[buffer.name] = Elements(builder, buffer)

    # Loops

    def _state(self, name: str, kind: Type) -> tuple[int, Ref]:
        ref = self._store.param(self._taken + len(self._states), kind)
        self._states.append(FlatState(_plain(name), width_of(kind), kind, 0, self._store.origin))
        self._nexts.append(None)
        return len(self._nexts) - 1, ref

    def _carried(self, level: int, initial: Ref, name: str) -> tuple[int, Ref]:
        """A state that the first round of a loop's run finds at ``initial``."""
        number, state = self._state(name, initial.type)
        return number, chosen(self._builder, self._first[level], initial, state)

    def _recurrent(self, level: int, initial: Ref, name: str) -> tuple[int, Ref]:
        """The same of a state that every round computes anew: what can wait for least."""
        found = self._carried(level, initial, name)
        self._builder.states.add(found[1])
        return found

    def _follow(self, level: int, number: int, start: Ref, after: Ref) -> None:
        """The next value of a state, once the loops inside have run."""
        inner = level + 1 < len(self._nest.levels)
        self._nexts[number] = chosen(self._builder, self._last[level + 1], after, start) if inner else after

    def _level(self, number: int, outer: Walker) -> None:
        level, builder = self._nest.levels[number], self._builder
        loop = level.loop
        walker = Walker(
            builder, self._meter, outer.operand, outer.buffer, tables=True
        )
        builder.assume(self._counters[number], Interval(0, loop.count - 1))
        walker.define(loop.var, self._counters[number])
        starts: list[tuple[int, Ref]] = []
        for item in loop.carried:
            begins = outer.operand(item.initial)
            starts.append(self._recurrent(number, begins, item.inner.name))
            walker.define(item.inner, starts[-1][1])
        kept = self._carry_elements(number, loop, outer)
        self._body(number, level, walker)
        for item, (state, start), value in zip(loop.carried, starts, loop.body.yields):
            after = walker.operand(value)
            self._follow(number, state, start, after)
            outer.define(item.outer, start if level.rests else after)
        for elements, states in kept:
            for place, (state, start) in enumerate(states):
                self._follow(number, state, start, elements.item(place))
            if level.rests:
                elements.items = [start for _, start in states]

    def _carry_elements(
        self, number: int, loop: For, outer: Walker
    ) -> list[tuple[Elements, list[tuple[int, Ref]]]]:
        """Buffers in registers that a loop writes: every element is carried."""
        inside = list(statements(loop.body))
        own = {item.buffer.name for item in inside if isinstance(item, Alloc)}
        names = dict.fromkeys(item.buffer for item in inside if isinstance(item, Store))
        found: list[tuple[Elements, list[tuple[int, Ref]]]] = []
        for name in names:
            if name in own:
                continue
            storage = outer.buffer(name)
            if isinstance(storage, Elements):
                states = [
                    self._recurrent(number, storage.item(k), f"{name}_{k}")
                    for k in range(storage.buffer.size)
                ]
                storage.items = [ref for _, ref in states]
                found.append((storage, states))
        return found

    def _body(self, number: int, level: Level, walker: Walker) -> None:
        body = level.loop.body.body
        if level.inside is None:
            walker.run(body)
            return
        before, after = body[: level.inside], body[level.inside + 1 :]
        with walker.under(self._first[number + 1]):
            walker.run(before)
        if self._reads_what_changes(before):
            for name in defined(Block(before)):
                self._hold(number + 1, walker, name, before)
            self._hold_elements(number + 1, walker, before)
        self._level(number + 1, walker)
        with walker.under(self._last[number + 1]):
            walker.run(after)

    def _reads_what_changes(self, body: Sequence[Statement]) -> bool:
        loads = {item.buffer for item in statements(Block(tuple(body))) if isinstance(item, Load)}
        memories = {buffer.name for buffer in self._regions.memories}
        return bool(loads & memories & self._stored)

    def _hold_elements(self, level: int, walker: Walker, body: Sequence[Statement]) -> None:
        """The same for buffers in registers that were written before an inner loop."""
        stored = {item.buffer for item in statements(Block(tuple(body))) if isinstance(item, Store)}
        for name in sorted(stored):
            storage = walker.buffer(name)
            if not isinstance(storage, Elements):
                continue
            for place, value in enumerate(storage.items):
                if value is not None and self._builder.value(value) is None:
                    number, held = self._carried(level, value, f"{name}_{place}")
                    self._nexts[number] = held
                    storage.items[place] = held

    def _hold(self, level: int, walker: Walker, name: str, body: Sequence[Statement]) -> None:
        """Keeps a scalar that was computed before an inner loop for all rounds of that."""
        for statement in body:
            for var in _results(statement):
                if var.name == name:
                    value = walker.operand(var)
                    if self._builder.value(value) is None:
                        number, held = self._carried(level, value, name)
                        self._nexts[number] = held
                        walker.define(var, held)

    # The design

    def _finish(self, walker: Walker, inputs: list[FlatLeaf]) -> RegionDesign:
        builder, export, store = self._builder, self._export, self._store
        done = self._last[0] if self._last else builder.const(BOOL, 1)
        outputs = [FlatLeaf(DONE, 0, 1, BOOL)]
        results = [done]
        for var in self._gives:
            outputs.append(FlatLeaf(exchange_bus(var), 0, width_of(var.type), carrier(var.type)))
            results.append(walker.operand(var))
        mine = self._small("result", self._stored)
        out = {buffer.name: leaves for buffer, leaves in _result_leaves(self._regions, export)}
        for buffer in mine:
            storage = walker.buffer(buffer.name)
            assert isinstance(storage, Elements)
            for k, leaf in enumerate(out[buffer.name]):
                outputs.append(leaf)
                results.append(floats.leaving(builder, leaf.type, storage.item(k)))
        bits = sum(state.width_bits for state in self._states)
        if bits > MOST_HELD_BITS:
            raise LoweringError(Diagnostic(
                "K0610", f"A round of a loop of `{export.name}` would hold {bits:,} bits in registers, more "
                f"than {MOST_HELD_BITS:,}.",
            ))
        banks = [bank for kept in self._memories for bank in kept.banks]
        kinds = [leaf.type for leaf in inputs] + [state.type for state in self._states]
        kinds += [bank.memory.type for bank in banks]
        nexts = [ref for ref in self._nexts if ref is not None]
        assert len(nexts) == len(self._states), "every state has a next value"
        region = store.region(kinds, [*results, *nexts, *(bank.head for bank in banks)])
        flat = FlatDesign(
            name=f"{export.name}__region{self._number}", region=region,
            inputs=tuple(inputs), outputs=tuple(outputs),
            states=tuple(self._states), in_buses=_buses(inputs, export), out_buses=_buses(outputs, export),
            origins=store.origins, general=self._meter.shares(),
            memories=tuple(bank.memory for bank in banks),
        )
        params = tuple(bus for bus, _ in flat.in_buses if bus.startswith("in_"))
        made = tuple(bus for bus, _ in flat.out_buses if bus.startswith("out_"))
        stream = None if self._stream is None else (stream_bus(self._stream), self._stream)
        return RegionDesign(self._nest, flat, self._takes, self._gives, params, made, stream)


def _result_leaves(regions: Regions, export: Export) -> list[tuple[Buffer, list[FlatLeaf]]]:
    """The leaves of each result's buffer."""
    leaves = iter(place_leaves(result_buses(export)))
    return [
        (buffer, [next(leaves) for _ in range(buffer.size)])
        for buffer in regions.program.of_kind("result")
    ]


def _buses(leaves: Sequence[FlatLeaf], export: Export) -> tuple[tuple[str, int], ...]:
    """Buses in order of their first leaves; those of ports in their own width."""
    ports: Mapping[str, int] = dict(bus_widths([*parameter_buses(export), *result_buses(export)]))
    found = {leaf.bus: ports.get(leaf.bus, leaf.width_bits) for leaf in leaves}
    return tuple(found.items())


def _bus_of(buffer: Buffer) -> str:
    """The port that a parameter's leaf lies on."""
    return "in_" + buffer.name.split(".")[1]


def _results(statement: Statement) -> tuple[Var, ...]:
    match statement:
        case Load(result=result):
            return (result,)
        case Store() | Alloc():
            return ()
        case For(carried=carried):
            return tuple(item.outer for item in carried)
        case _:
            return getattr(statement, "results", ())


def _plain(name: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in name)
