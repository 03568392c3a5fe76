"""Hardware's float units against SoftFloat and MPFR: their lowered graphs, and their Verilog simulated.

``python -m tests.conformance.float_units fma`` runs 2,000,000 edge-heavy vectors a format, any other
operation 1,000,000; every input of a 16-bit format for an operation of one operand. Each vector goes through
the lowered graph, run by the interpreter, and through the emitted Verilog, run by Verilator once unhindered
and once under random stalls. ``--folded`` does the same for the units of an initiation interval above 1;
``--only f64`` makes that format's rows anew and leaves the others.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kera_hw.driver.hardware import HardwareDesign
from kera_hw.driver.rtl_target import RtlExecutor
from kera_hw.driver.session import load_program
from kera_hw.driver.targets import TargetOptions
from kera_hw.interp import run_region
from kera_hw.rtl.lower.floats import iterative
from kera_hw.types import FloatType
from tests.conformance import arithmetic, identity, oracle, report
from tests.conformance.arithmetic import FORMATS, operands
from tests.conformance.report import Row
from tests.conformance.vectors import Bits, bits_dtype, every, values_of

SOURCES = {
    "add": "a + b", "sub": "a - b", "mul": "a * b", "div": "a / b", "fma": "fma(a, b, c)", "sqrt": "sqrt(a)",
    "recip": "recip(a)", "rsqrt": "rsqrt(a)",
}
ARITY = {"fma": 3, "add": 2, "sub": 2, "mul": 2, "div": 2, "sqrt": 1, "recip": 1, "rsqrt": 1}
FOLDED = {
    "div": iterative.initiation_interval_of_div, "recip": iterative.initiation_interval_of_div,
    "sqrt": iterative.initiation_interval_of_sqrt,
}
_CHUNK = 100_000


def source(op: str, kind: FloatType) -> str:
    """The program that is one unit."""
    params = ", ".join(f"{name}: {kind}" for name in "abc"[: ARITY[op]])
    return f"pub fn unit({params}) -> {kind} {{ {SOURCES[op]} }}\n"


def interval_of(op: str, kind: FloatType, folded: bool) -> int | None:
    """Cycles between items that are asked for."""
    return FOLDED[op](kind) if folded else None


def graph_of(record: str, row: Mapping[str, Any]) -> str:
    """Today's hash of what a row of ``rtl_<op>`` or ``rtl_<op>_folded`` is about."""
    op, folded = record.removeprefix("rtl_").removesuffix("_folded"), record.endswith("_folded")
    kind = next(kind for kind in FORMATS if kind.name == row["dtype"])
    return identity.lowered(source(op, kind), interval_of(op, kind, folded) or 1)


def executor_of(op: str, kind: FloatType, interval: int | None) -> RtlExecutor:
    """The unit as the compiler makes it from one line of source."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "unit.kera"
        path.write_text(source(op, kind))
        loaded = load_program(path)
    assert loaded.graph is not None, loaded.diagnostics
    return RtlExecutor(loaded.graph, loaded.graph.exports[0], TargetOptions(interval=interval))


def of_graph(design: HardwareDesign, kind: FloatType, columns: list[Bits]) -> Bits:
    """The lowered graph's results: on float leaves as the ports have them."""
    args = [values_of(column, kind) for column in columns]
    (result,) = run_region(design.flat.region, args, batch=len(columns[0]))
    return result.view(bits_dtype(kind))


def of_verilog(executor: RtlExecutor, kind: FloatType, columns: list[Bits]) -> Bits:
    """The simulated Verilog's results."""
    inputs = {name: values_of(column, kind) for name, column in zip("abc", columns)}
    return np.asarray(executor.run(inputs, len(columns[0]))).view(bits_dtype(kind))


def expected(op: str, kind: FloatType, columns: list[Bits]) -> tuple[str, Bits]:
    """The oracle's name and results."""
    by = oracle.mpfr(kind) if op in ("recip", "rsqrt") else oracle.unit(kind)
    return by.name, by.bits_out(oracle.apply(by, getattr(by, op), *columns))


def checks(op: str, kind: FloatType, count: int, folded: bool = False) -> Iterator[Row]:
    """Rows of the graph and of the Verilog."""
    executor = executor_of(op, kind, interval_of(op, kind, folded))
    complete = ARITY[op] == 1 and kind.width_bits == 16 and count >= 1 << 16
    name, total = "", 0
    wrong = {"model": 0, "rtl": 0}
    rng = np.random.default_rng(kind.width_bits * 100 + kind.exponent_bits)
    whole = 1 << 16 if complete else count
    while total < whole:
        size = min(_CHUNK, whole - total)
        columns = [every(kind)] if complete else operands(kind, ARITY[op], size, rng)
        name, want = expected(op, kind, columns)
        wrong["model"] += int(np.count_nonzero(of_graph(executor.design, kind, columns) != want))
        wrong["rtl"] += int(np.count_nonzero(of_verilog(executor, kind, columns) != want))
        total += len(want)
    note = f"folded, interval {executor.design.plan.initiation_interval}" if folded else ""
    for where, differences in wrong.items():
        graph = identity.digits(executor.design.flat.region)
        yield Row(f"floating.{op}", kind.name, name, total, differences, complete, where, note, graph)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("operations", nargs="+", choices=sorted(SOURCES))
    parser.add_argument("--folded", action="store_true")
    parser.add_argument("--only", choices=[kind.name for kind in FORMATS], action="append", default=[])
    parser.add_argument("--count", type=int, default=arithmetic.LONG)
    asked = parser.parse_args(arguments)
    differences = 0
    for op in asked.operations:
        count = asked.count * (2 if op == "fma" else 1)
        kinds = [kind for kind in FORMATS if not asked.only or kind.name in asked.only]
        rows = (row for kind in kinds for row in checks(op, kind, count, asked.folded))
        name = f"rtl_{op}_folded" if asked.folded else f"rtl_{op}"
        command = f"python -m tests.conformance.float_units {op}{' --folded' if asked.folded else ''}"
        whole = len(kinds) == len(FORMATS)
        differences += report.write(name, rows, command) if whole else report.replace(name, rows)
    return int(differences != 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
