"""The same source gives the same bytes in every process: graph file, plan and Verilog.

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


def _products(seed: int, programs: list[str]) -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", CHILD, *programs], cwd=ROOT, capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": str(ROOT)},
    )
    return json.loads(done.stdout)


def test_every_process_makes_the_same_bytes() -> None:
    first = _products(1, PROGRAMS)
    second = _products(2, PROGRAMS[::-1])
    assert sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name)) == []
    assert sum(name.endswith("verilog") for name in first) >= len(PROGRAMS)
