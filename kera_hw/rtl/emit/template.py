"""Files beside a module that show how it is instantiated: in Verilog value by value, and in Amaranth."""
from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kera_hw.rtl.emit.layout import Protocol
from kera_hw.rtl.emit.naming import escaped, field_name, free_name, inner_name
from kera_hw.rtl.emit.portmap import MappedLeaf, MappedPort, index_name
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
# Control ports by protocol: direction, port of the module, what it is connected to.
_STREAM = (
    ("i", "in_valid", "self.i.valid"), ("o", "in_ready", "self.i.ready"), ("o", "out_valid", "self.o.valid"),
    ("i", "out_ready", "self.o.ready"),
)
_VALID = (("i", "in_valid", "self.in_valid"), ("o", "out_valid", "self.out_valid"))
_CONTROL: dict[Protocol, tuple[tuple[str, str, str], ...]] = {"stream": _STREAM, "valid": _VALID, "none": ()}


def amaranth_template(top: str, ports: Sequence[MappedPort], protocol: Protocol) -> str:
    """A component in the shapes of the types around an instance of the top module; needs Amaranth alone."""
    shapes = _Shapes({}, [], set(_IMPORTED))
    payload = ".payload" if protocol == "stream" else ""
    pins = [("i", "clk", "ClockSignal()")]
    if protocol != "none":
        pins.append(("i", "rst", "ResetSignal(allow_reset_less=True)"))
    pins += _CONTROL[protocol]
    layouts: list[str] = []
    for kind, prefix, side in (("parameter", "in_", "i"), ("result", "out_", "o")):
        mine = [(port, port.type) for port in ports if port.kind == kind and port.type is not None]
        fields = [(field_name(port.name.removeprefix(prefix)), kind) for port, kind in mine]
        layouts.append(f"{kind.upper()}S = {shapes.struct(fields)}")
        for (port, _), (field, _) in zip(mine, fields):
            pins.append((side, port.name, f"Value.cast(self.{side}{payload}[{quoted(field)}])"))
    words = "".join(word.capitalize() for word in top.split("_"))
    component = free_name(f"{words}Kernel", shapes.taken)
    inputs, outputs = (
        f"stream.Signature({name})" if protocol == "stream" else name for name in ("PARAMETERS", "RESULTS")
    )
    valid = ["    in_valid: In(1)", "    out_valid: Out(1)"] if protocol == "valid" else []
    hdl = ["ClockSignal", "Instance", "Module", *(["ResetSignal"] if protocol != "none" else []), "Value"]
    library = ["data", *(["stream"] if protocol == "stream" else []), "wiring"]
    file = quoted(f"{top}.v")
    return "\n".join([
        f'"""`{top}` as an Amaranth component: an instance of the module in {top}.v, beside this file."""',
        "from pathlib import Path", "",
        f"from amaranth.hdl import {', '.join(hdl)}, signed, unsigned",
        f"from amaranth.lib import {', '.join(library)}",
        "from amaranth.lib.wiring import In, Out", "", *shapes.lines, *layouts, "", "",
        f"class {component}(wiring.Component):",
        f"    i: In({inputs})", f"    o: Out({outputs})", *valid, "",
        "    def elaborate(self, platform):",
        '        if hasattr(platform, "add_file"):',
        f"            platform.add_file({file}, (Path(__file__).parent / {file}).read_text())",
        "        m = Module()", "        m.submodules.kernel = Instance(", f"            {quoted(top)},",
        *(f"            ({quoted(side)}, {quoted(pin)}, {value})," for side, pin, value in pins),
        "        )", "        return m", "",
    ])


def quoted(text: str) -> str:
    """A string literal of Python."""
    return json.dumps(text)
