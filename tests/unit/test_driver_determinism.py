"""The same source gives the same bytes in every process: graph file, plan, Verilog and code for software.

Two fresh processes with different string hashing compile the same programs in opposite orders, so nothing
may hang on the order of a set, on object addresses or on what was compiled before.
"""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = [
    "tests/programs/arithmetic.kera", "tests/programs/language/streams.kera",
    "tests/programs/language/records.kera",
]
SOFTWARE = ["examples/fir.kera", "examples/sobel_window.kera", "bench/programs/collatz.kera"]
SOFTWARE_CHILD = """
import hashlib, json, sys
from pathlib import Path
from kera_hw.cpu_gpu.amdgcn.compile import compile_export as amdgcn
from kera_hw.cpu_gpu.architectures import LEVELS
from kera_hw.cpu_gpu.engine import compile_export as machine_code
from kera_hw.cpu_gpu.ptx.compile import compile_export as ptx
from kera_hw.driver.session import load_program
from kera_hw.driver.software import to_compile
from kera_hw.wasm.compile import compile_export as wasm

found = {}
for path in sys.argv[1:]:
    loaded = load_program(Path(path))
    for export in loaded.graph.exports:
        made = to_compile(loaded.graph, export)
        products = {
            "wasm": wasm(made).binary, "ptx": ptx(made).text.encode(), "amdgcn": amdgcn(made).text.encode(),
            **{level.name: machine_code(made, level=level).machine.code for level in LEVELS},
        }
        for target, data in products.items():
            found[f"{path} {export.name} {target}"] = hashlib.sha256(bytes(data)).hexdigest()
print(json.dumps(found))
"""
CHILD = """
import hashlib, json, sys
from pathlib import Path
from kera_hw.driver.build import full_plan
from kera_hw.driver.hardware import design_hardware
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.session import load_program
from kera_hw.graph import print_graph, write_keg
from kera_hw.support import KeraError

found = {}
def note(key, data):
    found[key] = hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()

for path in sys.argv[1:]:
    loaded = load_program(Path(path))
    note(path + " keg", write_keg(loaded.graph))
    note(path + " text", print_graph(loaded.graph))
    for export in loaded.graph.exports:
        try:
            design = design_hardware(loaded.graph, export, TargetOptions())
        except KeraError as fault:
            note(f"{path} {export.name} refusal", str(fault))
            continue
        note(f"{path} {export.name} plan", json.dumps(full_plan(design)))
        note(f"{path} {export.name} verilog", design.emitted.verilog)
print(json.dumps(found))
"""


def _products(seed: int, programs: list[str], child: str = CHILD) -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", child, *programs], cwd=ROOT, capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": str(ROOT)},
    )
    return json.loads(done.stdout)


def test_every_process_makes_the_same_bytes() -> None:
    first = _products(1, PROGRAMS)
    second = _products(2, PROGRAMS[::-1])
    assert sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name)) == []
    assert sum(name.endswith("verilog") for name in first) >= len(PROGRAMS)


def test_every_process_makes_the_same_code_for_software() -> None:
    first = _products(1, SOFTWARE, SOFTWARE_CHILD)
    second = _products(2, SOFTWARE[::-1], SOFTWARE_CHILD)
    assert sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name)) == []
    assert len(first) >= 8 * len(SOFTWARE)
