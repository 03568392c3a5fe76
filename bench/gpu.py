"""Kernels on a GPU of NVIDIA's: bytes moved against the driver's own copy, products of bytes against cuBLAS.

    python -m bench gpu [--only NAME] [-o bench/results/gpu.json]

Inputs and results stay on the GPU. What is timed is many launches one behind another, the least of the runs,
and so is a copy within its memory of as many bytes as a kernel reads and writes; for the product, cuBLAS
where that is (``libcublas.so``). Results are held bit for bit against those of the processor's machine code.
What is written down are ratios, and how many bytes differ, which have to be none. Where there is no such GPU
nothing is written.

The conformance suite runs there by `python -m pytest tests/differential/test_software.py -k gpu`.
"""
from __future__ import annotations

import argparse
import ctypes
import json
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import kera_hw
from kera_hw.cpu_gpu.gpu.device import Instance
from kera_hw.cpu_gpu.gpu.kernels import GpuModule
from kera_hw.cpu_gpu.ptx.compile import compile_export
from kera_hw.cpu_gpu.ptx.cuda import Driver, Gpu, find_gpu
from kera_hw.driver.software import to_compile
from kera_hw.loops.program import Buffer
from kera_hw.schedule.software.layout import element_bytes, native_dtype

HERE = Path(__file__).parent
SOURCE = HERE / "data" / "gpu.kera"
BATCH = 64
"""Items at once, so that a launch moves half a gigabyte: far more than caches hold."""
_ALONE = ("product",)
_LAUNCHES, _RUNS = 20, 5
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Cublas:
    """The library's product of matrices, on a GPU whose context is current."""

    library: Any
    handle: ctypes.c_void_p

    BYTE, WORD = 3, 10  # CUDA_R_8I, CUDA_R_32I
    COMPUTE_WORDS, DEFAULT = 72, -1  # CUBLAS_COMPUTE_32I, CUBLAS_GEMM_DEFAULT
    AS_IT_IS, TRANSPOSED = 0, 1  # CUBLAS_OP_N, CUBLAS_OP_T

    def product(self, a: int, b: int, out: int, side: int) -> None:
        """out[i, j] = the sum of a[i, k] * b[j, k]; the library's matrices are column-major."""
        one, zero = ctypes.c_int(1), ctypes.c_int(0)
        status = self.library.cublasGemmEx(
            self.handle, self.TRANSPOSED, self.AS_IT_IS, side, side, side, ctypes.byref(one),
            ctypes.c_void_p(b), self.BYTE, side, ctypes.c_void_p(a), self.BYTE, side, ctypes.byref(zero),
            ctypes.c_void_p(out), self.WORD, side, self.COMPUTE_WORDS, self.DEFAULT,
        )  # fmt: skip
        if status:
            raise RuntimeError(f"cublasGemmEx answers {status}")


def find_cublas(driver: Driver) -> Cublas | None:
    """None where it is not installed."""
    for name in ("libcublas.so", "libcublas.so.13", "libcublas.so.12"):
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        driver.call("cuCtxSynchronize")  # makes the context this thread's
        handle = ctypes.c_void_p()
        if library.cublasCreate_v2(ctypes.byref(handle)):
            return None
        return Cublas(library, handle)
    return None


def _random(buffer: Buffer, items: int, random: np.random.Generator) -> Array:
    kind, shape = native_dtype(buffer.element), (items, *buffer.shape)
    if kind.kind == "f":
        return random.uniform(-2.0, 2.0, shape).astype(kind)
    limits = np.iinfo(kind)
    return random.integers(limits.min, limits.max, shape, kind, endpoint=True)


def _least_us(gpu: Gpu, work: Callable[[], None]) -> float:
    """Of one round of work, launched many times before it is waited for."""
    work()
    gpu.wait()
    taken: list[float] = []
    for _ in range(_RUNS):
        start = time.perf_counter()
        for _ in range(_LAUNCHES):
            work()
        gpu.wait()
        taken.append((time.perf_counter() - start) / _LAUNCHES)
    return 1e6 * min(taken)


