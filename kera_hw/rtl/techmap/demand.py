"""Which low bits of every value anybody looks at: a backward pass over the flat region."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from kera_hw.graph.node import Node, Ref
from kera_hw.ops.registry import OPS
from kera_hw.ops.spec import Trait
from kera_hw.rtl.lower.builder import width_of
from kera_hw.rtl.techmap.source import Source

_LOW_BITS = frozenset(
    {name for name, row in OPS.items() if Trait.LOW_BITS in row.traits} | {"convert.cast", "convert.bitcast"}
)
"""The low n bits of the result depend on the low n bits of the operands alone (here all are integers)."""


def demanded(source: Source) -> dict[Ref, int]:
    """Low bits wanted of every value that is used; values nobody uses are absent."""
    wanted: dict[Ref, int] = {}

    def want(ref: Ref, count: int) -> None:
        count = max(1, min(count, width_of(ref.type)))
        wanted[ref] = max(wanted.get(ref, 0), count)

    for ref, width in zip(source.results, source.widths()):
        want(ref, width)
    for node in reversed(source.nodes):
        most = max((wanted.get(Ref(node, i), 0) for i in range(len(node.types))), default=0)
        if most:
            _operands(source, node, most, want)
    return wanted


def _operands(source: Source, node: Node, count: int, note: Callable[[Ref, int], None]) -> None:
    ins: Sequence[Ref] = node.inputs
    opcode = node.opcode
    if opcode == "bits.and":
        masks = [source.constant(ref) for ref in ins]
        for ref, mask in zip(ins, reversed(masks)):
            note(ref, count if mask is None or mask < 0 else min(count, mask.bit_length()))
    elif opcode in _LOW_BITS:
        for ref in ins:
            note(ref, count)
    elif opcode == "control.select":
        note(ins[0], 1)
        note(ins[1], count)
        note(ins[2], count)
    elif opcode == "bits.shl" and (amount := source.constant(ins[1])) is not None:
        note(ins[0], count - amount)
        note(ins[1], 64)
    elif opcode == "bits.shr" and (amount := source.constant(ins[1])) is not None:
        note(ins[0], count + amount)
        note(ins[1], 64)
    elif opcode == "bits.extract":
        note(ins[0], min(cast(int, node.attr("high")), cast(int, node.attr("low")) + count - 1) + 1)
    elif opcode == "bits.test":
        note(ins[0], cast(int, node.attr("index")) + 1)
    else:
        for ref in ins:
            note(ref, 64)
