"""Assertions, cover points and prints inside the Verilog of a design, for any simulator.

They are a circuit of their own beside that of the results: it takes the same items, keeps the same state, and
has its own latency. All of it stands between `ifndef SYNTHESIS and `endif, so synthesis never sees it.
"""
from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from kera_hw.rtl.emit.naming import escaped
from kera_hw.rtl.emit.verilog import Emitted
from kera_hw.types import FixType, FloatType, IntType, Type, bit_width, element_type, shape_of


@dataclass(frozen=True, slots=True)
class Flag:
    """The result number ``port`` of the observing circuit: an assertion that failed, a point reached."""

    port: int
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Record:
    """Three results from ``port`` on: how many prints, their numbers, and ``words`` a print of some bits."""

    port: int
    labels: tuple[str, ...]
    types: tuple[tuple[Type, ...], ...]
    words: int
    width_bits: int


def with_observations(design: Emitted, observing: Emitted, shown: Sequence[Flag | Record]) -> str:
    """The design's Verilog with the observing circuit in it. Both have a handshake or valid bits.

    It stands in the module that takes whole items, which is not the top where those come in beats.
    """
    clock = design.port_plan.clock
    display = _display(design.name, shown, clock)
    lines = ["`ifndef SYNTHESIS", *_instance(design, observing, clock), *display, "`endif"]
    head, body, rest = _split_core(design)
    inside = body.replace("endmodule", "\n".join([*lines, "endmodule"]), 1)
    parts = [head + inside + rest.rstrip(), "", "`ifndef SYNTHESIS", observing.verilog, "`endif", ""]
    return "\n".join(parts)


def _split_core(design: Emitted) -> tuple[str, str, str]:
    """The text before the module that takes items, that module up to its end, and what follows."""
    assert design.core is not None
    name = re.escape(escaped(design.core.module).rstrip())
    found = re.search(rf"^module {name}\b", design.verilog, re.MULTILINE)
    assert found is not None
    end = design.verilog.index("endmodule", found.start()) + len("endmodule")
    return design.verilog[: found.start()], design.verilog[found.start() : end], design.verilog[end:]


def _instance(design: Emitted, observing: Emitted, clock: str) -> list[str]:
    accepted = "in_valid & in_ready" if design.protocol == "stream" else "in_valid"
    pins = [f".clk({clock})", ".rst(rst)", f".in_valid({accepted})", ".out_valid(observed_valid)"]
    if observing.protocol == "stream":
        pins += [".out_ready(1'b1)", ".in_ready()"]
    wires = ["  wire observed_valid;"]
    pins += [f".{escaped(port.name)}({escaped(port.name)})" for port in observing.data_inputs]
    for number, port in enumerate(observing.data_outputs):
        wires.append(f"  wire [{port.width - 1}:0] observed_{number};")
        pins.append(f".{escaped(port.name)}(observed_{number})")
    return [
        f"  // What {design.name} asserts, covers and prints; in simulation alone.",
        "  /* verilator lint_off WIDTH */", "  /* verilator lint_off PINCONNECTEMPTY */",
        *wires, f"  {escaped(observing.name)} observed ({', '.join(pins)});",
    ]


def _display(name: str, shown: Sequence[Flag | Record], clock: str) -> list[str]:
    body: list[str] = []
    counters: list[str] = []
    for item in shown:
        if isinstance(item, Record):
            counters.append("  integer observed_print;")
            body += _prints(name, item)
        elif item.kind == "assert":
            message = f'"ERROR: {_text(name)}: item %0d: {_text(item.text)} fails"'
            body.append(f"      if (observed_{item.port}) $display({message}, observed_item);")
        else:
            counter = f"covered_{item.port}"
            counters += [f"  integer {counter};", f"  initial {counter} = 0;"]
            message = f'"{_text(name)}: item %0d: {_text(item.text)} reached"'
            body += [
                f"      if (observed_{item.port}) begin",
                f"        if ({counter} == 0) $display({message}, observed_item);",
                f"        {counter} <= {counter} + 1;",
                "      end",
            ]
    return [
        *counters, "  integer observed_item;", "  initial observed_item = 0;",
        f"  always @(posedge {clock})", "    if (rst) observed_item <= 0;",
        "    else if (observed_valid) begin",
        *body, "      observed_item <= observed_item + 1;", "    end",
        "  /* verilator lint_on PINCONNECTEMPTY */", "  /* verilator lint_on WIDTH */",
    ]


def _prints(name: str, record: Record) -> list[str]:
    entry, numbers = "observed_print", f"observed_{record.port + 1}"
    lines = [
        f"      for ({entry} = 0; {entry} < observed_{record.port}; {entry} = {entry} + 1)",
        f"        case ({numbers}[16*{entry} +: 16])",
    ]
    for number, (label, types) in enumerate(zip(record.labels, record.types, strict=True)):
        texts: list[str] = []
        args: list[str] = []
        place = 0
        for kind in types:
            text, given = _value(kind, record, place)
            texts.append(text)
            args += given
            place += prod(shape_of(kind))
        shown = ": ".join(part for part in (_text(label), ", ".join(texts)) if part)
        arguments = ", ".join(["observed_item", *args])
        lines.append(f'          16\'d{number}: $display("{_text(name)}: item %0d: {shown}", {arguments});')
    return [*lines, "          default: ;", "        endcase"]


def _value(kind: Type, record: Record, place: int) -> tuple[str, list[str]]:
    """The format of a value whose elements are words of a print from ``place`` on, and its arguments."""
    size, element = prod(shape_of(kind)), element_type(kind)
    words = f"observed_{record.port + 2}"
    bits = [
        f"{words}[{record.width_bits}*({record.words}*observed_print + {place + k}) +: {bit_width(element)}]"
        for k in range(size)
    ]
    form, given = _scalar(element)
    text = f"[{', '.join([form] * size)}]" if shape_of(kind) else form
    return text, [given.format(item) for item in bits]


def _scalar(kind: Type) -> tuple[str, str]:
    """A scalar's format, and its argument with braces for the bits."""
    if isinstance(kind, FixType):
        bits = "$signed({})" if kind.signed else "{}"
        return f"%0.{kind.fraction_bits}f", f"$itor({bits}) / {float(1 << kind.fraction_bits)}"
    if isinstance(kind, FloatType):
        return "0x%h", "{}"
    return "%0d", "$signed({})" if isinstance(kind, IntType) and kind.signed else "{}"


def _text(text: str) -> str:
    """Text inside a format of Verilog."""
    plain = "".join(char if " " <= char <= "~" else "?" for char in text)
    return plain.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