class Resident:
    """A module on a GPU with its inputs and room for results; launches are enqueued."""

    def __init__(self, driver: Driver, module: GpuModule, items: int, given: list[Array]) -> None:
        self.driver, self.items = driver, items
        self.gpu = Gpu(driver, module.text)
        self.module = module
        self._stack = ExitStack()
        ports = (*module.params, *module.results)
        self.sizes = [items * port.size * element_bytes(port.element) for port in ports]
        self.memory, *self.places = map(self._room, (module.plan.item_bytes * items, *self.sizes))
        for place, values in zip(self.places, given):
            self.gpu.upload(place, values)
        self._instance = Instance(module, _Enqueuing(self.gpu))

    def _room(self, size: int) -> int:
        address = self.gpu.allocate(size)
        self._stack.callback(self.gpu.free, address)
        return address

    def launch(self) -> None:
        self._instance.launch(self.items, [self.memory, *self.places])

    def results(self) -> list[Array]:
        first = len(self.module.params)
        self.gpu.wait()
        return [
            self.gpu.download(place, size).view(native_dtype(port.element))
            for port, place, size in zip(self.module.results, self.places[first:], self.sizes[first:])
        ]

    def copy_us(self) -> float:
        """As many bytes read and written in all as the kernels have to."""
        half = sum(self.sizes) // 2
        source, target = self._room(half), self._room(half)
        self.gpu.upload(source, np.zeros(half, np.uint8))
        copy = self.driver.library.cuMemcpyDtoDAsync_v2
        copy.argtypes = (ctypes.c_uint64, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p)

        def work() -> None:
            if copy(target, source, half, None):
                raise RuntimeError("the driver refuses a copy")

        return _least_us(self.gpu, work)

    def close(self) -> None:
        self._stack.close()


class _Enqueuing:
    """A GPU whose launches are not waited for."""

    def __init__(self, gpu: Gpu) -> None:
        self.allocate, self.free, self.launch = gpu.allocate, gpu.free, gpu.enqueue
        self.upload, self.download = gpu.upload, gpu.download


def _row(driver: Driver, program: kera_hw.Program, name: str, items: int) -> dict[str, Any]:
    export = next(item for item in program.graph.exports if item.name == name)
    module = compile_export(to_compile(program.graph, export))
    random = np.random.default_rng(1)
    given = [_random(port, items, random) for port in module.params]
    on = Resident(driver, module, items, given)
    try:
        us = _least_us(on.gpu, on.launch)
        found: dict[str, Any] = {
            "us": round(us, 1), "kernels": len(module.kernels),
            "tensor_cores": sum(not kernel.tiles for kernel in module.kernels),
            "copy": round(on.copy_us() / us, 3),
        }  # fmt: skip
        values = dict(zip((parameter for parameter, _ in export.params), given))
        wanted = np.asarray(program.function(name, target="cpu").batch(**values))
        (result,) = on.results()
        found["differing"] = int(np.count_nonzero(result.view(np.uint8) != wanted.ravel().view(np.uint8)))
        cublas = find_cublas(driver) if name == "product" else None
        if cublas is not None:
            a, b, out = on.places
            side = module.params[0].shape[0]
            found["cublas"] = round(_least_us(on.gpu, lambda: cublas.product(a, b, out, side)) / us, 3)
            again = on.results()[0]
            found["cublas_differing"] = int(np.count_nonzero(again != result))
    finally:
        on.close()
    return found


def measured(driver: Driver, only: str = "", source: str | None = None, batch: int = BATCH) -> dict[str, Any]:
    """By kernel: ratios to a copy, and to cuBLAS; ``source``: the kernels at other sizes."""
    program = kera_hw.load(SOURCE) if source is None else kera_hw.compile(source)
    found: dict[str, Any] = {}
    for export in program.graph.exports:
        if only in export.name:
            items = 1 if export.name in _ALONE else batch
            found[export.name] = _row(driver, program, export.name, items)
            print(export.name, found[export.name], flush=True)
    return found


def table(gpu: str, found: Mapping[str, Mapping[str, Any]]) -> str:
    lines = [
        "# PTX on a GPU", "",
        f"Written by `python -m bench gpu` on {gpu}: how often a kernel's time goes into that of the",
        "driver's copy of as many bytes, and of cuBLAS; above 1 ours is the faster. Bytes of results that",
        "differ from the reference's have to be none.", "",
        "| kernel | µs | copy | cuBLAS | on tensor cores | bytes that differ |", f"|---|{'---|' * 5}",
    ]  # fmt: skip
    for name, row in found.items():
        cublas = f"{row['cublas']:.2f}" if "cublas" in row else ""
        cells = f"{row['us']:g} | {row['copy']:.2f} | {cublas} | {row['tensor_cores']} of {row['kernels']}"
        lines.append(f"| {name} | {cells} | {row['differing']} |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench gpu")
    parser.add_argument("--only", default="", help="kernels whose name holds this")
    parser.add_argument("-o", "--out", type=Path, default=HERE / "results" / "gpu.json")
    options = parser.parse_args(arguments)
    driver = find_gpu()
    if driver is None:
        print("bench gpu: there is no GPU that takes our PTX", file=sys.stderr)
        return 3
    found = measured(driver, options.only)
    options.out.write_text(json.dumps({"gpu": driver.name, "kernels": found}, indent=1) + "\n")
    options.out.with_suffix(".md").write_text(table(driver.name, found))
    return 1 if any(row["differing"] for row in found.values()) else 0
