"""Machine code against libraries that people would call instead, on one core.

    OPENBLAS_NUM_THREADS=1 python -m bench cpu [--only NAME] [--lines FILE] [-o bench/results/cpu.json]

Every kernel is compiled for this processor and timed beside NumPy's operations on the same arrays, in the
time of one thread; the least of the runs counts. With ``--lines`` nothing is timed: the rows are those of
another program's run, a JSON object a line with `peer`, `kernel` and `cpu_min_us`, in which ours are called
`plugin` (``plugin()`` gives them). What is written down are ratios: how often our time goes into another's.
"""
from __future__ import annotations

import argparse
import json
import sys
import time
import zlib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import kera_hw
from kera_hw.graph import Export
from kera_hw.types import TensorType, numpy_dtype

HERE = Path(__file__).parent
SOURCE = HERE / "data" / "cpu.kera"
OURS = "plugin"
_NAMES = {"softmax": "soft_max"}
"""Kernels that are called otherwise in the source, where the built-in has the name."""
_LEAST_S = 0.01
_RUNS = 7
Inputs = Mapping[str, Any]
Run = Callable[[], Any]


def plugin() -> dict[str, Callable[[Inputs], Run]]:
    """By kernel what takes its inputs by name and gives a call without arguments."""
    program = kera_hw.load(SOURCE)
    called = {inner: outer for outer, inner in _NAMES.items()}
    return {called.get(item.name, item.name): _factory(program, item) for item in program.graph.exports}


def _factory(program: kera_hw.Program, export: Export) -> Callable[[Inputs], Run]:
    def factory(inputs: Inputs) -> Run:
        function = program.function(export.name, target="cpu", threads=1)
        given = {sys.intern(name): inputs[name] for name, _ in export.params}  # as in a call's text
        shapes = dict(export.params)
        for name, value in given.items():  # an axis of one image is none of ours
            wanted = shapes[name]
            if isinstance(wanted, TensorType):  # a message may be in words of another length
                words = np.ascontiguousarray(value).view(numpy_dtype(wanted.element))
                given[name] = words.reshape(wanted.shape)
        first = function(**given)
        if not isinstance(first, np.ndarray):
            return lambda: function(**given)
        return lambda: function(**given, out=first)

    return factory


def _inputs(name: str, random: np.random.Generator) -> dict[str, Any]:
    """As the parameters' types have it; floats of moderate size, positive where a root or log needs it."""
    program = kera_hw.load(SOURCE)
    export = next(item for item in program.graph.exports if item.name == _NAMES.get(name, name))
    low = 0.1 if name in ("bs_1m", "sum_16m") else -2.0
    found: dict[str, Any] = {}
    for parameter, kind in export.params:
        shape, element = getattr(kind, "shape", ()), str(getattr(kind, "element", kind))
        if element == "f32":
            found[parameter] = np.asarray(random.uniform(low, 2.0, shape), np.float32)[()]
        else:
            limits = np.iinfo({"i": "int", "u": "uint"}[element[0]] + element[1:])
            found[parameter] = random.integers(limits.min, limits.max, shape, limits.dtype, endpoint=True)
    return found


def _softmax(x: Any) -> Any:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def _layernorm(x: Any, g: Any, b: Any) -> Any:
    d = x - x.mean(1, keepdims=True)
    return d / np.sqrt((d * d).mean(1, keepdims=True) + np.float32(1e-5)) * g + b


def _fir(x: Any, h: Any) -> Any:
    wide, total = x.astype(np.int32), np.zeros(len(x) - 15, np.int32)
    for k in range(16):
        total += wide[k : k + len(total)] * np.int32(h[k])
    return total


def _hash(x: Any, k: Any) -> Any:
    for one in k:
        x = ((x >> 7 | x << 25) ^ (x >> 18 | x << 14) ^ x >> 3) + one
    return x


def _gelu(x: Any) -> Any:
    inner = (x + x * x * x * np.float32(0.044715)) * np.float32(0.7978845608028654)
    return x * np.float32(0.5) * (np.tanh(inner) + np.float32(1))


