"""Timing paths drawn to scale: what takes the time between two registers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from kera_hw.graph.node import Origin
from kera_hw.schedule.fpga.netlist import Netlist
from kera_hw.schedule.plan import Plan
from kera_hw.support import SourceFile

_WIDTH, _HEIGHT = 1150, 34


@dataclass(frozen=True, slots=True)
class PathRow:
    """One piece of a path: what it is, where it was written, how long it takes, when it is over."""

    what: str
    place: str
    colour: str
    delay_ns: float
    end_ns: float


def planned_path(netlist: Netlist, plan: Plan, files: dict[str, SourceFile]) -> list[PathRow]:
    """The longest path of the plan, the register's own times at its ends."""
    paths = [path for path in plan.critical_paths if path]
    if not paths:
        return []
    longest = max(paths, key=lambda path: path[-1].arrival_ps)
    first = longest[0].arrival_ps - longest[0].delay_ps
    rows = [PathRow("register, clock to output", "", "wire", first / 1000, first / 1000)] if first else []
    for step in longest:
        cell = netlist.cells[step.cell]
        place = _places(cell.origin, files) if cell.origin else ""
        rows.append(
            PathRow(cell.describe(), place, cell.look().paint, step.delay_ps / 1000, step.arrival_ps / 1000)
        )
    end = longest[-1].arrival_ps + plan.setup_ps
    return [*rows, PathRow("register, set-up", "", "wire", plan.setup_ps / 1000, end / 1000)]


def _places(origin: Origin, files: dict[str, SourceFile]) -> str:
    if origin.others:
        return str(origin)
    return _place(origin.path, origin.line, files)


def routed_path(steps: Sequence[dict[str, Any]], files: dict[str, SourceFile]) -> list[PathRow]:
    """The critical path after place and route; carry hops that take no time are left out."""
    rows: list[PathRow] = []
    end_ns = 0.0
    colours = {"logic": "add", "routing": "wire", "clk-to-q": "state", "setup": "state"}
    for step in steps:
        end_ns += step["delay_ns"]
        if step["delay_ns"] < 0.005 and step["kind"] != "setup":
            continue
        source = step.get("source") or ""
        path, _, line = source.rpartition(":")
        place = _place(path, int(line), files) if path in files and line.isdigit() else source
        cell = step["cell"].removeprefix("dut.").removeprefix("datapath.")
        kind = "wire to" if step["kind"] == "routing" else step["kind"]
        rows.append(
            PathRow(f"{kind} {cell}", place, colours.get(step["kind"], "wire"), step["delay_ns"], end_ns)
        )
    return rows


def _place(path: str, line: int, files: dict[str, SourceFile]) -> str:
    file = files.get(path)
    return f"{line}: {file.line_text(line).strip()}" if file is not None else f"{path}:{line}"


def waterfall_svg(rows: Sequence[PathRow], period_ns: float) -> str:
    """The pieces end to end on a ruler of nanoseconds, the clock period marked."""
    if not rows:
        return ""
    span = max(rows[-1].end_ns, period_ns) * 1.02
    scale = (_WIDTH - 20) / span
    parts: list[str] = []
    for row in rows:
        x, width = 10 + (row.end_ns - row.delay_ns) * scale, row.delay_ns * scale
        hint = f"{row.what}: {row.delay_ns:.2f} ns{f', {row.place}' if row.place else ''}"
        text = f"{row.delay_ns:.2f}"
        inside = ""
        if width > 34:
            inside = (
                f'<text class="on small" x="{x + width / 2:.1f}" y="21" text-anchor="middle">{text}</text>'
            )
        parts.append(
            f'<g><title>{escape(hint)}</title><rect style="fill:var(--{row.colour})" x="{x + 0.5:.1f}" y="4" '
            f'width="{max(0.8, width - 1):.1f}" height="{_HEIGHT - 8}" rx="3"/>{inside}</g>'
        )
    for ns in range(int(span) + 1):
        x = 10 + ns * scale
        parts.append(
            f'<text class="faint small" x="{x:.1f}" y="{_HEIGHT + 14}" text-anchor="middle">{ns} ns</text>'
        )
    limit = 10 + period_ns * scale
    parts.append(f'<path class="limit" d="M{limit:.1f} 0V{_HEIGHT + 2}"/>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT + 20}" width="{_WIDTH}" '
        f'height="{_HEIGHT + 20}" role="img" aria-label="timing path">{"".join(parts)}</svg>'
    )
