"""How large a flat design would be, before it is made."""
from __future__ import annotations

from typing import cast

from kera_hw.graph.node import Export, Node, Region
from kera_hw.rtl.lower.design import LoweringError
from kera_hw.rtl.lower.floats import weights
from kera_hw.support import Diagnostic
from kera_hw.types import TensorType, Type, bit_width, element_type

NODE_BUDGET = 50_000
"""Scalar operations a flat design may hold; a division counts as its rows."""

DYNAMIC_STATE_BITS = 4096
"""State of a tensor indexed dynamically that may still be registers; beyond it belongs in RAM."""


def _elements(kind: Type) -> int:
    return kind.size if isinstance(kind, TensorType) else 1


def _is_constant(node: Node) -> bool:
    return node.opcode == "core.constant"


class Estimate:
    """Upper estimates of the scalar operations in regions, each region measured once."""

    def __init__(self) -> None:
        self._sizes: dict[Region, int] = {}

    def region(self, region: Region) -> int:
        """Scalar operations of a region, unrolled."""
        found = self._sizes.get(region)
        if found is None:
            found = sum(self._node(node) for node in region.nodes())
            self._sizes[region] = found
        return found

    def _attr_region(self, node: Node, name: str) -> int:
        return self.region(cast(Region, node.attr(name)))

    def _node(self, node: Node) -> int:
        opcode = node.opcode
        outputs = sum(_elements(kind) for kind in node.types)
        over_floats = weights.weight(node, self._steps(node, outputs))
        if over_floats is not None:
            return over_floats
        match opcode:
            case "core.param" | "core.constant":
                return 0
            case "control.call":
                return self._attr_region(node, "region")
            case "control.loop":
                return cast(int, node.attr("count")) * self._attr_region(node, "region")
            case "control.while":
                once = self._attr_region(node, "cond") + self._attr_region(node, "body") + outputs
                return cast(int, node.attr("max")) * once
            case "control.branch":
                return sum(self.region(r) + outputs for r in cast("tuple[Region, ...]", node.attr("regions")))
            case "control.map":
                return _elements(node.inputs[0].type) * self._attr_region(node, "region")
            case "control.scan":
                return cast(int, node.attr("length")) * self._attr_region(node, "region")
            case "tensor.index" | "tensor.slice" | "tensor.update" | "tensor.update_slice" | "tensor.gather":
                return self._indexing(node, outputs)
            case "integer.div" | "integer.rem":
                return outputs * bit_width(element_type(node.types[0]))
            case _ if opcode.startswith("tensor.") or opcode == "memory.transfer":
                return 0
            case "reduce.matmul" | "reduce.conv2d":
                return 2 * self._steps(node, outputs)
            case _:
                return self._steps(node, outputs)

    def _steps(self, node: Node, outputs: int) -> int:
        """Elements or products that a node unrolls to."""
        if node.opcode in ("reduce.matmul", "reduce.conv2d"):
            kernel = cast(TensorType, node.inputs[1].type)
            return outputs * (kernel.size // max(1, self._outer(node, kernel)))
        if node.opcode == "neural.attention":
            q, k = (cast(TensorType, node.inputs[i].type) for i in (0, 1))
            return q.size * k.shape[0]
        return max([outputs, *(_elements(ref.type) for ref in node.inputs)])

    def _outer(self, node: Node, kernel: TensorType) -> int:
        return kernel.shape[1] if node.opcode == "reduce.matmul" else kernel.shape[0]

    def _indexing(self, node: Node, outputs: int) -> int:
        """Selects of a dynamic position; one known (after unrolling) is wiring."""
        first = 2 if node.opcode in ("tensor.update", "tensor.update_slice") else 1
        nodes = [ref.node for ref in node.inputs[first:]]
        dynamic = [item for item in nodes if not _is_constant(item) and not _follows_loop(item)]
        return outputs * _elements(node.inputs[0].type) if dynamic else 0


def _follows_loop(node: Node) -> bool:
    """Whether an index may become constant by unrolling: it is built from constants and parameters."""
    pending = [node]
    for _ in range(32):
        if not pending:
            return True
        item = pending.pop()
        if item.opcode == "core.param":
            return True
        pending.extend(ref.node for ref in item.inputs)
    return False


def check(export: Export) -> None:
    """Raise LoweringError when unrolling would pass the budget."""
    size = Estimate().region(export.region)
    if size > NODE_BUDGET:
        raise LoweringError(Diagnostic(
            "K0610",
            f"`{export.name}` unrolls to about {size:,} operations, more than the {NODE_BUDGET:,} that fit "
            "one pipeline; it needs a loop pipeline, which is not available yet.",
            notes=("Export a smaller piece, such as the loop's body or one window, and stream over it.",),
        ))
    for var in export.state:
        width = bit_width(var.initial.type)
        if isinstance(var.initial.type, TensorType) and width > DYNAMIC_STATE_BITS:
            raise LoweringError(Diagnostic(
                "K0611",
                f"The state `{var.name}` of `{export.name}` holds {width:,} bits, more than the "
                f"{DYNAMIC_STATE_BITS:,} that are kept in registers; memories in RAM are not available yet.",
                notes=("Make the state smaller.",),
            ))
