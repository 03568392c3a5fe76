"""The pipeline chart by source line: lines down, cycles across, what works where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from kera_hw.graph.node import Origin
from kera_hw.schedule.fpga.cells import Input, StateNext, StateOut
from kera_hw.schedule.fpga.netlist import Netlist
from kera_hw.schedule.plan import Plan
from kera_hw.support import SourceFile

MAX_ROWS = 120
_ROW, _LEFT, _TOP, _WIDTH = 20, 380, 28, 810
_INPUTS, _STATES, _MADE = -2, -1, 0
_SPECIAL = {_INPUTS: "inputs", _STATES: "state registers", _MADE: "(made by the compiler)"}


@dataclass(frozen=True, slots=True)
class Row:
    """One source place and the cells it became, by stage."""

    label: str
    line: int
    stages: dict[int, Counter[str]]

    @property
    def cells(self) -> int:
        """Cells of the row, each counted in every cycle it works."""
        return sum(kinds.total() for kinds in self.stages.values())


def chart_rows(netlist: Netlist, plan: Plan, files: dict[str, SourceFile]) -> list[Row]:
    """Rows in order of first stage, then source line; what several lines share has a row of its own. Cells
    without an origin share one row."""
    rows: dict[tuple[str, int, str], Row] = {}
    for number, cell in enumerate(netlist.cells):
        if isinstance(cell, StateNext):  # a register, at the end of what the chart shows
            continue
        origin = cell.origin
        key = (origin.path, origin.line, _shared(origin)) if origin else ("", _MADE, "")
        if isinstance(cell, (Input, StateOut)):
            key = ("", _INPUTS if isinstance(cell, Input) else _STATES, "")
        row = rows.get(key)
        if row is None:
            row = rows[key] = Row(_label(key, files), key[1], {})
        for stage in range(plan.stage[number], max(plan.available[number], plan.stage[number] + 1)):
            row.stages.setdefault(stage, Counter())[cell.look().paint] += 1
    return sorted(rows.values(), key=lambda row: (min(row.stages, default=0), row.line))


def _shared(origin: Origin) -> str:
    """The other places of what is made for several."""
    more = [place for place in origin.others if place.path == origin.path]
    away = [f"{place.path}:{place.line}" for place in origin.others if place.path != origin.path]
    return "".join(f",{text}" for text in [*(str(place.line) for place in more), *away])


def _label(key: tuple[str, int, str], files: dict[str, SourceFile]) -> str:
    path, line, more = key
    if line <= 0:
        return _SPECIAL[line]
    file = files.get(path)
    text = file.line_text(line).strip() if file is not None and line <= len(file.line_starts) else path
    return f"{line}{more}: {text}"


def chart_svg(rows: Sequence[Row], stages: int) -> str:
    """The chart as SVG; a cell's colour is its most frequent kind, its strength how many cells work there."""
    shown = rows[:MAX_ROWS]
    step = max(5.0, min(60.0, (_WIDTH - 20) / stages))
    width, height = round(_LEFT + stages * step + 12), _TOP + len(shown) * _ROW + 10
    every = max(1, round(28 / step))
    parts = [
        f'<text class="faint" x="{_LEFT + (s + 0.5) * step:.1f}" y="16" text-anchor="middle">{s}</text>'
        for s in range(0, stages, every)
    ]
    most = max((kinds.total() for row in shown for kinds in row.stages.values()), default=1)
    for i, row in enumerate(shown):
        y = _TOP + i * _ROW
        label = row.label if len(row.label) <= 54 else row.label[:53] + "…"
        parts.append(f'<text x="{_LEFT - 10}" y="{y + 14}" text-anchor="end">{escape(label)}</text>')
        parts.append(f'<path class="grid" d="M{_LEFT} {y + _ROW}H{width - 12}"/>')
        parts += [_entry(stage, kinds, y, step, most) for stage, kinds in sorted(row.stages.items())]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-label="pipeline: source lines by cycle">{"".join(parts)}</svg>\n'
    )


def _entry(stage: int, kinds: Counter[str], y: int, step: float, most: int) -> str:
    top, total = kinds.most_common(1)[0][0], kinds.total()
    hint = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    x = _LEFT + stage * step
    strength = 0.45 + 0.55 * (total / most) ** 0.5
    text = ""
    if step >= 8 * len(str(total)) + 6:
        middle = x + step / 2
        text = f'<text class="on small" x="{middle:.1f}" y="{y + 13.5}" text-anchor="middle">{total}</text>'
    return (
        f'<g><title>cycle {stage}: {escape(hint)}</title><rect class="k-{top}" opacity="{strength:.2f}" '
        f'x="{x + 0.7:.1f}" y="{y + 2}" width="{max(1.0, step - 1.4):.1f}" height="{_ROW - 4}" rx="2.5"/>'
        f"{text}</g>"
    )
