"""Files beside a module that show how it is instantiated: in Verilog value by value, and in Amaranth."""
from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kera_hw.rtl.emit.naming import escaped, field_name, free_name, inner_name
from kera_hw.rtl.emit.portmap import MappedLeaf, MappedPort, index_name
from kera_hw.rtl.emit.ports import Bundle, PortPlan
from kera_hw.rtl.emit.text import declared_range
from kera_hw.types import (
    BoolType,
    FixType,
    FloatType,
    IntType,
    StructType,
    TensorType,
    TupleType,
    Type,
)

INSTANCE = "instance"


def verilog_template(top: str, ports: Sequence[MappedPort]) -> str:
    """A module with a port for each value, around the top module with its buses."""
    deep = max((len(leaf.shape) for port in ports for leaf in port.leaves), default=0)
    taken = {top, "kernel", *(port.name for port in ports), *(index_name(k) for k in range(deep))}
    declared: list[tuple[str, str]] = []
    wires: list[str] = []
    assigns: list[str] = []
    deepest = 0
    for port in ports:
        if port.type is None:
            declared.append((f"{port.direction:<6} wire {port.name}", ""))
            continue
        bus = escaped(port.name)
        wires.append(f"  wire {declared_range(port.width)}{bus};")
        for leaf in port.leaves:
            name = free_name("_".join(leaf.names), taken)
            count = leaf.count
            sign = "signed " if leaf.signed and not leaf.shape else ""
            order = f", {count} of them, the first lowest" if leaf.shape else ""
            head = f"{port.direction:<6} wire {sign}{declared_range(count * leaf.width)}{name}"
            declared.append((head, f"  // {leaf.path}: {leaf.type}{order}"))
            assigns += _assigned(port, bus, leaf, name, taken)
            deepest = max(deepest, 0 if _together(leaf) else len(leaf.shape))
    counters = ", ".join(index_name(k) for k in range(deepest))
    last = len(declared) - 1
    connections = [f"    .{escaped(port.name)}({escaped(port.name)})" for port in ports]
    return "\n".join([
        f"// How `{top}` is instantiated: a module of its own, with a port for each value.",
        f"module {inner_name(top, INSTANCE)} (",
        *(f"  {head}{',' if k < last else ''}{note}" for k, (head, note) in enumerate(declared)),
        ");", *wires,
        *([f"  genvar {counters};"] if deepest else []),
        *assigns, f"  {top} kernel (", ",\n".join(connections), "  );", "endmodule", "",
    ])


def _own_strides(leaf: MappedLeaf) -> tuple[int, ...]:
    """The strides of the leaf's elements side by side."""
    return tuple(leaf.width * math.prod(leaf.shape[k + 1 :]) for k in range(len(leaf.shape)))


def _together(leaf: MappedLeaf) -> bool:
    """Whether the leaf's elements stand side by side on the bus."""
    return leaf.strides == _own_strides(leaf)


def _assigned(
    port: MappedPort, bus: str, leaf: MappedLeaf, name: str, taken: set[str],
) -> Iterator[str]:
    """Lines that connect a value with its bits of the bus, element by element where others lie between."""
    into = port.direction == "input"

    def assign(bits: str, value: str) -> str:
        left, right = (f"{bus}{bits}", value) if into else (value, f"{bus}{bits}")
        return f"assign {left} = {right};"

    if _together(leaf):
        width = leaf.width * leaf.count
        whole = width == port.width
        select = f"[{leaf.low + width - 1}:{leaf.low}]" if width > 1 else f"[{leaf.low}]"
        yield "  " + assign("" if whole else select, name)
        return
    yield "  generate"
    for k, extent in enumerate(leaf.shape):
        index = index_name(k)
        label = free_name(f"{name}_{index}", taken)
        loop = f"for ({index} = 0; {index} < {extent}; {index} = {index} + 1) begin : {label}"
        yield "  " * (k + 2) + loop
    depth = len(leaf.shape)
    value = " + ".join(f"{step}*{index_name(k)}" for k, step in enumerate(_own_strides(leaf)))
    yield "  " * (depth + 2) + assign(leaf.bits, f"{name}[{value} +: {leaf.width}]")
    for k in reversed(range(depth)):
        yield "  " * (k + 2) + "end"
    yield "  endgenerate"


@dataclass(frozen=True, slots=True)
class _Shapes:
    """Python expressions of shapes; structs and floats are defined once, by name."""

    names: dict[Type, str]
    lines: list[str]
    taken: set[str]

    def of(self, kind: Type) -> str:
        if isinstance(kind, TupleType):
            return self.struct([(str(k), item) for k, item in enumerate(kind.items)])
        if isinstance(kind, TensorType):
            text = self.of(kind.element)
            for extent in reversed(kind.shape):
                text = f"data.ArrayLayout({text}, {extent})"
            return text
        if isinstance(kind, (StructType, FloatType)):
            if kind not in self.names:
                self._define(kind)
            return self.names[kind]
        assert isinstance(kind, (IntType, FixType, BoolType))
        width = 1 if isinstance(kind, BoolType) else kind.width_bits
        signed = not isinstance(kind, BoolType) and kind.signed
        return f"{'signed' if signed else 'unsigned'}({width})"

    def struct(self, fields: Sequence[tuple[str, Type]]) -> str:
        inside = ", ".join(f"{quoted(name)}: {self.of(kind)}" for name, kind in fields)
        return f"data.StructLayout({{{inside}}})"

    def _define(self, kind: StructType | FloatType) -> None:
        if isinstance(kind, FloatType):
            bits = {"fraction": kind.fraction_bits, "exponent": kind.exponent_bits, "sign": 1}
            inside = ", ".join(f'"{name}": {width}' for name, width in bits.items())
            text = f"data.StructLayout({{{inside}}})"
        else:
            text = self.struct([(field_name(name), item) for name, item in kind.fields])
        name = free_name(str(kind).upper() if isinstance(kind, FloatType) else str(kind), self.taken)
        self.names[kind] = name
        self.lines.append(f"{name} = {text}")


