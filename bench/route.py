"""Whole programs placed and routed: what the plan foretold beside what came out.

    python -m bench route [FILE.kera[:FUNCTION][@MHZ][,ii=N][,dsp=N] ...] [--seed 1] [-o OUT.json]

Each function is planned (at the clock that it gets unasked, or at MHZ; with options, as `kera build` has
them), written, and measured by itself between registers on an ECP5-85 speed 6. Without names all rows that
are known are measured again, and programs of bench/programs without one. Rows that were measured before stay
until they are measured again. The table says of every figure how far the estimate was off, and
sets programs beside cores that others wrote by hand for the same (bench/handwritten.toml).
"""
from __future__ import annotations

import argparse
import json
import math
import re
import statistics
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.estimate_error import relative
from kera_hw.driver.hardware import design_hardware
from kera_hw.driver.session import load_program
from kera_hw.driver.targets import TargetOptions
from kera_hw.rtl.toolchain.harness import INSTANCE, measure
from kera_hw.rtl.toolchain.nextpnr import CHIPS, TimingPath
from kera_hw.support import KeraError

HERE = Path(__file__).parent
FIGURES = ("lut", "ff", "dsp", "bram", "fmax_mhz")
TARGET_MHZ = 300.0

Row = dict[str, Any]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench route", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("programs", nargs="*", default=[], metavar="FILE[:FUNCTION][@MHZ][,ii=N]")
    parser.add_argument("--seed", type=int, default=1, help="of the placement")
    parser.add_argument("-o", "--out", type=Path, default=HERE / "results" / "route.json")
    options = parser.parse_args(arguments)
    rows: dict[str, Row] = json.loads(options.out.read_text()) if options.out.is_file() else {}
    for path, function, asked in map(_named, options.programs or _all(rows)):
        for row in routed(path, function, asked, options.seed):
            rows[key_of(row)] = row
            print(_line(row), file=sys.stderr, flush=True)
            options.out.parent.mkdir(parents=True, exist_ok=True)
            lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in sorted(rows.items())]
            options.out.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    table = summary(rows)
    options.out.with_suffix(".md").write_text(table)
    print(table)
    return 0


def _all(rows: dict[str, Row]) -> list[str]:
    """What was measured, and programs of which nothing was."""
    known = [f"{HERE / 'programs'}/{key.replace(':', '.kera:', 1)}" for key in sorted(rows)]
    programs = {row["program"] for row in rows.values()}
    fresh = [path for path in sorted((HERE / "programs").glob("*.kera")) if path.stem not in programs]
    return [*known, *map(str, fresh)]


@dataclass(frozen=True)
class Asked:
    """What a row is planned for: a clock, and options by their names on the command line."""

    clock_mhz: float | None = None
    options: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        clock = "" if self.clock_mhz is None else f"@{self.clock_mhz:g}"
        return clock + "".join(f",{name}={value}" for name, value in self.options)

    @property
    def target(self) -> TargetOptions:
        """The same for the planner."""
        return replace(TargetOptions(clock_mhz=self.clock_mhz), **{_OPTIONS[k]: n for k, n in self.options})


_OPTIONS = {"ii": "interval", "dsp": "dsp", "lut": "lut", "bram": "bram", "sites": "sites", "lanes": "lanes"}


def _named(text: str) -> tuple[Path, str | None, Asked]:
    match = re.fullmatch(r"(.+?\.kera)(?::(\w+))?(?:@([\d.]+))?((?:,\w+=\d+)*)", text)
    options = dict(item.split("=") for item in match[4].split(",")[1:]) if match else {}
    if match is None or not options.keys() <= _OPTIONS.keys():
        raise SystemExit(f"bench route: {text} is no FILE.kera[:FUNCTION][@MHZ][,OPTION=N]")
    asked = tuple(sorted((name, int(value)) for name, value in options.items()))
    return Path(match[1]), match[2], Asked(float(match[3]) if match[3] else None, asked)


def key_of(row: Row) -> str:
    """What a row is about; another measurement of the same takes its place."""
    return f"{row['program']}:{row['function']}{row['asked']}"


