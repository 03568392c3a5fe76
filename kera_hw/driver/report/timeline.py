"""A process in time: which channel and which region works on which item, and when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

_LEFT, _TOP, _ROW, _WIDTH = 320, 30, 19, 830
_LEAST_BAR, _NUMBERED = 2.0, 14.0
_COLOURS = ("logic", "mul", "table", "add")
_MARKS = 8


def timeline_svg(rows: Sequence[Mapping[str, Any]]) -> str:
    """The drawing: a row a channel or region, a bar an item."""
    last = max(end for row in rows for _, end in row["spans"]) + 1
    scale = (_WIDTH - 20) / last
    bottom = _TOP + len(rows) * _ROW
    parts: list[str] = []
    for mark in range(_MARKS + 1):
        cycle = round(last * mark / _MARKS)
        x = _LEFT + cycle * scale
        parts.append(f'<path class="edge" d="M{x:.1f} {_TOP - 8}V{bottom}"/>')
        parts.append(f'<text class="faint" x="{x:.1f}" y="14" text-anchor="middle">{cycle:,}</text>')
    for number, row in enumerate(rows):
        parts.append(_row(row, _TOP + number * _ROW, scale))
    width, height = _LEFT + _WIDTH, bottom + 10
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-label="process: channels and loops by cycle">{"".join(parts)}'
        "</svg>\n"
    )


def _row(row: Mapping[str, Any], y: int, scale: float) -> str:
    name = str(row["name"])
    short = name if len(name) <= 44 else "…" + name[-43:]
    parts = [f'<text x="{_LEFT - 8}" y="{y + 12}" text-anchor="end">{escape(short)}</text>']
    for item, (start, end) in enumerate(row["spans"]):
        x, width = _LEFT + start * scale, max(_LEAST_BAR, (end + 1 - start) * scale)
        hint = f"{name}: item {item}, cycles {start:,} to {end:,}"
        parts.append(
            f'<rect class="k-{_COLOURS[item % len(_COLOURS)]}" x="{x:.1f}" y="{y}" width="{width:.1f}" '
            f'height="{_ROW - 4}" rx="2"><title>{escape(hint)}</title></rect>'
        )
        if width >= _NUMBERED:
            middle = x + width / 2
            parts.append(
                f'<text class="on small" x="{middle:.1f}" y="{y + 11}" text-anchor="middle">{item}</text>'
            )
    return "".join(parts)
