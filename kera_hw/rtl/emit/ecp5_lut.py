"""ECP5's LUT4 for bitwise cells, one for each output bit, as lowering has covered the logic.

Functions of five and six signals take two and four of them, with the multiplexers that stand behind.
Left to itself, Yosys's mapper takes such networks apart for depth: two levels of 32 four-input functions came
back as 154 LUTs, and slower. Bits that constants decide become wires, so that constants still spread.
"""
from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from kera_hw.rtl.emit.cells import Site
from kera_hw.rtl.emit.cells import write_lut as write_plain
from kera_hw.rtl.emit.text import constant, declared_range, part, vector
from kera_hw.schedule.fpga.bits import Bits, bits_width, concat, const_bits, slice_bits
from kera_hw.schedule.fpga.cells import Lut
from kera_hw.schedule.fpga.expressions import BitExpr, evaluate

_PINS = "abcdef"
_LUT_PINS = 4


@dataclass(frozen=True, slots=True)
class LutRun:
    """Bits [low, low + width) of a cell's output: ``table`` over the operands that decide them, six at most.

    No operands: a constant, the table's lowest bit. One: that operand, or its complement for table 1.
    """

    low: int
    width: int
    operands: tuple[Bits, ...]
    table: int

    def fixed_value(self) -> int:
        """The value of a run that no operand decides."""
        return ((1 << self.width) - 1) * (self.table & 1)

    def instance(self) -> LutInstance:
        """The helper module that it is: pins beyond are tied low, the table repeats for the reader."""
        count = len(self.operands)
        wide = count > _LUT_PINS
        size = len(_PINS) if wide else _LUT_PINS
        table = self.table
        for step in range(count, size):
            table |= table << (1 << step)
        rows = [*self.operands, *([const_bits(0, self.width)] * (size - count))]
        settings = {"INPUTS": count} if wide else {}
        module = "kera_ecp5_wide" if wide else "kera_ecp5_lut"
        return LutInstance(module, settings, 1 << size, table, dict(zip(_PINS, rows)))


@dataclass(frozen=True, slots=True)
class LutInstance:
    """A helper ``module`` with further ``settings``, INIT of so many bits, and the vectors on its pins."""

    module: str
    settings: dict[str, int]
    init_bits: int
    init: int
    pins: dict[str, Bits]


def lut_runs(cell: Lut) -> list[LutRun] | None:
    """Runs of output bits with the same constants; None where more than six signals decide."""
    found: list[LutRun] = []
    for low, width in _runs(cell):
        operands = [_operand(bits, low, width, cell.width) for bits in cell.inputs]
        fixed = tuple(_constant(bits) for bits in operands)
        pins = _support(cell.expr, fixed)
        if len(pins) > len(_PINS):
            return None
        chosen = tuple(operands[k] for k in pins)
        found.append(LutRun(low, width, chosen, _table(cell.expr, fixed, pins)))
    return found


def write_lut(cell: Lut, site: Site) -> list[str]:
    """LUT4s for runs of bits with the same constants; plain operators for more than six signals."""
    runs = lut_runs(cell)
    if runs is None:
        return write_plain(cell, site)
    lines: list[str] = []
    for run in runs:
        target = part(site.wire, run.low, run.width, cell.width)
        if not run.operands:
            lines.append(f"assign {target} = {constant(run.fixed_value(), run.width)};")
        elif len(run.operands) == 1:
            sign = "" if run.table == 0b10 else "~"
            lines.append(f"assign {target} = {sign}{vector(run.operands[0], site.read)};")
        else:
            lines += write_run(site, target, run)
    return lines


def write_run(site: Site, target: str, run: LutRun) -> list[str]:
    """The instance of a run that operands decide."""
    out, name = site.fresh(site.wire + "_lut"), site.fresh(site.wire + "_luts")
    made = run.instance()
    pins = ", ".join(f".{pin}({vector(bits, site.read)})" for pin, bits in made.pins.items())
    init = f".INIT({made.init_bits}'h{made.init:0{made.init_bits // 4}x})"
    settings = ", ".join([*(f".{key}({value})" for key, value in made.settings.items()), init])
    return [
        f"wire {declared_range(run.width)}{out};",
        f"{made.module} #(.WIDTH({run.width}), {settings}) {name} ({pins}, .z({out}));",
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


@lru_cache(maxsize=16384)
def _table(expr: BitExpr, fixed: tuple[int | None, ...], pins: tuple[int, ...]) -> int:
    """The truth table over ``pins``: bit i is the value when pin k shows bit k of i, the rest being fixed."""
    table = 0
    for index in range(1 << len(pins)):
        shown = [value or 0 for value in fixed]
        for place, k in enumerate(pins):
            shown[k] = index >> place & 1
        table |= evaluate(expr, shown, 1) << index
    return table


@lru_cache(maxsize=16384)
def _support(expr: BitExpr, fixed: tuple[int | None, ...]) -> tuple[int, ...]:
    """The operands that the result depends on."""
    signals = tuple(k for k, value in enumerate(fixed) if value is None)
    table = _table(expr, fixed, signals)
    size = 1 << len(signals)
    return tuple(
        k for place, k in enumerate(signals)
        if any((table >> i ^ table >> (i ^ 1 << place)) & 1 for i in range(size))
    )
