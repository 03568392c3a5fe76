"""Which bits of which port are which value: a row for each leaf of the parameters and results, as written."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal

from kera_hw.graph.node import Export
from kera_hw.rtl.emit.ports import INTERRUPT, Bundle, PortPlan
from kera_hw.rtl.lower.ports import parameter_buses, result_buses
from kera_hw.types import FixType, IntType, StructType, TensorType, TupleType, Type, bit_width

Kind = Literal["clock", "reset", "valid", "ready", "last", "bus", "interrupt", "parameter", "result"]
_INDICES = "ijklmnpqrs"


def index_name(number: int) -> str:
    """What the index of a path's tensor axis is called, counted from 0."""
    return _INDICES[number] if number < len(_INDICES) else f"i{number}"


@dataclass(frozen=True, slots=True)
class MappedLeaf:
    """A scalar of a port, or all the scalars of tensors that are reached by one path with indices.

    The first has bits ``low`` to ``low + width - 1``; a step of index k moves on by ``strides[k]`` bits.
    ``names`` are the parts of the path, without the indices.
    """

    path: str
    names: tuple[str, ...]
    type: Type
    low: int
    width: int
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()

    @property
    def signed(self) -> bool:
        """Whether its bits are two's complement."""
        return isinstance(self.type, (IntType, FixType)) and self.type.signed

    @property
    def count(self) -> int:
        """How many scalars the path reaches."""
        return prod(self.shape)

    @property
    def bits(self) -> str:
        """The bits as Verilog selects them, with the indices of the path."""
        if not self.shape:
            high = self.low + self.width - 1
            return f"[{high}:{self.low}]" if self.width > 1 else f"[{self.low}]"
        names = [(stride, index_name(k)) for k, stride in enumerate(self.strides)]
        steps = [f"{stride}*{name}" if stride > 1 else name for stride, name in names]
        start = " + ".join([*([str(self.low)] if self.low else []), *steps])
        return f"[{start} +: {self.width}]"

    def to_json(self) -> dict[str, object]:
        """Plain JSON object; ``high`` is that of the first scalar."""
        row: dict[str, object] = {
            "path": self.path, "type": str(self.type), "low": self.low, "high": self.low + self.width - 1,
            "signed": self.signed,
        }
        if self.shape:
            row |= {"shape": list(self.shape), "strides_bits": list(self.strides)}
        return row


@dataclass(frozen=True, slots=True)
class MappedPort:
    """A port of the top module with what it carries; ``type`` is None for control.

    A tensor in ``beats`` has its whole type, and the leaves of one beat: where its paths have an ``i``, that
    counts the elements of the beat, and the first index is that of the tensor's elements in row-major order.
    """

    name: str
    direction: str
    width: int
    kind: Kind
    type: Type | None = None
    leaves: tuple[MappedLeaf, ...] = ()
    beats: int = 1

    def to_json(self) -> dict[str, object]:
        """Plain JSON object."""
        row: dict[str, object] = {
            "name": self.name, "direction": self.direction, "width": self.width, "kind": self.kind,
        }
        if self.type is not None:
            row |= {"type": str(self.type), "leaves": [leaf.to_json() for leaf in self.leaves]}
        if self.beats > 1:
            row["beats"] = self.beats
        return row


def port_map(export: Export, plan: PortPlan) -> tuple[MappedPort, ...]:
    """The ports in their order with the leaves they carry."""
    values: dict[str, tuple[Kind, str, Type]] = {}
    for (name, _), (bus, kind) in zip(export.params, parameter_buses(export)):
        values[bus] = ("parameter", name, kind)
    several = isinstance(export.result, TupleType)
    for k, (bus, kind) in enumerate(result_buses(export)):
        values[bus] = ("result", f"result.{k}" if several else "result", kind)
    kinds: dict[str | None, Kind] = {plan.clock: "clock", INTERRUPT: "interrupt"}
    if plan.reset is not None:
        kinds[plan.reset.name] = "reset"
    carried: dict[str, MappedPort] = {}
    for bundle in plan.bundles:
        kinds |= {bundle.valid: "valid", bundle.ready: "ready", bundle.last: "last"}
        if plan.interface == "axi-lite":
            kinds |= {port.name: "bus" for port in bundle.payload}
        else:
            carried |= {port.name: port for port in _carried(bundle, values)}
    return tuple(
        MappedPort(port.name, port.direction, port.width, kinds[port.name])
        if port.name in kinds else carried[port.name]
        for port in plan.ports
    )


