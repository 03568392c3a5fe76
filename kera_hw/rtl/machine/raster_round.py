"""One round of stencils that run in step, as a flat design.

A round is told where it is (a counter an axis), takes an element of each tensor that comes in, and gives one
of each that leaves, with whether it is there and whether it is the last. What stages read of earlier rounds
is kept in windows: along the last axis in registers, along others in memories of all that lies between two
neighbours. Both hold noise until they have been filled once; no element that is given depends on it.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import prod

from kera_hw.graph.node import Export, Ref
from kera_hw.graph.node import Node as GraphNode
from kera_hw.graph.store import Store as GraphStore
from kera_hw.loops.program import Alloc, Buffer, LoopProgram
from kera_hw.ops.intervals import Interval
from kera_hw.rtl.lower import ports
from kera_hw.rtl.lower.budget import Meter
from kera_hw.rtl.lower.builder import Builder, carrier, width_of
from kera_hw.rtl.lower.design import FlatDesign, FlatLeaf, FlatMemory, FlatState
from kera_hw.rtl.lower.floats import lowering as floats
from kera_hw.rtl.lower.places import Sum
from kera_hw.rtl.lower.ports import Beats, bus_widths, parameter_buses, place_leaves, result_buses
from kera_hw.rtl.lower.storage import Elements, Index, Kept, Memory, Served
from kera_hw.rtl.lower.walk import Walker
from kera_hw.rtl.machine.raster import (
    Access,
    Node,
    NoRaster,
    Raster,
    Stage,
    Stencils,
    back_of,
    kept_axes,
    nodes_of,
    scheduled,
    stencils_of,
)
from kera_hw.rtl.machine.rounds import MOST_HELD_BITS, chosen
from kera_hw.rtl.machine.windows import Counter, Line, Lines, in_range
from kera_hw.support import toposort
from kera_hw.types import BOOL, IntType, TensorType, Type, element_type

_FAR = 1 << 40
"""A parameter's number beyond those of all designs; a round beyond all rounds."""

REGISTERS = 16
"""Words between two neighbours along an axis up to which they are registers."""


@dataclass(frozen=True, slots=True)
class RasterRound:
    """A round: its inputs are the counters, then elements that come in, then other parameters."""

    raster: Raster
    flat: FlatDesign
    counters: tuple[str, ...]
    takes: tuple[Beats, ...]
    gives: tuple[Beats, ...]


def raster_of(program: LoopProgram, export: Export, carry_logic: bool) -> Raster:
    """The stages of an export and their rounds. Raises NoRaster, and LoweringError for what is too large."""
    stencils = stencils_of(program, ports.WIDEST_VALUE_BITS)
    nodes = nodes_of(stencils)
    builder = Builder(GraphStore(), 1, carry_logic, meter := Meter(export.name))
    walk = _Walk(export, stencils, nodes, builder, meter)
    walk.run()
    return scheduled(stencils, nodes, [list(found) for found in walk.reads])


def raster_round(
    export: Export, raster: Raster, store: GraphStore, interval: int, carry_logic: bool
) -> RasterRound:
    """The design of a round. Raises LoweringError."""
    saved = store.origin
    try:
        states = _Round(export, raster, store, interval, carry_logic, 0).states_needed()
        return _Round(export, raster, store, interval, carry_logic, states).build()
    finally:
        store.origin = saved


