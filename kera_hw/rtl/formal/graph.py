"""Regions of registry operations as terms: calls, loops and branches followed, tensors kept as elements."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from kera_hw.graph.expand import Expander
from kera_hw.graph.node import Node, Ref, Region
from kera_hw.ops.core import decode_constant
from kera_hw.ops.registry import OPS
from kera_hw.ops.spec import Array, EvalCall, Trait
from kera_hw.ops.unrolled import UNROLLED, unrolled
from kera_hw.rtl.formal import blocks, floats, scalars
from kera_hw.rtl.formal.blocks import Block, Position, scalar, stacked
from kera_hw.rtl.formal.reductions import REFUSED, NoMeaning
from kera_hw.rtl.formal.scalars import Call
from kera_hw.rtl.formal.terms import Term, Terms
from kera_hw.support import Diagnostic
from kera_hw.target import GAP, Instance, TargetTable
from kera_hw.types import BOOL, FloatType, IntType, TensorType, Type, bit_width, element_type, shape_of

Change = Callable[[Ref, Term], Term]


def _unchanged(_: Ref, term: Term) -> Term:
    return term


class Translator:
    """Makes terms of regions in one table. Raises NoMeaning for what the theories cannot say."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self._expander = Expander()

    def value(self, kind: Type, bits: Term) -> Term:
        """The value of a scalar type that a bit pattern stands for."""
        return self.terms.as_float(bits, floats.float_sort(kind)) if isinstance(kind, FloatType) else bits

    def constant(self, kind: Type, bits: int) -> Term:
        """A scalar constant from its pattern."""
        return self.value(kind, self.terms.const(bits, bit_width(kind)))

    def apply(self, opcode: str, kinds: tuple[Type, ...], result: Type, *args: Term) -> Term:
        """The first result of a scalar operation without attributes, or of a cast."""
        attrs = {"type": result} if opcode == "convert.cast" else {}
        return self.scalar(opcode, Call(self.terms, args, kinds, (result,), attrs))[0]

    def known(self, item: Term) -> int | None:
        """The pattern of a constant."""
        return item.value

    def scalar(self, opcode: str, call: Call) -> Sequence[Term]:
        """All results of a scalar operation."""
        real = scalars.is_float(*call.arg_types, *call.types)
        if real and opcode == "convert.cast" and call.arg_types == call.types:
            return call.args
        rule = (floats.RULES if real else scalars.RULES).get(opcode)
        if rule is None:
            raise NoMeaning(unknown(opcode, call))
        return rule(call)

    def region(self, region: Region, args: Sequence[Block], change: Change = _unchanged) -> list[Block]:
        """The region's results. ``change`` may put another term in the place of a scalar node's."""
        found: dict[Node, list[Block]] = {}
        for node in region.nodes():
            if node.opcode == "core.param":
                found[node] = [args[cast(int, node.attr("index"))]]
                continue
            results = self._node(node, [found[ref.node][ref.index] for ref in node.inputs])
            if change is not _unchanged:
                results = [
                    scalar(change(Ref(node, k), block.item)) if not block.shape else block
                    for k, block in enumerate(results)
                ]
            found[node] = results
        return [found[ref.node][ref.index] for ref in region.results]

    def _node(self, node: Node, args: list[Block]) -> list[Block]:
        fault = TABLE.fault(node, self._expander)
        if fault is not None:
            raise NoMeaning(fault)
        handler = TABLE.lowerings.get(node.opcode)
        if handler is not None:
            return handler(self, node, args)
        expanded = self._expander.region_of(node)
        assert expanded is not None, f"{node.opcode} is refused"
        return self.region(expanded, args)

    def elementwise(self, node: Node, args: list[Block]) -> list[Block]:
        shape = next((arg.shape for arg in args if arg.shape), ())
        count = max((len(arg.items) for arg in args if arg.shape), default=1)
        if any(arg.shape and not arg.items for arg in args):
            count = 0
        columns = [arg.items if arg.shape else arg.items * count for arg in args]
        kinds = tuple(element_type(ref.type) for ref in node.inputs)
        types, attrs = tuple(element_type(kind) for kind in node.types), dict(node.attrs)
        rows = [
            self.scalar(node.opcode, Call(self.terms, row, kinds, types, attrs)) for row in zip(*columns)
        ]
        return [Block(shape, tuple(row[k] for row in rows)) for k in range(len(types))]

    # Sources

    def array(self, kind: Type, values: Array) -> Block:
        """A constant from its array in storage form."""
        element = element_type(kind)
        if isinstance(element, FloatType):
            values = values.view(f"u{values.dtype.itemsize}")
        return Block(shape_of(kind), tuple(self.constant(element, int(v)) for v in values.ravel()))

    def constant_node(self, node: Node, _: list[Block]) -> list[Block]:
        kind = node.types[0]
        return [self.array(kind, decode_constant(kind, cast(bytes, node.attr("value"))))]

    def iota(self, node: Node, _: list[Block]) -> list[Block]:
        call = EvalCall(_Single(), (), (), node.types, dict(node.attrs))
        (values,) = OPS[node.opcode].evaluate(call)
        return [self.array(node.types[0], np.ascontiguousarray(values[0]))]

    # Dynamic places

    def index(self, node: Node, args: list[Block]) -> list[Block]:
        zero = self.constant(node.types[0], 0)
        return [blocks.index(self.terms, args[0], self._positions(node, args, 1), zero)]

    def slice(self, node: Node, args: list[Block]) -> list[Block]:
        sizes = cast("tuple[int, ...]", node.attr("sizes"))
        return [blocks.window(self.terms, args[0], sizes, self._positions(node, args, 1))]

    def update(self, node: Node, args: list[Block]) -> list[Block]:
        return [blocks.update(self.terms, args[0], args[1].item, self._positions(node, args, 2))]

    def update_slice(self, node: Node, args: list[Block]) -> list[Block]:
        return [blocks.update_window(self.terms, args[0], args[1], self._positions(node, args, 2))]

    def gather(self, node: Node, args: list[Block]) -> list[Block]:
        kind, zero = element_type(node.inputs[1].type), self.constant(element_type(node.types[0]), 0)
        assert isinstance(kind, IntType)
        return [blocks.gather(self.terms, args[0], args[1], kind, zero)]

    def _positions(self, node: Node, args: list[Block], first: int) -> list[Position]:
        return blocks.positions(args[first:], [ref.type for ref in node.inputs[first:]])

    # Control

    def call(self, node: Node, args: list[Block]) -> list[Block]:
        return self.region(cast(Region, node.attr("region")), args)

    def loop(self, node: Node, args: list[Block]) -> list[Block]:
        attrs: Mapping[str, Any] = dict(node.attrs)
        carried, captures = args[: attrs["carried"]], args[attrs["carried"] :]
        for k in range(attrs["count"]):
            number = attrs["start"] + k * attrs["step"]
            index = scalar(self.constant(attrs["index_type"], number))
            carried = self.region(attrs["region"], [index, *carried, *captures])
        return carried

    def while_(self, node: Node, args: list[Block]) -> list[Block]:
        attrs: Mapping[str, Any] = dict(node.attrs)
        carried, captures = args[: attrs["carried"]], args[attrs["carried"] :]
        active = self.terms.const(1, 1)
        for _ in range(attrs["max"]):
            (going,) = self.region(attrs["cond"], [*carried, *captures])
            active = self.terms.bit_and(active, going.item)
            if active.value == 0:
                break
            after = self.region(attrs["body"], [*carried, *captures])
            carried = [self._either(active, new, old) for new, old in zip(after, carried)]
        return carried

    def _either(self, condition: Term, then: Block, otherwise: Block) -> Block:
        pairs = zip(then.items, otherwise.items, strict=True)
        return Block(then.shape, tuple(self.terms.ite(condition, a, b) for a, b in pairs))

    def branch(self, node: Node, args: list[Block]) -> list[Block]:
        regions = cast("tuple[Region, ...]", node.attr("regions"))
        kind = IntType(1, False) if node.inputs[0].type == BOOL else cast(IntType, node.inputs[0].type)
        sides = [self.region(region, args[1:]) for region in regions]
        selector = Position(args[0].item, kind)
        return [selector.choose(self.terms, options) for options in zip(*sides)]

    def map(self, node: Node, args: list[Block]) -> list[Block]:
        arity = cast(int, node.attr("arity"))
        rows = [
            self.region(cast(Region, node.attr("region")), [*map(scalar, elements), *args[arity:]])
            for elements in zip(*(source.items for source in args[:arity]))
        ]
        return [stacked(shape_of(kind), [row[k] for row in rows]) for k, kind in enumerate(node.types)]

    def scan(self, node: Node, args: list[Block]) -> list[Block]:
        attrs: Mapping[str, Any] = dict(node.attrs)
        count, items = attrs["carried"], attrs["items"]
        carried, captures = args[:count], args[count + items :]
        sources = [source.rows() for source in args[count : count + items]]
        outs: list[list[Block]] = []
        for k in range(attrs["length"]):
            rows = [source[k] for source in sources]
            results = self.region(attrs["region"], [*carried, *rows, *captures])
            carried = results[:count]
            outs.append(results[count:])
        columns = enumerate(node.types[count:])
        return [*carried, *(stacked(shape_of(kind), [row[k] for row in outs]) for k, kind in columns)]


