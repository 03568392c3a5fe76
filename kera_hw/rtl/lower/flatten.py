"""Flattening: calls inlined, loops unrolled, branches made selects, tensors made scalars.

The result is still a graph of registry operations, so the interpreter runs it: the lowering is checked
against the original on the same vectors.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numpy as np

from kera_hw.graph.expand import Expander
from kera_hw.graph.node import Export, Node, Ref, Region, Scopes, within
from kera_hw.graph.store import Store
from kera_hw.ops.expansions import exact_apart
from kera_hw.ops.registry import FAMILIES, OPS
from kera_hw.ops.spec import Trait
from kera_hw.rtl.lower import reductions, scalars, tensors
from kera_hw.rtl.lower.budget import Meter, check_ports, check_state, registers_suffice, steps_of
from kera_hw.rtl.lower.builder import Builder, width_of
from kera_hw.rtl.lower.design import FlatDesign, FlatLeaf, FlatState, LoweringError
from kera_hw.rtl.lower.floats import lowering as floats
from kera_hw.rtl.lower.floats.wires import Wires
from kera_hw.rtl.lower.memories import Condition, Memories, candidates, chosen
from kera_hw.rtl.lower.tensors import Handler
from kera_hw.rtl.lower.values import Stored, Tensor, Unkept, Value, elementwise, items_of, rebuild
from kera_hw.support import Diagnostic
from kera_hw.target import GAP, TargetTable
from kera_hw.types import (
    BOOL,
    FixType,
    TensorType,
    TokenType,
    TupleType,
    Type,
    bit_width,
    element_type,
    shape_of,
)

SCALAR = frozenset(
    row.name for family in ("integer", "fixed", "compare", "bits", "convert") for row in FAMILIES[family]
)
"""Families that are lowered element by element: fixed point by its expansion, integers as they are."""


class Flattener:
    """Evaluates regions symbolically: values are references to scalar nodes being built."""

    def __init__(
        self, store: Store, meter: Meter, initiation_interval: int = 1, carry_logic: bool = False,
        kept: dict[str, int] | None = None,
    ) -> None:
        self.store = store
        self.meter = meter
        self.builder = Builder(store, initiation_interval, carry_logic, meter)
        self._expander = Expander(exact_apart.EXPANSIONS)
        self._scopes: Scopes = ()
        self._in_general = False
        self.memories = Memories(self.builder, kept or {})
        self._ordered: dict[Region, list[tuple[Node, int]]] = {}
        self._checked: set[Node] = set()

    def run(self, region: Region, args: list[Value]) -> list[Value]:
        """The region's results on symbolic arguments."""
        values: dict[Node, list[Value]] = {}
        origins, outer, around = self.store.origins, self.store.origin, self._scopes
        self._scopes = around + self.store.scopes.get(region, ())
        for node, steps in self._nodes(region):
            self.store.origin = within(origins.get(node, outer), self._scopes)
            self.meter.visited(steps)
            if node.opcode == "core.param":
                values[node] = [args[cast(int, node.attr("index"))]]
            else:
                operands = [values[ref.node][ref.index] for ref in node.inputs]
                values[node] = self._apply(node, operands)
        self.store.origin, self._scopes = outer, around
        return [values[ref.node][ref.index] for ref in region.results]

    def _nodes(self, region: Region) -> list[tuple[Node, int]]:
        """The nodes of a region in order, with the steps of a visit; found once for all rounds of a loop."""
        found = self._ordered.get(region)
        if found is None:
            found = self._ordered[region] = [(node, steps_of(node)) for node in region.nodes()]
        return found

    def _check(self, node: Node) -> None:
        """Raise for what hardware cannot do, the first time that a node is met."""
        if node not in self._checked:
            _refuse(node)
            fault = TABLE.fault(node, self._expander)
            if fault is not None:
                raise LoweringError(fault)
            self._checked.add(node)

    def _apply(self, node: Node, args: list[Value]) -> list[Value]:
        self._check(node)
        stored = next((arg for arg in args if isinstance(arg, Stored)), None)
        if stored is not None:
            handler = _ON_MEMORIES.get(node.opcode)
            if handler is None:
                raise Unkept(stored.name, f"`{node.opcode}` takes it as a whole")
            return handler(self, node, args)
        if floats.is_computing(node):
            over_floats = floats.handler_of(node)
            if over_floats is not None:
                return over_floats(self.builder, node, args)
        elif node.opcode == "tensor.index" and self._in_general:
            return [self._entry(cast(Tensor, args[0]), cast(Ref, args[1]))]
        elif node.opcode in LOWERINGS and not reductions.is_long(node):
            return LOWERINGS[node.opcode](self, node, args)
        expanded = self._expander.region_of(node)
        if expanded is None:
            raise LoweringError(TABLE.diagnostic(GAP, node))
        return self._general(node, expanded, args) if floats.lacks_unit(node) else self.run(expanded, args)

    def _general(self, node: Node, expanded: Region, args: list[Value]) -> list[Value]:
        """A function by the arithmetic it is made of: what that takes is noted, its tables are memories."""
        what = f"`{node.opcode.partition('.')[2]}` on {floats.float_type(node)}"
        outside, self._in_general = self._in_general, True
        with self.meter.writing(what):
            results = self.run(expanded, args)
        self._in_general = outside
        return results

    def _entry(self, table: Tensor, index: Ref) -> Ref:
        """An entry of a table of constants."""
        wires, contents = Wires(self.builder), [self.builder.value(item) for item in table.items]
        assert None not in contents, "functions read tables of constants"
        word = wires.lookup(index, cast("list[int]", contents))
        return self.builder.cast(word, table.items[0].type)

    def elementwise(self, node: Node, args: list[Value]) -> list[Value]:
        attrs = dict(node.attrs)

        def scalar(*items: Ref) -> Ref:
            return scalars.apply(self.builder, node.opcode, *items, **attrs)

        return [elementwise(scalar, args)]

    def add_carry(self, _node: Node, args: list[Value]) -> list[Value]:
        shape = next((arg.shape for arg in args if isinstance(arg, Tensor)), ())
        count = max((len(arg.items) for arg in args if isinstance(arg, Tensor)), default=1)
        tensor = any(isinstance(arg, Tensor) for arg in args)
        columns = [arg.items if isinstance(arg, Tensor) else items_of(arg) * count for arg in args]
        rows = [self.builder.outputs("integer.add_carry", *row) for row in zip(*columns)]
        return [rebuild([row[k] for row in rows], shape, tensor) for k in (0, 1)]

    def constant(self, node: Node, _args: list[Value]) -> list[Value]:
        kind = node.types[0]
        items = self.builder.constants(node.out())
        return [Tensor(kind.shape, tuple(items)) if isinstance(kind, TensorType) else items[0]]

    # Control

    def call(self, node: Node, args: list[Value]) -> list[Value]:
        return self.run(cast(Region, node.attr("region")), args)

    def loop(self, node: Node, args: list[Value]) -> list[Value]:
        region, kind = cast(Region, node.attr("region")), cast(Type, node.attr("index_type"))
        count, start, step = (cast(int, node.attr(name)) for name in ("count", "start", "step"))
        carried, captures = self._carried(node, args)
        wrap = getattr(kind, "wrap", int)
        for i in range(count):
            index = self.builder.const(kind, wrap(start + i * step))
            carried = self.run(region, [index, *carried, *captures])
        return carried

    def while_(self, node: Node, args: list[Value]) -> list[Value]:
        condition, body = cast(Region, node.attr("cond")), cast(Region, node.attr("body"))
        carried, captures = self._carried(node, args)
        active = self.builder.const(BOOL, 1)
        for _ in range(cast(int, node.attr("max"))):
            (goes_on,) = self.run(condition, [*carried, *captures])
            assert isinstance(goes_on, Ref)
            active = self.builder.op("bits.and", active, goes_on)
            if self.builder.value(active) == 0:
                break
            after = self._under(Condition(active, 1, active), body, [*carried, *captures])
            carried = [self._choose(active, new, old) for new, old in zip(after, carried)]
        return carried

    def _choose(self, condition: Ref, then: Value, otherwise: Value) -> Value:
        if isinstance(then, Tensor):
            assert isinstance(otherwise, Tensor)
            pairs = zip(then.items, otherwise.items)
            return Tensor(then.shape, tuple(self._select(condition, a, b) for a, b in pairs))
        if isinstance(then, Stored) and isinstance(otherwise, Stored):
            return self.memories.joined(then, otherwise)
        assert isinstance(then, Ref) and isinstance(otherwise, Ref)
        return self._select(condition, then, otherwise)

    def _select(self, condition: Ref, then: Ref, otherwise: Ref) -> Ref:
        def choose(a: Ref, b: Ref) -> Ref:
            return self.builder.select(condition, a, b)

        return self._on_raw(choose, then, otherwise)

    def _on_raw(self, choose: Callable[..., Ref], *items: Ref) -> Ref:
        """One of the items: a choice between fixed-point numbers is one between integers."""
        found, kind = choose(*(scalars.raw_of(self.builder, item) for item in items)), items[0].type
        return scalars.of_raw(self.builder, found, kind) if isinstance(kind, FixType) else found

    def branch(self, node: Node, args: list[Value]) -> list[Value]:
        regions = cast("tuple[Region, ...]", node.attr("regions"))
        selector, captures = args[0], args[1:]
        assert isinstance(selector, Ref)
        known = self.builder.value(selector)
        if known is not None:
            return self.run(regions[min(known, len(regions) - 1)], captures)
        sides = self._sides(selector, regions, captures)
        if selector.type == BOOL:
            return [self._choose(selector, then, other) for other, then in zip(*sides)]
        results: list[Value] = []
        for choices in zip(*sides):
            if isinstance(choices[0], Stored):
                results.append(self._joined(choices))
                continue
            columns = zip(*(items_of(choice) for choice in choices))
            picked = [self._pick(selector, column) for column in columns]
            model = choices[0]
            shape = model.shape if isinstance(model, Tensor) else ()
            results.append(rebuild(picked, shape, isinstance(model, Tensor)))
        return results

    def _under(self, condition: Condition, region: Region, args: list[Value]) -> list[Value]:
        """A region's results, memories written only where the condition holds."""
        self.memories.enter(condition)
        results = self.run(region, args)
        self.memories.leave()
        for value in results:
            if isinstance(value, Stored):
                self.memories.check_latest(value)
        return results

    def _sides(self, selector: Ref, regions: tuple[Region, ...], captures: list[Value]) -> list[list[Value]]:
        """The results of all branches, each of which finds memories as those before it have left them."""
        if not any(isinstance(value, Stored) for value in captures):
            return [self.run(region, captures) for region in regions]
        entered, sides = self.memories.present(), list[list[Value]]()
        for number, region in enumerate(regions):
            present = [self.memories.current(value, entered) for value in captures]
            holds = chosen(self.builder, selector, number, len(regions))
            sides.append(self._under(Condition(selector, number, holds), region, present))
        return sides

    def _joined(self, choices: tuple[Value, ...]) -> Value:
        """A memory behind several branches."""
        first = choices[0]
        assert isinstance(first, Stored)
        for other in choices[1:]:
            assert isinstance(other, Stored)
            first = self.memories.joined(first, other)
        return first

    def read_memory(self, _node: Node, args: list[Value]) -> list[Value]:
        memory, *indices = args
        assert isinstance(memory, Stored)
        return [self.memories.read(memory, cast("list[Ref]", indices))]

    def write_memory(self, node: Node, args: list[Value]) -> list[Value]:
        memory, value, *indices = args
        if not isinstance(memory, Stored):
            raise Unkept(cast(Stored, value).name, f"`{node.opcode}` takes it as a value")
        assert isinstance(value, Ref)
        return [self.memories.write(memory, value, cast("list[Ref]", indices))]

    def _pick(self, selector: Ref, column: tuple[Ref, ...]) -> Ref:
        return self._on_raw(lambda *raws: self.builder.pick(selector, raws), *column)

    def map_(self, node: Node, args: list[Value]) -> list[Value]:
        region, arity = cast(Region, node.attr("region")), cast(int, node.attr("arity"))
        sources = [cast(Tensor, arg) for arg in args[:arity]]
        rows = [self.run(region, [*row, *args[arity:]]) for row in zip(*(s.items for s in sources))]
        return [self._stacked(kind, [row[k] for row in rows]) for k, kind in enumerate(node.types)]

    def _stacked(self, kind: Type, rows: list[Value]) -> Value:
        return Tensor(shape_of(kind), tuple(ref for row in rows for ref in items_of(row)))

    def scan(self, node: Node, args: list[Value]) -> list[Value]:
        region = cast(Region, node.attr("region"))
        carried_count, items, length = (cast(int, node.attr(n)) for n in ("carried", "items", "length"))
        carried, sources = args[:carried_count], args[carried_count : carried_count + items]
        captures = args[carried_count + items :]
        outs: list[list[Value]] = [[] for _ in node.types[carried_count:]]
        for i in range(length):
            rows = [_row(cast(Tensor, source), i) for source in sources]
            results = self.run(region, [*carried, *rows, *captures])
            carried = results[:carried_count]
            for column, value in zip(outs, results[carried_count:]):
                column.append(value)
        stacked = [self._stacked(kind, rows) for kind, rows in zip(node.types[carried_count:], outs)]
        return [*carried, *stacked]

    def _carried(self, node: Node, args: list[Value]) -> tuple[list[Value], list[Value]]:
        count = cast(int, node.attr("carried"))
        return args[:count], args[count:]


