"""How many scalar operations a node over floats becomes: one unit is built to count them, once a kind."""
from __future__ import annotations

from functools import cache

from kera_hw.graph.node import Node
from kera_hw.graph.store import Store
from kera_hw.rtl.lower.builder import Builder, carrier
from kera_hw.rtl.lower.design import LoweringError
from kera_hw.rtl.lower.floats import lowering, table
from kera_hw.rtl.lower.values import Value, items_of
from kera_hw.types import FloatType, Type, element_type

_STEPS: dict[str, tuple[str, ...]] = {
    "reduce.sum": ("floating.add",),
    "reduce.mean": ("floating.add",),
    "reduce.prod": ("floating.mul",),
    "reduce.min": ("floating.min",),
    "reduce.max": ("floating.max",),
    "reduce.argmin": ("compare.lt", "floating.is_nan"),
    "reduce.argmax": ("compare.lt", "floating.is_nan"),
    "reduce.dot": ("floating.fma",),
    "reduce.matmul": ("floating.fma",),
    "reduce.conv2d": ("floating.fma",),
    "reduce.max_pool2d": ("floating.max",),
    "reduce.avg_pool2d": ("floating.add",),
    "neural.softmax": ("floating.max", "floating.sub", "floating.exp", "floating.add", "floating.div"),
    "neural.layer_norm": ("floating.add", "floating.sub", "floating.mul", "floating.add", "floating.mul"),
    "neural.rms_norm": ("floating.mul", "floating.add", "floating.mul"),
    "neural.attention": ("floating.fma", "floating.fma"),
}
"""Operations that each element (each product of a contraction) takes."""


@cache
def _unit_nodes(opcode: str, kind: FloatType, operands: int) -> int:
    """Nodes of one unit; 0 where there is none, which flattening refuses by name."""
    builder = Builder(Store())
    refs = [builder.store.param(i, carrier(kind)) for i in range(operands)]
    try:
        result = table.apply(builder, opcode, kind, *refs)
    except LoweringError:
        return 0
    return len(builder.store.region([ref.type for ref in refs], [result]).nodes())


_ARITY = {"floating.fma": 3, "floating.exp": 1, "floating.is_nan": 1}


_counted: dict[tuple[str, tuple[Type, ...], Type], int] = {}


def _element_nodes(node: Node) -> int:
    """Nodes of one element of an element-wise node, from its handler on scalars."""
    kinds = tuple(element_type(ref.type) for ref in node.inputs)
    key = (node.opcode, kinds, element_type(node.types[0]))
    found = _counted.get(key)
    if found is None:
        builder = Builder(Store())
        refs: list[Value] = [builder.store.param(i, carrier(kind)) for i, kind in enumerate(kinds)]
        try:
            handler = lowering.handler_of(node)
            results = refs if handler is None else handler(builder, node, refs)
        except LoweringError:
            return 0  # flattening refuses it by name
        ends = [ref for value in results for ref in items_of(value)]
        nodes = builder.store.region([ref.type for value in refs for ref in items_of(value)], ends).nodes()
        found = _counted[key] = len(nodes)
    return found


def weight(node: Node, elements: int) -> int | None:
    """Scalar operations of a node that works on floats and unrolls to ``elements`` steps; None for others."""
    kind = lowering.float_type(node)
    if kind is None or not lowering.is_computing(node):
        return None
    steps = _STEPS.get(node.opcode)
    if steps is None:
        return elements * _element_nodes(node)
    return elements * sum(_unit_nodes(step, kind, _ARITY.get(step, 2)) for step in steps)