def _carried(bundle: Bundle, values: dict[str, tuple[Kind, str, Type]]) -> Iterator[MappedPort]:
    """The payload of a bundle with the leaves of its values."""
    channel = bundle.channel
    if channel.in_beats:
        (port,), (value,) = bundle.payload, channel.values
        what, path, kind = values[value.bus]
        assert isinstance(kind, TensorType), "tensors alone come in beats"
        lanes, index = channel.lanes, index_name(0)
        number = f"{lanes}*beat + {index}" if lanes > 1 else "beat"
        leaves = tuple(_elements(kind.element, f"{path}[{number}]", tuple(path.split(".")), lanes))
        yield MappedPort(port.name, port.direction, port.width, what, kind, leaves, channel.beats)
    elif bundle.packed:
        (port,), low, leaves = bundle.payload, 0, list[MappedLeaf]()
        kinds = [values[value.bus][2] for value in channel.values]
        for value in channel.values:
            _, path, kind = values[value.bus]
            leaves += _leaves(kind, path, tuple(path.split(".")), low, (), ())
            low += value.width
        what: Kind = "parameter" if channel.direction == "input" else "result"
        whole = kinds[0] if len(kinds) == 1 else TupleType(tuple(kinds))
        yield MappedPort(port.name, port.direction, port.width, what, whole, tuple(leaves))
    else:
        for port, value in zip(bundle.payload, channel.values, strict=True):
            what, path, kind = values[value.bus]
            leaves = tuple(_leaves(kind, path, tuple(path.split(".")), 0, (), ()))
            yield MappedPort(port.name, port.direction, port.width, what, kind, leaves)


def _elements(kind: Type, path: str, names: tuple[str, ...], lanes: int) -> Iterator[MappedLeaf]:
    """The leaves of a beat."""
    stride = bit_width(kind)
    shape, strides = ((lanes,), (stride,)) if lanes > 1 else ((), ())
    yield from _leaves(kind, path, names, 0, shape, strides)


def _leaves(
    kind: Type, path: str, names: tuple[str, ...], low: int, shape: tuple[int, ...], strides: tuple[int, ...],
) -> Iterator[MappedLeaf]:
    """Packed as ports are: fields in their order, elements row-major, the first lowest, nothing between."""
    if isinstance(kind, (StructType, TupleType)):
        tuples = isinstance(kind, TupleType)
        fields = [(str(k), item) for k, item in enumerate(kind.items)] if tuples else list(kind.fields)
        for name, item in fields:
            yield from _leaves(item, f"{path}.{name}", (*names, name), low, shape, strides)
            low += bit_width(item)
    elif isinstance(kind, TensorType):
        if not kind.size:
            return
        stride, own = bit_width(kind.element), list[int]()
        for extent in reversed(kind.shape):
            own.insert(0, stride)
            stride *= extent
        letters = ", ".join(index_name(len(shape) + k) for k in range(len(kind.shape)))
        indexed = f"{path}[{letters}]"
        yield from _leaves(kind.element, indexed, names, low, (*shape, *kind.shape), (*strides, *own))
    else:
        yield MappedLeaf(path, names, kind, low, bit_width(kind), shape, strides)


def map_lines(ports: Sequence[MappedPort]) -> list[str]:
    """The map as lines of text, a port and then its leaves where it has several."""
    lines: list[str] = []
    for port in ports:
        if port.type is None:
            continue
        beats = f" in each of {port.beats} beats" if port.beats > 1 else ""
        lines.append(f"{port.name}: {port.type}, {port.width} bit{'s' if port.width > 1 else ''}{beats}")
        rows = [(leaf.bits, f"{leaf.path}: {leaf.type}") for leaf in port.leaves]
        if len(rows) == 1 and not port.leaves[0].shape and len(port.leaves[0].names) == 1:
            continue
        wide = max((len(bits) for bits, _ in rows), default=0)
        lines += [f"  {bits:<{wide}}  {text}" for bits, text in rows]
    return lines
