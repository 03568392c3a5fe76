"""What every source line costs: the program beside the bits of logic, sums and registers it became."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from kera_hw.schedule.fpga.netlist import Netlist
from kera_hw.schedule.plan import Plan
from kera_hw.support import SourceFile

MAX_LINES = 160
_CONTEXT = 1


@dataclass(frozen=True, slots=True)
class Line:
    """A line of source, its bits of cells by kind and of registers, and its share of the most costly."""

    number: int
    text: str
    cost: str
    percent: int


@dataclass(frozen=True, slots=True)
class Listing:
    """One file's lines around what became hardware; gaps are lines with number 0."""

    path: str
    lines: tuple[Line, ...]


def listings(netlist: Netlist, plan: Plan, files: dict[str, SourceFile]) -> list[Listing]:
    """The files that gave cells, in order of path. What several lines share counts for each of them."""
    bits: dict[tuple[str, int], Counter[str]] = {}
    registers = _registers(plan)
    for number, cell in enumerate(netlist.cells):
        if cell.origin is not None and not cell.free:
            kept = registers[number]
            for place in cell.origin.places:
                counts = bits.setdefault((place.path, place.line), Counter())
                counts[cell.look().noun] += cell.width
                counts["register"] += kept
    most = max((counts.total() for counts in bits.values()), default=1)
    found: list[Listing] = []
    for path in sorted({path for path, _ in bits}):
        if path in files:
            own = {line: counts for (other, line), counts in bits.items() if other == path}
            found.append(Listing(path, tuple(_lines(files[path], own, most))[:MAX_LINES]))
    return found


def _registers(plan: Plan) -> Counter[int]:
    """Register bits by cell."""
    found = Counter[int]()
    for life in plan.lifetimes:
        found[life.cell] += life.register_bits
    for line in plan.delay_lines:
        for held in line.parts:
            found[held.cell] -= held.width * (line.stages - 1)
    return found


def _lines(file: SourceFile, costs: dict[int, Counter[str]], most: int) -> list[Line]:
    last = len(file.line_starts)
    wanted = {
        near
        for line in costs
        for near in range(line - _CONTEXT, line + _CONTEXT + 1)
        if 1 <= near <= last
    }
    rows: list[Line] = []
    for number in sorted(wanted):
        if rows and number != rows[-1].number + 1:
            rows.append(Line(0, "⋮", "", 0))
        counts = +costs.get(number, Counter[str]())
        cost = ", ".join(f"{count} {what}" for what, count in counts.most_common())
        rows.append(Line(number, file.line_text(number), cost, round(100 * counts.total() / most)))
    return rows
