"""Puts the report's page together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, PackageLoader

from kera_hw.driver.hardware import HardwareDesign
from kera_hw.driver.picture import graph_svg
from kera_hw.driver.report.chart import MAX_ROWS, chart_rows, chart_svg, legend
from kera_hw.driver.report.wave import wave_svg
from kera_hw.driver.session import single_export_graph
from kera_hw.schedule.netlist import Cell
from kera_hw.support import SourceFile

_FIGURES = (("lut", "LUT"), ("ff", "FF"), ("dsp", "DSP"), ("bram", "BRAM"), ("fmax_mhz", "Fmax, MHz"))


@dataclass(frozen=True, slots=True)
class _PathRow:
    """One step of the longest planned path."""

    place: str
    what: str
    delay_ps: int
    arrival_ps: int


def render_report(design: HardwareDesign, plan: dict[str, Any], files: dict[str, SourceFile]) -> str:
    """The HTML text: no scripts, no outside references, safe for any names in the source."""
    environment = Environment(loader=PackageLoader("kera_hw.driver.report"), autoescape=True)
    rows = chart_rows(design.netlist, design.plan, files)
    return environment.get_template("report.html.j2").render(
        design=design,
        plan=plan,
        figures=_figures(plan),
        chart=chart_svg(rows, design.plan.latency_cycles),
        hidden_rows=max(0, len(rows) - MAX_ROWS),
        legend=legend(),
        path=_longest_path(design, files),
        routed=plan.get("achieved"),
        wave=wave_svg(design),
        graph=graph_svg(single_export_graph(design.graph, design.export)),
    )


def _figures(plan: dict[str, Any]) -> list[dict[str, Any]]:
    estimate, achieved = plan["estimate"], plan.get("achieved")
    rows: list[dict[str, Any]] = []
    for key, label in _FIGURES:
        reached = achieved[key] if achieved else None
        top = max(estimate[key] or 0, reached or 0) or 1
        rows.append(
            {
                "label": label,
                "estimate": estimate[key],
                "achieved": reached,
                "estimate_percent": round(100 * (estimate[key] or 0) / top),
                "achieved_percent": round(100 * (reached or 0) / top),
                "error": _error(estimate[key], reached),
            }
        )
    return rows


def _error(estimate: float, reached: float | None) -> str:
    return f"{100 * (estimate - reached) / reached:+.0f} %" if reached else ""


def _longest_path(design: HardwareDesign, files: dict[str, SourceFile]) -> list[_PathRow]:
    paths = [path for path in design.plan.critical_paths if path]
    if not paths:
        return []
    longest = max(paths, key=lambda path: path[-1].arrival_ps)
    return [
        _PathRow(
            _place(design.netlist.cells[s.cell], files),
            _what(design.netlist.cells[s.cell]),
            s.delay_ps,
            s.arrival_ps,
        )
        for s in longest
    ]


def _place(cell: Cell, files: dict[str, SourceFile]) -> str:
    if cell.origin is None:
        return ""
    file = files.get(cell.origin.path)
    return (
        f"{cell.origin.line}: {file.line_text(cell.origin.line).strip()}"
        if file
        else f"line {cell.origin.line}"
    )


def _what(cell: Cell) -> str:
    return f"{type(cell).__name__.lower()}, {cell.width} bits{f' ({cell.name})' if cell.name else ''}"
