"""Modules of WebAssembly against what people use in browsers, on one thread of Node.js.

    python -m bench wasm [--only NAME] [-o bench/results/wasm.json]

Kernels are timed beside onnxruntime-web and tfjs-wasm in one process, in turn, on the same inputs, in
processor time, the least of the runs; both come from npm, pinned by `browser/package-lock.json`, into the
cache (``KERA_CACHE_DIR``). onnxruntime-web copies inputs in and results out, so it is held against ours with
copies; tfjs keeps them in its memory, as ours can. What is written down are ratios: how often our time goes
into another's, with a module's bytes and how long Kera and V8 take to compile it.
"""
from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import kera_hw
from bench.onnx_models import model, node
from kera_hw.driver.software import to_compile
from kera_hw.rtl.toolchain.cache import cache_directory
from kera_hw.schedule.software.layout import element_bytes
from kera_hw.wasm.compile import compile_export
from kera_hw.wasm.program import WasmModule

HERE = Path(__file__).parent
PACKAGES = HERE / "browser"
SOURCES = (HERE / "data" / "cpu.kera", HERE / "data" / "wasm.kera")
_COMPILED = 3
Array = np.ndarray[Any, Any]
Inputs = Mapping[str, Array]


@dataclass(frozen=True)
class Kernel:
    """``function`` of the sources; what the others run for it, on the same inputs, if they can."""

    function: str
    onnx: Callable[[Inputs], bytes] | None = None
    tfjs: str | None = None


def _split(inputs: Inputs, names: str) -> tuple[dict[str, Array], dict[str, Array]]:
    """Those that come with each call, and those that are part of the model."""
    given = {name: value for name, value in inputs.items() if name in names.split()}
    return given, {name: value for name, value in inputs.items() if name not in given}


def _one(kind: str, **attributes: Any) -> Callable[[Inputs], bytes]:
    return lambda inputs: model([node(kind, "x", "y", **attributes)], inputs, {})


def _chain(inputs: Inputs) -> bytes:
    nodes = [
        node("Mul", "x a", "t"), node("Add", "t b", "u"), node("Relu", "u", "v"), node("Mul", "v c", "y"),
    ]  # fmt: skip
    return model(nodes, *_split(inputs, "x"))


def _matmul(inputs: Inputs) -> bytes:
    return model([node("MatMul", "A B", "y")], inputs, {})


def _matmul_integer(inputs: Inputs) -> bytes:
    return model([node("MatMulInteger", "A B", "y")], inputs, {}, "int32")


def _conv(inputs: Inputs) -> bytes:
    given, constants = _split(inputs, "x")
    return model([node("Conv", "x w", "y", pads=(1, 1, 1, 1))], {"x": given["x"][None]}, constants)


def _layer_norm(inputs: Inputs) -> bytes:
    nodes = [node("LayerNormalization", "x g b", "y", axis=1, epsilon=1e-5)]
    return model(nodes, *_split(inputs, "x"))


def _mlp(inputs: Inputs) -> bytes:
    nodes = [
        node("Gemm", "x W1 b1", "h"), node("Relu", "h", "r"), node("Gemm", "r W2 b2", "i"),
        node("Relu", "i", "s"), node("Gemm", "s W3 b3", "y"),
    ]  # fmt: skip
    return model(nodes, *_split(inputs, "x"))


