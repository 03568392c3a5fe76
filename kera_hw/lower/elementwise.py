"""Operations on scalars, and element by element on tensors."""
from __future__ import annotations

from collections.abc import Sequence

from kera_hw.graph.node import Node
from kera_hw.loops.program import Affine, Operand, of_var
from kera_hw.lower.region import Lowering, Rule
from kera_hw.lower.views import Value, View
from kera_hw.ops.registry import OPS
from kera_hw.ops.spec import Trait


def elementwise(lower: Lowering, node: Node, args: list[Value]) -> list[Value]:
    attrs = dict(node.attrs)

    def at(index: Sequence[Affine]) -> list[Operand]:
        return lower.emit.outputs(node.opcode, [lower.read(arg, index) for arg in args], attrs)

    shape = next((arg.shape for arg in args if isinstance(arg, View)), None)
    if shape is None:
        return list(at([]))
    targets = [lower.new(kind) for kind in node.types]
    with lower.emit.nest(shape) as variables:
        index = [of_var(var) for var in variables]
        for target, value in zip(targets, at(index)):
            lower.write(target, index, value)
    return list(targets)


RULES: dict[str, Rule] = {
    name: elementwise for name, spec in OPS.items() if Trait.ELEMENTWISE in spec.traits
}
