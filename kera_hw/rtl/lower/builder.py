"""A builder of scalar nodes that folds and simplifies while it builds.

Constants are folded by the registry's own evaluation, so folding can't disagree with the interpreter.
"""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kera_hw.graph.laws import OF_CIRCUITS, decided
from kera_hw.graph.node import Node, Origin, Ref
from kera_hw.graph.store import Store
from kera_hw.interp import run_operation
from kera_hw.ops.core import decode_constant
from kera_hw.ops.intervals import Interval, OpShape, apply_rule, raw_interval
from kera_hw.ops.spec import Array, AttrValue
from kera_hw.rtl.lower.budget import Meter
from kera_hw.types import BOOL, FixType, FloatType, IntType, Type, element_type, numpy_dtype

_FIELDS = frozenset({"bits.cat", "bits.extract", "bits.test"})
"""Wiring, taken for anything of its type while building. Technology mapping bounds it, from the finished
region: what a region is, on which results of whole input spaces are recorded, does not hang on that."""


def width_of(kind: Type) -> int:
    """Bits of a scalar type."""
    return getattr(kind, "width_bits", 1)


def carrier(kind: Type) -> Type:
    """The type a scalar travels in through a flat region: a float as its bits, anything else as itself."""
    return IntType(kind.width_bits, False) if isinstance(kind, FloatType) else kind


