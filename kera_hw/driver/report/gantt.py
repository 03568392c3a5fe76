"""The pipeline at work, operation by operation: when each starts and settles within its cycles.

Time runs to the right, a column a clock cycle. A bar begins where its last operand has settled and ends where
its own result has; the line behind it shows how long registers keep the result.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape

from kera_hw.schedule.fpga.cells import Cell, Input, StateNext, StateOut
from kera_hw.schedule.fpga.netlist import Netlist
from kera_hw.schedule.plan import Plan

MAX_BARS = 72
_LEFT, _TOP, _ROW, _WIDTH = 320, 30, 19, 830
_MIN_BAR = 3.0


@dataclass(frozen=True, slots=True)
class Bar:
    """One row: its label, its cells, and its span in cycles (fractions of the clock period)."""

    label: str
    kind: str
    cells: tuple[int, ...]
    start: float
    end: float
    kept_until: float


def gantt_bars(netlist: Netlist, plan: Plan) -> list[Bar]:
    """Bars in order of start; inputs and states are one bar a bus or variable."""
    groups: dict[tuple[str, str], list[int]] = {}
    for number, cell in enumerate(netlist.cells):
        if isinstance(cell, StateNext):  # a register, at the end of what the chart shows
            continue
        groups.setdefault(_group(number, cell, netlist), []).append(number)
    bars = [_bar(netlist, plan, name, tuple(cells)) for (_, name), cells in groups.items()]
    return sorted(bars, key=lambda bar: (bar.start, bar.end, bar.cells))


def _group(number: int, cell: Cell, netlist: Netlist) -> tuple[str, str]:
    if isinstance(cell, Input):
        return "input", cell.bus.removeprefix("in_")
    if isinstance(cell, StateOut):
        return "state", re.split(r"[.\[]|_\d+$", netlist.states[cell.state].name)[0]
    name = cell.name or (cell.origin.name if cell.origin else None)
    return str(number), cell.describe() + (f" {name}" if name else "")


def _bar(netlist: Netlist, plan: Plan, name: str, cells: tuple[int, ...]) -> Bar:
    first = netlist.cells[cells[0]]
    bits = sum(netlist.cells[c].width for c in cells)
    label = f"{name}, {bits} bits" if isinstance(first, (Input, StateOut)) else name
    if first.origin is not None and not isinstance(first, (Input, StateOut)):
        label = f"{label} · {first.origin.lines}"
    start = min(_start(netlist, plan, c) for c in cells)
    end = max(plan.available[c] + plan.arrival_ps[c] / plan.clock_ps for c in cells)
    kept = [life for life in plan.lifetimes if life.cell in cells and life.registers]
    ends = [life.until for life in kept]
    return Bar(label, first.look().paint, cells, start, max(start, end), float(max(ends, default=0)))


def _start(netlist: Netlist, plan: Plan, cell: int) -> float:
    """When the last operand has settled in the cell's stage."""
    stage = plan.stage[cell]
    sources = {
        segment.cell
        for bits in netlist.cells[cell].operands()
        for segment in bits
        if segment.cell is not None and plan.available[segment.cell] == stage
    }
    return stage + max((plan.arrival_ps[source] for source in sources), default=0) / plan.clock_ps


def gantt_svg(netlist: Netlist, plan: Plan, bars: list[Bar]) -> str:
    """The drawing; at most MAX_BARS bars."""
    shown = bars[:MAX_BARS]
    cycles = plan.latency_cycles
    scale = max(34.0, min(170.0, (_WIDTH - 20) / cycles))
    width, bottom = round(_LEFT + cycles * scale + 12), _TOP + len(shown) * _ROW + 6
    rows = {cell: i for i, bar in enumerate(shown) for cell in bar.cells}
    parts = [_columns(cycles, scale, bottom)]
    parts += _wires(netlist, shown, rows, scale)
    parts += [_draw(bar, i, scale, netlist) for i, bar in enumerate(shown)]
    strip, height = _load_strip(plan, scale, bottom + 14)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-label="pipeline: operations by cycle">{"".join(parts)}{strip}'
        "</svg>\n"
    )


def _columns(cycles: int, scale: float, bottom: int) -> str:
    parts: list[str] = []
    for cycle in range(cycles):
        x = _LEFT + cycle * scale
        if cycle % 2 == 0:
            parts.append(
                f'<rect class="band" x="{x:.1f}" y="{_TOP - 8}" width="{scale:.1f}" '
                f'height="{bottom - _TOP + 8}"/>'
            )
        parts.append(
            f'<text class="faint" x="{x + scale / 2:.1f}" y="14" text-anchor="middle">{cycle}</text>'
        )
    for edge in range(cycles + 1):
        x = _LEFT + edge * scale
        parts.append(f'<path class="edge" d="M{x:.1f} {_TOP - 8}V{bottom}"/>')
    return "".join(parts)