def observe(_builder: Builder, _node: Node, args: list[Value]) -> list[Value]:
    """An observation is the value that it is given."""
    return args


_Method = Callable[[Flattener, Node, list[Value]], list[Value]]


def _method(handler: Handler) -> _Method:
    return lambda flattener, node, args: handler(flattener.builder, node, args)


_HANDLERS: dict[str, Handler] = {
    **tensors.HANDLERS, **reductions.HANDLERS,
    **{name: observe for name, spec in OPS.items() if Trait.OBSERVES in spec.traits},
}

LOWERINGS: dict[str, _Method] = {
    **dict.fromkeys(SCALAR, Flattener.elementwise),
    **{opcode: _method(handler) for opcode, handler in _HANDLERS.items()},
    "control.call": Flattener.call,
    "control.loop": Flattener.loop,
    "control.while": Flattener.while_,
    "control.branch": Flattener.branch,
    "control.map": Flattener.map_,
    "control.scan": Flattener.scan,
    "core.constant": Flattener.constant,
    "integer.add_carry": Flattener.add_carry,
}
"""Operations on anything but floats, and those that move floats as bits."""

_ON_MEMORIES: dict[str, _Method] = {
    "tensor.index": Flattener.read_memory,
    "tensor.update": Flattener.write_memory,
    "control.call": Flattener.call,
    "control.loop": Flattener.loop,
    "control.while": Flattener.while_,
    "control.branch": Flattener.branch,
}
"""What there is for memories: an element is read or written, and control that hands them on."""

