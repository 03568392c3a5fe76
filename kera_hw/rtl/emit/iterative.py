"""Iterative units in Verilog: a module of registers, one step's cells between them, and when they load."""
from __future__ import annotations

from collections.abc import Callable

from kera_hw.rtl.emit.cells import Site, Start, Writers
from kera_hw.rtl.emit.naming import Names
from kera_hw.rtl.emit.text import declared_range, joined, part, vector
from kera_hw.schedule.fpga.bits import Bits, Segment
from kera_hw.schedule.fpga.cells import Input
from kera_hw.schedule.fpga.units.iterative import IterativeUnit, Register


def write_iterative_module(unit: IterativeUnit, module: str, advance: bool, writers: Writers) -> list[str]:
    """The module of a definition: while ``start`` is high it takes ``in_<bus>``; ``out`` joins its registers.

    ``advance``: whether it can stall.
    """
    widths = unit.register_widths()
    ports = ["input  wire clk", *(["input  wire advance"] if advance else []), "input  wire start"]
    ports += [f"input  wire {declared_range(w)}in_{r.bus}" for r, w in zip(unit.registers, widths)]
    ports.append(f"output wire {declared_range(unit.width)}out")
    lines = [f"reg {declared_range(w)}{r.bus};" for r, w in zip(unit.registers, widths)]
    read, enable = _reader(unit), "advance" if advance else ""
    wires = {index: f"step{index}" for index in range(len(unit.step.cells))}
    inputs = [name for r in unit.registers for name in (r.bus, f"in_{r.bus}")]
    names = Names(("clk", "advance", "start", "out", *inputs, *wires.values()))
    for index, cell in enumerate(unit.step.cells):
        if not isinstance(cell, Input):
            lines.append(f"wire {declared_range(cell.width)}{wires[index]};")
            lines += writers.cell(cell, Site(wires[index], read, names.fresh, enable))
    outputs = {output.bus: output.bits for output in unit.step.outputs}
    lines.append(f"always @(posedge clk) {f'if ({enable}) ' if enable else ''}begin")
    for register in unit.registers:
        loads = f"if (start) {register.bus} <= in_{register.bus};"
        lines.append(f"  {loads}{_follow(register, outputs, read)}")
    lines += ["end", f"assign out = {joined([register.bus for register in unit.registers])};"]
    head = [f"module {module} (", ",\n".join(f"  {port}" for port in ports), ");"]
    return [*head, *(f"  {line}" for line in lines), "endmodule"]


def write_iterative(unit: IterativeUnit, start: Start, site: Site) -> list[str]:
    """An instance of the definition's module."""
    clocked = ".clk(clk)" + (f", .{site.enable}({site.enable})" if site.enable else "")
    inputs = zip(unit.registers, start.arguments)
    loads = ", ".join(f".in_{register.bus}({vector(bits, site.read)})" for register, bits in inputs)
    module, name = site.pipeline.module_of(unit), site.fresh(f"{site.wire}_unit")
    return [f"{module} {name} ({clocked}, .start({start.valid}), {loads}, .out({site.wire}));"]


def _reader(unit: IterativeUnit) -> Callable[[Segment], list[str]]:
    """How the step's cells read each other, and the registers."""
    widths = dict(unit.step.inputs)

    def read(segment: Segment) -> list[str]:
        assert segment.cell is not None
        source = unit.step.cells[segment.cell]
        if isinstance(source, Input):
            return [part(source.bus, source.low + segment.low, segment.width, widths[source.bus])]
        return [part(f"step{segment.cell}", segment.low, segment.width, source.width)]

    return read


def _follow(register: Register, outputs: dict[str, Bits], read: Callable[[Segment], list[str]]) -> str:
    """What the register does when it does not load."""
    if register.follow is None:
        return ""
    condition = ""
    if register.enable is not None:
        negation = "" if register.enabled_by else "!"
        condition = f"if ({negation}{vector(outputs[register.enable], read)}) "
    return f" else {condition}{register.bus} <= {vector(outputs[register.follow], read)};"