def _wires(netlist: Netlist, shown: list[Bar], rows: dict[int, int], scale: float) -> list[str]:
    """Thin curves from results to the operations that read them."""
    pairs: set[tuple[int, int]] = set()
    for i, bar in enumerate(shown):
        for cell in bar.cells:
            for bits in netlist.cells[cell].operands():
                for segment in bits:
                    if segment.cell in rows and rows[segment.cell] != i:
                        pairs.add((rows[segment.cell], i))
    drawn: list[str] = []
    for source, target in sorted(pairs):
        x0, y0 = _LEFT + shown[source].end * scale, _TOP + source * _ROW + _ROW / 2 - 1
        x1, y1 = _LEFT + shown[target].start * scale, _TOP + target * _ROW + _ROW / 2 - 1
        reach = max(10.0, (x1 - x0) / 2)
        drawn.append(
            f'<path class="wire" opacity=".55" d="M{x0:.1f} {y0:.1f}C{x0 + reach:.1f} {y0:.1f} '
            f'{x1 - reach:.1f} {y1:.1f} {x1:.1f} {y1:.1f}"/>'
        )
    return drawn


def _draw(bar: Bar, row: int, scale: float, netlist: Netlist) -> str:
    x, y = _LEFT + bar.start * scale, _TOP + row * _ROW
    width = max(_MIN_BAR, (bar.end - bar.start) * scale)
    kept = ""
    if bar.kept_until > bar.end:
        kept = (
            f'<path class="held" stroke="var(--{bar.kind})" d="M{x + width:.1f} {y + _ROW / 2 - 1:.1f}'
            f'H{_LEFT + bar.kept_until * scale:.1f}"/>'
        )
    hint = f"{bar.label}: cycles {bar.start:.2f} to {bar.end:.2f}, kept until {bar.kept_until:.0f}"
    label = bar.label if len(bar.label) <= 48 else bar.label[:47] + "…"
    inside = ""
    text = _short(netlist, bar)
    if width > 7 * len(text) + 8:
        inside = f'<text class="on small" x="{x + 5:.1f}" y="{y + 12}">{escape(text)}</text>'
    return (
        f"<g><title>{escape(hint)}</title>{kept}"
        f'<text x="{_LEFT - 12}" y="{y + 12}" text-anchor="end">{escape(label)}</text>'
        f'<rect class="k-{bar.kind}" x="{x:.1f}" y="{y + 1}" width="{width:.1f}" height="{_ROW - 4}" rx="3"/>'
        f"{inside}</g>"
    )


def _short(netlist: Netlist, bar: Bar) -> str:
    bits = sum(netlist.cells[cell].width for cell in bar.cells)
    return f"{bits} b"


def _load_strip(plan: Plan, scale: float, top: int) -> tuple[str, int]:
    """How much of each cycle its longest path takes, and the height of everything."""
    full = 44
    parts = [
        f'<text class="faint" x="{_LEFT - 12}" y="{top + full // 2 + 4}" text-anchor="end">'
        "longest path, ns</text>"
    ]
    for stage, path in enumerate(plan.critical_paths):
        used_ps = (path[-1].arrival_ps + plan.setup_ps) if path else plan.setup_ps
        share = min(1.0, used_ps / plan.clock_ps)
        x, bar = _LEFT + stage * scale, full * share
        parts.append(
            f"<g><title>cycle {stage}: {used_ps / 1000:.2f} of {plan.clock_ps / 1000:.2f} ns</title>"
            f'<rect class="k-add" opacity="{0.35 + 0.65 * share:.2f}" x="{x + 2:.1f}" '
            f'y="{top + full - bar:.1f}" width="{scale - 4:.1f}" height="{bar:.1f}" rx="2"/>'
        )
        if scale > 36:
            parts.append(
                f'<text class="small" x="{x + scale / 2:.1f}" y="{top + full + 13}" text-anchor="middle">'
                f"{used_ps / 1000:.2f}</text>"
            )
        parts.append("</g>")
    right = _LEFT + plan.latency_cycles * scale
    parts.append(f'<path class="limit" d="M{_LEFT} {top}H{right:.1f}"/>')
    return "".join(parts), top + full + 22
