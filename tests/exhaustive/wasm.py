"""Every f32 input of elementary functions in WebAssembly: ``python -m tests.exhaustive.wasm [NAME...]``.

Machines without fma have programs of their own, and WebAssembly is one of them. The sum of the results in
wasmtime must be that of the record against MPFR, as in ``machine``. What came out is in ``wasm.json``.
"""
from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from typing import Any

from kera_hw.numerics import elementary
from kera_hw.wasm.compile import compile_export
from kera_hw.wasm.engine import Instance
from kera_hw.wasm.program import WasmModule
from tests.exhaustive import machine, run

RECORD = run.HERE / "wasm.json"


def module_of(name: str) -> WasmModule:
    """The kernel that sums up a block of results."""
    return compile_export(machine.export_of(name))


def check(name: str) -> dict[str, Any]:
    """The record of a function."""
    module = module_of(name)
    instance = Instance(module)
    start = time.process_time()
    found = machine.total(instance, 0, run.INPUTS)
    return {
        "function": name, "type": "f32", "inputs": run.INPUTS, "checksum": f"{found:016x}",
        "equal": found == machine.expected(name), "program_sha256": run.program_digest(name),
        "balanced_sha256": machine.digest(name, fused=False),
        "module_sha256": hashlib.sha256(module.binary).hexdigest(),
        "processor_seconds": round(time.process_time() - start, 1),
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description="Every f32 input of elementary functions in WebAssembly.")
    parser.add_argument("names", nargs="*", help="functions; all if none is given")
    given = parser.parse_args()
    known: dict[str, dict[str, Any]] = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    for name in given.names or elementary.FUNCTIONS:
        known[name] = check(name)
        print(json.dumps(known[name]), flush=True)
        RECORD.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n")
    return 0 if all(row["equal"] for row in known.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
