"""Floating-point units by themselves, beside their goals and other tools' units.

    python -m bench fpu [UNIT ...] [--clocks 170,180] [--seeds 1] [-o bench/results/fpu.json]

Every unit of bench/fpu.toml is planned for its clocks, written with `--interface none`, and measured by
itself as in `bench qor`: synthesis, place and route, inputs and outputs between registers. The table shows
the design that meets most of the unit's goal, all measurements stay in the JSON, except such for clocks that
the unit no longer has.
"""
from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from kera_hw.driver.hardware import design_hardware
from kera_hw.driver.session import load_program
from kera_hw.driver.targets import TargetOptions
from kera_hw.rtl.toolchain.harness import measure
from kera_hw.rtl.toolchain.nextpnr import CHIPS
from kera_hw.support import KeraError

HERE = Path(__file__).parent
TARGET_MHZ = 300.0
DEVICE = "ecp5-85k"
_AT_MOST = ("lut", "ff", "dsp", "stages", "ii")


_ASKED = 0.98
"""Share of a goal's LUTs that are asked for: synthesis adds some."""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench fpu", description=(__doc__ or '').splitlines()[0])
    parser.add_argument("units", nargs="*", default=[], metavar="UNIT")
    parser.add_argument("--clocks", default="", help="clocks to plan for, MHz, instead of the unit's own")
    parser.add_argument("--seeds", default="1", help="placement seeds; the median counts")
    parser.add_argument("-o", "--out", type=Path, default=HERE / "results" / "fpu.json")
    options = parser.parse_args(arguments)
    console = Console(stderr=True)
    units = tomllib.loads((HERE / "fpu.toml").read_text())
    rows: dict[str, list[dict[str, Any]]] = _load(options.out)
    for name in options.units or units:
        clocks = [float(c) for c in options.clocks.split(",") if c] or units[name]["clocks"]
        for clock in clocks:
            row = measure_unit(name, units[name], float(clock), tuple(map(int, options.seeds.split(","))))
            console.print(json.dumps(row))
            rows = _load(options.out)  # another run may have written to it meanwhile
            kept = (r for r in rows.get(name, []) if options.clocks or r["clock_mhz"] in clocks)
            rows[name] = [*(r for r in kept if r["clock_mhz"] != row["clock_mhz"]), row]
            options.out.parent.mkdir(parents=True, exist_ok=True)
            options.out.write_text(json.dumps(rows, indent=1) + "\n")
    table = summary(units, rows)
    options.out.with_suffix(".md").write_text(table)
    print(table)
    return 0


def measure_unit(
    name: str, unit: Mapping[str, Any], clock_mhz: float, seeds: tuple[int, ...]
) -> dict[str, Any]:
    """One design of a unit; ``error`` in place of figures where it cannot be made."""
    device, function = unit.get("device", DEVICE), unit.get("function", name)
    loaded = load_program(HERE / "kernels" / "fpu.kera")
    assert loaded.graph is not None, loaded.diagnostics
    export = next(item for item in loaded.graph.exports if item.name == function)
    row: dict[str, Any] = {"unit": name, "device": device, "clock_mhz": clock_mhz, "seeds": list(seeds)}
    start = time.perf_counter()
    try:
        options = TargetOptions(
            device=device, clock_mhz=clock_mhz, interface="none", interval=unit.get("interval"),
            lut=int(_ASKED * unit["goal"]["lut"]) if "lut" in unit["goal"] else None,
        )
        design = design_hardware(loaded.graph, export, options)
    except KeraError as fault:
        return {**row, "error": str(fault)}
    estimate = design.plan.estimate
    row["compile_s"] = round(time.perf_counter() - start, 2)
    row["estimate"] = {
        "lut": estimate.lut, "ff": estimate.ff, "dsp": estimate.dsp, "fmax_mhz": round(estimate.fmax_mhz, 1)
    }
    with tempfile.TemporaryDirectory() as work:
        path = Path(work) / f"{function}.v"
        path.write_text(design.emitted.verilog)
        result = measure([path], function, CHIPS[device], target_mhz=TARGET_MHZ, seeds=seeds, clock="clk")
    fmax, counts = result.fmax_mhz or float("nan"), result.counts
    return {
        **row, "stages": design.plan.latency_cycles, "ii": design.plan.initiation_interval,
        "lut": counts.lut, "ff": counts.ff, "dsp": counts.dsp, "bram": counts.bram,
        "fmax_mhz": round(fmax, 1), "lut_ns": round(counts.lut * 1000 / fmax, 1),
    }


