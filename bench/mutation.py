"""How many planted faults the items of `kera verify` catch, on every program.

    python -m bench mutation [--faults 100] [--vectors 1000] [--only NAME] [-o bench/results/mutation.json]

Every exported function and stream of the programs, as it is planned without options. Faults are spread over
the circuit; those that a solver proves to change nothing do not count. Circuits beyond ``--most-luts``
(by estimate) are left out: simulating a hundred faults in them takes longer than it tells.
"""
from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kera_hw.driver.hardware import plan_hardware
from kera_hw.driver.mutation import try_faults
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.session import load_program
from kera_hw.graph import Export, Graph
from kera_hw.support import KeraError

HERE = Path(__file__).parent
ROOT = HERE.parent
SHARED = next((path / "shared" for path in ROOT.parents if (path / "shared").is_dir()), ROOT)
# The project's own, and those beside the checkout where they exist.
PLACES = (ROOT / "examples", SHARED / "programs")
SEED = 1
Row = dict[str, Any]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench mutation", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--faults", type=int, default=100)
    parser.add_argument("--vectors", type=int, default=1000)
    parser.add_argument("--most-luts", type=int, default=4000)
    parser.add_argument("--only", default="", help="functions whose name holds this")
    parser.add_argument("-o", "--out", type=Path, default=HERE / "results" / "mutation.json")
    options = parser.parse_args(arguments)
    rows: list[Row] = []
    for path, graph, export in exports(options.only):
        rows.append(measure(path, graph, export, options.faults, options.vectors, options.most_luts))
        print(line(rows[-1]), flush=True)
        write(options.out, options.faults, options.vectors, rows)
    return 0


def exports(only: str) -> Iterator[tuple[Path, Graph, Export]]:
    """Every export of the programs, each graph once."""
    seen: set[bytes] = set()
    for path in (path for place in PLACES for path in sorted(place.glob("*.kera"))):
        loaded = load_program(path)
        if loaded.graph is None or loaded.has_errors:
            continue
        for export in loaded.graph.exports:
            if only in export.name and export.region.hash not in seen:
                seen.add(export.region.hash)
                yield path, loaded.graph, export


def measure(path: Path, graph: Graph, export: Export, faults: int, vectors: int, most_luts: int) -> Row:
    """What became of the faults; ``left_out`` says why there are none."""
    row: Row = {"function": export.name, "program": path.name}
    try:
        luts = plan_hardware(graph, export, TargetOptions()).plan.estimate.lut
        if luts > most_luts:
            return {**row, "left_out": f"{luts} LUTs"}
        found = try_faults(graph, export, TargetOptions(), faults, vectors, SEED)
    except KeraError as refusal:
        return {**row, "left_out": refusal.diagnostics[0].code}
    figures = {"luts": luts, "faults": found.faults, "caught": found.caught}
    none = len(found.tried) - found.faults
    missed = [item.fault.text for item in found.missed]
    return {**row, **figures, "none": none, "missed": missed}


def share(rows: list[Row]) -> float:
    return 100 * sum(row["caught"] for row in rows) / max(1, sum(row["faults"] for row in rows))


def line(row: Row) -> str:
    name = f"| {row['function']} | {row['program']} |"
    if "left_out" in row:
        return f"{name} | | | | {row['left_out']} |"
    return f"{name} {row['faults']} | {row['caught']} | {row['none']} | {share([row]):.1f} % |"


def write(path: Path, faults: int, vectors: int, rows: list[Row]) -> None:
    """The figures so far, as data and as a table."""
    path.parent.mkdir(parents=True, exist_ok=True)
    tried = [row for row in rows if "left_out" not in row]
    sums = [str(sum(row[key] for row in tried)) for key in ("faults", "caught", "none")]
    data = {"faults": faults, "vectors": vectors, "seed": SEED, "caught_percent": round(share(tried), 2)}
    path.write_text(json.dumps({**data, "functions": rows}, indent=1) + "\n")
    path.with_suffix(".md").write_text("\n".join([
        "# Planted faults", "",
        f"Written by `python -m bench mutation`: {faults} faults a circuit, {vectors} items each, as in "
        "`kera verify`. Faults proved to change nothing do not count.", "",
        "| function | program | faults | caught | none | share |", "|---|---|---|---|---|---|",
        *map(line, rows), f"| all | | {' | '.join(sums)} | {share(tried):.1f} % |",
    ]) + "\n")  # fmt: skip
