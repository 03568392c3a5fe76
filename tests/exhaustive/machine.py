"""Every f32 input of elementary functions in machine code: ``python -m tests.exhaustive.machine [NAME...]``.

A function is compiled as a user's is, in a kernel that also sums up its results, so that 2^32 inputs take
seconds. The sum must be that of the record that was made against MPFR (``run``), with the terms of the inputs
that patches put right exchanged. What came out is written to ``machine.json``.
"""
from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from kera_hw.cpu_gpu.architectures import LEVELS
from kera_hw.cpu_gpu.engine import Instance, best_level, compile_export
from kera_hw.cpu_gpu.machine.level import Level
from kera_hw.driver.session import load_program
from kera_hw.driver.software import to_compile
from kera_hw.graph import Export, Graph
from kera_hw.numerics import elementary, rounding
from kera_hw.numerics.arrays import Array
from kera_hw.numerics.elementary.run import Runner
from kera_hw.numerics.floatbits import to_bits
from kera_hw.types import F32
from tests.exhaustive import emit_cpp, run

RECORD = run.HERE / "machine.json"
BLOCK = 1 << 12
_ITEMS = 1 << 10
"""Blocks a call."""
_MASK = (1 << 64) - 1
_MIX = 0x9E37_79B9_7F4A_7C15


class Runs(Protocol):
    """What runs a compiled kernel."""

    def run(self, params: Sequence[Array], items: int, /) -> list[Array]: ...


def source(name: str) -> str:
    """The sum over a block of inputs from ``first`` on, as ``run`` has it."""
    return f"""pub fn total(first: u32) -> u64 {{
    let bits = iota::<u32, {BLOCK}>() + first;
    let found = bitcast::<u32>({name}(bitcast::<f32>(bits))) as u64;
    let input = bits as u64;
    sum((((input << 32) | found) ^ {_MIX:#x}) * (input * 2 + 1))
}}
"""


def export_of(name: str) -> Export:
    """The kernel, as a target compiles it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "total.kera"
        path.write_text(source(name), encoding="utf-8")
        loaded = load_program(path)
    assert loaded.graph is not None, loaded.diagnostics
    graph: Graph = loaded.graph
    return to_compile(graph, graph.exports[0])


def compiled(name: str, level: Level) -> Instance:
    return Instance(compile_export(export_of(name), level=level))


def total(instance: Runs, first: int, count: int) -> int:
    """Over ``count`` inputs, which are whole blocks."""
    whole = 0
    for start in range(first, first + count, BLOCK * _ITEMS):
        end = min(start + BLOCK * _ITEMS, first + count)
        starts = np.arange(start, end, BLOCK, dtype=np.uint64).astype(np.uint32)
        (sums,) = instance.run([starts], len(starts))
        whole += int(sums.sum(dtype=np.uint64))
    return whole & _MASK


def terms(inputs: Array, results: Array) -> int:
    """What the inputs (as bits) with those results (as bits) add to the sum."""
    pairs = zip(inputs.tolist(), results.tolist(), strict=True)
    return sum(((x << 32 | y) ^ _MIX) * (2 * x + 1) for x, y in pairs) & _MASK


def expected(name: str) -> int:
    """The recorded sum, of which the patched inputs' terms are exchanged."""
    record = json.loads((run.RESULTS / f"{name}.json").read_text())
    inputs = np.array([int(bits, 16) for bits in record["misrounded_before_patches"]], np.uint32)
    if not len(inputs):
        return int(record["checksum"], 16)
    values = inputs.view(np.float32)
    before = to_bits(rounding.narrow(Runner(run.unpatched(name))(rounding.widen(values, F32)), F32))
    after = to_bits(elementary.evaluate(name, values, F32))
    return (int(record["checksum"], 16) - terms(inputs, before) + terms(inputs, after)) & _MASK


def digest(name: str, fused: bool) -> str:
    """Of the program, patches and all, that machines have in place of the one against MPFR."""
    text = emit_cpp.function(elementary.machine_program(name, fused), "subject")
    return hashlib.sha256(text.encode()).hexdigest()


def check(name: str, level: Level) -> dict[str, Any]:
    """The record of a function."""
    instance = compiled(name, level)
    start = time.process_time()
    found = total(instance, 0, run.INPUTS)
    return {
        "function": name, "type": "f32", "level": level.name, "inputs": run.INPUTS,
        "checksum": f"{found:016x}", "equal": found == expected(name),
        "program_sha256": run.program_digest(name), "fused_sha256": digest(name, fused=True),
        "processor_seconds": round(time.process_time() - start, 1),
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description="Every f32 input of elementary functions in machine code.")
    parser.add_argument("names", nargs="*", help="functions; all if none is given")
    parser.add_argument("--level", choices=[level.name for level in LEVELS], help="the best if none is given")
    given = parser.parse_args()
    level = next((item for item in LEVELS if item.name == given.level), best_level())
    if level is None:
        print("this processor has none of the levels", file=sys.stderr)
        return 3
    known: dict[str, dict[str, Any]] = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    for name in given.names or elementary.FUNCTIONS:
        known[name] = check(name, level)
        print(json.dumps(known[name]), flush=True)
        RECORD.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n")
    return 0 if all(row["equal"] for row in known.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
