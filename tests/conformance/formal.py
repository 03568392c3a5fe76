"""Proofs of the float units for all inputs: `python -m tests.conformance.formal [UNIT...] [--limit S]`.

A unit is `add-f16`, `mul-bf16`, ...; each is proved as lowered graph and as emitted Verilog against SMT-LIB's
theory of IEEE 754. The rows go to results/formal.json, where those of other units stay as they are, and the
table in docs/reference/formal.md is made of them.
"""
from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kera_hw.driver.formal import design_levels, verdict_row
from kera_hw.driver.hardware import design_hardware
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.session import compile_text
from kera_hw.rtl.formal.implementation import Implementation
from kera_hw.rtl.formal.proof import check
from kera_hw.rtl.formal.search import Strategy
from kera_hw.support import SourceFile
from tests.conformance import identity

RESULTS = Path(__file__).parent / "results" / "formal.json"

_BODIES = {
    "add": ("a: {t}, b: {t}", "a + b"),
    "mul": ("a: {t}, b: {t}", "a * b"),
    "fma": ("a: {t}, b: {t}, c: {t}", "fma(a, b, c)"),
}
# A product is decided once its operands' leading ones are known: then both sides multiply the same numbers.
_SUM, _PRODUCT = Strategy(1.0), Strategy(0.0, 0.0, 60.0)
_STRATEGIES = {
    "add-f16": _SUM, "add-bf16": _SUM, "add-f32": Strategy(0.0, 20.0, 60.0),
    "mul-f16": _PRODUCT, "mul-bf16": _PRODUCT, "mul-f32": _PRODUCT,
    "fma-f16": Strategy(0.0, 10.0, 300.0, inputs=2), "fma-bf16": Strategy(0.0, 10.0, 300.0, inputs=2),
}

_KINDS = ("f16", "bf16", "f32")
UNITS = tuple(f"{op}-{kind}" for op in _BODIES for kind in _KINDS if (op, kind) != ("fma", "f32"))
LEVELS = ("graph", "netlist")


def source(unit: str) -> str:
    """The program that is one unit."""
    op, kind = unit.split("-")
    params, body = _BODIES[op]
    return f"pub fn {op}_{kind}({params.format(t=kind)}) -> {kind} {{ {body} }}\n"


def graph_of(_record: str, row: Mapping[str, Any]) -> str:
    """Today's hash of what a row is about."""
    return identity.lowered(source(row["unit"]))


def prove_unit(unit: str, levels: Sequence[str], limit_s: float) -> list[dict[str, Any]]:
    """One row for each level."""
    loaded = compile_text(SourceFile(f"{unit}.kera", source(unit).encode()), Path("."))
    assert loaded.graph is not None, loaded.diagnostics
    export = loaded.graph.exports[0]
    design = design_hardware(loaded.graph, export, TargetOptions(interface="none"))
    rows: list[dict[str, Any]] = []
    reference: Implementation | None = None
    for name, implementation in zip(LEVELS, design_levels(design)):
        if name not in levels:
            continue
        start, cpu = time.monotonic(), time.process_time()
        strategy = _STRATEGIES[unit]
        verdict = check(export, implementation, limit_s, strategy=strategy, reference=reference)
        reference = implementation if verdict.outcome == "proved" else None
        rows.append({
            "unit": unit,
            **verdict_row(verdict),
            "level": name,
            "against": verdict.through or "SMT-LIB FloatingPoint, RNE",
            "all_s": round(time.monotonic() - start, 1),
            "cpu_s": round(time.process_time() - cpu, 1),
            "fingerprint": loaded.graph.fingerprint,
            "graph": identity.digits(design.flat.region),
        })
        print(f"{unit} {name}: {verdict.outcome}, {verdict.cases} cases, {verdict.seconds:.1f} s", flush=True)
    return rows


def record(rows: Sequence[dict[str, Any]], command: str) -> None:
    """Put rows in the place of those of the same unit and level."""
    known = json.loads(RESULTS.read_text("utf-8"))["rows"] if RESULTS.exists() else []
    merged = {(row["unit"], row["level"]): row for row in [*known, *rows]}
    order = sorted(merged, key=lambda key: (UNITS.index(key[0]), LEVELS.index(key[1])))
    data = {"command": command, "machine": platform.machine(), "rows": [merged[key] for key in order]}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the proofs asked for; the status is 1 if one was refuted."""
    parser = argparse.ArgumentParser(description="Prove the float units for all inputs.")
    parser.add_argument("units", nargs="*", metavar="UNIT", help=", ".join(UNITS))
    parser.add_argument("--limit", type=float, default=3600.0, help="seconds a proof")
    parser.add_argument("--level", choices=LEVELS, help="only this one")
    chosen = parser.parse_args(arguments)
    refuted = False
    for unit in chosen.units or UNITS:
        rows = prove_unit(unit, [chosen.level] if chosen.level else LEVELS, chosen.limit)
        record(rows, "python -m tests.conformance.formal")
        refuted = refuted or any(row["result"] in ("refuted", "unconfirmed") for row in rows)
    return int(refuted)


if __name__ == "__main__":
    sys.exit(main())