TABLE: TargetTable[object] = TargetTable(
    "rtl", floats.NOUN, {**LOWERINGS, **floats.HANDLERS}
)


def _row(source: Tensor, index: int) -> Value:
    if len(source.shape) == 1:
        return source.items[index]
    return source.take(source.indices()[index])


def _refuse(node: Node) -> None:
    """Raise for what hardware cannot do."""
    for kind in (*(ref.type for ref in node.inputs), *node.types):
        if isinstance(kind, TokenType):
            raise LoweringError(Diagnostic(
                "K0613", f"`{node.opcode}` orders an effect, and effects are not available in hardware yet.",
                notes=("Keep effects out of the exported function, or run it on the interpreter.",),
            ))


def parameter_buses(export: Export) -> list[tuple[str, Type]]:
    """The bus of each parameter, whether or not it holds a bit."""
    return [(f"in_{name}", kind) for name, kind in export.params]


def result_buses(export: Export) -> list[tuple[str, Type]]:
    """The bus of each result: a tuple has several."""
    if isinstance(export.result, TupleType):
        return [(f"out_{i}", item) for i, item in enumerate(export.result.items)]
    return [("out_data", export.result)]


def bus_widths(buses: list[tuple[str, Type]]) -> tuple[tuple[str, int], ...]:
    """Buses with their widths in bits. What holds no bit has no port: Verilog knows none of width zero."""
    return tuple((bus, bit_width(kind)) for bus, kind in buses if bit_width(kind) > 0)


