"""Compile time, warm: what a user waits for.

    python -m bench compile [--runs 3] [--only NAME] [-o bench/results/compile.json]

A row is a whole `kera` process, or machine code made in this one (`jit`, from the graph of a kernel of
`python -m bench cpu` to its bytes). `cpu_s` is what was computed (user + system), `wall_s` what passed on the
clock; the least of the runs counts, since everything above it is the machine's other work. Modules come from
a cache of bytecode, as they do where the package is installed.
"""
from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import kera_hw
from kera_hw.cpu_gpu.engine import compile_export
from kera_hw.driver.software import to_compile

HERE = Path(__file__).parent
ROOT = HERE.parent
# Programs beside the checkout where they exist, else the project's own of the same size.
SHARED = ROOT.parent / "shared" / "programs"
LARGE = HERE / "large"
"""Programs too large for one pipeline: planned with their loops kept, or refused, at once."""
LETS = 3300
LIMITS_S = {
    "check sha256": 1.0, "build sha256": 10.0, "build fir": 2.0, f"check {LETS:,} lets": 1.0, "--help": 0.25,
    "plan dot1024": 2.0, "plan matmul64": 2.0, "plan sobel640": 2.0,
    "plan dot1024 lanes": 2.0, "plan dot1024 f32 lanes": 2.0,
}
JIT_LIMIT_S = 0.05
"""Of every kernel."""
KERNELS = HERE / "data" / "cpu.kera"
REFUSED = 1
LANES = """/// Inner products of 1,024 pairs, in the order of lanes.
pub fn dot1024(x: [i16; 1024], y: [i16; 1024]) -> i42 { sum(mul_wide(x, y) as i42, order: lanes) }
pub fn dot1024_f32(x: [f32; 1024], y: [f32; 1024]) -> f32 { sum(x * y, order: lanes) }
"""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench compile", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="", help="rows whose name holds this")
    parser.add_argument("-o", "--out", type=Path, default=HERE / "results" / "compile.json")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as bytecode:
        rows = {
            name: measure(command, options.runs, bytecode)
            for name, command in commands().items() if options.only in name
        }
    rows |= machine_code(options.runs, options.only)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(rows, indent=1) + "\n")
    table = summary(rows)
    options.out.with_suffix(".md").write_text(table)
    print(table)
    return 0


def commands() -> dict[str, list[str]]:
    """The measured command lines, by row name."""
    sha, fir = program("sha256.kera"), program("fir.kera")
    verilog = ["--emit", "verilog", "-o", "OUT"]
    large = {f"plan {path.stem}": ["plan", str(path)] for path in sorted(LARGE.glob("*.kera"))}
    return {
        "--help": ["--help"],
        "check sha256": ["check", sha],
        "build sha256": ["build", sha, "--fn", "compress", *verilog],
        "build fir": ["build", fir, "--fn", "fir", *verilog],
        f"check {LETS:,} lets": ["check", "LETS"],
        "plan dot1024 lanes": ["plan", "LANES", "--fn", "dot1024"],
        "plan dot1024 f32 lanes": ["plan", "LANES", "--fn", "dot1024_f32"],
        **large,
    }


def lets(count: int) -> str:
    """A function of so many statements, each of which reads an element at a constant place."""
    rows = [f"    let a{k} = a{k - 1} ^ t[{k * 7 % 64}];" for k in range(1, count)]
    return "\n".join([
        "pub fn lets(t: [i32; 64], b: i32) -> i32 {", "    let a0 = b;", *rows, f"    a{count - 1}", "}", "",
    ])


def program(name: str) -> str:
    """A program of the shared folder, or the project's own of that name."""
    places = [SHARED / name, *ROOT.glob(f"examples/{name}"), *ROOT.glob(f"tests/programs/**/{name}")]
    return str(next(path for path in places if path.is_file()))


def measure(command: list[str], runs: int, bytecode: str) -> dict[str, float]:
    """Least wall-clock and CPU seconds over the runs, after one run that warms caches."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    walls: list[float] = []
    cpus: list[float] = []
    for number in range(runs + 1):
        with tempfile.TemporaryDirectory() as out:
            places = {"OUT": out, "LETS": f"{out}/lets.kera", "LANES": f"{out}/lanes.kera"}
            Path(places["LETS"]).write_text(lets(LETS), encoding="utf-8")
            Path(places["LANES"]).write_text(LANES, encoding="utf-8")
            argv = [sys.executable, "-m", "kera_hw.cli.main", *(places.get(a, a) for a in command)]
            before, start = _children_cpu_s(), time.perf_counter()
            done = subprocess.run(
                argv, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            wanted = (0, REFUSED) if command[0] == "plan" else (0,)
            assert done.returncode in wanted, f"{command} ended with {done.returncode}"
            if number:
                walls.append(time.perf_counter() - start)
                cpus.append(_children_cpu_s() - before)
    load = round(os.getloadavg()[0], 1)
    return {"wall_s": round(min(walls), 3), "cpu_s": round(min(cpus), 3), "load": load}


def machine_code(runs: int, only: str) -> dict[str, dict[str, float]]:
    """Machine code of each kernel for this processor, its graph in hand."""
    graph = kera_hw.load(KERNELS).graph
    found: dict[str, dict[str, float]] = {}
    for export in graph.exports:
        name = f"jit {export.name}"
        if only not in name:
            continue
        times: list[tuple[float, float]] = []
        for _ in range(runs + 1):
            wall_s, cpu_s = time.perf_counter(), time.process_time()
            compile_export(to_compile(graph, export))
            times.append((time.perf_counter() - wall_s, time.process_time() - cpu_s))
        walls, cpus = zip(*times[1:])
        load = round(os.getloadavg()[0], 1)
        found[name] = {"wall_s": round(min(walls), 4), "cpu_s": round(min(cpus), 4), "load": load}
    return found


def _children_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def summary(rows: dict[str, dict[str, float]]) -> str:
    lines = ["# Compile time", "", "Written by `python -m bench compile`; warm, least of the runs.", "",
             "| command | wall, s | CPU, s | limit, s |", "|---|---|---|---|"]
    for name, row in rows.items():
        limit, title = (JIT_LIMIT_S, name) if name.startswith("jit ") else (LIMITS_S[name], f"kera {name}")
        lines.append(f"| {title} | {row['wall_s']} | {row['cpu_s']} | {limit} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
