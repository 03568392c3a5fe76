"""Measure a module by itself, however many ports it has: area exactly, timing from register to register.

The module is wrapped so that four pins are enough. One long shift register feeds every input bit, a
register captures every output bit, and a registered tree of XORs folds the captures into one pin. All
paths into and out of the module are thus timed as they would be between registered neighbours, and
nothing of it can be optimised away. Its boundary is kept during synthesis, so that the cells counted are
its own, without the wrapper's. A reset comes from a pin and is not timed; handshake signals are data.
"""
from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kera_hw.rtl.toolchain import yosys
from kera_hw.rtl.toolchain.cells import CellCounts, Port, read_netlist, read_ports
from kera_hw.rtl.toolchain.nextpnr import Chip, PlaceRoute, TimingPath, place_and_route
from kera_hw.rtl.toolchain.process import scratch

WRAPPER = "kera_harness"
CORE = "kera_core"
INSTANCE = "dut"
_FOLD = 4


@dataclass(frozen=True, slots=True)
class Measured:
    """A module's own figures on one chip. ``runs`` holds one place-and-route result for each seed."""

    top: str
    counts: CellCounts
    input_bits: int
    output_bits: int
    runs: tuple[PlaceRoute, ...]

    @property
    def fmax_mhz(self) -> float | None:
        """The median over the seeds; None without place and route."""
        achieved = [run.fmax_mhz for run in self.runs if run.fmax_mhz is not None]
        return statistics.median(achieved) if achieved else None

    @property
    def critical_path(self) -> TimingPath | None:
        """The slowest register-to-register path of the first seed, its harness ends included."""
        return self.runs[0].critical_path if self.runs else None

    def to_json(self) -> dict[str, object]:
        """Plain JSON object in the shape of a build's ``achieved`` figures."""
        counts = self.counts
        return {
            "lut": counts.lut, "ff": counts.ff, "dsp": counts.dsp, "bram": counts.bram,
            "fmax_mhz": None if self.fmax_mhz is None else round(self.fmax_mhz, 1),
            "fmax_by_seed_mhz": {str(run.seed): run.fmax_mhz for run in self.runs},
            "cells": dict(sorted(counts.by_type.items())),
        }


def in_core(cell: str) -> bool:
    """Whether a cell named in a timing path belongs to the measured module."""
    return cell.startswith(INSTANCE + ".")


def wrap(ports: Sequence[Port], *, clock: str | None, reset: str | None, reset_low: bool = False) -> str:
    """Verilog of the wrapper around a module CORE with these ports."""
    inputs = [p for p in ports if p.direction == "input" and p.name not in (clock, reset)]
    outputs = [p for p in ports if p.direction == "output"]
    strange = [p.name for p in ports if p.direction not in ("input", "output")]
    if strange:
        raise ValueError(f"a bidirectional port cannot be measured: {', '.join(strange)}")
    fed = max(1, sum(p.width_bits for p in inputs))
    captured = max(1, sum(p.width_bits for p in outputs))
    connections: list[str] = []
    if clock:
        connections.append(f".{_escaped(clock)}(clk)")
    if reset:
        connections.append(f".{_escaped(reset)}({'~rst' if reset_low else 'rst'})")
    connections += [*_connections(inputs, "sr"), *_connections(outputs, "o")]
    lines = [
        f"module {WRAPPER}(input clk, input rst, input din, output dout);",
        f"  reg [{fed - 1}:0] sr;",
        "  always @(posedge clk) sr <= {sr, din};",
        f"  wire [{captured - 1}:0] o;",
        f"  {CORE} {INSTANCE}({', '.join(connections)});",
        f"  reg [{captured - 1}:0] c0;",
        "  always @(posedge clk) c0 <= o;",
    ]
    width, rank = captured, 0
    while width > 1:
        narrower = -(-width // _FOLD)
        lines += [f"  reg [{narrower - 1}:0] c{rank + 1};", "  always @(posedge clk) begin"]
        for bit in range(narrower):
            high = min(_FOLD * bit + _FOLD, width) - 1
            lines.append(f"    c{rank + 1}[{bit}] <= ^c{rank}[{high}:{_FOLD * bit}];")
        lines.append("  end")
        width, rank = narrower, rank + 1
    lines += [f"  assign dout = c{rank}[0];", "endmodule", ""]
    return "\n".join(lines)


def _connections(ports: Sequence[Port], vector: str) -> Iterator[str]:
    low = 0
    for port in ports:
        yield f".{_escaped(port.name)}({vector}[{low + port.width_bits - 1}:{low}])"
        low += port.width_bits


def _escaped(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else f"\\{name} "


def measure(
    verilog: Sequence[Path],
    top: str,
    chip: Chip,
    *,
    target_mhz: float = 300.0,
    seeds: Sequence[int] = (1,),
    clock: str | None = "clk",
    reset: str | None = "rst",
    reset_low: bool = False,
    synth_options: Sequence[str] | None = None,
    timeout_s: float = 1800.0,
    progress: Callable[[str], None] = lambda _: None,
) -> Measured:
    """Synthesise ``top`` inside the wrapper, count its cells, place and route once for each seed.

    ``clock`` and ``reset`` name ports and may be absent from the module; no ``seeds`` means area alone.
    ``progress`` is told of each step.
    """
    with scratch("measure") as work:
        progress("synthesis of the core")
        yosys.run_script(
            [
                *yosys.library(chip.family), *yosys.read_commands(verilog),
                f"hierarchy -check -top {top}", "proc", "flatten", "opt_clean", f"rename -top {CORE}",
                f"select {CORE}", "write_rtlil -selected core.il", "write_json -selected ports.json",
            ],
            work, timeout_s=timeout_s,
        )
        ports = read_ports(work / "ports.json", CORE)
        names = {port.name for port in ports if port.direction == "input" and port.width_bits == 1}
        clock = clock if clock in names else None
        reset = reset if reset in names else None
        (work / "wrapper.v").write_text(
            wrap(ports, clock=clock, reset=reset, reset_low=reset_low), encoding="utf-8"
        )
        options = " ".join(chip.synth_options if synth_options is None else synth_options)
        yosys.run_script(
            [
                "read_rtlil core.il", f"setattr -mod -set keep_hierarchy 1 {CORE}", "read_verilog wrapper.v",
                f"synth_{chip.family} -top {WRAPPER} {options}", "write_json netlist.json",
            ],
            work, timeout_s=timeout_s,
        )
        netlist = read_netlist(work / "netlist.json", WRAPPER)
        if seeds:
            progress("place and route of the core")
        runs = tuple(
            place_and_route(netlist.json_path, chip, target_mhz=target_mhz, seed=seed, timeout_s=timeout_s)
            for seed in seeds
        )
    data = [port for port in ports if port.name not in (clock, reset)]
    return Measured(
        top, netlist.modules[CORE],
        sum(p.width_bits for p in data if p.direction == "input"),
        sum(p.width_bits for p in data if p.direction == "output"),
        runs,
    )