class Builder:
    """Makes scalar nodes in ``store``. Every reference it returns has a known range.

    At least ``initiation_interval`` cycles lie between two items: lowerings may keep loops for it.
    ``carry_logic``: a carry cell holds a function of four signals, so that logic before an adder is free.
    ``meter`` counts what is made, if anybody asks.
    """

    def __init__(
        self, store: Store, initiation_interval: int = 1, carry_logic: bool = False,
        meter: Meter | None = None,
    ) -> None:
        self.meter = meter
        self.store = store
        self.initiation_interval = initiation_interval
        self.carry_logic = carry_logic
        self._values: dict[Node, int | None] = {}
        self._constants: dict[tuple[Type, int], Ref] = {}
        self._ranges: dict[Ref, Interval] = {}
        self._memo: dict[object, Ref] = {}
        self._made_for: dict[object, Origin | None] = {}
        self._places: set[tuple[object, str, int]] = set()
        self.states: set[Ref] = set()
        """Parameters that are carried from item to item: what a design can wait for least."""
        self.canonical: set[tuple[Ref, Type]] = set()
        """Bits of floats (with their format) that hold no NaN but the canonical one."""

    # Constants

    def const(self, kind: Type, value: int) -> Ref:
        """A scalar constant from its raw integer, modulo the type's width."""
        ref = self._constants.get((kind, value))
        if ref is None:
            raw = kind.raw if isinstance(kind, FixType) else kind
            wrapped = raw.wrap(value) if isinstance(raw, IntType) else value
            ref = self._constants[kind, value] = self.store.constant(kind, wrapped)
            self._values[ref.node] = int(wrapped)
        return ref

    def constant(self, kind: Type, value: Array | int) -> Ref:
        """A scalar constant, as expansions write it."""
        return self.const(kind, int(value))

    def value(self, ref: Ref) -> int | None:
        """The raw integer of a constant, None for anything else."""
        node = ref.node
        if node.opcode != "core.constant":
            return None
        found = self._values.get(node)
        if found is None:
            data = node.attr("value")
            assert isinstance(data, bytes)
            if isinstance(element_type(ref.type), FloatType):
                return None
            found = int(decode_constant(ref.type, data).reshape(-1)[0])
            self._values[node] = found
        return found

    def constants(self, ref: Ref) -> list[Ref]:
        """A constant's elements, in order, as scalar constants in the types that carry them."""
        data = ref.node.attr("value")
        assert isinstance(data, bytes)
        element = element_type(ref.type)
        size = numpy_dtype(element).itemsize
        pieces = [data[i : i + size] for i in range(0, len(data), size)]
        if isinstance(element, FloatType):
            return [self.const(carrier(element), int.from_bytes(piece, "little")) for piece in pieces]
        return [self.store.op("core.constant", type=element, value=piece) for piece in pieces]

    def range(self, ref: Ref) -> Interval:
        """The interval the value lies in."""
        found = self._ranges.get(ref)
        if found is None:
            value = self.value(ref)
            found = raw_interval(ref.type) if value is None else Interval(value, value)
            self._ranges[ref] = found
        return found

    def assume(self, ref: Ref, span: Interval) -> None:
        """Take it that a parameter lies in an interval."""
        self._ranges[ref] = span

    # Operations

    def op(self, opcode: str, /, *inputs: Ref, **attrs: AttrValue) -> Ref:
        """The simplified single result of an operation."""
        key = (opcode, inputs, tuple(attrs.items()) if attrs else None)
        found = self._memo.get(key)
        if found is None:
            found = self._simplify(opcode, inputs, attrs)
            self._memo[key] = found
            self._made_for[key] = self.store.origin
        elif self._made_for[key] is not self.store.origin:
            self._made_again(key, opcode, inputs, attrs)
        return found

    def _made_again(
        self, key: object, opcode: str, inputs: tuple[Ref, ...], attrs: dict[str, AttrValue]
    ) -> None:
        """Let the nodes of an operation know of a further place that it stands at."""
        origin, first = self.store.origin, self._made_for[key]
        if origin is None or (first is not None and (first.path, first.line) == (origin.path, origin.line)):
            return
        place = (key, origin.path, origin.line)
        if place not in self._places:
            self._places.add(place)
            self._simplify(opcode, inputs, attrs)

    def outputs(self, opcode: str, *inputs: Ref, **attrs: AttrValue) -> list[Ref]:
        """All results of an operation with several."""
        node = self._node(opcode, inputs, attrs)
        return [Ref(node, i) for i in range(len(node.types))]

    def _simplify(self, opcode: str, inputs: tuple[Ref, ...], attrs: dict[str, AttrValue]) -> Ref:
        values = [self.value(ref) for ref in inputs]
        if inputs and None not in values:
            return self._fold(opcode, inputs, attrs)
        simpler = OF_CIRCUITS.simpler(self, opcode, inputs, attrs)
        return self._make(opcode, inputs, attrs) if simpler is None else simpler

    def _make(self, opcode: str, inputs: tuple[Ref, ...], attrs: dict[str, AttrValue]) -> Ref:
        ref = Ref(self._node(opcode, inputs, attrs), 0)
        if ref not in self._ranges:
            self._ranges[ref] = self._interval(opcode, inputs, ref.type, attrs)
        only = decided(self._ranges[ref])
        return ref if only is None else self.const(ref.type, only)

    def _interval(
        self, opcode: str, inputs: tuple[Ref, ...], kind: Type, attrs: dict[str, AttrValue]
    ) -> Interval:
        if opcode in _FIELDS:
            return raw_interval(kind)
        shape = OpShape(tuple(item.type for item in inputs), kind, attrs)
        return apply_rule(opcode, [self.range(item) for item in inputs], shape) or raw_interval(kind)

    def _node(self, opcode: str, inputs: tuple[Ref, ...], attrs: dict[str, AttrValue]) -> Node:
        """The node of an operation, counted when it is a new one."""
        before = len(self.store)
        node = self.store.node(opcode, inputs, attrs)
        if self.meter is not None and len(self.store) > before:
            self.meter.made(node)
        return node

    def _fold(self, opcode: str, inputs: tuple[Ref, ...], attrs: dict[str, AttrValue]) -> Ref:
        kinds = tuple(ref.type for ref in inputs)
        args = tuple(np.array([self.value(ref)]).astype(numpy_dtype(ref.type)) for ref in inputs)
        (kind, *_), (result, *_) = run_operation(opcode, args, kinds, attrs)
        return self.const(kind, int(result[0]))

    # Shapes used by several lowerings

    def select(self, condition: Ref, then: Ref, otherwise: Ref) -> Ref:
        """``condition ? then : otherwise``."""
        return self.op("control.select", condition, then, otherwise)

    def cast(self, ref: Ref, kind: Type) -> Ref:
        """Truncate or extend an integer or bool."""
        return self.op("convert.cast", ref, type=kind)

    def pick(self, index: Ref, choices: Sequence[Ref]) -> Ref:
        """``choices[clamp(index)]``: a tree of selects on the index bits."""
        value = self.value(index)
        if value is not None:
            return choices[min(max(value, 0), len(choices) - 1)]
        low, high = self.range(index)
        last = len(choices) - 1
        bits = last.bit_length()
        level = list(choices) + [choices[-1]] * ((1 << bits) - len(choices))
        for k in range(bits):
            bit = self.op("bits.test", index, index=k) if k < width_of(index.type) else self.const(BOOL, 0)
            level = [self.select(bit, level[i + 1], level[i]) for i in range(0, len(level), 2)]
        result = level[0]
        if high > last:
            big = self.op("compare.gt", index, self.const(index.type, last))
            result = self.select(big, choices[-1], result)
        if low < 0:
            result = self.select(self.op("compare.lt", index, self.const(index.type, 0)), choices[0], result)
        return result