_WIRES = frozenset({"convert.bitcast", "convert.cast", "control.select"})


class CarriedTranslator(Translator):
    """Terms of a lowered region, where a floating-point number is carried as its bit pattern.

    All that is left of such numbers there is wiring; what a pattern means is the business of whoever made it.
    """

    def value(self, kind: Type, bits: Term) -> Term:
        return bits

    def scalar(self, opcode: str, call: Call) -> Sequence[Term]:
        if not scalars.is_float(*call.arg_types, *call.types):
            return super().scalar(opcode, call)
        if opcode not in _WIRES or bit_width(call.arg_types[-1]) != bit_width(call.types[0]):
            raise NoMeaning(unknown(opcode, call))
        return scalars.RULES["control.select" if len(call.args) == 3 else "convert.bitcast"](call)


class _Single:
    """Evaluation of constants: a batch of one."""

    batch = 1

    def run(self, region: object, args: Sequence[Array], batch: int | None = None) -> list[Array]:
        raise AssertionError("a constant runs no region")


Handler = Callable[[Translator, Node, list[Block]], list[Block]]


def _move(_: Translator, node: Node, args: list[Block]) -> list[Block]:
    return [blocks.move(node, args)]


def _reduce(translator: Translator, node: Node, args: list[Block]) -> list[Block]:
    kinds, (result,) = tuple(ref.type for ref in node.inputs), node.types
    return [Block(shape_of(result), unrolled(translator, node.opcode, kinds, result, dict(node.attrs), args))]


