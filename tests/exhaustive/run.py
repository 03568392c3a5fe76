"""Every f32 input of elementary functions, in native code: ``python -m tests.exhaustive.run [NAME...]``.

The program of a function is printed as C++, run on all 2^32 inputs and compared with the host's libm in f64
wherever that decides the rounding with a margin; MPFR settles the close calls. It runs without the selections
that patch single inputs: those leave every other input as it is (a test shows that of the program), and the
inputs found misrounded are evaluated again with them. What came out is written to
``results/<name>.json``. Needs g++.
"""
from __future__ import annotations

import argparse
import hashlib
import json
import platform
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kera_hw.numerics import elementary, rounding
from kera_hw.numerics.arrays import Array
from kera_hw.numerics.elementary import narrow
from kera_hw.numerics.elementary.program import Trace, trace
from kera_hw.numerics.elementary.run import Runner
from kera_hw.numerics.floatbits import to_bits
from kera_hw.numerics.host import ieee
from kera_hw.types import F32
from tests.exhaustive import emit_cpp
from tests.exhaustive.oracle import correct

HERE = Path(__file__).parent
RESULTS = HERE / "results"
INPUTS = 1 << 32

# f64 expressions in libm functions; glibc states at most 1 ulp for exp exp2 log sin cos erf, 2 for log2 and
# tanh, 5 for erfc. The margin is over 1024 ulp; 4096 for gelu, where rounding x / sqrt 2 costs 210 more.
FILTERS: dict[str, str] = {
    **{name: f"{name}(x)" for name in ("exp", "exp2", "log", "log2", "sin", "cos", "tanh", "erf")},
    "sigmoid": "1.0 / (1.0 + exp(-x))",
    "gelu": "0.5 * x * erfc(-x * 0x1.6a09e667f3bcdp-1)",
    "silu": "x / (1.0 + exp(-x))",
}
MARGINS = {name: "0x1p-40" if name == "gelu" else "0x1p-42" for name in FILTERS}
FLAGS = ("-O3", "-mavx2", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math")

PRELUDE = """#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
static inline double to_real(uint64_t bits) { double x; memcpy(&x, &bits, 8); return x; }
static inline uint64_t to_bits(double x) { uint64_t bits; memcpy(&bits, &x, 8); return bits; }
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the native run printed: totals, and (input, result) of every input left to MPFR."""

    checked: int
    close: int
    different: int
    checksum: str
    inputs: Array
    results: Array


def unpatched(name: str) -> Trace:
    """A function's program without the selections that patch single inputs."""
    return trace(narrow.UNPATCHED[name])


def build(name: str, folder: Path, program: Trace | None = None) -> Path:
    """The native checker of a function, for its unpatched program or for another one."""
    source, binary = folder / f"{name}.cpp", folder / name
    text = emit_cpp.function(program or unpatched(name), "subject")
    source.write_text(PRELUDE + text + (HERE / "driver.cpp").read_text())
    defines = [f"-DFILTER={FILTERS[name]}", f"-DMARGIN={MARGINS[name]}"]
    if name in ("gelu", "silu"):
        defines.append("-DHALF_BELOW")
    subprocess.run(["g++", *FLAGS, *defines, str(source), "-o", str(binary), "-lm"], check=True)
    return binary


def program_digest(name: str) -> str:
    """What ties a record to the steps and constants that it was made with."""
    return hashlib.sha256(emit_cpp.function(unpatched(name), "subject").encode()).hexdigest()


def run(binary: Path, first: int, last: int) -> Outcome:
    """All inputs from first to last, as bits."""
    done = subprocess.run([str(binary), hex(first), hex(last)], check=True, capture_output=True, text=True)
    *rows, total = done.stdout.splitlines()
    _, checked, close, different, checksum = total.split()
    pairs = np.array([[int(field, 16) for field in row.split()[1:]] for row in rows], np.uint32)
    inputs, results = (pairs.reshape(-1, 2)[:, side].copy() for side in (0, 1))
    return Outcome(int(checked), int(close), int(different), checksum, inputs, results)


def misrounded(name: str, inputs: Array, results: Array) -> Array:
    """Those of the inputs (as bits) at which the result is not MPFR's."""
    wanted = to_bits(correct(name, inputs.view(np.float32), F32))
    return inputs[wanted != results]


def left_by_patches(name: str, inputs: Array) -> Array:
    """Those of the inputs that are misrounded by the patched function too."""
    return misrounded(name, inputs, to_bits(elementary.evaluate(name, inputs.view(np.float32), F32)))


@ieee
def same_as_numpy(name: str, binary: Path, count: int = 1 << 24) -> int:
    """Blocks, spread across all inputs, whose checksums differ between the native program and NumPy's run."""
    runner = Runner(unpatched(name))
    different = 0
    blocks = 16
    for block in range(blocks):
        first = block * (INPUTS // blocks) + (block * 0x123000) % (INPUTS // blocks // 2)
        bits = np.arange(first, first + count // blocks, dtype=np.uint64)
        inputs = rounding.widen(bits.astype(np.uint32).view(np.float32), F32)
        got = to_bits(rounding.narrow(runner(inputs), F32)).astype(np.uint64)
        mixed = (bits << np.uint64(32) | got) ^ np.uint64(0x9E3779B97F4A7C15)
        checksum = int((mixed * (bits * np.uint64(2) + np.uint64(1))).sum(dtype=np.uint64))
        different += run(binary, int(bits[0]), int(bits[-1])).checksum != f"{checksum:016x}"
    return different


def check(name: str) -> dict[str, Any]:
    """The record of a function: counts, misrounded inputs, seconds."""
    with tempfile.TemporaryDirectory() as folder:
        binary = build(name, Path(folder))
        unlike = same_as_numpy(name, binary)
        start, start_cpu = time.perf_counter(), _children_cpu_s()
        outcome = run(binary, 0, INPUTS - 1)
        seconds, cpu_s = time.perf_counter() - start, _children_cpu_s() - start_cpu
    patched = misrounded(name, outcome.inputs, outcome.results)
    wrong = left_by_patches(name, patched)
    return {
        "function": name,
        "type": "f32",
        "command": f"python -m tests.exhaustive.run {name}",
        "inputs": outcome.checked,
        "differences": len(wrong),
        "misrounded": _hexadecimal(wrong),
        "misrounded_before_patches": _hexadecimal(patched),
        "decided_by_libm": outcome.checked - len(outcome.inputs),
        "close_calls_settled_by_mpfr": len(outcome.inputs),
        "libm_unlike_result": outcome.different,
        "numpy_blocks_unlike_native": unlike,
        "checksum": outcome.checksum,
        "program_sha256": program_digest(name),
        "seconds": round(seconds, 1),
        "processor_seconds": round(cpu_s, 1),
        "machine": f"{_processor()}, 1 thread, {' '.join(platform.libc_ver())}",
    }


def _hexadecimal(inputs: Array) -> list[str]:
    return [f"{bits:08x}" for bits in inputs.tolist()[:100]]


def _children_cpu_s() -> float:
    """Processor seconds of the programs that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _processor() -> str:
    text = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    names = [line.split(":", 1)[1].strip() for line in text.splitlines() if line.startswith("model name")]
    return names[0] if names else platform.machine()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("names", nargs="*", help="functions; all if none is given")
    names: list[str] = parser.parse_args().names or list(elementary.FUNCTIONS)
    failed = False
    for name in names:
        record = check(name)
        print(json.dumps(record), flush=True)
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"{name}.json").write_text(json.dumps(record, indent=2) + "\n")
        failed |= bool(record["differences"] or record["numpy_blocks_unlike_native"])
        failed |= record["inputs"] != INPUTS
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