def place_leaves(buses: list[tuple[str, Type]]) -> list[FlatLeaf]:
    """Scalar leaves of buses in graph order, each at its packed position.

    A tensor of structs travels as structs in an array but is one tensor per field in the graph, so the
    packed position of a leaf's element depends on the widths of its neighbours.
    """
    leaves: list[FlatLeaf] = []
    for bus, kind in buses:
        leaves.extend(_place_type(bus, kind))
    return leaves


def _place_type(bus: str, kind: Type) -> list[FlatLeaf]:
    positions = _positions(kind)
    return [FlatLeaf(bus, low, width_of(element), element) for leaf in positions for low, element in leaf]


def _positions(kind: Type) -> list[list[tuple[int, Type]]]:
    """Per leaf of the type, (bit offset, scalar type) of each of its elements in row-major order."""
    from kera_hw.types import StructType

    if isinstance(kind, (TupleType, StructType)):
        parts = kind.items if isinstance(kind, TupleType) else tuple(item for _, item in kind.fields)
        found: list[list[tuple[int, Type]]] = []
        base = 0
        for part in parts:
            found.extend([(base + low, element) for low, element in leaf] for leaf in _positions(part))
            base += bit_width(part)
        return found
    if isinstance(kind, TensorType):
        inner, stride = _positions(kind.element), bit_width(kind.element)
        return [
            [(i * stride + low, element) for i in range(kind.size) for low, element in leaf] for leaf in inner
        ]
    return [[(0, kind)]]


