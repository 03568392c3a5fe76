"""A builder of scalar nodes that folds and simplifies while it builds.

Constants are folded by the registry's own evaluation, so folding can't disagree with the interpreter.
"""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kera_hw.graph.node import Node, Origin, Ref
from kera_hw.graph.store import Store
from kera_hw.ops.intervals import Interval, OpShape, apply_rule, raw_interval
from kera_hw.ops.registry import OPS
from kera_hw.ops.spec import Array, AttrValue, EvalCall, RegionLike
from kera_hw.rtl.lower.budget import Meter
from kera_hw.types import BOOL, FixType, FloatType, IntType, Type, element_type, numpy_dtype

_FIELDS = frozenset({"bits.cat", "bits.extract", "bits.test"})
"""Wiring, taken for anything of its type while building. Technology mapping bounds it, from the finished
region: what a region is, on which results of whole input spaces are recorded, does not hang on that."""


class _OneItem:
    """Evaluation context for scalars: a batch of one, and no regions to run."""

    batch = 1

    def run(self, region: RegionLike, args: Sequence[Array], batch: int | None = None) -> list[Array]:
        raise AssertionError("a scalar operation runs no region")


def width_of(kind: Type) -> int:
    """Bits of a scalar type."""
    return getattr(kind, "width_bits", 1)


def carrier(kind: Type) -> Type:
    """The type a scalar travels in through a flat region: a float as its bits, anything else as itself."""
    return IntType(kind.width_bits, False) if isinstance(kind, FloatType) else kind


def index_type(limit: int) -> IntType:
    """The smallest unsigned type holding 0 ..= limit."""
    return IntType(max(1, limit.bit_length()), False)


