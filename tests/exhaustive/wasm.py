"""Elementary functions of f32 in WebAssembly on 2^26 inputs: ``python -m tests.exhaustive.wasm [NAME...]``.

The inputs are spread over all bit patterns. Their sum in wasmtime must be that of machine code, whose own
over all inputs is that of the record against MPFR (``machine``). What came out is written to ``wasm.json``.
"""
from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from typing import Any

from kera_hw.cpu_gpu.engine import best_level
from kera_hw.cpu_gpu.x86_64.machine import Level
from kera_hw.numerics import elementary
from kera_hw.wasm.compile import compile_export
from kera_hw.wasm.engine import Instance
from kera_hw.wasm.program import WasmModule
from tests.exhaustive import machine, run

RECORD = run.HERE / "wasm.json"
INPUTS = 1 << 26
FACTOR = 0x9E37_79B1
"""Odd, so that no two inputs are the same: the k-th is k times that, modulo 2^32."""


def module_of(name: str) -> WasmModule:
    """The kernel that sums up a block of results."""
    return compile_export(machine.export_of(name, FACTOR))


def check(name: str, level: Level) -> dict[str, Any]:
    """The record of a function, held against machine code of that level."""
    module = module_of(name)
    instance = Instance(module)
    start = time.process_time()
    found = machine.total(instance, 0, INPUTS)
    seconds = time.process_time() - start
    wanted = machine.total(machine.compiled(name, level, FACTOR), 0, INPUTS)
    return {
        "function": name, "type": "f32", "inputs": INPUTS, "checksum": f"{found:016x}",
        "equal": found == wanted, "program_sha256": run.program_digest(name),
        "module_sha256": hashlib.sha256(module.binary).hexdigest(), "processor_seconds": round(seconds, 1),
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description="2^26 f32 inputs of elementary functions in WebAssembly.")
    parser.add_argument("names", nargs="*", help="functions; all if none is given")
    given = parser.parse_args()
    level = best_level()
    if level is None:
        print("this processor has no machine code to compare with", file=sys.stderr)
        return 3
    known: dict[str, dict[str, Any]] = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    for name in given.names or elementary.FUNCTIONS:
        known[name] = check(name, level)
        print(json.dumps(known[name]), flush=True)
        RECORD.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n")
    return 0 if all(row["equal"] for row in known.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
