"""ECP5's LUT4 for bitwise cells, one for each output bit, as lowering has covered the logic.

Left to itself, Yosys's mapper takes such networks apart for depth: two levels of 32 four-input functions came
back as 154 LUTs, and slower. Bits that constants decide become wires, so that constants still spread.
"""
from __future__ import annotations

from itertools import pairwise

from kera_hw.rtl.emit.cells import Site, write_cell
from kera_hw.rtl.emit.text import constant, declared_range, evaluate_bit, part, vector
from kera_hw.schedule.netlist import Bits, Lut, bits_width, concat, const_bits, slice_bits

_PINS = "abcd"


def write_lut(cell: Lut, site: Site) -> list[str]:
    """LUT4s for runs of bits with the same constants; plain operators for more than four signals."""
    lines: list[str] = []
    for low, width in _runs(cell):
        operands = [_operand(bits, low, width, cell.width) for bits in cell.inputs]
        fixed = [_constant(bits) for bits in operands]
        pins = _support(cell, fixed)
        if len(pins) > len(_PINS):
            return write_cell(cell, site)
        target = part(site.wire, low, width, cell.width)
        table = _table(cell, fixed, pins)
        if not pins:
            lines.append(f"assign {target} = {constant(((1 << width) - 1) * (table & 1), width)};")
        elif len(pins) == 1:
            sign = "" if table == 0b10 else "~"
            lines.append(f"assign {target} = {sign}{vector(operands[pins[0]], site.read)};")
        else:
            lines += _instance(site, target, width, [operands[k] for k in pins], table)
    return lines


def _instance(site: Site, target: str, width: int, operands: list[Bits], table: int) -> list[str]:
    unused = len(_PINS) - len(operands)
    for step in range(unused):  # pins beyond are tied low; the table repeats, for the reader's sake
        table |= table << (1 << len(operands) + step)
    out, name = site.fresh(site.wire + "_lut"), site.fresh(site.wire + "_luts")
    rows = [*operands, *([const_bits(0, width)] * unused)]
    pins = ", ".join(f".{pin}({vector(bits, site.read)})" for pin, bits in zip(_PINS, rows))
    return [
        f"wire {declared_range(width)}{out};",
        f"kera_ecp5_lut #(.WIDTH({width}), .INIT(16'h{table:04x})) {name} ({pins}, .z({out}));",
        f"assign {target} = {out};",
    ]


def _operand(bits: Bits, low: int, width: int, whole: int) -> Bits:
    if bits_width(bits) == 1 and whole > 1:
        return concat([bits] * width)
    return slice_bits(bits, low, width)


def _runs(cell: Lut) -> list[tuple[int, int]]:
    """(lowest bit, width) of runs in which every operand is a signal throughout or one constant."""
    cuts = {0, cell.width}
    for bits in cell.inputs:
        position = 0
        if bits_width(bits) == 1:
            continue
        for segment in bits:
            cuts.add(position)
            if segment.cell is None:
                digits = [segment.low >> k & 1 for k in range(segment.width)]
                cuts |= {position + k for k in range(1, segment.width) if digits[k] != digits[k - 1]}
            position += segment.width
    edges = sorted(cuts)
    runs: list[tuple[int, int]] = []
    before: list[int | None] | None = None
    for low, high in pairwise(edges):
        fixed = [_constant(_operand(bits, low, high - low, cell.width)) for bits in cell.inputs]
        if fixed == before:
            runs[-1] = (runs[-1][0], runs[-1][1] + high - low)
        else:
            runs.append((low, high - low))
        before = fixed
    return runs


def _constant(bits: Bits) -> int | None:
    """The bit that a constant run repeats, or None for signals."""
    return None if any(segment.cell is not None for segment in bits) else bits[0].low & 1


def _table(cell: Lut, fixed: list[int | None], pins: list[int]) -> int:
    """The truth table over ``pins``: bit i is the value when pin k shows bit k of i, the rest being fixed."""
    table = 0
    for index in range(1 << len(pins)):
        shown = [value or 0 for value in fixed]
        for place, k in enumerate(pins):
            shown[k] = index >> place & 1
        table |= evaluate_bit(cell.expr, tuple(shown)) << index
    return table


def _support(cell: Lut, fixed: list[int | None]) -> list[int]:
    """The operands that the result depends on."""
    signals = [k for k, value in enumerate(fixed) if value is None]
    table = _table(cell, fixed, signals)
    size = 1 << len(signals)
    return [
        k for place, k in enumerate(signals)
        if any((table >> i ^ table >> (i ^ 1 << place)) & 1 for i in range(size))
    ]
