"""Control logic beside plain Verilog: the pairs of bench/kernels/control on one ruler.

    python -m bench control [PAIR ...] [--clocks 150,200,250] [--seeds 1] [-o bench/results/control.json]

NAME.kera is written as a user would, NAME.v as an engineer would: behavioural, the same ports and handshake
(tests/differential/test_control_pairs.py holds them equal). Both are placed for an ECP5-85 speed 6 between
registers. Kera is asked for each clock, with the interval left to it and, where that is more than 1, for an
item every cycle at half the clock. What counts is sites x interval / Fmax, sites being the greater of LUTs
and flip-flops; the ratio is that of Kera's over that of the Verilog: below 1 Kera is the better.
"""
from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
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
KERNELS = HERE / "kernels" / "control"
PAIRS = tuple(sorted(path.stem for path in KERNELS.glob("*.kera")))
ASKED_MHZ = 200.0
"""The clock of the table's middle column."""

Row = dict[str, Any]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench control", description=__doc__)
    parser.add_argument("pairs", nargs="*", default=[], metavar="PAIR")
    parser.add_argument("--clocks", default="150,200,250", help="clocks to plan for, MHz")
    parser.add_argument("--seeds", default="1", help="placement seeds; the median counts")
    parser.add_argument("-o", "--out", type=Path, default=HERE / "results" / "control.json")
    options = parser.parse_args(arguments)
    console = Console(stderr=True)
    seeds = tuple(int(seed) for seed in options.seeds.split(","))
    found: dict[str, Row] = json.loads(options.out.read_text()) if options.out.is_file() else {}
    for name in options.pairs or PAIRS:
        entry = measure_pair(name, [float(clock) for clock in options.clocks.split(",")], seeds)
        console.print(f"{name}: {ratio(best(entry['kera']), entry['hand']):.2f}")
        found[name] = entry
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(dict(sorted(found.items())), indent=1) + "\n")
    table = summary(found)
    options.out.with_suffix(".md").write_text(table)
    print(table)
    return 0


def measure_pair(name: str, clocks: list[float], seeds: tuple[int, ...]) -> Row:
    """Figures of the Verilog, and of every design that Kera makes."""
    hand = placed([KERNELS / f"{name}.v"], name, seeds)
    rows: list[Row] = []
    for clock in clocks:
        row = designed(name, clock, None, seeds)
        rows.append(row)
        if row.get("interval", 1) > 1:
            rows.append(designed(name, clock / 2, 1, seeds))
    return {"hand": hand, "kera": rows, "seeds": list(seeds)}


def designed(name: str, clock_mhz: float, interval: int | None, seeds: tuple[int, ...]) -> Row:
    """One design of Kera's; ``error`` in place of figures where it cannot be made."""
    loaded = load_program(KERNELS / f"{name}.kera")
    assert loaded.graph is not None, loaded.diagnostics
    row: Row = {"clock_mhz": clock_mhz}
    try:
        options = TargetOptions(clock_mhz=clock_mhz, interval=interval)
        design = design_hardware(loaded.graph, loaded.graph.exports[0], options)
    except KeraError as fault:
        return {**row, "error": str(fault)}
    with tempfile.TemporaryDirectory() as work:
        path = Path(work) / f"{name}.v"
        path.write_text(design.emitted.verilog)
        figures = placed([path], name, seeds)
    plan = design.plan
    estimate = {"lut": plan.estimate.lut, "ff": plan.estimate.ff, "fmax_mhz": plan.estimate.fmax_mhz}
    cycles = {"interval": plan.initiation_interval, "stages": plan.latency_cycles}
    return {**row, **cycles, **figures, "estimate": estimate}


def placed(files: list[Path], top: str, seeds: tuple[int, ...]) -> Row:
    """LUTs, flip-flops and clock after place and route."""
    result = measure(files, top, CHIPS["ecp5-85k"], seeds=seeds, clock="clk")
    fmax = result.fmax_mhz or float("nan")
    return {"lut": result.counts.lut, "ff": result.counts.ff, "fmax_mhz": round(fmax, 1)}


def cost(row: Row) -> float:
    """Sites times the time between items."""
    return max(row["lut"], row["ff"]) * row.get("interval", 1) / row["fmax_mhz"]


def best(rows: list[Row]) -> Row:
    """The design of least cost."""
    return min((row for row in rows if "error" not in row), key=cost)


def ratio(row: Row, hand: Row) -> float:
    return cost(row) / cost(hand)


def summary(found: dict[str, Row]) -> str:
    """The table in Markdown, with geometric means."""
    lines = [
        "# Control logic",
        "",
        "Written by `python -m bench control`. ECP5-85 speed 6, registers around the module. Ratios are of",
        "sites × interval / Fmax; below 1 Kera is better than the Verilog.",
        "",
        f"| pair | Verilog: LUT/FF, MHz | asked for {ASKED_MHZ:.0f} MHz: LUT/FF, interval, MHz | ratio "
        "| best | ratio |",
        "|---|---|---|--:|---|--:|",
    ]
    columns: tuple[list[float], list[float]] = ([], [])
    for name, entry in sorted(found.items()):
        hand = entry["hand"]
        cells = [name, f"{hand['lut']}/{hand['ff']}, {hand['fmax_mhz']:.0f}"]
        asked = [row for row in entry["kera"] if row["clock_mhz"] == ASKED_MHZ and "error" not in row]
        for rows, column in zip((asked, entry["kera"]), columns):
            if not rows:
                cells += ["none", ""]
                continue
            row = best(rows)
            column.append(ratio(row, hand))
            made = f"{row['lut']}/{row['ff']}, {row['interval']}, {row['fmax_mhz']:.0f}"
            cells += [made, f"{column[-1]:.2f}"]
        lines.append(f"| {' | '.join(cells)} |")
    means = [math.exp(sum(map(math.log, column)) / len(column)) for column in columns if column]
    if len(means) == len(columns):
        asked_for = f"asked for {ASKED_MHZ:.0f} MHz"
        lines += ["", f"Geometric means: {means[0]:.2f} {asked_for}, {means[1]:.2f} at best."]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