def _mlp(x: Any, W1: Any, b1: Any, W2: Any, b2: Any, W3: Any, b3: Any) -> Any:
    return np.maximum(np.maximum(x @ W1 + b1, 0) @ W2 + b2, 0) @ W3 + b3


def _matmul(A: Any, B: Any) -> Any:
    return A @ B


def _matmul_int(A: Any, B: Any) -> Any:
    return np.matmul(A, B, dtype=np.int32)


def _crc(x: Any) -> Any:
    return zlib.crc32(x)


def _chain(x: Any, a: Any, b: Any, c: Any) -> Any:
    return np.maximum(x * a + b, 0) * c


NUMPY: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("ew_1m", "ew_16k"), _chain),
    **dict.fromkeys(("mm_f32_256", "mm_f32_512", "mm_f32_1024"), _matmul),
    "mm_i8_512": _matmul_int,
    "softmax": _softmax, "layernorm": _layernorm, "sum_16m": np.sum, "fir16": _fir, "exp_1m": np.exp,
    "tanh_1m": np.tanh, "crc32": _crc, "gelu_1m": _gelu, "hash16": _hash, "mlp_b1": _mlp, "mlp_b64": _mlp,
}


def _least_us(run: Run) -> float:
    run()
    rounds, least = 1, float("inf")
    for _ in range(_RUNS):
        while True:
            start = time.process_time()
            for _ in range(rounds):
                run()
            passed = time.process_time() - start
            if passed >= _LEAST_S:
                break
            rounds = max(rounds + 1, int(rounds * min(20.0, 1.2 * _LEAST_S / max(passed, 1e-6))))
        least = min(least, passed / rounds)
    return least * 1e6


def measured(only: str) -> list[dict[str, Any]]:
    """A row a kernel and a peer; both in one process, one after the other."""
    rows: list[dict[str, Any]] = []
    for name, factory in plugin().items():
        if only not in name:
            continue
        inputs = _inputs(name, np.random.default_rng(1))
        rows.append({"peer": OURS, "kernel": name, "cpu_min_us": _least_us(factory(inputs))})
        theirs = NUMPY.get(name)
        if theirs is not None:
            values = list(inputs.values())
            least_us = _least_us(partial(theirs, *values))
            rows.append({"peer": "numpy", "kernel": name, "cpu_min_us": least_us})
        print(", ".join(f"{row['peer']} {row['cpu_min_us']:.1f} us" for row in rows if row["kernel"] == name),
              name, flush=True)
    return rows


def ratios(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """By kernel and peer: its time in units of ours."""
    times = {(row["kernel"], row["peer"]): row["cpu_min_us"] for row in rows if "cpu_min_us" in row}
    return {
        kernel: {
            peer: round(theirs / ours, 3)
            for (other, peer), theirs in times.items() if other == kernel and peer != OURS
        }
        for (kernel, who), ours in times.items() if who == OURS
    }


def table(found: Mapping[str, Mapping[str, float]]) -> str:
    peers = sorted({peer for row in found.values() for peer in row})
    lines = [
        "# Machine code and libraries", "",
        "Written by `python -m bench cpu`: the time of others in units of ours, one core, both in one run;",
        "above 1 ours is the faster. Only ours rounds elementary functions correctly and has the same bits",
        "everywhere.",
        "",
        f"| kernel | {' | '.join(peers)} | best of them |", f"|---|{'---|' * (len(peers) + 1)}",
    ]
    for kernel, row in found.items():
        cells = [f"{row[peer]:.2f}" if peer in row else "" for peer in peers]
        best = f"{min(row.values()):.2f}" if row else ""
        lines.append(f"| {kernel} | {' | '.join(cells)} | {best} |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench cpu")
    parser.add_argument("--only", default="", help="kernels whose name holds this")
    parser.add_argument("--lines", type=Path, help="rows of another program's run")
    parser.add_argument("-o", "--out", type=Path, default=HERE / "results" / "cpu.json")
    options = parser.parse_args(arguments)
    if options.lines is None:
        rows = measured(options.only)
    else:
        rows = [json.loads(text) for text in options.lines.read_text().splitlines()]
    found = ratios(rows)
    options.out.write_text(json.dumps(found, indent=1) + "\n")
    options.out.with_suffix(".md").write_text(table(found))
    return 0
