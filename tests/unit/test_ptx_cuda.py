"""Calls of the driver, made against a driver that is our interpreter: their order, arguments and faults."""
from __future__ import annotations

import ctypes
import re
from typing import Any

import numpy as np
import pytest

from bench import gpu as bench_gpu
from kera_hw.cpu_gpu.gpu.device import Instance
from kera_hw.cpu_gpu.ptx import cuda
from kera_hw.cpu_gpu.ptx.cuda import Driver, Gpu, open_driver
from kera_hw.cpu_gpu.ptx.interpreter.machine import Machine
from kera_hw.driver.api import load
from kera_hw.interp.exports import run_leaves
from kera_hw.schedule.software.layout import native_dtype
from kera_hw.support import KeraError
from tests.differential.software import compile_ptx, fir
from tests.loop_programs import inputs_of, random_export, same_bits
from tests.tidy.repo import ROOT

_CONTEXT = 77


class FakeDriver:
    """Functions as `cuda.h` declares them, over one machine; ``answers`` are errors to give instead."""

    def __init__(self, capability: tuple[int, int] = (9, 0), answers: dict[str, int] | None = None) -> None:
        self.capability, self.answers = capability, answers or {}
        self.called: list[str] = []
        self.machine: Machine | None = None
        self.current = 0
        self.names: list[str] = []

    def __getattr__(self, name: str) -> Any:
        function = self.__dict__.get("_" + name) or getattr(type(self), "_" + name)

        def call(*args: Any) -> int:
            converted = [kind.from_param(arg) for kind, arg in zip(call.argtypes, args, strict=True)]
            declared = cuda._CALLS.get(name) or call.argtypes  # pyright: ignore[reportPrivateUsage]
            assert len(converted) == len(declared)
            self.called.append(name)
            if name not in ("cuInit", "cuCtxSetCurrent") and not name.startswith("cuDevice"):
                assert self.current == _CONTEXT
            if name in self.answers:
                return self.answers[name]
            function(self, *args)
            return 0

        call.argtypes = ()
        return call

    def _cuInit(self, flags: int) -> None:
        assert flags == 0

    def _cuDeviceGetCount(self, count: Any) -> None:
        count._obj.value = 1

    def _cuDeviceGet(self, device: Any, which: int) -> None:
        device._obj.value = which

    def _cuDeviceGetName(self, name: Any, size: int, device: Any) -> None:
        name.value = b"a GPU"

    def _cuDeviceGetAttribute(self, found: Any, attribute: int, device: Any) -> None:
        found._obj.value = {75: self.capability[0], 76: self.capability[1]}[attribute]

    def _cuDevicePrimaryCtxRetain(self, context: Any, device: Any) -> None:
        context._obj.value = _CONTEXT

    def _cuCtxSetCurrent(self, context: int) -> None:
        self.current = context

    def _cuCtxSynchronize(self) -> None:
        pass

    def _cuModuleLoadDataEx(self, module: Any, text: bytes, count: int, options: Any, values: Any) -> None:
        assert (count, list(options)) == (2, [5, 6]) and text.endswith(b"\0")
        self.machine = Machine(text[:-1].decode())
        module._obj.value = 5

    def _cuModuleUnload(self, module: Any) -> None:
        assert module.value == 5

    def _cuModuleGetFunction(self, function: Any, module: Any, name: bytes) -> None:
        assert module.value == 5
        self.names.append(name.decode())
        function._obj.value = len(self.names)

    def _cuMemAlloc_v2(self, address: Any, size: int) -> None:
        assert self.machine is not None
        address._obj.value = self.machine.allocate(size)

    def _cuMemFree_v2(self, address: int) -> None:
        assert self.machine is not None
        self.machine.free(address)

    def _cuMemcpyHtoD_v2(self, address: int, source: int, size: int) -> None:
        assert self.machine is not None
        self.machine.upload(address, np.frombuffer(ctypes.string_at(source, size), np.uint8))

    def _cuMemcpyDtoH_v2(self, target: int, address: int, size: int) -> None:
        assert self.machine is not None
        ctypes.memmove(target, self.machine.download(address, size).tobytes(), size)

    def _cuMemcpyDtoDAsync_v2(self, target: int, source: int, size: int, stream: Any) -> None:
        assert self.machine is not None and stream is None
        self.machine.upload(target, self.machine.download(source, size))

    def _cuLaunchKernel(self, function: int, *rest: Any) -> None:
        assert self.machine is not None
        *shape, shared, stream, params, extra = rest
        grid_x, grid_y, grid_z, threads, block_y, block_z = shape
        assert (grid_z, block_y, block_z, shared, stream, extra) == (1, 1, 1, 0, None, None)
        name = self.names[function - 1]
        count = len(self.machine.module.entries[name].params)
        args = [ctypes.cast(params[k], ctypes.POINTER(ctypes.c_uint64)).contents.value for k in range(count)]
        self.machine.launch(name, (grid_x, grid_y), threads, args)


