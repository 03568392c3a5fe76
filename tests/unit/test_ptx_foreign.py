"""The interpreter of PTX on text that NVIDIA's compiler wrote, against results computed with NumPy alone.

`ptx_texts/kernels.ptx` is what nvcc made of the CUDA C beside it: other registers, 32-bit addresses of shared
memory, unrolled loops, barriers, and instructions that our own kernels don't have.
"""
from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from kera_hw.cpu_gpu.ptx.interpreter.machine import Machine
from kera_hw.numerics.arrays import Array
from kera_hw.support import KeraError
from tests.foreign_ptx import outcomes

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


# As people write PTX by hand: registers by names of their own, accesses without a space, comments in lines.
BY_HAND = """.version 6.5
.target sm_75
.address_size 64
/* y = |x - 3| for
   each thread */
.visible .entry away(.param .u64 from, .param .u64 to)
{
    .reg .u64 in, out, at;
    .reg .s32 x, negated; .reg .u32 me;
    .reg .pred below;
    ld.param.u64 in, [from];
    ld.param.u64 out, [to];
    mov.u32 me, %tid.x;
    mul.wide.u32 at, me, 4;
    add.u64 in, in, at;
    add.u64 out, out, at;
    ld.u32 x, [in];
    sub.s32 x, x, 3;
    setp.lt.s32 below, x, 0;
    @!below bra done;
    neg.s32 negated, x;
    mov.b32 x, negated;
done:
    st.u32 [out], x;
    ret;
}
"""


def test_text_as_it_is_written_by_hand() -> None:
    values = np.arange(8, dtype=np.int32)
    assert launch("away", (1, 1), 8, [values, np.zeros_like(values)], 1, BY_HAND).tolist() == [
        3, 2, 1, 0, 1, 2, 3, 4,
    ]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "why"), [
    ("/* y", "y", "line 4: '|x - 3| for' begins no word"),
    ("me;\n", "me, at;\n", "line 9: `at` can't be a register here"),
    ("below;\n", "from;\n", "line 10: `from` can't be a register here"),
    (".reg .pred", ".shared .b32 x0; .reg .pred", "line 17: `ld.u32` may go to any of several spaces"),
    ("[in];\n", "[inn];\n", "line 17: there is no `inn`"),
    ("ld.u32", "ld.volatile.u32", "line 17: `ld.volatile.u32` has modifiers or types of it that"),
])  # fmt: skip
def test_what_else_is_written_by_hand_is_refused(before: str, after: str, why: str) -> None:
    assert before in BY_HAND
    with pytest.raises(KeraError, match=re.escape(why)) as caught:
        Machine(BY_HAND.replace(before, after, 1))
    assert caught.value.diagnostics[0].code == "K0707"


def test_outcomes_of_others_tests(tmp_path: Path) -> None:
    """How `tests.foreign_ptx` reads a table of inputs and results: one right, one wrong, one refused."""
    rows = [("away", "[1i32]", "[2u32]"), ("gone", "[-0x5_i32]", "[9]"), ("other", "[u8::MAX]", "[f32::NAN]")]
    for name, *_ in rows:
        verb = "rcp.rn.f32" if name == "other" else "neg.s32"
        text = BY_HAND.replace("away", name).replace("neg.s32", verb)
        (tmp_path / f"{name}.ptx").write_text(text, encoding="utf-8")
    table = "".join(f"test_ptx!({', '.join(row)});\n" for row in (*rows, ("halves", "[half::ONE]", "[0i32]")))
    (tmp_path / "mod.rs").write_text(table, encoding="utf-8")
    found = dict(outcomes(tmp_path))
    assert found.pop("other").startswith("K0707") and found == {"away": "equal", "gone": "differs"}
