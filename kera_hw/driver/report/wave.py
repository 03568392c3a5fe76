"""A waveform excerpt: a few items through the simulated pipeline, drawn from the bench's own record."""

from __future__ import annotations

from html import escape

import numpy as np

from kera_hw.driver.hardware import HardwareDesign
from kera_hw.driver.rtl_target import pack_inputs
from kera_hw.driver.sampling import random_value
from kera_hw.rtl.sim.bench import SimRun, Traffic, simulate
from kera_hw.rtl.toolchain.process import ToolError

_ITEMS = 4
_STEP, _ROW, _LEFT = 44, 30, 150
_MAX_CYCLES = 64


def wave_svg(design: HardwareDesign) -> str | None:
    """Clock, inputs and outputs of the first items; None without a simulator or for very long pipelines."""
    cycles = design.plan.latency_cycles + (_ITEMS + 1) * design.plan.initiation_interval
    if cycles > _MAX_CYCLES or not design.export.params:
        return None
    rng = np.random.default_rng(2)
    inputs = {name: random_value(kind, _ITEMS, rng) for name, kind in design.export.params}
    words = pack_inputs(design, inputs, _ITEMS)
    try:
        run = simulate(design.emitted, words, Traffic())
    except ToolError:
        return None
    return None if run.fault is not None else _draw(design, words, run)


def _draw(
    design: HardwareDesign, words: list[np.ndarray[tuple[int, int], np.dtype[np.uint32]]], run: SimRun
) -> str:
    first = int(run.accept_cycles[0])
    span = int(run.emit_cycles[-1]) - first + 2
    rows = [("clk", _clock(span))]
    for port, data in zip(design.emitted.data_inputs, words, strict=True):
        values = [(int(run.accept_cycles[i]) - first, _hex(data[i])) for i in range(_ITEMS)]
        rows.append((port.name, _bus(values, span)))
    for port, data in zip(design.emitted.data_outputs, run.outputs, strict=True):
        values = [(int(run.emit_cycles[i]) - first, _hex(data[i])) for i in range(_ITEMS)]
        rows.append((port.name, _bus(values, span)))
    height, width = len(rows) * _ROW + 30, _LEFT + span * _STEP + 10
    marks = "".join(f'<text x="{_LEFT + c * _STEP + 2}" y="{height - 8}">{c}</text>' for c in range(span))
    body = "".join(
        f'<g transform="translate({_LEFT},{i * _ROW + 6})"><text x="-8" y="15" text-anchor="end">'
        f"{escape(name[:20])}</text>{shape}</g>"
        for i, (name, shape) in enumerate(rows)
    )
    return (
        f'<svg class="wave" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-label="waveform">{body}{marks}</svg>'
    )


def _hex(words: np.ndarray[tuple[int], np.dtype[np.uint32]]) -> str:
    value = int.from_bytes(np.ascontiguousarray(words).tobytes(), "little")
    text = f"{value:x}"
    return text if len(text) <= 6 else text[:5] + "…"


def _clock(span: int) -> str:
    path = "M0 20" + "".join(f"v-16h{_STEP // 2}v16h{_STEP // 2}" for _ in range(span))
    return f'<path d="{path}"/>'


def _bus(values: list[tuple[int, str]], span: int) -> str:
    parts = [f'<path d="M0 12h{span * _STEP}"/>']
    for cycle, text in values:
        x = cycle * _STEP
        parts.append(
            f'<path class="v" d="M{x} 12l4 -9h{_STEP - 8}l4 9l-4 9h-{_STEP - 8}z"/>'
            f'<text x="{x + _STEP // 2}" y="16" text-anchor="middle">{escape(text)}</text>'
        )
    return "".join(parts)