_IMPORTED = {
    "ClockSignal", "In", "Instance", "Module", "Out", "Path", "ResetSignal", "Value", "data", "signed",
    "stream", "unsigned", "wiring", "PARAMETERS", "RESULTS",
}
_VALID = ("    in_valid: In(1)", "    out_valid: Out(1)")


@dataclass(frozen=True, slots=True)
class _Member:
    """A side of the component: a stream or a struct with the values of one bundle."""

    line: str
    pins: tuple[tuple[str, str, str], ...]  # direction, port of the module, what it is connected to


def amaranth_template(top: str, ports: Sequence[MappedPort], plan: PortPlan) -> str:
    """A component in the shapes of the types around an instance of the top module; needs Amaranth alone.

    ``i`` and ``o`` have the values that move together, a tensor in beats has a stream of its own.
    """
    shapes = _Shapes({}, [], set(_IMPORTED))
    by_name = {port.name: port for port in ports}
    pins = [("i", plan.clock, "ClockSignal()")]
    if plan.reset is not None:
        reset = "ResetSignal(allow_reset_less=True)"
        pins.append(("i", plan.reset.name, f"~{reset}" if plan.reset.active_low else reset))
    layouts: list[str] = []
    members = [_member(bundle, by_name, shapes, layouts) for bundle in plan.bundles]
    pins += [pin for member in members for pin in member.pins]
    words = "".join(word.capitalize() for word in top.split("_"))
    component = free_name(f"{words}Kernel", shapes.taken)
    streams = plan.protocol == "stream"
    hdl = ["ClockSignal", "Instance", "Module", *(["ResetSignal"] if plan.reset else []), "Value"]
    library = ["data", *(["stream"] if streams else []), "wiring"]
    file = quoted(f"{top}.v")
    return "\n".join([
        f'"""`{top}` as an Amaranth component: an instance of the module in {top}.v, beside this file."""',
        "from pathlib import Path", "",
        f"from amaranth.hdl import {', '.join(hdl)}, signed, unsigned",
        f"from amaranth.lib import {', '.join(library)}",
        "from amaranth.lib.wiring import In, Out", "", *shapes.lines, *layouts, "", "",
        f"class {component}(wiring.Component):",
        *(member.line for member in members), *(_VALID if plan.protocol == "valid" else ()), "",
        "    def elaborate(self, platform):",
        '        if hasattr(platform, "add_file"):',
        f"            platform.add_file({file}, (Path(__file__).parent / {file}).read_text())",
        "        m = Module()", "        m.submodules.kernel = Instance(", f"            {quoted(top)},",
        *(f"            ({quoted(side)}, {quoted(pin)}, {value})," for side, pin, value in pins),
        "        )", "        return m", "",
    ])


def _member(
    bundle: Bundle, ports: Mapping[str, MappedPort], shapes: _Shapes, layouts: list[str],
) -> _Member:
    """The side of a bundle; its layout becomes a line of ``layouts``."""
    channel = bundle.channel
    side, way, prefix = ("i", "In", "in_") if channel.direction == "input" else ("o", "Out", "out_")
    back = "o" if side == "i" else "i"
    suffix = f"{channel.name}_".removeprefix(prefix).removesuffix("_")
    member = field_name("_".join(part for part in (side, suffix) if part))
    layout = {"i": "PARAMETERS", "o": "RESULTS"}.get(member) or free_name(member.upper(), shapes.taken)
    base = f"self.{member}.payload" if bundle.ready is not None else f"self.{member}"
    pins: list[tuple[str, str, str]] = []
    if bundle.valid is not None:
        held = f"self.{member}.valid" if bundle.ready is not None else f"self.{bundle.valid}"
        pins.append((side, bundle.valid, held))
    if bundle.ready is not None:
        pins.append((back, bundle.ready, f"self.{member}.ready"))
    kinds = [ports[port.name].type for port in bundle.payload]
    if channel.in_beats:
        (kind,) = kinds
        assert isinstance(kind, TensorType)
        beat = f"data.ArrayLayout({shapes.of(kind.element)}, {channel.lanes})"
        layouts.append(f'{layout} = data.StructLayout({{"data": {beat}, "last": unsigned(1)}})')
        pins.append((side, bundle.payload[0].name, f'Value.cast({base}["data"])'))
        assert bundle.last is not None
        pins.append((side, bundle.last, f'{base}["last"]'))
    else:
        fields = [field_name(port.name.removeprefix(prefix)) for port in bundle.payload]
        shaped = [(field, kind) for field, kind in zip(fields, kinds) if kind is not None]
        layouts.append(f"{layout} = {shapes.struct(shaped)}")
        pins += [
            (side, port.name, f"Value.cast({base}[{quoted(field)}])")
            for port, field in zip(bundle.payload, fields)
        ]
    shape = f"stream.Signature({layout})" if bundle.ready is not None else layout
    return _Member(f"    {member}: {way}({shape})", tuple(pins))


def quoted(text: str) -> str:
    """A string literal of Python."""
    return json.dumps(text)