def routed(path: Path, function: str | None, asked: Asked, seed: int) -> list[Row]:
    """A row for the function, or for all that the file exports."""
    loaded = load_program(path)
    assert loaded.graph is not None, loaded.diagnostics
    rows: list[Row] = []
    for export in loaded.graph.exports:
        if function not in (None, export.name):
            continue
        row: Row = {"program": path.stem, "function": export.name, "asked": str(asked)}
        start = time.perf_counter()
        try:
            design = design_hardware(loaded.graph, export, asked.target)
        except KeraError as fault:
            rows.append({**row, "error": fault.diagnostics[0].message})
            continue
        row["compile_s"] = round(time.perf_counter() - start, 1)
        row["planned_mhz"], row["rounds_stay"] = round(design.clock_mhz, 1), design.keeps_loops
        pace, estimate = design.pace, design.estimate
        row |= {"interval": pace.initiation_interval, "latency": pace.latency_cycles}
        row["estimate"] = {figure: round(getattr(estimate, figure), 1) for figure in FIGURES}
        with tempfile.TemporaryDirectory() as work:
            text = Path(work) / f"{design.emitted.name}.v"
            text.write_text(design.emitted.verilog)
            result = measure(
                [text], design.emitted.name, CHIPS["ecp5-85k"], target_mhz=TARGET_MHZ, seeds=(seed,)
            )
        figures = {figure: getattr(result.counts, figure) for figure in FIGURES[:-1]}
        row["routed"] = {**figures, "fmax_mhz": round(result.fmax_mhz or float("nan"), 1)}
        if result.critical_path is not None:
            row["path"] = described(result.critical_path)
        rows.append(row)
    return rows


def described(path: TimingPath) -> Row:
    """The slowest path: its ends, cells on the way, and how much of it are wires."""
    ends = [re.sub(rf"^{INSTANCE}\.", "", name) for name in (path.steps[0].from_cell, path.steps[-1].to_cell)]
    wires = [step.delay_ps for step in path.steps if step.kind == "routing" and step.delay_ps]
    return {
        "from": ends[0], "to": ends[1], "levels": path.logic_levels, "longest_wire_ps": max(wires, default=0),
        "wires_ps": sum(wires), "logic_ps": path.delay_ps - sum(wires),
    }


def errors(rows: dict[str, Row], figure: str) -> list[float]:
    """Of every routed design: how far its estimate was off, in per cent."""
    found = [row for row in rows.values() if "routed" in row]
    return [100 * relative(row["estimate"][figure], row["routed"][figure]) for row in found]


def beside_cores(rows: dict[str, Row]) -> list[str]:
    """A table of what an item takes, in sites times ns, here and in cores written by hand."""
    head = "| by hand | item | sites·ns, cycles | here | sites·ns, cycles | ratio |"
    lines = ["", head, "|---|---|--:|---|--:|--:|"]
    ratios: list[float] = []
    for core in tomllib.loads((HERE / "handwritten.toml").read_text())["core"]:
        row = rows.get(core["ours"])
        if row is None or "routed" not in row:
            continue
        by_hand = max(core["lut"], core["ff"]) * core["cycles"] * 1000 / core["mhz"]
        found, cycles = row["routed"], row["interval"] / core["items"]
        cost = max(found["lut"], found["ff"]) * cycles * 1000 / found["fmax_mhz"]
        ratios.append(cost / by_hand)
        cells = [
            core["name"], core["item"], f"{by_hand:,.0f}, {core['cycles']}", core["ours"],
            f"{cost:,.0f}, {cycles:,.4g}", f"{ratios[-1]:.2f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else 1.0
    return [*lines, "", f"Geometric mean of the ratios, below 1 where less is taken here: {mean:.2f}."]


def _line(row: Row) -> str:
    if "error" in row:
        return f"{key_of(row)}: {row['error']}"
    figures = "  ".join(f"{figure} {row['estimate'][figure]}/{row['routed'][figure]}" for figure in FIGURES)
    return f"{key_of(row)} planned for {row['planned_mhz']:g} MHz: {figures}; {row.get('path')}"


def summary(rows: dict[str, Row]) -> str:
    """The table in Markdown."""
    lines = [
        "# Programs, placed and routed",
        "",
        "Written by `python -m bench route`: estimate / routed. ECP5-85 speed 6, registers around it.",
        "",
        "| function | planned for MHz | interval | LUT | FF | DSP | BRAM | MHz | met |",
        "|---|--:|--:|--:|--:|--:|--:|--:|---|",
    ]
    for key, row in sorted(rows.items()):
        if "routed" not in row:
            lines.append(f"| {key} | refused: {row['error']} | | | | | | | |")
            continue
        said, found = row["estimate"], row["routed"]
        figures = [f"{said[f]:g} / {found[f]:g}" for f in FIGURES]
        met = "yes" if found["fmax_mhz"] >= row["planned_mhz"] else "no"
        cells = [key, f"{row['planned_mhz']:g}", f"{row['interval']:,}", *figures, met]
        lines.append(f"| {' | '.join(cells)} |")
    told: list[str] = []
    for figure in FIGURES:
        off = errors(rows, figure)
        if off:
            size = [abs(value) for value in off]
            told.append(f"{figure} {statistics.median(size):.1f} / {max(size):.1f}")
    if told:
        lines += beside_cores(rows)
        lines += ["", f"Error of estimates in per cent, median / worst: {', '.join(told)}."]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