def _check_export(export: Export) -> None:
    for name, _ in export.params:
        if name in ("valid", "ready"):
            raise LoweringError(Diagnostic(
                "K0612",
                f"The parameter `{name}` of `{export.name}` would collide with the handshake port in_{name}.",
                notes=("Rename the parameter.",),
            ))


@dataclass(frozen=True, slots=True)
class _Declared:
    """State as it is declared: registers by scalar, memories, and the words of those that are memories."""

    states: list[FlatState]
    words: dict[str, list[int]]


def _states(export: Export, flattener: Flattener) -> _Declared:
    found = _Declared([], {})
    for var in export.state:
        value = flattener.run(Region((), (var.initial,)), [])[0]
        kind = element_type(var.initial.type)
        width = width_of(kind)
        raws: list[int] = []
        for item in items_of(value):
            raw = flattener.builder.value(item)
            assert raw is not None, "an initial state is constant"
            raws.append(raw & ((1 << width) - 1))
        if var.name in flattener.memories.kept:
            found.words[var.name] = raws
            continue
        for i, raw in enumerate(raws):
            name = var.name if isinstance(value, Ref) else f"{var.name}_{i}"
            found.states.append(FlatState(name, width, kind, raw, var.origin))
    return found


def flatten_export(
    export: Export, store: Store, initiation_interval: int = 1, carry_logic: bool = False
) -> FlatDesign | Diagnostic:
    """Flatten an export to scalar operations in ``store``; a Diagnostic (K06xx, K07xx) where it cannot be.

    Units that take several cycles an item are used where ``initiation_interval`` cycles allow, and such as
    need logic in carry cells with ``carry_logic``.
    """
    saved = store.origin
    try:
        _check_export(export)
        return _with_memories(export, store, initiation_interval, carry_logic)
    except LoweringError as problem:
        return problem.diagnostic
    finally:
        store.origin = saved