KERNELS = {
    "ew_1m": Kernel("ew_1m", _chain, "chain"), "ew_16k": Kernel("ew_16k", _chain, "chain"),
    "softmax": Kernel("soft_max", _one("Softmax", axis=1), "softmax"),
    "mm_f32_256": Kernel("mm_f32_256", _matmul, "matmul"),
    "mm_256_unfused": Kernel("mm_256_unfused", _matmul, "matmul"),
    "mm_f32_512": Kernel("mm_f32_512", _matmul, "matmul"),
    "mm_512_unfused": Kernel("mm_512_unfused", _matmul, "matmul"),
    "mm_i8_512": Kernel("mm_i8_512", _matmul_integer),
    "conv3x3": Kernel("conv3x3", _conv, "conv"), "conv3x3_unfused": Kernel("conv3x3_unfused", _conv, "conv"),
    "exp_1m": Kernel("exp_1m", _one("Exp"), "exp"), "tanh_1m": Kernel("tanh_1m", _one("Tanh"), "tanh"),
    "gelu_1m": Kernel("gelu_1m", _one("Gelu", approximate="tanh")),
    "layernorm": Kernel("layernorm", _layer_norm),
    "sum_16m": Kernel("sum_16m", _one("ReduceSum", keepdims=0), "sum"),
    "mlp_b1": Kernel("mlp_b1", _mlp, "mlp"), "mlp_b64": Kernel("mlp_b64", _mlp, "mlp"),
    "mlp_b64_unfused": Kernel("mlp_b64_unfused", _mlp, "mlp"),
}  # fmt: skip


def installed(node_path: str) -> Path:
    """The folder with the pinned packages, which npm fills the first time."""
    lock = PACKAGES / "package-lock.json"
    place = cache_directory() / "bench-wasm" / hashlib.sha256(lock.read_bytes()).hexdigest()[:16]
    if not (place / "node_modules" / ".package-lock.json").is_file():
        npm = shutil.which("npm")
        if npm is None:
            raise FileNotFoundError("npm is needed to install what ours is held against")
        place.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(PACKAGES / name, place)
        call = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        subprocess.run(call, cwd=place, check=True, timeout=600, stdout=sys.stderr)
    return place


def _program_of(function: str) -> kera_hw.Program:
    programs = map(kera_hw.load, SOURCES)
    return next(one for one in programs if any(item.name == function for item in one.graph.exports))


def _inputs(program: kera_hw.Program, function: str) -> dict[str, Array]:
    """Of the parameters' types; floats of moderate size."""
    random = np.random.default_rng(1)
    export = next(item for item in program.graph.exports if item.name == function)
    found: dict[str, Array] = {}
    for parameter, kind in export.params:
        shape, element = getattr(kind, "shape", ()), str(getattr(kind, "element", kind))
        if element == "f32":
            found[parameter] = np.asarray(random.uniform(-2.0, 2.0, shape), np.float32)
        else:
            found[parameter] = random.integers(-128, 127, shape, np.int8, endpoint=True)
    return found


def _compiled(program: kera_hw.Program, function: str) -> tuple[WasmModule, float]:
    """The module, and the milliseconds that it took, the least of several."""
    export = next(item for item in program.graph.exports if item.name == function)
    taken: list[float] = []
    while True:
        start = time.process_time()
        module = compile_export(to_compile(program.graph, export))
        taken.append(time.process_time() - start)
        if len(taken) == _COMPILED:
            return module, 1000 * min(taken)


def _written(folder: Path, name: str, kernel: Kernel) -> tuple[dict[str, Any], float]:
    """A kernel's line of the manifest, with its files, and how long it took to compile."""
    program = _program_of(kernel.function)
    inputs = _inputs(program, kernel.function)
    module, compile_ms = _compiled(program, kernel.function)
    (folder / f"{name}.wasm").write_bytes(module.binary)
    rows: list[dict[str, Any]] = []
    for parameter, value in inputs.items():
        file = f"{name}.{parameter}.bin"
        (folder / file).write_bytes(value.tobytes())
        rows.append({"name": parameter, "dtype": value.dtype.name, "shape": value.shape, "file": file,
                     "bytes": value.nbytes})  # fmt: skip
    if kernel.onnx is not None:
        (folder / f"{name}.onnx").write_bytes(kernel.onnx(inputs))
    constant = kernel.onnx not in (_matmul, _matmul_integer)
    feeds = [dict(row) for row in rows if row["name"] == "x" or not constant]
    for row in feeds:
        row["shape"] = (1, *row["shape"]) if kernel.onnx is _conv else row["shape"]
    return {
        "name": name, "module": f"{name}.wasm", "room": module.room, "params": rows, "inputs": rows,
        "results": [one.size * element_bytes(one.element) for one in module.results],
        "onnx": None if kernel.onnx is None else f"{name}.onnx", "feeds": feeds, "tfjs": kernel.tfjs,
        "module_bytes": len(module.binary),
    }, compile_ms  # fmt: skip


