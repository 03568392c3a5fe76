"""Errors of the f64 functions in units of the last place: ``python -m tests.exhaustive.wide [COUNT]``.

f64 has too many inputs to run all; the samples are of every size and thick where the functions are delicate.
The greatest errors are written to ``results/f64.json``.
"""
from __future__ import annotations

import json
import math
import sys
import time
from typing import Any

import gmpy2
import numpy as np

from kera_hw.numerics.arrays import Array
from kera_hw.numerics.elementary import FUNCTIONS, evaluate
from kera_hw.types import F64
from tests.exhaustive.oracle import REAL, WIDE
from tests.exhaustive.run import RESULTS

# The f64 nearest of all to a multiple of pi/2, the ends of ranges, least and greatest numbers.
EDGES = (
    6381956970095103.0 * 2.0**797, 709.782712893384, 709.7827128933841, -745.1332191019411,
    -745.1332191019412, -708.3964185322641, 5e-324, -5e-324, 2.2250738585072014e-308,
    1.7976931348623157e308, -1e-300, 5.9, 38.4, -38.4, 0.5, -0.5, 0.49999999999999994, 22.0, 1024.0,
    -1075.0, -1074.5, 2.0**-30, -(2.0**-30), 39.0, -39.0,
)


def samples(seed: int, count: int) -> Array:
    """About 8 * count finite f64 arguments."""
    random = np.random.default_rng(seed)
    parts = [
        random.integers(0, 1 << 64, count, dtype=np.uint64).view(np.float64),
        random.normal(0, 1, count) * np.exp(random.normal(0, 3, count)),
        random.uniform(-2, 2, count), random.uniform(-45, 45, count), random.uniform(-760, 760, count),
        1 + random.normal(0, 1, count) * 2.0 ** -random.integers(1, 52, count),
        random.integers(1, 1 << 20, count) * (math.pi / 2),
        np.ldexp(random.uniform(1, 2, count), random.integers(-1074, 1023, count)),
        np.array(EDGES),
    ]
    values = np.concatenate(parts)
    return values[np.isfinite(values)]


def error_ulp(name: str, x: float, got: float) -> float:
    """|got - f(x)| in units of the last place of f(x); infinite unless NaN and infinities agree."""
    exact = REAL[name](gmpy2.mpfr(x))
    nearest = float(exact)
    if not math.isfinite(nearest):
        return 0.0 if got == nearest or (math.isnan(got) and math.isnan(nearest)) else math.inf
    return float(abs(WIDE.sub(gmpy2.mpfr(got), exact)) / math.ulp(nearest))


def worst(name: str, inputs: Array) -> tuple[float, float]:
    """The greatest error, and the input that has it."""
    errors = [error_ulp(name, x, y) for x, y in zip(inputs.tolist(), evaluate(name, inputs, F64).tolist())]
    place = int(np.argmax(errors))
    return errors[place], float(inputs[place])


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    rows: dict[str, Any] = {}
    for seed, name in enumerate(FUNCTIONS):
        start = time.perf_counter()
        inputs = samples(1000 + seed, count)
        error, place = worst(name, inputs)
        rows[name] = {
            "inputs": len(inputs), "greatest_error_ulp": round(error, 4), "at": place.hex(),
            "seconds": round(time.perf_counter() - start, 1),
        }
        print(name, json.dumps(rows[name]), flush=True)
    record = {"command": f"python -m tests.exhaustive.wide {count}", "type": "f64", "functions": rows}
    (RESULTS / "f64.json").write_text(json.dumps(record, indent=2) + "\n")
    return int(any(row["greatest_error_ulp"] >= 1 for row in rows.values()))


if __name__ == "__main__":
    sys.exit(main())