class _Walk:
    """Stages walked with symbols for their counters, and for what they read of others: ``values``.

    The symbols are parameters that no design has, of numbers far beyond; ``counters`` has by stage those of
    its axes (None where it is always at 0), ``reads`` those of each access.
    """

    def __init__(
        self, export: Export, stencils: Stencils, nodes: Sequence[Node], builder: Builder, meter: Meter
    ) -> None:
        self.export, self.stencils, self.nodes = export, stencils, nodes
        self.builder, self.store, self.meter = builder, builder.store, meter
        self.outer = Walker(builder, meter, tables=True)
        self.values: list[Ref | None] = []
        self.counters: list[list[Ref | None]] = []
        self.reads: list[dict[Access, Ref]] = [{} for _ in nodes]
        streams = {_bus_of(buffer) for buffer in stencils.inputs()}
        self.small = place_leaves([item for item in parameter_buses(export) if item[0] not in streams])
        self.taken = stencils.rank + len(stencils.inputs())
        self._symbols = _FAR

    def symbol(self, kind: Type) -> Ref:
        """A new one."""
        self._symbols += 1
        return self.store.param(self._symbols, kind)

    def run(self) -> None:
        """Walks everything. Raises NoRaster for an access that is none at a constant place."""
        self._enter()
        for number, node in enumerate(self.nodes):
            self.counters.append([])
            self.values.append(None if node.stage is None else self._staged(number, node.stage))

    def _enter(self) -> None:
        """Parameters in registers, constants, and what is computed before all stages."""
        builder = self.builder
        given = [(self.store.param(self.taken + k, leaf.type), leaf) for k, leaf in enumerate(self.small)]
        for buffer in self.stencils.program.buffers:
            if buffer.kind == "const":
                self.outer.storage[buffer.name] = self.outer.constant(buffer)
            elif buffer.kind == "param" and buffer.name not in self.stencils.streamed:
                own, given = given[: buffer.size], given[buffer.size :]
                items = [floats.entering(builder, leaf.type, ref) for ref, leaf in own]
                self.outer.storage[buffer.name] = Elements(builder, buffer, items)
        for item in self.stencils.before:
            if isinstance(item, Alloc):
                self.outer.storage[item.buffer.name] = Elements(builder, item.buffer)
        self.outer.run(self.stencils.before)

    def _staged(self, number: int, place: int) -> Ref:
        """The value of a stage's own element."""
        stage, builder = self.stencils.stages[place], self.builder
        walker = Walker(builder, self.meter, self.outer.operand, self.outer.buffer, tables=True)
        known: dict[Ref, Counter] = {}
        for axis, (var, count) in enumerate(zip(stage.counters, stage.counts)):
            symbol = None if count == 1 else self.symbol(IntType.holding(0, count - 1))
            self.counters[number].append(symbol)
            if symbol is not None:
                builder.assume(symbol, Interval(0, count - 1))
                known[symbol] = Counter(axis, count)
            if var is not None:
                walker.define(var, builder.const(var.type, 0) if symbol is None else symbol)
        for var in stage.still:
            walker.define(var, builder.const(var.type, 0))
        lines = Lines(builder, known)
        for buffer in self.stencils.streamed.values():
            server = _Server(self, number, stage, lines, self.counters[number], buffer)
            walker.storage[buffer.name] = Served(buffer, server.load)
        walker.run(stage.body)
        return walker.operand(stage.value)

    def read(self, number: int, access: Access) -> Ref:
        """The symbol of what a stage finds at an access."""
        found = self.reads[number].get(access)
        if found is None:
            found = self.symbol(carrier(self.nodes[access.node].buffer.element))
            self.reads[number][access] = found
        return found


@dataclass(frozen=True, slots=True)
class _Server:
    """Serves the loads of one tensor in one stage."""

    walk: _Walk
    number: int
    stage: Stage
    lines: Lines
    counters: Sequence[Ref | None]
    buffer: Buffer

    def load(self, index: Index) -> Ref:
        found = [self.lines.line(index[place], axis) for axis, place in enumerate(kept_axes(self.buffer))]
        return self._along(found, [])

    def _along(self, lines: Sequence[Line], fixed: list[Line]) -> Ref:
        """The element, chosen by the counter where an index is held at the border of an axis."""
        axis = len(fixed)
        if axis == len(lines):
            return self.walk.read(self.number, self._access(fixed))
        line, builder = lines[axis], self.walk.builder
        found = self._along(lines, [*fixed, Line(line.factor, line.offset)])
        for count, place in line.held:
            other = self._along(lines, [*fixed, Line(line.factor, place - line.factor * count)])
            counter = self.counters[axis]
            assert counter is not None, "what never moves is not held anywhere else"
            at = builder.op("compare.eq", counter, builder.const(counter.type, count))
            found = chosen(builder, at, other, found)
        return found

    def _access(self, lines: Sequence[Line]) -> Access:
        name, stage, nodes = self.buffer.name, self.stage, self.walk.nodes
        lines = [*lines, *[Line(0, 0)] * (len(stage.counters) - len(lines))]
        for line, count in zip(lines, stage.counts):
            if not line.factor and count > 1:
                raise NoRaster(f"All rounds along an axis read one element of `{name}`.")
        factors = tuple(line.factor for line in lines)
        offsets = tuple(line.offset - line.factor * own for line, own in zip(lines, stage.offsets))
        before = max((k for k in range(self.number) if nodes[k].buffer.name == name), default=None)
        own = nodes[self.number]
        if name == stage.target:
            if any(factor > 1 for factor in factors):
                raise NoRaster(f"`{name}` is read at another pace than it is written.")
            back = [
                -offset if factor else low - offset
                for factor, offset, (low, _) in zip(factors, offsets, own.box)
            ]
            if back > [0] * len(back):
                if not stage.ordered:
                    raise NoRaster(f"`{name}` is read where it was written, in another order of rounds.")
                return Access(self.number, factors, offsets)
        if before is None:
            raise NoRaster(f"`{name}` is read before it is written.")
        return Access(before, factors, offsets)


