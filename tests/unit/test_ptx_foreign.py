"""The interpreter of PTX on text that NVIDIA's compiler wrote, against results computed with NumPy alone.

`ptx_texts/kernels.ptx` is what nvcc made of the CUDA C beside it: other registers, 32-bit addresses of shared
memory, unrolled loops, barriers, and instructions that our own kernels don't have.
"""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kera_hw.cpu_gpu.ptx.interpreter.machine import Machine
from kera_hw.numerics.arrays import Array
from kera_hw.support import KeraError

TEXT = (Path(__file__).parent / "ptx_texts" / "kernels.ptx").read_text(encoding="utf-8")
_RANDOM = np.random.default_rng(5)


def launch(
    name: str, grid: tuple[int, int], threads: int, args: list[Array | int], result: int, text: str = TEXT
) -> Array:
    """What a kernel leaves in the argument of a number; arrays are uploaded first."""
    machine = Machine(text)
    given: list[int] = []
    for arg in args:
        given.append(arg if isinstance(arg, int) else machine.allocate(arg.nbytes))
        if not isinstance(arg, int):
            machine.upload(given[-1], arg)
    machine.launch(name, grid, threads, given)
    out = args[result]
    assert not isinstance(out, int)
    return machine.download(given[result], out.nbytes).view(out.dtype).reshape(out.shape)


def _saxpy(text: str = TEXT) -> tuple[Array, Array]:
    x, y = (_RANDOM.normal(size=300).astype(np.float32) for _ in range(2))
    bits = int(np.float32(1.7).view(np.uint32))
    return launch("saxpy", (3, 1), 128, [300, bits, x, y], 3, text), np.float32(1.7) * x + y


def test_rounded_twice() -> None:
    found, wanted = _saxpy()
    assert found.tobytes() == wanted.tobytes()


def test_shared_memory_and_a_barrier() -> None:
    values = np.arange(384, dtype=np.int32)
    found = launch("reverse", (3, 1), 128, [values, np.zeros_like(values)], 1)
    assert (found.reshape(3, 128) == values.reshape(3, 128)[:, ::-1]).all()


def test_loops_of_different_lengths() -> None:
    values = np.arange(1, 201, dtype=np.uint32)
    found = launch("collatz", (4, 1), 64, [values, np.zeros_like(values), 200], 1)
    wanted: list[int] = []
    for value in map(int, values):
        steps = 0
        while value > 1:
            value, steps = 3 * value + 1 if value & 1 else value >> 1, steps + 1
        wanted.append(steps)
    assert found.tolist() == wanted


def test_a_scan_with_two_barriers_a_step() -> None:
    values = _RANDOM.integers(-1000, 1000, 512, np.int32)
    found = launch("scan", (2, 1), 256, [values, np.zeros_like(values)], 1)
    assert (found.reshape(2, 256) == np.cumsum(values.reshape(2, 256), axis=1)).all()


def test_a_tiled_product() -> None:
    """Small integers, so that sums are exact in any order."""
    a, b = (_RANDOM.integers(-9, 9, (24, 24)).astype(np.float64) for _ in range(2))
    assert (launch("matmul", (3, 3), 64, [a, b, np.zeros_like(a), 24], 2) == a @ b).all()


def test_integers_of_all_widths() -> None:
    count = 300
    a = _RANDOM.integers(-32768, 32767, count, np.int16)
    b = _RANDOM.integers(0, 255, count, np.uint8)
    found = launch("mixed", (5, 1), 64, [a, b, np.zeros(count, np.int64), count], 2)
    x, y, i = a.astype(np.int64), b.astype(np.int64), np.arange(count)
    quotient = np.sign(x) * (np.abs(x) // (y + 1))
    rest = x - quotient * (y + 1)
    ones = np.array([bin(int(value) & 0xFFFF_FFFF).count("1") for value in a])
    zeros = np.array([32 - int(value).bit_length() for value in b])
    wanted = x * y - (i << 3) + ((quotient << 20) ^ rest) + ones + zeros + np.minimum(quotient, rest)
    assert found.tolist() == wanted.tolist()


def test_a_missing_barrier_and_a_wrong_sum_are_seen() -> None:
    found, wanted = _saxpy(TEXT.replace("add.rn.f32", "sub.rn.f32"))
    assert found.tobytes() != wanted.tobytes()
    values = np.arange(128, dtype=np.int32)
    text = TEXT.replace("bar.sync \t0;", "", 1)
    assert text != TEXT
    with pytest.raises(KeraError) as caught:
        launch("reverse", (1, 1), 128, [values, np.zeros_like(values)], 1, text)
    assert caught.value.diagnostics[0].code == "K0708"


def test_a_fused_sum_is_another() -> None:
    """What a compiler contracts differs in the last bit somewhere, which is why we never let it."""
    product = "mul.rn.f32 \t%f3, %f2, %f1;"
    assert product in TEXT
    text = TEXT.replace(product, "").replace("add.rn.f32 \t%f5, %f3, %f4;", "fma.rn.f32 %f5, %f2, %f1, %f4;")
    found, wanted = _saxpy(text)
    assert found.tobytes() != wanted.tobytes()
    assert np.allclose(found, wanted, rtol=1e-4)
