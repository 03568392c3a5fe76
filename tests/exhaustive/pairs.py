"""Every pair of operands of f16 and bf16 in native code: ``python -m tests.exhaustive.pairs [OP KIND]``.

The native program of an operation (``kera_hw.legal``) is printed as C++, run on all 2^32 pairs and compared
with double arithmetic rounded to the format. What came out is written to ``results/pairs.json``, beside the
hash of the program. Needs g++.
"""
from __future__ import annotations

import hashlib
import json
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from kera_hw.legal.legalise import legalise
from kera_hw.loops.program import LoopProgram
from kera_hw.types import BF16, F16, FloatType
from tests.exhaustive import native_cpp
from tests.legal_cases import case, program_of

HERE = Path(__file__).parent
RECORD = HERE / "results" / "pairs.json"
PAIRS = 1 << 32
WANTED = {"add": "x + y", "sub": "x - y", "mul": "x * y", "div": "x / y"}
KINDS = {"f16": F16, "bf16": BF16}
FLAGS = ("-std=c++17", "-O3", "-mavx2", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math")
PRELUDE = "#include <cmath>\n#include <cstdint>\n"


class Outcome(NamedTuple):
    """What the native run printed."""

    checked: int
    different: int
    checksum: str
    examples: tuple[str, ...]


def program(verb: str, kind: FloatType) -> LoopProgram:
    """The operation as it is for a machine with the native set alone."""
    return legalise(program_of(case(f"floating.{verb}", (kind, kind))))


def build(verb: str, kind: FloatType, folder: Path, subject: LoopProgram | None = None) -> Path:
    """The checker of an operation, for its program or for another one."""
    source, binary = folder / f"{verb}.cpp", folder / verb
    text = native_cpp.function(subject or program(verb, kind), "subject")
    source.write_text(PRELUDE + text + (HERE / "pairs.cpp").read_text())
    least = 2 - (1 << (kind.exponent_bits - 1))
    defines = [f"-DWANTED={WANTED[verb]}", f"-DPRECISION={kind.fraction_bits + 1}", f"-DLEAST=({least})"]
    subprocess.run(["g++", *FLAGS, *defines, str(source), "-o", str(binary)], check=True)
    return binary


def run(binary: Path, first: int, last: int) -> Outcome:
    """All pairs of the first operands from ``first`` to ``last``, as bits."""
    done = subprocess.run([str(binary), str(first), str(last)], check=True, capture_output=True, text=True)
    *rows, total = done.stdout.splitlines()
    _, checked, different, checksum = total.split()
    return Outcome(int(checked), int(different), checksum, tuple(rows))


def digest(verb: str, kind: FloatType) -> str:
    """What ties a record to the program that it was made with."""
    return hashlib.sha256(native_cpp.function(program(verb, kind), "subject").encode()).hexdigest()


def check(verb: str, kind: FloatType) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        binary = build(verb, kind, Path(folder))
        start = time.perf_counter()
        outcome = run(binary, 0, 0xFFFF)
        seconds = time.perf_counter() - start
    return {
        "op": f"floating.{verb}", "type": kind.name,
        "executor": "native code", "oracle": "double arithmetic rounded once more",
        "command": f"python -m tests.exhaustive.pairs {verb} {kind.name}", "inputs": outcome.checked,
        "exhaustive": outcome.checked == PAIRS, "differences": outcome.different,
        "examples": list(outcome.examples), "checksum": outcome.checksum,
        "program_sha256": digest(verb, kind), "seconds": round(seconds, 1), "machine": platform.machine(),
    }


def main(arguments: list[str]) -> int:
    """Runs what is asked for, or everything, and keeps the record of the rest."""
    wanted = [(verb, kind) for verb in WANTED for kind in KINDS]
    if arguments:
        wanted = [(arguments[0], arguments[1])]
    kept: list[dict[str, Any]] = json.loads(RECORD.read_text()) if RECORD.exists() else []
    rows = {(row["op"], row["type"]): row for row in kept}
    for verb, kind in wanted:
        row = check(verb, KINDS[kind])
        print(row)
        rows[row["op"], row["type"]] = row
        RECORD.write_text(json.dumps([rows[key] for key in sorted(rows)], indent=2) + "\n")
    return int(any(row["differences"] for row in rows.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