class _Round:
    """The design of a round. ``states``: how many states it has, which its memories come behind."""

    def __init__(
        self, export: Export, raster: Raster, store: GraphStore, interval: int, carry_logic: bool, states: int
    ) -> None:
        self._export, self._raster, self._counted, self._store = export, raster, states, store
        self._meter = Meter(export.name)
        self._builder = Builder(store, interval, carry_logic, self._meter)
        self._walk = _Walk(export, raster.stencils, raster.nodes, self._builder, self._meter)
        self._states: list[FlatState] = []
        self._nexts: list[Ref | None] = []
        self._memories: list[Memory] = []
        self._values: dict[int, Ref] = {}
        self._owners: dict[Ref, int] = {}
        self._windows: dict[tuple[int, tuple[int, ...]], Ref] = {}
        self._fills: list[tuple[int | Kept, tuple[int, tuple[int, ...]] | Ref]] = []

    def states_needed(self) -> int:
        """How many states the round has."""
        self.build()
        return len(self._states)

    def build(self) -> RasterRound:
        raster, store, builder, walk = self._raster, self._store, self._builder, self._walk
        store.origin = None
        counters = [FlatLeaf(f"count{axis}", 0, kind.width_bits, kind)
                    for axis, kind in enumerate(IntType.holding(0, max(1, n - 1)) for n in raster.counts)]
        kinds_of = {bus: element_type(kind) for bus, kind in parameter_buses(self._export)}
        takes: list[Beats] = []
        taken: list[FlatLeaf] = []
        for number, node in enumerate(raster.nodes):
            if node.stage is None:
                port, bus = _bus_of(node.buffer), f"take_{node.buffer.name.removeprefix('in.')}"
                leaf = FlatLeaf(bus, 0, width_of(kinds_of[port]), kinds_of[port])
                ref = store.param(len(counters) + len(taken), leaf.type)
                self._values[number] = floats.entering(builder, leaf.type, ref)
                taken.append(leaf)
                takes.append(Beats(port, bus, tuple(node.spans)))
        inputs = [*counters, *taken, *walk.small]
        self._inputs = len(inputs)
        self._counters = [store.param(k, leaf.type) for k, leaf in enumerate(counters)]
        for ref, count in zip(self._counters, raster.counts):
            builder.assume(ref, Interval(0, max(0, count - 1)))
        walk.run()
        for number, node in enumerate(raster.nodes):
            if node.stage is not None:
                self._values[number] = self._made(number, node)
        outputs, results, gives = self._outputs()
        self._fill()
        bits = sum(state.width_bits for state in self._states)
        if bits > MOST_HELD_BITS:
            raise NoRaster(f"The windows of `{self._export.name}` would hold {bits:,} bits in registers.")
        memories = [memory.memory for memory in self._memories]
        kinds = [leaf.type for leaf in inputs] + [state.type for state in self._states]
        kinds += [memory.type for memory in memories]
        nexts = [ref for ref in self._nexts if ref is not None]
        assert len(nexts) == len(self._states), "every state has a next value"
        region = store.region(kinds, [*results, *nexts, *(memory.head for memory in self._memories)])
        flat = FlatDesign(
            name=self._export.name, region=region, inputs=tuple(inputs), outputs=tuple(outputs),
            states=tuple(self._states), in_buses=_buses(inputs, self._export),
            out_buses=_buses(outputs, self._export), origins=store.origins, general=self._meter.shares(),
            memories=tuple(memories),
        )
        return RasterRound(raster, flat, tuple(leaf.bus for leaf in counters), tuple(takes), gives)

    def _made(self, number: int, node: Node) -> Ref:
        """What a tensor holds in this round."""
        assert node.stage is not None
        stage, builder = self._raster.stencils.stages[node.stage], self._builder
        value = self._walk.values[number]
        self._store.origin = None
        means: dict[Ref, Ref] = {}
        for axis, symbol in enumerate(self._walk.counters[number]):
            if symbol is not None:
                means[symbol] = self._count(axis, node, stage)
        for access, symbol in self._walk.reads[number].items():
            back = back_of(access, self._raster.nodes[number], self._raster.nodes[access.node])
            means[symbol] = self._back(access.node, back)
        assert value is not None
        found = substituted(builder, value, means)
        self._store.origin = None
        if node.older is None:
            return found
        older = self._raster.nodes[node.older]
        before = self._back(node.older, tuple(a - b for a, b in zip(node.shifts, older.shifts)))
        inside: list[Ref] = []
        for ref, (first, last), (low, high), extent in zip(
            self._counters, node.rounds_of_box(), node.box, node.extents
        ):  # rounds beyond the tensor do not matter
            first, last = (0 if low == 0 else first), (_FAR if high == extent - 1 else last)
            inside.append(in_range(builder, ref, first, last))
        return chosen(builder, _all(builder, inside), found, before)

    def _count(self, axis: int, node: Node, stage: Stage) -> Ref:
        """A stage's counter along an axis: right in the rounds of its box, anything in others."""
        builder, kind = self._builder, IntType.holding(0, stage.counts[axis] - 1)
        shift, here = node.steps[axis].bit_length() - 1, self._counters[axis]
        wide = IntType(kind.width_bits + shift, False)
        first = node.rounds_of_box()[axis][0]
        found = builder.op("integer.sub", builder.cast(here, wide), builder.const(wide, first))
        if shift:
            found = builder.op("bits.shr", found, builder.const(IntType.holding(0, shift), shift))
        return builder.cast(found, kind)

    # Windows

    def _back(self, number: int, back: tuple[int, ...]) -> Ref:
        """What a node was so many rounds along each axis ago."""
        if number in self._values:  # a copy of another tensor needs no window of its own
            number = self._owners.setdefault(self._values[number], number)
        if not any(back):
            return self._values[number]
        assert all(part >= 0 for part in back), "shifts are as late as every access needs"
        found = self._windows.get((number, back))
        if found is None and number in self._raster.alone:
            node = self._raster.nodes[number]
            later = replace(node, shifts=tuple(map(sum, zip(node.shifts, back))))
            found = self._windows[number, back] = self._made(number, later)
        if found is None:
            axis = max(k for k, part in enumerate(back) if part)
            nearer = (*back[:axis], back[axis] - 1, *back[axis + 1 :])
            found = self._windows[number, back] = self._unit(number, nearer, axis)
        return found

    def _unit(self, number: int, nearer: tuple[int, ...], axis: int) -> Ref:
        """The neighbour along an axis of what a window holds at ``nearer``."""
        node, words = self._raster.nodes[number], prod(self._raster.counts[axis + 1 :])
        kind = carrier(node.buffer.element)
        name = "_".join((_plain(node.buffer.name), str(number), *map(str, nearer)))
        if words <= REGISTERS:
            source: tuple[int, tuple[int, ...]] | Ref = number, nearer
            for k in range(words):
                place = len(self._states)
                ref = self._store.param(self._inputs + place, kind)
                self._states.append(FlatState(f"{name}_{k}", width_of(kind), kind, 0))
                self._nexts.append(None)
                self._fills.append((place, source))
                source = ref
            assert isinstance(source, Ref)
            return source
        buffer = Buffer(f"line_{name}", node.buffer.element, (words,))
        memory = FlatMemory(buffer.name, words, width_of(kind), None, "state", None, words)
        at = self._inputs + self._counted + len(self._memories)
        kept = Memory(self._builder, memory, self._store.param(at, memory.type))
        self._memories.append(kept)
        line = Kept(self._builder, buffer, [kept])
        self._fills.append((line, (number, nearer)))
        return line.load([self._address(axis)], ())

    def _address(self, axis: int) -> Sum:
        """Where a round stands among those of one count along an axis."""
        counts = self._raster.counts
        return Sum(0, tuple(
            (self._counters[k], prod(counts[k + 1 :])) for k in range(axis + 1, len(counts)) if counts[k] > 1
        ))

    def _fill(self) -> None:
        """What windows hold next. Filling one may need another, which is filled behind it."""
        done = 0
        while done < len(self._fills):
            target, source = self._fills[done]
            done += 1
            value = source if isinstance(source, Ref) else self._back(*source)
            if isinstance(target, Kept):
                axis = _axis_of(target, self._raster.counts)
                target.store([self._address(axis)], value, ())
            else:
                self._nexts[target] = value

    # The design

    def _outputs(self) -> tuple[list[FlatLeaf], list[Ref], tuple[Beats, ...]]:
        builder, outputs, results = self._builder, list[FlatLeaf](), list[Ref]()
        gives: list[Beats] = []
        ports = zip(result_buses(self._export), self._raster.stencils.program.of_kind("result"), strict=True)
        for k, ((port, kind), buffer) in enumerate(ports):
            element = element_type(kind)
            number = self._raster.latest(buffer.name)
            node = self._raster.nodes[number]
            conditions = [
                in_range(builder, ref, first, last)
                for ref, (first, last) in zip(self._counters, node.spans)
            ]
            conditions += [
                self._in_step(ref, step, first)
                for ref, step, (first, _) in zip(self._counters, node.steps, node.spans) if step > 1
            ]
            ends = [
                builder.op("compare.eq", ref, builder.const(ref.type, last))
                for ref, (_, last) in zip(self._counters, node.spans)
            ]
            stream = Beats(port, f"give{k}", tuple(node.spans), f"there{k}", f"ends{k}")
            gives.append(stream)
            value = floats.leaving(builder, element, self._values[number])
            for bus, kind, ref in (
                (stream.there, BOOL, _all(builder, conditions)), (stream.ends, BOOL, _all(builder, ends)),
                (stream.bus, element, value),
            ):
                outputs.append(FlatLeaf(bus, 0, width_of(kind), kind))
                results.append(ref)
        return outputs, results, tuple(gives)

    def _in_step(self, ref: Ref, step: int, first: int) -> Ref:
        """Whether a counter is at one of every so many places."""
        kind = IntType(step.bit_length() - 1, False)
        return self._builder.op(
            "compare.eq", self._builder.cast(ref, kind), self._builder.const(kind, first & (step - 1))
        )


