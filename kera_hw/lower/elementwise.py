"""Operations on scalars, and element by element on tensors: as they are, or written out by an expansion."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from kera_hw.graph.node import Node
from kera_hw.loops.program import Affine, Buffer, Literal, Operand, of_var
from kera_hw.lower.emitter import Emitter, bits_of, storage_bytes
from kera_hw.lower.region import Lowering, Rule
from kera_hw.lower.views import Value, View
from kera_hw.numerics.arrays import Array
from kera_hw.ops.expansions import Expansion
from kera_hw.ops.registry import OPS
from kera_hw.ops.spec import AttrValue, Trait
from kera_hw.types import TensorType, Type

Scalars = Callable[[list[Operand]], list[Operand]]
"""Writes an operation on scalars and gives its results."""


@dataclass(frozen=True, slots=True)
class Table:
    """A constant tensor that an expansion reads."""

    buffer: Buffer

    @property
    def type(self) -> Type:
        return TensorType(self.buffer.element, self.buffer.shape)


class ScalarWriter:
    """Where the expansion of an operation on scalars goes: statements, and buffers of constants."""

    def __init__(self, emit: Emitter) -> None:
        self._emit = emit

    def op(self, opcode: str, *inputs: Operand | Table, **attrs: AttrValue) -> Operand | Table:
        if opcode == "tensor.index":
            table, index = inputs
            assert isinstance(table, Table) and not isinstance(index, Table)
            return self._emit.load(table.buffer, (self._emit.clamped(index, table.buffer.size - 1),))
        return self._emit.op(opcode, *cast("tuple[Operand, ...]", inputs), **attrs)

    def constant(self, kind: Type, value: Array) -> Operand | Table:
        if isinstance(kind, TensorType):
            data = storage_bytes(kind.element, value)
            return Table(self._emit.constant(kind.element, kind.shape, data))
        return Literal(kind, bits_of(kind, value))


def _each(lower: Lowering, node: Node, args: list[Value], scalars: Scalars) -> list[Value]:
    """The operation on scalars, or at every index of the tensors among its operands."""

    def at(index: Sequence[Affine]) -> list[Operand]:
        return scalars([lower.read(arg, index) for arg in args])

    shape = next((arg.shape for arg in args if isinstance(arg, View)), None)
    if shape is None:
        return list(at([]))
    targets = [lower.new(kind) for kind in node.types]
    with lower.emit.nest(shape) as variables:
        index = [of_var(var) for var in variables]
        for target, value in zip(targets, at(index)):
            lower.write(target, index, value)
    return list(targets)


def elementwise(lower: Lowering, node: Node, args: list[Value]) -> list[Value]:
    attrs = dict(node.attrs)
    return _each(lower, node, args, lambda values: lower.emit.outputs(node.opcode, values, attrs))


def written_out(expansion: Expansion) -> Rule:
    """The rule for an element-wise operation by the expansion of its scalar form."""

    def rule(lower: Lowering, node: Node, args: list[Value]) -> list[Value]:
        attrs = dict(node.attrs)

        def scalars(values: list[Operand]) -> list[Operand]:
            return [cast(Operand, expansion(ScalarWriter(lower.emit), values, attrs))]  # type: ignore[arg-type]

        return _each(lower, node, args, scalars)

    return rule


RULES: dict[str, Rule] = {
    name: elementwise for name, spec in OPS.items() if Trait.ELEMENTWISE in spec.traits
}
