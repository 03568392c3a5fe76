"""Graph nodes over floats as scalar units: what flattening asks before it treats a node as wiring."""
from __future__ import annotations

from collections.abc import Callable
from typing import cast

from kera_hw.graph.node import Node, Ref
from kera_hw.ops.unrolled import UNROLLED
from kera_hw.rtl.lower import scalars
from kera_hw.rtl.lower.builder import Builder, carrier
from kera_hw.rtl.lower.floats import convert, table
from kera_hw.rtl.lower.floats.canonical import canonical, mark
from kera_hw.rtl.lower.values import Value, elementwise
from kera_hw.types import FixType, FloatType, Type, element_type

Handler = Callable[[Builder, Node, list[Value]], list[Value]]

_IN_PARTS = frozenset({
    *UNROLLED,
    "control.branch", "control.call", "control.loop", "control.map", "control.scan", "control.select",
    "control.while", "core.constant", "core.param", "memory.transfer", "tensor.broadcast", "tensor.concat",
    "tensor.gather", "tensor.index", "tensor.iota", "tensor.pad", "tensor.permute", "tensor.reshape",
    "tensor.reverse", "tensor.shift_in", "tensor.slice", "tensor.stack", "tensor.update",
    "tensor.update_slice",
})
"""Operations that move values, or ask for scalar operations one by one: floats go through them as bits."""


def float_type(node: Node) -> FloatType | None:
    """The float format a node works on: its first operand's or result's that is one."""
    for kind in (*(ref.type for ref in node.inputs), *node.types):
        element = element_type(kind)
        if isinstance(element, FloatType):
            return element
    return None


def is_computing(node: Node) -> bool:
    """Whether a node over floats computes with them itself."""
    return node.opcode not in _IN_PARTS and float_type(node) is not None


def handler_of(node: Node) -> Handler | None:
    """How a node that computes with floats is lowered; None where its expansion does it."""
    return None if lacks_unit(node) else HANDLERS.get(node.opcode)


def lacks_unit(node: Node) -> bool:
    """Whether a node computes a function by arithmetic that has a unit on other formats."""
    kind = float_type(node)
    return node.opcode in table.UNITS and kind is not None and not table.has_unit(node.opcode, kind)


def _unit(builder: Builder, node: Node, args: list[Value]) -> list[Value]:
    kind = float_type(node)
    assert kind is not None

    def scalar(*operands: Ref) -> Ref:
        return table.apply(builder, node.opcode, kind, *operands)

    return [elementwise(scalar, args)]


def _cast(builder: Builder, node: Node, args: list[Value]) -> list[Value]:
    source, target = element_type(node.inputs[0].type), element_type(cast(Type, node.attr("type")))

    def scalar(value: Ref) -> Ref:
        return converted(builder, source, target, value)

    return [elementwise(scalar, args)]


def converted(builder: Builder, source: Type, target: Type, value: Ref) -> Ref:
    if source == target:
        return value
    if isinstance(target, FloatType):
        if isinstance(source, FloatType):
            return mark(builder, target, convert.between(builder, source, target, value))
        raw = scalars.raw_of(builder, value)
        return mark(builder, target, convert.from_integer(builder, source, target, raw))
    assert isinstance(source, FloatType)
    found = convert.to_integer(builder, source, target, value)
    return scalars.of_raw(builder, found, target) if isinstance(target, FixType) else found


def scalar(builder: Builder, opcode: str, kinds: tuple[Type, ...], result: Type, *operands: Ref) -> Ref:
    """An operation on scalars of any types, without attributes or a cast; floats are carried as bits."""
    if opcode == "control.select":
        return builder.select(*operands)
    if opcode == "convert.cast":
        if any(isinstance(kind, FloatType) for kind in (*kinds, result)):
            return converted(builder, kinds[0], result, *operands)
        return scalars.apply(builder, opcode, *operands, type=result)
    if isinstance(kinds[0], FloatType):
        return table.apply(builder, opcode, kinds[0], *operands)
    return scalars.apply(builder, opcode, *operands)


def _bitcast(builder: Builder, node: Node, args: list[Value]) -> list[Value]:
    source, target = element_type(node.inputs[0].type), element_type(cast(Type, node.attr("type")))

    def scalar(value: Ref) -> Ref:
        return bitcast(builder, source, target, value)

    return [elementwise(scalar, args)]


def bitcast(builder: Builder, source: Type, target: Type, value: Ref) -> Ref:
    """Bits read as another type: a NaN is made canonical where an integer would show it."""
    if isinstance(source, FloatType) and source != target:
        value = canonical(builder, source, value)
    return builder.op("convert.bitcast", value, type=carrier(target))


NOUN = table.NOUN
HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(table.UNITS, _unit),
    "convert.cast": _cast,
    "convert.bitcast": _bitcast,
}
"""How nodes over floats are lowered that compute with them themselves."""


def entering(builder: Builder, kind: Type, ref: Ref) -> Ref:
    """A parameter as the flat region carries it."""
    return builder.op("convert.bitcast", ref, type=carrier(kind)) if isinstance(kind, FloatType) else ref


def leaving(builder: Builder, kind: Type, ref: Ref) -> Ref:
    """A result in its own type: bits that can be seen hold the canonical NaN only."""
    if not isinstance(kind, FloatType):
        return ref
    bits = canonical(builder, kind, ref)
    value = builder.value(bits)
    if value is None:
        return builder.op("convert.bitcast", bits, type=kind)
    return builder.store.op("core.constant", type=kind, value=value.to_bytes(kind.width_bits // 8, "little"))