def measured(only: str) -> dict[str, dict[str, Any]]:
    """By kernel: ratios, sizes, times of compiling, and the share of results that others have otherwise."""
    node_path = shutil.which("node")
    if node_path is None:
        raise FileNotFoundError("Node.js is needed here")
    packages = installed(node_path)
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for name, kernel in KERNELS.items():
            if only not in name:
                continue
            line, compile_ms = _written(folder, name, kernel)
            (folder / "manifest.json").write_text(json.dumps([line]))
            call = [node_path, str(PACKAGES / "run.mjs"), str(folder / "manifest.json"), str(packages)]
            done = subprocess.run(call, check=True, timeout=600, stdout=subprocess.PIPE, text=True)
            row = json.loads(done.stdout.splitlines()[-1])
            print(name, {who: round(us, 1) for who, us in row["us"].items()}, row["faults"] or "", flush=True)
            found[name] = _row(folder, name, row, line["module_bytes"], compile_ms)
            for path in folder.iterdir():
                path.unlink()
    return found


def _row(
    folder: Path, name: str, row: Mapping[str, Any], module_bytes: int, compile_ms: float
) -> dict[str, Any]:
    us, ours = row["us"], (folder / f"{name}.ours.out").read_bytes()
    found: dict[str, Any] = {
        "module_bytes": module_bytes, "kera_ms": round(compile_ms, 1), "v8_ms": round(row["engine_ms"], 2),
    }  # fmt: skip
    for peer, mine in (("ort", "ours_copied"), ("tfjs", "ours")):
        if peer in us:
            theirs = (folder / f"{name}.{peer}.out").read_bytes()
            mine_bits, their_bits = (np.frombuffer(raw, np.uint32) for raw in (ours, theirs))
            found[peer] = round(us[peer] / us[mine], 3)
            found[f"{peer}_differing"] = round(float(np.mean(mine_bits != their_bits)), 4)
    return found


def table(found: Mapping[str, Mapping[str, Any]]) -> str:
    lines = [
        "# WebAssembly in Node.js", "",
        "Written by `python -m bench wasm`: the time of others in units of ours, one thread, both in one",
        "run; above 1 ours is the faster. Beside it the share of results whose bits the other has otherwise.",
        "Only ours rounds elementary functions correctly and has the same bits everywhere; products without",
        "`unfused` are added with one rounding, for which WebAssembly has no instruction.",
        "",
        "| kernel | onnxruntime-web | differs | tfjs-wasm | differs | module, bytes | Kera, ms | V8, ms |",
        f"|---|{'---|' * 7}",
    ]  # fmt: skip
    for name, row in found.items():
        cells: list[str] = []
        for peer in ("ort", "tfjs"):
            there = peer in row
            cells += [f"{row[peer]:.2f}", f"{row[f'{peer}_differing']:.1%}"] if there else ["", ""]
        cells += [f"{row['module_bytes']:,}", f"{row['kera_ms']:g}", f"{row['v8_ms']:g}"]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench wasm")
    parser.add_argument("--only", default="", help="kernels whose name holds this")
    parser.add_argument("-o", "--out", type=Path, default=HERE / "results" / "wasm.json")
    options = parser.parse_args(arguments)
    try:
        found = measured(options.only)
    except FileNotFoundError as lack:
        print(f"bench wasm: {lack}", file=sys.stderr)
        return 3
    options.out.write_text(json.dumps(found, indent=1) + "\n")
    options.out.with_suffix(".md").write_text(table(found))
    return 0
