"""Quality of result of the kernels in bench/kernels, against peers' figures and hand-made circuits.

    python -m bench qor [KERNEL ...] [--clocks 200,250,300,350] [--seeds 1] [-o bench/results/qor.json]

Each kernel is planned for several clocks, written with `--interface none`, and measured by itself: synthesis,
place and route for an ECP5-85 speed 6 at --freq 300, inputs and outputs between registers. Reported are the
design with the least sites x ns and the fastest one; a site is a LUT with the flip-flop beside it, of which a
design has as many as the larger of both counts. DSP blocks and stages stand beside.
"""
from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
import tomllib
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
KERNELS = ("fir", "firc", "cmvm8", "crc", "sobel", "conv", "sharound", "idiv2")
TARGET_MHZ = 300.0
DEFAULT_CLOCKS = "120,150,180,210,240,280,330"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench qor", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("kernels", nargs="*", default=[], metavar="KERNEL")
    parser.add_argument("--clocks", default=DEFAULT_CLOCKS, help="clocks to plan for, MHz")
    parser.add_argument("--seeds", default="1", help="placement seeds; the median counts")
    parser.add_argument("-o", "--out", type=Path, default=HERE / "results" / "qor.json")
    options = parser.parse_args(arguments)
    console = Console(stderr=True)
    rows = _load(options.out)
    for name in options.kernels or KERNELS:
        found: list[dict[str, Any]] = []
        for clock in options.clocks.split(","):
            row = measure_kernel(name, float(clock), tuple(int(s) for s in options.seeds.split(",")))
            console.print(_line(row))
            found.append(row)
        rows[name] = _merge(rows.get(name, []), found)
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(rows, indent=1) + "\n")
    table = summary(rows)
    options.out.with_suffix(".md").write_text(table)
    print(table)
    return 0


def measure_kernel(name: str, clock_mhz: float, seeds: tuple[int, ...]) -> dict[str, Any]:
    """One design of a kernel; ``error`` in place of figures where it cannot be made."""
    loaded = load_program(HERE / "kernels" / f"{name}.kera")
    assert loaded.graph is not None, loaded.diagnostics
    export = loaded.graph.exports[0]
    row: dict[str, Any] = {"kernel": name, "clock_mhz": clock_mhz, "seeds": list(seeds)}
    start = time.perf_counter()
    try:
        design = design_hardware(
            loaded.graph, export, TargetOptions(clock_mhz=clock_mhz, interface="none")
        )
    except KeraError as fault:
        return {**row, "error": str(fault)}
    row["compile_s"] = round(time.perf_counter() - start, 2)
    estimate = design.plan.estimate
    row["estimate"] = {
        "lut": estimate.lut, "ff": estimate.ff, "dsp": estimate.dsp, "fmax_mhz": round(estimate.fmax_mhz, 1)
    }
    with tempfile.TemporaryDirectory() as work:
        path = Path(work) / f"{name}.v"
        path.write_text(design.emitted.verilog)
        result = measure([path], name, CHIPS["ecp5-85k"], target_mhz=TARGET_MHZ, seeds=seeds, clock="clk")
    fmax = result.fmax_mhz or float("nan")
    counts = result.counts
    return {
        **row, "stages": design.plan.latency_cycles, "lut": counts.lut, "ff": counts.ff, "dsp": counts.dsp,
        "fmax_mhz": round(fmax, 1),
    }


def sites_ns(row: dict[str, Any]) -> float:
    """Area times time of one item: sites over the clock."""
    return max(row["lut"], row["ff"]) * 1000 / row["fmax_mhz"]


def _load(path: Path) -> dict[str, list[dict[str, Any]]]:
    return json.loads(path.read_text()) if path.is_file() else {}


def _merge(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """New measurements replace those for the same clock."""
    by_clock = {row["clock_mhz"]: row for row in (*old, *new)}
    return [by_clock[clock] for clock in sorted(by_clock)]


def _line(row: dict[str, Any]) -> str:
    if "error" in row:
        return f"{row['kernel']:9} {row['clock_mhz']:5.0f} MHz: {row['error']}"
    return (
        f"{row['kernel']:9} {row['clock_mhz']:5.0f} MHz: {row['lut']} LUT, {row['ff']} FF, {row['dsp']} DSP, "
        f"{row['stages']} stages, {row['fmax_mhz']} MHz, {sites_ns(row):.0f} sites·ns; "
        f"estimate {row['estimate']}"
    )


def summary(rows: dict[str, list[dict[str, Any]]]) -> str:
    """The table in Markdown, with the geometric mean of the improvement in sites x ns."""
    peers = tomllib.loads((HERE / "peers.toml").read_text())
    lines = [
        "# Quality of result",
        "",
        "Written by `python -m bench qor`. ECP5-85 speed 6, wrapper with registered inputs and outputs.",
        "",
        "| kernel | best sites·ns: LUT/FF/DSP, stages, MHz | sites·ns | best peer | times better | "
        "× hand-made | fastest: LUT/FF/DSP, stages | MHz | best peer |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    gains: list[float] = []
    for name in KERNELS:
        good = [row for row in rows.get(name, []) if "error" not in row]
        if not good:
            lines.append(f"| {name} | not measured | | | | | | | |")
            continue
        small, fast = min(good, key=sites_ns), max(good, key=lambda r: r["fmax_mhz"])
        peer, hand = peers[name], peers[name].get("hand")
        cost, rival = sites_ns(small), sites_ns(peer["smallest"])
        gains.append(rival / cost)
        beside = f"{cost / sites_ns(hand):.2f}" if hand else ""
        lines.append(
            f"| {name} | {_cost(small)}, {small['stages']}, {small['fmax_mhz']} | {cost:.0f} | "
            f"{rival:.0f} ({peer['smallest']['tool']}) | {gains[-1]:.2f} | {beside} | "
            f"{_cost(fast)}, {fast['stages']} | {fast['fmax_mhz']} | "
            f"{peer['fastest']['fmax_mhz']} ({peer['fastest']['tool']}) |"
        )
    if gains:
        mean = math.exp(sum(map(math.log, gains)) / len(gains))
        lines += ["", f"Geometric mean over {len(gains)} kernels: {mean:.2f} times better in sites·ns."]
    return "\n".join(lines) + "\n"


def _cost(row: dict[str, Any]) -> str:
    return f"{row['lut']}/{row['ff']}/{row['dsp']}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
