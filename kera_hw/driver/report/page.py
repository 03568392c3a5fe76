"""Puts the report's page together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from jinja2 import Environment, PackageLoader

from kera_hw.driver.hardware import HardwareDesign
from kera_hw.driver.pace import cycles_text, most_cycles, rate_text, region_text
from kera_hw.driver.picture import graph_svg
from kera_hw.driver.report import costs, theme
from kera_hw.driver.report.chart import MAX_ROWS, chart_rows, chart_svg
from kera_hw.driver.report.gantt import MAX_BARS, gantt_bars, gantt_svg
from kera_hw.driver.report.paths import planned_path, routed_path, waterfall_svg
from kera_hw.driver.report.timeline import timeline_svg
from kera_hw.driver.report.wave import wave_svg
from kera_hw.schedule.fpga.cells.cell import Paint
from kera_hw.support import SourceFile

_FIGURES = (("lut", "LUT"), ("ff", "FF"), ("dsp", "DSP"), ("bram", "BRAM"), ("fmax_mhz", "Fmax, MHz"))


def render_report(
    design: HardwareDesign,
    plan: dict[str, Any],
    files: dict[str, SourceFile],
    receipt: Mapping[str, Any] | None = None,
    logs: Sequence[str] = (),
) -> str:
    """The HTML text: no scripts, no outside references, safe for any names in the source."""
    environment = Environment(
        loader=PackageLoader("kera_hw.driver.report"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    netlist, schedule = design.netlist, design.plan
    rows, bars = chart_rows(netlist, schedule, files), gantt_bars(netlist, schedule)
    used = {kind for row in rows for kinds in row.stages.values() for kind in kinds}
    routed = plan.get("achieved")
    planned = planned_path(netlist, schedule, files)
    critical = routed_path(routed["critical_path"], files) if routed else []
    period_ns = 1000 / design.clock_mhz
    return environment.get_template("report.html.j2").render(
        style=theme.variables() + theme.svg_style(),
        design=design,
        plan=plan,
        routed=routed,
        met=routed is not None and (routed["fmax_mhz"] or 0) >= design.clock_mhz,
        figures=_figures(design, plan),
        latency=cycles_text(plan["latency_cycles"]),
        most_latency=most_cycles(plan["latency_cycles"]),
        interval=cycles_text(plan["initiation_interval"]),
        rate=rate_text(plan["clock_mhz"] * 1e6 / most_cycles(plan["initiation_interval"]), "items"),
        timeline=timeline_svg(plan["timeline"]) if plan["timeline"] else None,
        regions=[region_text(region) for region in plan["regions"]],
        gantt=gantt_svg(netlist, schedule, bars) if len(bars) <= MAX_BARS else None,
        chart=chart_svg(rows, schedule.latency_cycles),
        hidden_rows=max(0, len(rows) - MAX_ROWS),
        legend=[kind for kind in get_args(Paint) if kind in used],
        planned=planned,
        planned_svg=waterfall_svg(planned, period_ns),
        critical=critical,
        critical_svg=waterfall_svg(critical, period_ns),
        period_ns=period_ns,
        listings=costs.listings(netlist, schedule, files),
        wave=wave_svg(design, simulated=routed is not None),
        graph=graph_svg(design.graph),
        receipt=receipt,
        logs=logs,
    )


def _figures(design: HardwareDesign, plan: dict[str, Any]) -> list[dict[str, Any]]:
    estimate, achieved = plan["estimate"], plan.get("achieved")
    rows: list[dict[str, Any]] = []
    for key, label in _FIGURES:
        guess, reached = estimate[key], achieved[key] if achieved else None
        top = max(guess or 0, reached or 0) or 1
        capacity = getattr(design.device, key, None)
        rows.append(
            {
                "label": label,
                "estimate": guess,
                "achieved": reached,
                "estimate_percent": round(100 * (guess or 0) / top),
                "achieved_percent": round(100 * (reached or 0) / top),
                "error": f"{100 * (guess - reached) / reached:+.0f} %" if reached else "",
                "device": f"{100 * (reached or guess) / capacity:.1f} %" if capacity else "",
            }
        )
    return rows
