"""A folded loop in Verilog: its registers, one step's cells between them, and when they load."""
from __future__ import annotations

from collections.abc import Callable

from kera_hw.rtl.emit.cells import Site
from kera_hw.rtl.emit.text import declared_range, joined, part, vector
from kera_hw.schedule.fpga.netlist import Bits, Cell, Fold, FoldRegister, Input, Segment

CellWriter = Callable[[Cell, Site], list[str]]


def write_fold(cell: Fold, site: Site, start: str, writer: CellWriter) -> list[str]:
    """Lines that drive ``site.wire`` with all registers joined; they load while ``start`` is high."""
    widths = dict(cell.step.inputs)
    names = {r.bus: site.fresh(f"{site.wire}_{r.bus}") for r in cell.registers}
    lines = [f"reg {declared_range(widths[r.bus])}{names[r.bus]};" for r in cell.registers]
    wires: list[str] = []

    def read(segment: Segment) -> list[str]:
        assert segment.cell is not None
        source = cell.step.cells[segment.cell]
        if isinstance(source, Input):
            low, whole = source.low + segment.low, widths[source.bus]
            return [part(names[source.bus], low, segment.width, whole)]
        return [part(wires[segment.cell], segment.low, segment.width, source.width)]

    for index, inner in enumerate(cell.step.cells):
        wires.append(site.fresh(f"{site.wire}_step{index}"))
        if isinstance(inner, Input):
            continue
        lines.append(f"wire {declared_range(inner.width)}{wires[-1]};")
        lines += writer(inner, Site(wires[-1], read, site.fresh, site.enable))
    outputs = {output.bus: output.bits for output in cell.step.outputs}
    lines.append(f"always @(posedge clk) {f'if ({site.enable}) ' if site.enable else ''}begin")
    for register, initial in zip(cell.registers, cell.initial):
        loads = f"if ({start}) {names[register.bus]} <= {vector(initial, site.read)};"
        lines.append(f"  {loads}{_follow(register, names[register.bus], outputs, read)}")
    lines.append("end")
    whole = joined([names[register.bus] for register in cell.registers])
    return [*lines, f"assign {site.wire} = {whole};"]


def _follow(
    register: FoldRegister, name: str, outputs: dict[str, Bits], read: Callable[[Segment], list[str]]
) -> str:
    """What the register does when it does not load."""
    if register.follow is None:
        return ""
    condition = ""
    if register.enable is not None:
        negation = "" if register.enabled_by else "!"
        condition = f"if ({negation}{vector(outputs[register.enable], read)}) "
    return f" else {condition}{name} <= {vector(outputs[register.follow], read)};"