def misses(row: Mapping[str, Any], goal: Mapping[str, float]) -> list[str]:
    """What of a goal a measurement fails, in words."""
    found = [f"{key} {row[key]} > {goal[key]}" for key in _AT_MOST if key in goal and row[key] > goal[key]]
    if "fmax_mhz" in goal and row["fmax_mhz"] < goal["fmax_mhz"]:
        found.append(f"{row['fmax_mhz']} MHz < {goal['fmax_mhz']}")
    return found


def summary(units: Mapping[str, Any], rows: Mapping[str, list[dict[str, Any]]]) -> str:
    """The table in Markdown."""
    lines = [
        "# Floating-point units",
        "",
        "Written by `python -m bench fpu`. ECP5-85 speed 6 unless said otherwise; wrapper with registered",
        "inputs and outputs; full subnormals, one canonical NaN; one result a cycle, or one in the ii cycles",
        "that a goal names. Sites are LUTs or flip-flops, whichever are more. 98 % of the LUTs of a",
        "goal are asked for with `--lut`. Ahead of a peer is a unit with fewer LUT·ns and more MHz.",
        "",
        "| unit | LUT / FF / DSP / BRAM | stages | MHz | LUT·ns | sites·ns | goal | met "
        "| peers: LUT, MHz, LUT·ns | ahead |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, unit in units.items():
        good = [row for row in rows.get(name, []) if "error" not in row]
        goal = unit["goal"]
        wanted = ", ".join(_wanted(key, value) for key, value in goal.items())
        if not good:
            lines.append(f"| {name} | not measured | | | | | {wanted} | | | |")
            continue
        row = min(good, key=lambda r: (len(misses(r, goal)), r["lut_ns"]))
        missed = misses(row, goal)
        peers = [_peer(*entry) for entry in unit.get("peers", [])]
        behind = [p.tool for p in peers if row["lut_ns"] >= p.lut_ns or row["fmax_mhz"] <= (p.fmax_mhz or 0)]
        ahead = f"not of {'; '.join(behind)}" if behind else "yes" if peers else ""
        sites_ns = max(row["lut"], row["ff"]) * 1000 / row["fmax_mhz"]
        cells = " / ".join(str(row.get(key, 0)) for key in ("lut", "ff", "dsp", "bram"))
        lines.append(
            f"| {name} | {cells} | {row['stages']} | {row['fmax_mhz']} | {row['lut_ns']:.0f} | "
            f"{sites_ns:.0f} | {wanted} | {'yes' if not missed else '; '.join(missed)} | "
            f"{'; '.join(p.text for p in peers)} | {ahead} |"
        )
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class _Peer:
    """Another tool's unit: its LUT x ns, and its clock where that is known."""

    tool: str
    lut_ns: float
    fmax_mhz: float | None
    text: str


def _peer(tool: str, lut: float, fmax_mhz: float | None = None) -> _Peer:
    """An entry of the units' file: LUTs and MHz, or LUT x ns alone."""
    if fmax_mhz is None:
        return _Peer(tool, lut, None, f"{tool} {lut} LUT·ns")
    lut_ns = lut * 1000 / fmax_mhz
    return _Peer(tool, lut_ns, fmax_mhz, f"{tool} {lut}, {fmax_mhz}, {lut_ns:.0f}")


def _wanted(key: str, value: float) -> str:
    return f"≥ {value} MHz" if key == "fmax_mhz" else f"≤ {value} {key}"


def _load(path: Path) -> dict[str, list[dict[str, Any]]]:
    return json.loads(path.read_text()) if path.is_file() else {}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
