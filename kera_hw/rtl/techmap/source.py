"""The flat region as mapping reads it: nodes in order, constants, forward ranges, users."""
from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import cast

from kera_hw.graph.node import Node, Ref
from kera_hw.ops.core import decode_constant
from kera_hw.ops.intervals import Interval, OpShape, apply_rule, raw_interval
from kera_hw.rtl.lower.builder import width_of
from kera_hw.rtl.lower.design import FlatDesign
from kera_hw.rtl.techmap.words import Range
from kera_hw.types import FloatType, TensorType


class Source:
    """Facts about a flat region, each computed once."""

    def __init__(self, flat: FlatDesign, held: Sequence[Interval | None] = ()) -> None:
        """``held``: what each state may hold, which may take fewer bits (``flat.states``) than its type."""
        self.flat = flat
        self.results = flat.region.results
        self.held = held
        self.nodes: list[Node] = flat.region.nodes()
        self._constants: dict[Node, int] = {}
        self.tables: dict[Node, list[int]] = {}
        self.ranges: dict[Ref, Range] = {}
        self.exact_ranges: dict[Ref, Range] = {}
        self.uses: Counter[Ref] = Counter(self.results)
        for node in self.nodes:
            self.uses.update(node.inputs)
            self._range(node)

    def constant(self, ref: Ref) -> int | None:
        """The raw integer of a constant (a float's bits); None for anything else."""
        return self._constants.get(ref.node)

    def _range(self, node: Node) -> None:
        if node.opcode == "core.constant":
            data = cast(bytes, node.attr("value"))
            kind = node.types[0]
            if isinstance(kind, TensorType):  # a table: read by tensor.index alone
                self.tables[node] = [int(v) for v in decode_constant(kind, data)]
                self.ranges[Ref(node, 0)] = (min(self.tables[node]), max(self.tables[node]))
                return
            bits = isinstance(kind, FloatType)
            value = int.from_bytes(data, "little") if bits else int(decode_constant(kind, data))
            self._constants[node] = value
            self.ranges[Ref(node, 0)] = (value, value)
            return
        if isinstance(node.types[0], TensorType):
            return  # a version of a memory
        for i, kind in enumerate(node.types):
            ref = Ref(node, i)
            stored = node.opcode == "tensor.index" and node.inputs[0] not in self.ranges
            if node.opcode == "core.param" or len(node.types) > 1 or stored:
                self.ranges[ref] = self._held(node) or raw_interval(kind)
                continue
            shape = OpShape(tuple(item.type for item in node.inputs), kind, dict(node.attrs))
            operands = [Interval(*self.ranges[item]) for item in node.inputs]
            self.ranges[ref] = apply_rule(node.opcode, operands, shape) or raw_interval(kind)

    def _held(self, node: Node) -> Interval | None:
        """What the state is known to hold that a node reads."""
        index = node.attr("index") if node.opcode == "core.param" else None
        if not self.held or not isinstance(index, int) or index < len(self.flat.inputs):
            return None
        return self.held[index - len(self.flat.inputs)]

    def widths(self) -> list[int]:
        """Low bits of every result that count; 1 for a memory."""
        states = [state.width_bits for state in self.flat.states]
        scalars = [*(width_of(ref.type) for ref in self.results[: len(self.flat.outputs)]), *states]
        return scalars + [1] * (len(self.results) - len(scalars))
