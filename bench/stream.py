"""Items a second of every stream: interpreted, and as a simulated circuit.

    python -m bench stream [--items 100000] [--only NAME] [-o bench/results/stream.json]

Both work on the same random items, drawn as `kera verify` draws them. The simulation is the compiled
program alone, unhindered: neither building it nor packing words counts, and so neither does preparing the
stream for the interpreter. The least of the runs counts: what is above it is the machine's other work.
"""
from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from kera_hw.driver.hardware import design_hardware
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.rtl_target import pack_inputs
from kera_hw.driver.sampling import draw_items
from kera_hw.driver.session import load_program
from kera_hw.graph import Export, Graph
from kera_hw.interp import run_export
from kera_hw.rtl.sim.bench import Traffic, simulate
from kera_hw.support import KeraError

HERE = Path(__file__).parent
ROOT = HERE.parent
# The project's programs, and those beside the checkout where they exist.
SHARED = next((path / "shared" for path in ROOT.parents if (path / "shared").is_dir()), ROOT)
PLACES = (
    ROOT / "tests" / "programs", ROOT / "tests" / "programs" / "language", ROOT / "bench" / "kernels",
    SHARED / "programs", SHARED / "programs" / "real", SHARED / "peers" / "control",
)
LONG_S = 3.0
Row = dict[str, Any]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench stream", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="", help="streams whose name holds this")
    parser.add_argument("--no-simulation", action="store_true")
    parser.add_argument("-o", "--out", type=Path, default=HERE / "results" / "stream.json")
    options = parser.parse_args(arguments)
    rows: list[Row] = []
    for path, graph, export in streams(options.only):
        rows.append(measure(path, graph, export, options.items, options.runs, not options.no_simulation))
        print(line(rows[-1]), flush=True)
        write(options.out, options.items, rows)
    return 0


def write(path: Path, items: int, rows: list[Row]) -> None:
    """The figures so far, as data and as a table."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"items": items, "streams": rows}, indent=1) + "\n")
    path.with_suffix(".md").write_text(summary(items, rows))


def streams(only: str) -> Iterator[tuple[Path, Graph, Export]]:
    """Every exported stream of the programs, each fingerprint of a region once."""
    seen: set[bytes] = set()
    for path in (path for place in PLACES for path in sorted(place.glob("*.kera"))):
        loaded = load_program(path)
        if loaded.graph is None or loaded.has_errors:
            continue
        for export in loaded.graph.exports:
            if export.kind == "stream" and only in export.name and export.region.hash not in seen:
                seen.add(export.region.hash)
                yield path, loaded.graph, export


def measure(path: Path, graph: Graph, export: Export, items: int, runs: int, simulated: bool) -> Row:
    """Items a second, interpreted and simulated; None where no circuit can be planned."""
    inputs, _ = draw_items(export, items, 1, ())
    row: Row = {"stream": export.name, "program": path.name}
    first_s = least_s(lambda: run_export(export, inputs, items), 1)
    if first_s < LONG_S:  # preparing counts for nothing in a longer run
        first_s = least_s(lambda: run_export(export, inputs, items), runs)
    row["interpreted"] = round(items / first_s)
    row["simulated"] = None
    if simulated:
        try:
            design = design_hardware(graph, export, TargetOptions())
        except KeraError:
            return row
        words = pack_inputs(design, inputs, items)
        simulate(design.emitted, words, Traffic(), count=items)
        run_s = least_s(lambda: simulate(design.emitted, words, Traffic(), count=items), runs)
        row["simulated"] = round(items / run_s)
        row["interval"] = design.plan.initiation_interval
    return row


def least_s(run: Callable[[], object], runs: int) -> float:
    times: list[float] = []
    for _ in range(runs):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def line(row: Row) -> str:
    ratio = row["interpreted"] / row["simulated"] if row["simulated"] else float("nan")
    return f"| {row['stream']} | {row['interpreted']} | {row['simulated']} | {ratio:.2f} |"


def summary(items: int, rows: list[Row]) -> str:
    lines = [
        "# Streams", "",
        f"Written by `python -m bench stream`: items a second of {items} items, least of the runs.", "",
        "| stream | interpreted | simulated | ratio |", "|---|---|---|---|", *map(line, rows),
    ]
    return "\n".join(lines) + "\n"