def _observe(_translator: Translator, _node: Node, args: list[Block]) -> list[Block]:
    """An observation is the value that it is given."""
    return args


LOWERINGS: Mapping[str, Handler] = {
    **dict.fromkeys([*scalars.RULES, *floats.RULES], Translator.elementwise),
    **dict.fromkeys(blocks.MOVING, _move),
    **dict.fromkeys(UNROLLED, _reduce),
    **{name: _observe for name, spec in OPS.items() if Trait.OBSERVES in spec.traits},
    "core.constant": Translator.constant_node,
    "tensor.iota": Translator.iota,
    "tensor.index": Translator.index,
    "tensor.slice": Translator.slice,
    "tensor.update": Translator.update,
    "tensor.update_slice": Translator.update_slice,
    "tensor.gather": Translator.gather,
    "control.call": Translator.call,
    "control.loop": Translator.loop,
    "control.while": Translator.while_,
    "control.branch": Translator.branch,
    "control.map": Translator.map,
    "control.scan": Translator.scan,
}

TABLE: TargetTable[Handler] = TargetTable(
    "formal", "formal meaning", LOWERINGS, {**floats.REFUSED, **REFUSED}, code="K0961"
)


def unknown(opcode: str, call: Call) -> Diagnostic:
    """Of a scalar operation that neither list of rules has."""
    kind = Instance(opcode, call.arg_types, call.types, call.attrs).kind
    return GAP.diagnostic(TABLE.code, TABLE.noun, opcode, kind)


def free_block(translator: Translator, kind: Type, bits: Sequence[Term]) -> Block:
    """A value of a leaf type from the patterns of its elements."""
    element = element_type(kind)
    return Block(shape_of(kind), tuple(translator.value(element, item) for item in bits))


def leaf_count(kind: Type) -> int:
    """Elements of a leaf type."""
    return kind.size if isinstance(kind, TensorType) else 1