def _with_memories(
    export: Export, store: Store, initiation_interval: int, carry_logic: bool
) -> FlatDesign:
    """The design with such state in memories as can be, or is better, there."""
    kept, reasons = candidates(export), dict[str, str]()
    small = registers_suffice(export)
    while True:
        check_state(export, kept, reasons)
        check_ports(export, kept)
        try:
            flat, memories = _flatten(export, store, initiation_interval, carry_logic, kept)
        except Unkept as fault:
            reasons[fault.name] = fault.reason
            if fault.axis is None:
                del kept[fault.name]
            else:
                kept[fault.name] = fault.axis
            continue
        apart = memories.better_apart(small)
        if apart is None:
            return flat
        del kept[apart]


def _flatten(
    export: Export, store: Store, initiation_interval: int, carry_logic: bool, kept: dict[str, int]
) -> tuple[FlatDesign, Memories]:
    meter = Meter(export.name)
    flattener = Flattener(store, meter, initiation_interval, carry_logic, kept)
    buses = parameter_buses(export)
    inputs = place_leaves(buses)
    declared_state = _states(export, flattener)
    states = declared_state.states
    kinds = [leaf.type for leaf in inputs] + [state.type for state in states]
    builder = flattener.builder
    declared = dict(zip((bus for bus, _ in buses), export.places))
    places = [declared.get(leaf.bus) for leaf in inputs] + [state.origin for state in states]
    items: list[Ref] = []
    for index, (kind, place) in enumerate(zip(kinds, places)):
        store.origin = place
        items.append(floats.entering(builder, kind, store.param(index, kind)))
    store.origin = None
    memories = flattener.memories
    leaves = len(export.region.params) - len(export.state)
    args: list[Value] = []
    used = 0
    for number, kind in enumerate(export.region.params):
        var = export.state[number - leaves] if number >= leaves else None
        if var is not None and var.name in kept:
            args.append(memories.declare(var, declared_state.words[var.name], len(kinds)))
            continue
        count = int(np.prod(shape_of(kind), dtype=np.int64))
        args.append(rebuild(items[used : used + count], shape_of(kind), isinstance(kind, TensorType)))
        used += count
    assert used == len(items), "leaves of the ports and of the region differ"
    results: list[Ref] = []
    for value in flattener.run(export.region, args):
        if isinstance(value, Stored):
            memories.check_latest(value)
        else:
            results += items_of(value)
    out_buses = result_buses(export)
    outputs = place_leaves(out_buses)
    assert len(results) == len(outputs) + len(states), "leaves of the results and of the region differ"
    ends = [leaf.type for leaf in outputs] + [state.type for state in states]
    for k, (kind, ref) in enumerate(zip(ends, results)):
        store.origin = store.origins.get(ref.node)
        results[k] = floats.leaving(builder, kind, ref)
    store.origin = None
    made = FlatDesign(
        name=export.name,
        region=store.region([*kinds, *(memory.type for memory in memories.made)],
                            [*results, *memories.results()]),
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        states=tuple(states),
        in_buses=bus_widths(buses),
        out_buses=bus_widths(out_buses),
        origins=store.origins,
        general=meter.shares(),
        memories=tuple(memories.made),
    )
    return made, memories
