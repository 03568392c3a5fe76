"""Where the leaves of parameters and results sit on the ports."""
from __future__ import annotations

from dataclasses import dataclass

from kera_hw.graph.node import Export
from kera_hw.rtl.lower.builder import width_of
from kera_hw.rtl.lower.design import FlatLeaf
from kera_hw.types import StructType, TensorType, TupleType, Type, bit_width

WIDEST_VALUE_BITS = 1024
"""A tensor of more bits is a channel of its own, and a memory where loops stay loops; no channel has a wider
beat unless that is asked for."""


@dataclass(frozen=True, slots=True)
class Beats:
    """A tensor that comes or leaves an element a round: by axis the first round with one and the last.

    ``bus`` carries an element; ``port`` is the bus of its parameter or result, which its channel goes by. Of
    what leaves, the buses ``there`` and ``ends`` say whether a round has an element, and the item's last one.
    """

    port: str
    bus: str
    spans: tuple[tuple[int, int], ...]
    there: str = ""
    ends: str = ""


def parameter_buses(export: Export) -> list[tuple[str, Type]]:
    """The bus of each parameter, whether or not it holds a bit."""
    return [(f"in_{name}", kind) for name, kind in export.params]


def result_buses(export: Export) -> list[tuple[str, Type]]:
    """The bus of each result: a tuple has several."""
    if isinstance(export.result, TupleType):
        return [(f"out_{i}", item) for i, item in enumerate(export.result.items)]
    return [("out_data", export.result)]


def bus_widths(buses: list[tuple[str, Type]]) -> tuple[tuple[str, int], ...]:
    """Buses with their widths in bits. What holds no bit has no port: Verilog knows none of width zero."""
    return tuple((bus, bit_width(kind)) for bus, kind in buses if bit_width(kind) > 0)


def place_leaves(buses: list[tuple[str, Type]]) -> list[FlatLeaf]:
    """Scalar leaves of buses in graph order, each at its packed position.

    A tensor of structs travels as structs in an array but is one tensor per field in the graph, so the
    packed position of a leaf's element depends on the widths of its neighbours.
    """
    return [
        FlatLeaf(bus, low, width_of(element), element)
        for bus, kind in buses for leaf in _positions(kind) for low, element in leaf
    ]


def _positions(kind: Type) -> list[list[tuple[int, Type]]]:
    """Per leaf of the type, (bit offset, scalar type) of each of its elements in row-major order."""
    if isinstance(kind, (TupleType, StructType)):
        parts = kind.items if isinstance(kind, TupleType) else tuple(item for _, item in kind.fields)
        found: list[list[tuple[int, Type]]] = []
        base = 0
        for part in parts:
            found.extend([(base + low, element) for low, element in leaf] for leaf in _positions(part))
            base += bit_width(part)
        return found
    if isinstance(kind, TensorType):
        inner, stride = _positions(kind.element), bit_width(kind.element)
        return [
            [(i * stride + low, element) for i in range(kind.size) for low, element in leaf] for leaf in inner
        ]
    return [[(0, kind)]]