class Builder:
    """Makes scalar nodes in ``store``. Every reference it returns has a known range.

    ``interval`` is how many cycles at least lie between two items: lowerings may keep loops for it.
    ``carry_logic``: a carry cell holds a function of four signals, so that logic before an adder is free.
    ``meter`` counts what is made, if anybody asks.
    """

    def __init__(
        self, store: Store, interval: int = 1, carry_logic: bool = False, meter: Meter | None = None
    ) -> None:
        self.meter = meter
        self.store = store
        self.interval = interval
        self.carry_logic = carry_logic
        self._values: dict[Node, int | None] = {}
        self._ranges: dict[Ref, Interval] = {}
        self._memo: dict[object, Ref] = {}
        self._made_for: dict[object, Origin | None] = {}
        self._places: set[tuple[object, str, int]] = set()
        self.canonical: set[tuple[Ref, Type]] = set()
        """Bits of floats (with their format) that hold no NaN but the canonical one."""

    # Constants

    def const(self, kind: Type, value: int) -> Ref:
        """A scalar constant from its raw integer, modulo the type's width."""
        raw = kind.raw if isinstance(kind, FixType) else kind
        value = raw.wrap(value) if isinstance(raw, IntType) else value
        ref = self.store.constant(kind, value)
        self._values[ref.node] = int(value)
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
            array = np.frombuffer(data, dtype=numpy_dtype(ref.type).newbyteorder("<"))
            if array.dtype.kind == "f" or array.dtype.kind == "V":
                return None
            found = int(array[0])
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

    # Operations

    def op(self, opcode: str, *inputs: Ref, **attrs: AttrValue) -> Ref:
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
        rewrite = getattr(self, "_on_" + opcode.replace(".", "_"), None)
        if rewrite is not None:
            better = rewrite(inputs, values, attrs)
            if better is not None:
                return better
        return self._make(opcode, inputs, attrs)

    def _make(self, opcode: str, inputs: tuple[Ref, ...], attrs: dict[str, AttrValue]) -> Ref:
        ref = Ref(self._node(opcode, inputs, attrs), 0)
        if ref not in self._ranges:
            self._ranges[ref] = self._interval(opcode, inputs, ref.type, attrs)
        low, high = self._ranges[ref]
        return self.const(ref.type, low) if low == high else ref

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
        spec = OPS[opcode]
        kinds = tuple(ref.type for ref in inputs)
        types = spec.infer(kinds, attrs)
        args = tuple(np.array([self.value(r)]).astype(numpy_dtype(r.type)) for r in inputs)
        (result, *_) = spec.evaluate(EvalCall(_OneItem(), args, kinds, types, attrs))
        return self.const(types[0], int(result[0]))

    # Rewrites. Each takes inputs, constant values (None where not constant) and attributes.

    def _on_integer_add(self, x: tuple[Ref, ...], v: list[int | None], _: object) -> Ref | None:
        return x[0] if v[1] == 0 else x[1] if v[0] == 0 else None

    def _on_integer_sub(self, x: tuple[Ref, ...], v: list[int | None], _: object) -> Ref | None:
        if v[1] == 0:
            return x[0]
        return self.const(x[0].type, 0) if x[0] == x[1] else None

    def _on_integer_mul(self, x: tuple[Ref, ...], v: list[int | None], _: object) -> Ref | None:
        for a, b in ((0, 1), (1, 0)):
            if v[b] == 0:
                return x[b]
            if v[b] == 1:
                return x[a]
        return None

    def _on_integer_div(self, x: tuple[Ref, ...], v: list[int | None], _: object) -> Ref | None:
        divisor, kind = v[1], x[0].type
        assert isinstance(kind, IntType)
        if divisor is None or divisor <= 0 or divisor & (divisor - 1):
            return None
        shift = divisor.bit_length() - 1
        if shift == 0:
            return x[0]
        amount = self.const(index_type(shift), shift)
        if kind.signed and self.range(x[0])[0] < 0:
            bias = self.const(kind, divisor - 1)
            negative = self.op("compare.lt", x[0], self.const(kind, 0))
            biased = self.op("integer.add", x[0], self.select(negative, bias, self.const(kind, 0)))
            return self.op("bits.shr", biased, amount)
        return self.op("bits.shr", x[0], amount)

    def _on_integer_rem(self, x: tuple[Ref, ...], v: list[int | None], _: object) -> Ref | None:
        divisor, kind = v[1], x[0].type
        if divisor is None or divisor <= 0 or divisor & (divisor - 1):
            return None
        if self.range(x[0])[0] >= 0:
            return self.op("bits.and", x[0], self.const(kind, divisor - 1))
        quotient = self.op("integer.div", x[0], x[1])
        shift = divisor.bit_length() - 1
        multiple = self.op("bits.shl", quotient, self.const(index_type(shift), shift))
        return self.op("integer.sub", x[0], multiple)

    def _on_integer_abs(self, x: tuple[Ref, ...], _v: object, _: object) -> Ref | None:
        return x[0] if self.range(x[0])[0] >= 0 else None

    def _pick(self, x: tuple[Ref, ...], want_low: bool) -> Ref | None:
        (a_low, a_high), (b_low, b_high) = self.range(x[0]), self.range(x[1])
        if a_high <= b_low:
            return x[0] if want_low else x[1]
        if b_high <= a_low:
            return x[1] if want_low else x[0]
        return None

    def _on_integer_min(self, x: tuple[Ref, ...], _v: object, _: object) -> Ref | None:
        return self._pick(x, True)

    def _on_integer_max(self, x: tuple[Ref, ...], _v: object, _: object) -> Ref | None:
        return self._pick(x, False)

    def _on_bits_and(self, x: tuple[Ref, ...], v: list[int | None], _: object) -> Ref | None:
        if x[0] == x[1]:
            return x[0]
        ones = -1 if getattr(x[0].type, "signed", False) else raw_interval(x[0].type)[1]
        for a, b in ((0, 1), (1, 0)):
            if v[b] == 0:
                return x[b]
            if v[b] == ones:
                return x[a]
        return None

    def _on_bits_or(self, x: tuple[Ref, ...], v: list[int | None], _: object) -> Ref | None:
        if x[0] == x[1] or v[1] == 0:
            return x[0]
        if v[0] == 0:
            return x[1]
        ones = -1 if getattr(x[0].type, "signed", False) else raw_interval(x[0].type)[1]
        return x[0] if v[0] == ones else x[1] if v[1] == ones else None

    def _on_bits_xor(self, x: tuple[Ref, ...], v: list[int | None], _: object) -> Ref | None:
        if x[0] == x[1]:
            return self.const(x[0].type, 0)
        return x[0] if v[1] == 0 else x[1] if v[0] == 0 else None

    def _on_bits_not(self, x: tuple[Ref, ...], _v: object, _: object) -> Ref | None:
        return x[0].node.inputs[0] if x[0].node.opcode == "bits.not" else None

    def _on_bits_shl(self, x: tuple[Ref, ...], v: list[int | None], _: object) -> Ref | None:
        if v[1] == 0 or v[0] == 0:
            return x[0]
        return self.const(x[0].type, 0) if v[1] is not None and v[1] >= width_of(x[0].type) else None

    def _on_bits_shr(self, x: tuple[Ref, ...], v: list[int | None], _: object) -> Ref | None:
        return x[0] if v[1] == 0 or v[0] == 0 else None

    def _on_bits_rotl(self, x: tuple[Ref, ...], v: list[int | None], _: object) -> Ref | None:
        return x[0] if v[1] is not None and v[1] % width_of(x[0].type) == 0 else None

    _on_bits_rotr = _on_bits_rotl

    def _on_convert_cast(self, x: tuple[Ref, ...], _v: object, attrs: dict[str, AttrValue]) -> Ref | None:
        if x[0].type == attrs["type"]:
            return x[0]
        inner = x[0].node
        if inner.opcode != "convert.cast":
            return None
        source, middle, target = inner.inputs[0].type, x[0].type, attrs["type"]
        if not all(isinstance(kind, IntType) for kind in (source, middle, target)):
            return None
        low, high = self.range(inner.inputs[0])
        keeps = raw_interval(middle)[0] <= low and high <= raw_interval(middle)[1]
        if keeps or width_of(target) <= width_of(middle):  # type: ignore[arg-type]
            return self.op("convert.cast", inner.inputs[0], type=target)
        return None

    def _on_convert_bitcast(self, x: tuple[Ref, ...], _v: object, attrs: dict[str, AttrValue]) -> Ref | None:
        target, inner = attrs["type"], x[0].node
        if x[0].type == target:
            return x[0]
        if inner.opcode != "convert.bitcast":
            return None
        kinds = (inner.inputs[0].type, x[0].type, target)
        if any(isinstance(kind, FloatType) for kind in kinds):
            return None  # a NaN is made canonical on the way
        return self.op("convert.bitcast", inner.inputs[0], type=target)  # type: ignore[arg-type]

    def _on_compare_lt(self, x: tuple[Ref, ...], _v: object, _: object) -> Ref | None:
        (a_low, a_high), (b_low, b_high) = self.range(x[0]), self.range(x[1])
        if a_high < b_low:
            return self.const(BOOL, 1)
        return self.const(BOOL, 0) if a_low >= b_high or x[0] == x[1] else None

    def _on_compare_gt(self, x: tuple[Ref, ...], _v: object, _: object) -> Ref | None:
        return self.op("compare.lt", x[1], x[0])

    def _on_compare_le(self, x: tuple[Ref, ...], _v: object, _: object) -> Ref | None:
        return self.op("bits.not", self.op("compare.lt", x[1], x[0]))

    def _on_compare_ge(self, x: tuple[Ref, ...], _v: object, _: object) -> Ref | None:
        return self.op("bits.not", self.op("compare.lt", x[0], x[1]))

    def _on_compare_eq(self, x: tuple[Ref, ...], v: list[int | None], _: object) -> Ref | None:
        (a_low, a_high), (b_low, b_high) = self.range(x[0]), self.range(x[1])
        if a_high < b_low or b_high < a_low:
            return self.const(BOOL, 0)
        if x[0] == x[1]:
            return self.const(BOOL, 1)
        if x[0].type == BOOL:
            for a, b in ((0, 1), (1, 0)):
                if v[b] is not None:
                    return x[a] if v[b] else self.op("bits.not", x[a])
        return None

    def _on_compare_ne(self, x: tuple[Ref, ...], _v: object, _: object) -> Ref | None:
        return self.op("bits.not", self.op("compare.eq", *x))

    def _on_control_select(self, x: tuple[Ref, ...], v: list[int | None], _: object) -> Ref | None:
        if v[0] is not None:
            return x[1] if v[0] else x[2]
        if x[1] == x[2]:
            return x[1]
        if x[0].node.opcode == "bits.not":
            return self.op("control.select", x[0].node.inputs[0], x[2], x[1])
        if x[1].type != BOOL:
            return None
        unless = self.op("bits.not", x[0])
        if v[1] is not None:
            return self.op("bits.or", x[0], x[2]) if v[1] else self.op("bits.and", unless, x[2])
        if v[2] is not None:
            return self.op("bits.or", unless, x[1]) if v[2] else self.op("bits.and", x[0], x[1])
        return None

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
