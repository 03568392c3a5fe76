"""How far estimates before synthesis are from routed results, over kernels that no table was fitted on.

    python -m bench.estimate_error [bench/results/qor.json]

Reads what ``python -m bench qor`` measured: each row holds a plan's estimate and the routed figures.
"""
from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FIGURES = ("lut", "ff", "dsp", "fmax_mhz")
RESULTS = Path(__file__).parent / "results" / "qor.json"


def rows(path: Path) -> Iterator[dict[str, Any]]:
    """Measured designs, those that could not be made left out."""
    data: dict[str, list[dict[str, Any]]] = json.loads(path.read_text("utf-8"))
    for designs in data.values():
        yield from (row for row in designs if "error" not in row)


def relative(estimate: float, achieved: float) -> float:
    """Signed relative error; a figure that is 0 must be estimated as 0."""
    if not achieved:
        return 0.0 if not estimate else float("inf")
    return estimate / achieved - 1


def summary(designs: list[dict[str, Any]]) -> dict[str, tuple[float, float, float]]:
    """For each figure, in per cent: the median of |error|, its largest, the median of the signed error."""
    out: dict[str, tuple[float, float, float]] = {}
    for figure in FIGURES:
        errors = [100 * relative(row["estimate"][figure], row[figure]) for row in designs]
        sizes = [abs(error) for error in errors]
        out[figure] = (statistics.median(sizes), max(sizes), statistics.median(errors))
    return out


def main(arguments: list[str]) -> int:
    path = Path(arguments[0]) if arguments else RESULTS
    if not path.is_file():
        print(f"{path} is not there: run `python -m bench qor` first", file=sys.stderr)
        return 2
    designs = list(rows(path))
    for row in designs:
        shown = "  ".join(f"{f} {row['estimate'][f]}/{row[f]}" for f in FIGURES)
        print(f"{row['kernel']:10} {row['clock_mhz']:5.0f} MHz  {shown}")
    for figure, (middle, worst, bias) in summary(designs).items():
        print(f"{figure}: median error {middle:.1f} %, worst {worst:.1f} %, bias {bias:+.1f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
