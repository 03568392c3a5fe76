"""The pipeline chart: source lines down, cycles across, what works where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from kera_hw.schedule.netlist import Add, Cell, Input, Lut, Mul, Mux, Netlist, Rom, StateOut
from kera_hw.schedule.plan import Plan
from kera_hw.support import SourceFile

_KINDS: dict[type[Cell], tuple[str, str]] = {
    Lut: ("logic", "#81c995"),
    Add: ("add", "#8ab4f8"),
    Mul: ("mul", "#fdd663"),
    Mux: ("mux", "#ff8bcb"),
    Rom: ("table", "#c58af9"),
    StateOut: ("state", "#fcad70"),
    Input: ("input", "#bdc1c6"),
}
_CELL, _ROW, _LEFT, _TOP = 46, 20, 340, 28
MAX_ROWS = 200
CHART_STYLE = (
    "text{font:11px ui-monospace,monospace;fill:#3c4043}text.n{font-size:10px;fill:#202124}"
    "line{stroke:#e8eaed}svg{background:#fff}"
)


@dataclass(frozen=True, slots=True)
class Row:
    """One source place and the cells it became, by stage."""

    label: str
    line: int
    stages: dict[int, Counter[str]]


def chart_rows(netlist: Netlist, plan: Plan, files: dict[str, SourceFile]) -> list[Row]:
    """Rows in order of first stage, then source line. Cells without an origin share one row."""
    rows: dict[tuple[str, int], Row] = {}
    for number, cell in enumerate(netlist.cells):
        origin = cell.origin
        key = (origin.path, origin.line) if origin else ("", 0)
        if isinstance(cell, Input):
            key = ("", -1)
        row = rows.get(key)
        if row is None:
            row = rows[key] = Row(_label(key, files), key[1], {})
        for stage in range(plan.stage[number], max(plan.available[number], plan.stage[number] + 1)):
            row.stages.setdefault(stage, Counter())[_KINDS[type(cell)][0]] += 1
    return sorted(rows.values(), key=lambda row: (min(row.stages, default=0), row.line))


def _label(key: tuple[str, int], files: dict[str, SourceFile]) -> str:
    path, line = key
    if line <= 0:
        return "inputs" if line < 0 else "(made by the compiler)"
    file = files.get(path)
    text = file.line_text(line).strip() if file is not None and line <= len(file.line_starts) else path
    return f"{line}: {text}"


def chart_svg(rows: Sequence[Row], stages: int, standalone: bool = False) -> str:
    """The chart as SVG; a cell's colour is its most frequent kind, its number how many cells work there.

    ``standalone`` brings its style along, for a file of its own; in the report the page has it.
    """
    shown = rows[:MAX_ROWS]
    width, height = _LEFT + stages * _CELL + 10, _TOP + len(shown) * _ROW + 10
    parts = [
        f'<text x="{_LEFT + s * _CELL + _CELL // 2}" y="18" text-anchor="middle">{s}</text>'
        for s in range(stages)
    ]
    colours = dict(_KINDS.values())
    for i, row in enumerate(shown):
        y = _TOP + i * _ROW
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 14}" text-anchor="end">{escape(row.label[:48])}</text>')
        parts.append(f'<line x1="{_LEFT}" x2="{width - 10}" y1="{y + _ROW}" y2="{y + _ROW}"/>')
        for stage, kinds in row.stages.items():
            top, total = kinds.most_common(1)[0][0], sum(kinds.values())
            hint = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
            x = _LEFT + stage * _CELL + 1
            parts.append(
                f'<g><title>cycle {stage}: {escape(hint)}</title><rect x="{x}" y="{y + 1}" width="{_CELL - 2}" '
                f'height="{_ROW - 2}" rx="3" fill="{colours[top]}"/>'
                f'<text class="n" x="{x + _CELL // 2 - 1}" y="{y + 14}" text-anchor="middle">{total}</text></g>'
            )
    style = f"<style>{CHART_STYLE}</style>" if standalone else ""
    return (
        f'<svg class="chart" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" aria-label="pipeline chart">'
        f"{style}{''.join(parts)}</svg>\n"
    )


def legend() -> list[tuple[str, str]]:
    """(kind, colour) pairs."""
    return list(_KINDS.values())