def substituted(builder: Builder, value: Ref, means: Mapping[Ref, Ref]) -> Ref:
    """A value with others in the place of symbols, simplified anew."""
    made: dict[Ref, Ref] = dict(means)
    store, canonical = builder.store, dict(builder.canonical)

    def inputs_of(node: GraphNode) -> list[GraphNode]:
        return [ref.node for ref in node.inputs]

    for node in toposort([value.node], inputs_of):
        refs = [Ref(node, k) for k in range(len(node.types))]
        if all(ref in made for ref in refs):
            continue
        inputs = [made[ref] for ref in node.inputs]
        if inputs == list(node.inputs):
            made |= zip(refs, refs)
            continue
        store.origin = store.origins.get(node)
        attrs = dict(node.attrs)
        scalar = len(refs) == 1 and not any(isinstance(ref.type, TensorType) for ref in inputs)
        found = (
            [builder.op(node.opcode, *inputs, **attrs)] if scalar
            else builder.outputs(node.opcode, *inputs, **attrs)  # tables are read as they are
        )
        for ref, new in zip(refs, found):
            made[ref] = new
            if ref in canonical:
                builder.canonical.add((new, canonical[ref]))
    return made[value]


def _all(builder: Builder, conditions: Sequence[Ref]) -> Ref:
    return reduce(lambda a, b: builder.op("bits.and", a, b), conditions, builder.const(BOOL, 1))


def _axis_of(line: Kept, counts: Sequence[int]) -> int:
    """The axis that a line's words lie between neighbours of."""
    return next(axis for axis in range(len(counts)) if prod(counts[axis + 1 :]) == line.buffer.size)


def _bus_of(buffer: Buffer) -> str:
    """The port of a parameter that is a tensor."""
    return f"in_{buffer.name.removeprefix('in.')}"


def _buses(leaves: Sequence[FlatLeaf], export: Export) -> tuple[tuple[str, int], ...]:
    """Buses in order of their first leaves; those of ports in their own width."""
    ports: Mapping[str, int] = dict(bus_widths(parameter_buses(export)))
    found = {leaf.bus: ports.get(leaf.bus, leaf.width_bits) for leaf in leaves}
    return tuple(found.items())


def _plain(name: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in name)
