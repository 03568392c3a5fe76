"""A waveform excerpt: a few items through the simulated pipeline, drawn from the bench's own record."""

from __future__ import annotations

from html import escape

import numpy as np

from kera_hw.driver.hardware import HardwareDesign
from kera_hw.driver.rtl_target import pack_inputs
from kera_hw.driver.sampling import random_value
from kera_hw.rtl.sim.bench import SimRun, Traffic, simulate
from kera_hw.rtl.sim.words import Words, from_words, to_words
from kera_hw.rtl.toolchain.process import ToolError
from kera_hw.schedule.fpga.simulate import simulate_netlist

_ITEMS = 6
_STEP, _ROW, _LEFT = 54, 30, 110
_MAX_CYCLES = 40
# Compiling a simulation of more Verilog than this takes longer than the excerpt is worth.
_MAX_VERILOG_BYTES = 400_000


def wave_svg(design: HardwareDesign, simulated: bool) -> str | None:
    """Clock, handshake and buses of the first items: ``simulated`` in Verilator, else as the plan has them.

    None without a simulator, for designs that take long to compile, for pipelines too long to draw, and where
    the ports carry beats.
    """
    if design.ports.surrounds_core or design.keeps_loops:
        return None
    cycles = design.plan.latency_cycles + (_ITEMS + 1) * design.plan.initiation_interval
    too_large = cycles > _MAX_CYCLES or len(design.emitted.verilog) > _MAX_VERILOG_BYTES
    if too_large or not design.export.params:
        return None
    rng = np.random.default_rng(2)
    inputs = {name: random_value(kind, _ITEMS, rng) for name, kind in design.export.params}
    words = pack_inputs(design, inputs, _ITEMS)
    try:
        run = simulate(design.emitted, words, Traffic()) if simulated else _planned(design, words)
    except ToolError:
        return None
    return None if run.fault is not None else _draw(design, words, run)


def _planned(design: HardwareDesign, words: list[Words]) -> SimRun:
    """What the plan says will happen: values from the netlist's reference, cycles from the schedule."""
    columns = {
        port.name: from_words(data) for port, data in zip(design.emitted.data_inputs, words, strict=True)
    }
    results = simulate_netlist(design.netlist, columns, _ITEMS)
    outputs = tuple(to_words(results[port.name], port.width) for port in design.emitted.data_outputs)
    accepts = np.arange(_ITEMS, dtype=np.uint64) * np.uint64(design.plan.initiation_interval)
    emits = accepts + np.uint64(design.plan.latency_cycles)
    return SimRun(outputs, accepts, emits, emits, int(emits[-1]) + 1, None)


def _draw(design: HardwareDesign, words: list[Words], run: SimRun) -> str:
    first = int(run.accept_cycles[0])
    span = int(run.emit_cycles[-1]) - first + 2
    accepts = [int(cycle) - first for cycle in run.accept_cycles]
    emits = [int(cycle) - first for cycle in run.emit_cycles]
    protocol, interval = design.emitted.protocol, design.plan.initiation_interval
    rows = [("clk", _clock(span))]
    if protocol == "valid":
        rows.append(("in_valid", _level(set(accepts), span)))
    elif protocol == "stream":
        rows.append(("in_valid", _level(set(range(accepts[-1] + 1)), span)))
        if interval > 1:
            rows.append(("in_ready", _level(set(accepts), span)))
    for port, data in zip(design.emitted.data_inputs, words, strict=True):
        rows.append((port.name, _bus(dict(zip(accepts, map(_hex, data), strict=True)), span, "input")))
    if protocol != "none":
        rows.append(("out_valid", _level(set(emits), span)))
    for port, data in zip(design.emitted.data_outputs, run.outputs, strict=True):
        rows.append((port.name, _bus(dict(zip(emits, map(_hex, data), strict=True)), span, "add")))
    height, width = len(rows) * _ROW + 34, _LEFT + span * _STEP + 10
    marks = "".join(
        f'<text class="faint small" x="{_LEFT + c * _STEP + 2}" y="{height - 8}">{c}</text>'
        f'<path class="grid" d="M{_LEFT + c * _STEP} 0V{height - 20}"/>'
        for c in range(span)
    )
    body = "".join(
        f'<g transform="translate({_LEFT},{i * _ROW + 6})"><text x="-10" y="16" text-anchor="end">'
        f"{escape(name[:15])}</text>{shape}</g>"
        for i, (name, shape) in enumerate(rows)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-label="waveform">{marks}{body}</svg>'
    )


def _hex(words: Words) -> str:
    value = int.from_bytes(np.ascontiguousarray(words).tobytes(), "little")
    text = f"{value:x}"
    return text if len(text) <= 6 else text[:5] + "…"


def _clock(span: int) -> str:
    path = "M0 20" + "".join(f"v-16h{_STEP // 2}v16h{_STEP // 2}" for _ in range(span))
    return f'<path class="wire" d="{path}"/>'


def _level(high: set[int], span: int) -> str:
    """One bit a cycle."""
    path, level = "M0 20", False
    for cycle in range(span):
        if (cycle in high) != level:
            level = not level
            path += "v-16" if level else "v16"
        path += f"h{_STEP}"
    return f'<path style="fill:none;stroke:var(--good);stroke-width:1.6" d="{path}"/>'


def _bus(values: dict[int, str], span: int, colour: str) -> str:
    parts = [f'<path class="wire" d="M0 12h{span * _STEP}"/>']
    for cycle, text in values.items():
        x = cycle * _STEP
        parts.append(
            f'<path style="fill:var(--card);stroke:var(--{colour});stroke-width:1.4" '
            f'd="M{x} 12l4 -10h{_STEP - 8}l4 10l-4 10h-{_STEP - 8}z"/>'
            f'<text class="small" x="{x + _STEP // 2}" y="15.5" text-anchor="middle">{escape(text)}</text>'
        )
    return "".join(parts)