def test_batches_on_a_gpu() -> None:
    for export in (fir(), random_export(3), random_export(10)):
        driver = open_driver(FakeDriver())
        assert driver is not None and driver.name == "a GPU"
        module = compile_ptx(export, True)
        instance = Instance(module, Gpu(driver, module.text))
        args, _ = inputs_of(export, 9, 2)
        given = [arg.view(native_dtype(buffer.element)) for arg, buffer in zip(args, module.params)]
        for _ in range(2):
            instance.reset()
            assert all(map(same_bits, run_leaves(export, args, 9), instance.run(given, 9)))


def test_every_call_has_its_place() -> None:
    library = FakeDriver()
    driver = open_driver(library)
    assert driver is not None
    module = compile_ptx(fir(), True)
    instance = Instance(module, Gpu(driver, module.text))
    instance.reset()
    instance.run([np.zeros(3, np.int16)], 3)
    assert set(library.called) == set(cuda._CALLS) - {"cuModuleUnload"}  # pyright: ignore[reportPrivateUsage]
    frees, allocations = (library.called.count(f"cuMem{one}_v2") for one in ("Free", "Alloc"))
    assert frees == allocations > 0
    del instance
    assert library.called[-1] == "cuModuleUnload"


@pytest.mark.parametrize("library", [
    FakeDriver((7, 0)), FakeDriver(answers={"cuInit": 100}), FakeDriver(answers={"cuDeviceGetCount": 100}),
])  # fmt: skip
def test_no_gpu_that_will_do(library: FakeDriver) -> None:
    assert open_driver(library) is None


@pytest.mark.parametrize(
    "call", ["cuModuleLoadDataEx", "cuLaunchKernel", "cuCtxSynchronize", "cuMemcpyDtoH_v2"]
)
def test_what_the_driver_refuses(call: str) -> None:
    driver = open_driver(FakeDriver(answers={call: 700}))
    assert driver is not None
    module = compile_ptx(fir(), True)
    with pytest.raises(KeraError) as caught:
        Instance(module, Gpu(driver, module.text)).run([np.zeros(3, np.int16)], 3)
    (found,) = caught.value.diagnostics
    assert found.code == "K0709" and "700" in found.message and call in found.message


def test_memory_that_the_gpu_has_not() -> None:
    driver = open_driver(FakeDriver(answers={"cuMemAlloc_v2": 2}))
    assert driver is not None
    module = compile_ptx(fir(), True)
    with pytest.raises(MemoryError):
        Instance(module, Gpu(driver, module.text)).run([np.zeros(3, np.int16)], 3)


@pytest.mark.parametrize("there", [False, True])
def test_the_target_says_what_it_runs_on(there: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def find() -> Driver | None:
        return open_driver(FakeDriver()) if there else None

    monkeypatch.setattr("kera_hw.driver.gpu.ptx.find_gpu", find)
    function = load(ROOT / "examples" / "fir.kera").function("fir", target="ptx")
    assert function.plan["runs_on"] == ("a GPU" if there else "interpreter")
    values = np.arange(40, dtype=np.int16)
    wanted = load(ROOT / "examples" / "fir.kera").function("fir").batch(x=values)
    assert np.array_equal(function.batch(x=values), wanted)


class FakeCublas:
    """cublasGemmEx as its manual has it, of column-major matrices of bytes."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    def cublasGemmEx(self, handle: Any, *args: Any) -> int:
        m, n, k, alpha, a, kind_a, lda, b, kind_b, ldb, beta, c, kind_c, ldc, *how = args[2:]
        assert (args[:2], kind_a, kind_b, kind_c, how) == ((1, 0), 3, 3, 10, [72, -1])
        assert (alpha._obj.value, beta._obj.value) == (1, 0) and lda == ldb == k and ldc == m
        first, second = (
            self.machine.download(place.value, k * count).view(np.int8).reshape(count, k).astype(np.int32)
            for place, count in ((a, m), (b, n))
        )
        self.machine.upload(c.value, np.ascontiguousarray(second @ first.T).view(np.uint8).ravel())
        return 0


def test_the_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    """At sizes that the interpreter has patience for: all results right, cuBLAS's factors in order."""
    library = FakeDriver()
    driver = open_driver(library)
    assert driver is not None
    monkeypatch.setattr(bench_gpu, "_LAUNCHES", 1)
    monkeypatch.setattr(bench_gpu, "_RUNS", 1)

    def find(_: Driver) -> bench_gpu.Cublas:
        assert library.machine is not None
        return bench_gpu.Cublas(FakeCublas(library.machine), ctypes.c_void_p())

    monkeypatch.setattr(bench_gpu, "find_cublas", find)
    text = bench_gpu.SOURCE.read_text(encoding="utf-8")
    small = re.sub(r"(N|SIDE|WIDE): u32 = [0-9]+", r"\1: u32 = 32", text)
    found = bench_gpu.measured(driver, source=small, batch=2)
    assert {row["differing"] for row in found.values()} == {0} and len(found) == 7
    product = found["product"]
    assert (product["tensor_cores"], product["kernels"], product["cublas_differing"]) == (1, 1, 0)
    assert bench_gpu.table("a GPU", found).count("\n") == 8 + len(found)
