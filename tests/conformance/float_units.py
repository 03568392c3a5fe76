"""Run the lowered graphs of float units on many edge-heavy operands against SoftFloat and MPFR.

    .venv/bin/python -m tests.conformance.float_units fma 2000000 [f32 ...]

Part of ``make check-long``. One row per operation and format goes to ``results/float_units.json``.
"""
from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from kera_hw.rtl.lower.floats.divide import lower_div, lower_recip
from kera_hw.rtl.lower.floats.fma import lower_fma
from kera_hw.rtl.lower.floats.sqrt import lower_rsqrt, lower_sqrt
from kera_hw.types import FloatType
from tests.unit.floatrtl_support import ARITY, FORMATS, Lowering, foreign, operands, oracle_name, run, unit

RESULTS = Path(__file__).parent / "results" / "float_units.json"
UNITS: dict[str, Lowering] = {
    "fma": lower_fma, "div": lower_div, "recip": lower_recip, "sqrt": lower_sqrt, "rsqrt": lower_rsqrt,
}
_CHUNK = 100_000


def compare(op: str, kind: FloatType, count: int) -> dict[str, object]:
    """One row of the table; the first few differences are listed."""
    begun = time.monotonic()
    region = unit(UNITS[op], kind, ARITY[op])
    wrong: list[list[str]] = []
    differences = done = 0
    while done < count:
        size = min(_CHUNK, count - done)
        columns = operands(kind, ARITY[op], size, seed=1000 + done)
        for *row, got, want in zip(*columns, run(region, kind, columns), foreign(op, kind, columns)):
            if got != want:
                differences += 1
                if len(wrong) < 8:
                    wrong.append([f"{word:x}" for word in (*row, got, want)])
        done += size
    return {
        "operation": op, "type": kind.name, "executor": "lowered graph", "oracle": oracle_name(op, kind),
        "method": "random, edge-heavy", "vectors": count, "differences": differences, "wrong": wrong,
        "seconds": round(time.monotonic() - begun, 1),
        "command": f"python -m tests.conformance.float_units {op} {count} {kind.name}",
    }


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("operation", choices=sorted(UNITS))
    parser.add_argument("count", type=int)
    parser.add_argument("types", nargs="*")
    asked = parser.parse_args(arguments)
    failed = 0
    for kind in FORMATS:
        if asked.types and kind.name not in asked.types:
            continue
        row = compare(asked.operation, kind, asked.count)
        failed += row["differences"] != 0
        print(json.dumps(row), flush=True)
        rows = json.loads(RESULTS.read_text()) if RESULTS.is_file() else []
        key = (row["operation"], row["type"])
        rows = [old for old in rows if (old["operation"], old["type"]) != key]
        rows = sorted([*rows, row], key=lambda item: (item["operation"], item["type"]))
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(rows, indent=1) + "\n")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
