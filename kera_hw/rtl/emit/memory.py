"""Memories in plain Verilog: synthesis puts them into block RAM for their attribute."""
from __future__ import annotations

from kera_hw.rtl.emit.cells import Site, Start, registered
from kera_hw.rtl.emit.text import constant, declared_range, vector
from kera_hw.schedule.fpga.bits import bits_width
from kera_hw.schedule.fpga.units import Memory


def write_memory(unit: Memory, start: Start, site: Site) -> list[str]:
    """Read into a register, then through further ones."""
    memory = site.fresh(site.wire + "_memory")
    (address,) = start.arguments
    width = unit.word_bits
    size, mask = 1 << bits_width(address), (1 << width) - 1
    lines = [
        f'(* ram_style = "block" *) reg {declared_range(width)}{memory} [0:{size - 1}];',
        "initial begin",
    ]
    for index in range(size):
        value = unit.contents[index] & mask if index < len(unit.contents) else 0
        lines.append(f"  {memory}[{index}] = {constant(value, width)};")
    lines.append("end")
    value = f"{memory}[{vector(address, site.read)}]"
    return [*lines, *registered(value, "_q", range(1, unit.latency_cycles + 1), width, site)]
