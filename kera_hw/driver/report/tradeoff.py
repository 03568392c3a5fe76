"""The plot of a sweep: area against items a second, the front of what nothing beats, and the latency."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, log10

from kera_hw.driver.pace import rate_text
from kera_hw.driver.sweep import Point, Sweep

_WIDTH, _LEFT, _RIGHT, _TOP, _AREA, _LATENCY, _GAP = 760, 70, 24, 46, 300, 120, 46


def tradeoff_svg(found: Sweep) -> str:
    """Two panels over the same axis of items a second: area with its blocks, and latency in cycles."""
    points = [point for point in found.points if point.area is not None and point.made_for == point.interval]
    rates = [log10(point.items_per_s) for point in points]
    low, high = floor(min(rates) * 4) / 4, ceil(max(rates) * 4) / 4
    high = high if high > low else low + 0.25
    height = _TOP + _AREA + _GAP + _LATENCY + 40

    def across(point: Point) -> float:
        return _LEFT + (log10(point.items_per_s) - low) / (high - low) * (_WIDTH - _LEFT - _RIGHT)

    title = f"{found.function} on {found.target} at {found.clock_mhz:g} MHz: area ({found.measure})"
    parts = [f'<text class="head" x="{_LEFT}" y="20">{title}</text>']
    parts += _rates(low, high, height)
    areas = [point.area or 0 for point in points]
    parts += _panel(_TOP, _AREA, areas, "area")
    top = max(areas)
    front = sorted((point for point in points if point.on_front), key=across)
    path = " ".join(f"{across(p):.1f},{_down(p.area or 0, top, _TOP, _AREA):.1f}" for p in front)
    parts.append(f'<polyline class="wire" points="{path}"/>')
    for point in points:
        x, y = across(point), _down(point.area or 0, top, _TOP, _AREA)
        kind = "k-logic" if point.on_front else "k-input"
        hint = f"an item every {point.interval} cycles: {point.lut} LUTs, {point.ff} flip-flops"
        parts.append(f'<g><title>{hint}</title><circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="5"/>')
        blocks = [f"{point.dsp} DSP" if point.dsp else "", f"{point.bram} BRAM" if point.bram else ""]
        text = " ".join(filter(None, [f"II {point.interval}", *blocks]))
        place = f'x="{x:.1f}" y="{y - 9:.1f}"'
        parts.append(f'<text class="small" {place} text-anchor="middle">{text}</text></g>')
    second = _TOP + _AREA + _GAP
    cycles = [point.latency_cycles for point in points]
    parts += _panel(second, _LATENCY, cycles, "latency, cycles")
    for point in points:
        y = _down(point.latency_cycles, max(cycles), second, _LATENCY)
        parts.append(f'<circle class="k-add" cx="{across(point):.1f}" cy="{y:.1f}" r="4"/>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" '
        f'height="{height}" role="img" aria-label="area and latency by items a second">'
        f"{''.join(parts)}</svg>\n"
    )


def _down(value: int, most: int, top: int, height: int) -> float:
    return top + height * (1 - value / (1.1 * max(1, most)))


def _panel(top: int, height: int, values: Sequence[int], label: str) -> list[str]:
    """A frame with four lines of the scale."""
    parts = [f'<text class="faint" x="{_LEFT}" y="{top - 6}">{label}</text>']
    for k in range(5):
        value = round(max(values) * k / 4)
        y = _down(value, max(values), top, height)
        parts.append(f'<path class="grid" d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}"/>')
        place = f'x="{_LEFT - 8}" y="{y + 4:.1f}"'
        parts.append(f'<text class="faint" {place} text-anchor="end">{value:,}</text>')
    return parts


def _rates(low: float, high: float, height: int) -> list[str]:
    """The axis of items a second, with a mark at 1, 2 and 5 of every power of ten."""
    parts: list[str] = []
    for power in range(floor(low), ceil(high) + 1):
        for digit in (1, 2, 5):
            place = log10(digit) + power
            if low <= place <= high:
                x = _LEFT + (place - low) / (high - low) * (_WIDTH - _LEFT - _RIGHT)
                text = rate_text(digit * 10.0**power)
                parts.append(f'<path class="grid" d="M{x:.1f} {_TOP}V{height - 34}"/>')
                place = f'x="{x:.1f}" y="{height - 18}"'
                parts.append(f'<text class="faint" {place} text-anchor="middle">{text}</text>')
    return parts
