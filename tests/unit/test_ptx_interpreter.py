"""The interpreter of PTX on text written by hand: what instructions give, and what is refused.

Kernels here follow the manual and not our own writer: other names, other shapes.
"""
from __future__ import annotations

import numpy as np
import pytest

from kera_hw.cpu_gpu.ptx.interpreter.machine import Machine
from kera_hw.cpu_gpu.ptx.interpreter.meanings import MEANINGS
from kera_hw.cpu_gpu.ptx.table import rows
from kera_hw.numerics.arrays import Array
from kera_hw.support import KeraError

_HEAD = ".version 7.0\n.target sm_80\n.address_size 64\n"
_DECLARED = """
    .reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %rd<16>;
    .reg .f32 %f<8>; .reg .f64 %fd<8>;
"""


def kernel(body: str, params: str = "a, b", around: str = "") -> str:
    listed = ", ".join(f".param .u64 {name.strip()}" for name in params.split(","))
    return f"{_HEAD}{around}\n.visible .entry k({listed})\n{{{_DECLARED}{body}\n    ret;\n}}\n"


def run(
    body: str, values: Array, *, threads: int = 1, blocks: int = 1, out_bytes: int = 64, around: str = "",
    most_steps: int = 10_000,
) -> bytes:
    """What a kernel leaves at `b`, given the values at `a`."""
    machine = Machine(kernel(body, around=around), most_steps)
    a, b = machine.allocate(values.nbytes), machine.allocate(out_bytes)
    machine.upload(a, values)
    machine.upload(b, np.zeros(out_bytes, np.uint8))
    machine.launch("k", (blocks, 1), threads, [a, b])
    return machine.download(b, out_bytes).tobytes()


def fault(code: str, body: str, threads: int = 1, blocks: int = 1, most_steps: int = 10_000) -> str:
    values = np.arange(16, dtype=np.uint32)
    with pytest.raises(KeraError) as caught:
        run(body, values, threads=threads, blocks=blocks, most_steps=most_steps)
    (found,) = caught.value.diagnostics
    assert found.code == code, found.message
    return found.message


_POINTERS = "ld.param.u64 %rd0, [a]; ld.param.u64 %rd1, [b]; cvta.to.global.u64 %rd0, %rd0;"
_OWN = f"""{_POINTERS}
    mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x;
    mad.lo.u32 %r3, %r0, %r1, %r2;
    mad.wide.u32 %rd2, %r3, 4, %rd0; mad.wide.u32 %rd3, %r3, 4, %rd1;
"""


def one(name: str, result: str, *operands: str) -> int:
    """What an instruction gives for constants, as its bits."""
    where = {"f32": "%f0", "f64": "%fd0", "b64": "%rd5", "pred": "%p0"}.get(result, "%r5")
    kind = "b32" if result == "pred" else result
    store = "selp.b32 %r5, 1, 0, %p0; " if result == "pred" else ""
    store += f"st.global.{kind} [%rd1], {'%r5' if result == 'pred' else where};"
    body = f"{_POINTERS} {name} {where}, {', '.join(operands)}; {store}"
    return int.from_bytes(run(body, np.zeros(1, np.uint8))[:8], "little")


def test_every_row_has_a_meaning() -> None:
    others = {
        "ld.param.type", "ld.space.type", "st.space.type", "bra", "bra.uni", "bar.sync", "ret",
        "mma.sync.aligned.m8n8k16.row.col.s32.atype.btype.s32",
    }
    assert rows() == {*MEANINGS, *others}


@pytest.mark.parametrize(("name", "result", "operands", "wanted"), [
    ("add.s32", "b32", ("2147483647", "1"), 0x8000_0000),
    ("sub.u64", "b64", ("0", "1"), (1 << 64) - 1),
    ("mul.wide.s32", "b64", ("-3", "5"), (1 << 64) - 15),
    ("mul.wide.u32", "b64", ("0xFFFFFFFF", "2"), 0x1_FFFF_FFFE),
    ("mad.wide.s32", "b64", ("-1", "1", "1"), 0),
    ("div.s32", "b32", ("-7", "2"), (1 << 32) - 3), ("rem.s32", "b32", ("-7", "2"), (1 << 32) - 1),
    ("max.s32", "b32", ("-1", "1"), 1), ("max.u32", "b32", ("-1", "1"), 0xFFFF_FFFF),
    ("popc.b64", "b32", ("0xF0F0000000000001",), 9), ("clz.b32", "b32", ("0",), 32),
    ("brev.b32", "b32", ("1",), 1 << 31), ("bfi.b32", "b32", ("0xFF", "0x1111", "4", "8"), 0x1FF1),
    ("bfi.b32", "b32", ("-1", "0", "28", "8"), 0xF000_0000), ("bfi.b64", "b64", ("-1", "3", "4", "0"), 3),
    ("dp4a.s32.s32", "b32", ("0x80FF0102", "0x80FF0304", "-1"), 16384 + 1 + 3 + 8 - 1),
    ("dp4a.u32.s32", "b32", ("0x80FF0102", "0x80FF0304", "0"), (1 << 32) - 16384 - 255 + 3 + 8),
    ("dp4a.s32.s32", "b32", ("0x80808080", "0x80808080", "0x7FFFFFFF"), 0x8000_FFFF),
    # Amounts above the width count as the width.
    ("shl.b32", "b32", ("1", "32"), 0), ("shr.u32", "b32", ("0xFFFFFFFF", "40"), 0),
    ("shr.s32", "b32", ("-8", "40"), 0xFFFF_FFFF), ("shl.b64", "b64", ("3", "63"), 1 << 63),
    ("shf.l.wrap.b32", "b32", ("0x80000000", "1", "33"), 3),
    ("shf.r.wrap.b32", "b32", ("2", "1", "1"), 0x8000_0001),
    # A NaN is different from itself, which `ne` does not say.
    ("setp.ne.f32", "pred", ("0f7FC00000", "0f7FC00000"), 0),
    ("setp.neu.f32", "pred", ("0f7FC00000", "0f7FC00000"), 1),
    ("setp.le.f64", "pred", ("0d7FF8000000000000", "0d0000000000000000"), 0),
    ("setp.eq.f32", "pred", ("0f80000000", "0f00000000"), 1),
    # Rounded once, to nearest even, subnormal numbers kept.
    ("add.rn.f32", "f32", ("0f3F800000", "0f33800000"), 0x3F80_0000),
    ("mul.rn.f32", "f32", ("0f00800000", "0f3F000000"), 0x0040_0000),
    ("fma.rn.f32", "f32", ("0f3F800001", "0f3F800001", "0fBF800002"), 0x2880_0000),
    ("div.rn.f32", "f32", ("0f3F800000", "0f40400000"), 0x3EAA_AAAB),
    ("sqrt.rn.f64", "f64", ("0d4000000000000000",), 0x3FF6_A09E_667F_3BCD),
    ("sqrt.rn.f32", "f32", ("0fBF800000",), 0x7FFF_FFFF),
    # Numbers go before NaNs; -0 is below +0.
    ("min.f32", "f32", ("0f7FC00000", "0f3F800000"), 0x3F80_0000),
    ("max.f32", "f32", ("0f80000000", "0f00000000"), 0),
    ("copysign.f32", "f32", ("0fBF800000", "0f40000000"), 0xC000_0000),
    # Saturating; what becomes of a NaN depends on the types.
    ("cvt.rzi.s32.f32", "b32", ("0f7FC00000",), 0), ("cvt.rzi.s32.f32", "b32", ("0f7F800000",), 0x7FFF_FFFF),
    ("cvt.rzi.u32.f32", "b32", ("0fBFC00000",), 0),
    ("cvt.rzi.s32.f64", "b32", ("0d7FF8000000000000",), 0x8000_0000),
    ("cvt.rzi.u64.f32", "b64", ("0f7FC00000",), 1 << 63),
    ("cvt.rn.f32.s64", "f32", ("9007199254740993",), 0x5A00_0000),
    ("cvt.rn.f32.u64", "f32", ("-1",), 0x5F80_0000),
    ("cvt.rni.f32.f32", "f32", ("0f40200000",), 0x4000_0000),
    ("cvt.rmi.f64.f64", "f64", ("0dBFE0000000000000",), 0xBFF0_0000_0000_0000),
    ("cvt.rn.f32.f64", "f32", ("0d3690000000000000",), 0),
    ("cvt.f64.f32", "f64", ("0f00000001",), 0x36A0 << 48),
    ("cvt.s64.s32", "b64", ("-2",), (1 << 64) - 2), ("cvt.s32.s8", "b32", ("200",), (1 << 32) - 56),
])  # fmt: skip
def test_what_instructions_give(name: str, result: str, operands: tuple[str, ...], wanted: int) -> None:
    assert one(name, result, *operands) == wanted


def test_threads_of_all_blocks() -> None:
    body = f"{_OWN} ld.global.b32 %r4, [%rd2]; mul.lo.u32 %r4, %r4, %r3; st.global.b32 [%rd3], %r4;"
    found = run(body, np.arange(16, dtype=np.uint32), threads=4, blocks=4)
    assert found == (np.arange(16, dtype=np.uint32) ** 2).tobytes()


_TILE = "mma.sync.aligned.m8n8k16.row.col.s32.s8.u8.s32 {%r6, %r7}, {%r4}, {%r5}, {%r6, %r7};"


def test_a_tile_of_a_warp() -> None:
    """Fragments as the manual draws them, written down here element by element."""
    body = f"""{_OWN} ld.global.b32 %r4, [%rd2]; ld.global.b32 %r5, [%rd2+128]; mov.u32 %r6, 1;
    mov.u32 %r7, -2; {_TILE} mad.wide.u32 %rd4, %r3, 8, %rd1;
    st.global.b32 [%rd4], %r6; st.global.b32 [%rd4+4], %r7;"""
    values = np.random.default_rng(1).integers(0, 256, 256, np.uint8)
    found = np.frombuffer(run(body, values, threads=32, out_bytes=256), np.int32)
    a, b = np.zeros((8, 16), np.int64), np.zeros((16, 8), np.int64)
    for thread in range(32):
        for k in range(4):
            a[thread // 4, thread % 4 * 4 + k] = values[4 * thread + k].astype(np.int8)
            b[thread % 4 * 4 + k, thread // 4] = values[128 + 4 * thread + k]
    for thread in range(32):
        for k, more in enumerate((1, -2)):
            assert found[2 * thread + k] == (a @ b)[thread // 4, thread % 4 * 2 + k] + more


def test_a_tile_takes_whole_warps() -> None:
    body = f"{_OWN} mov.u32 %r4, 1; mov.u32 %r5, 1; mov.u32 %r6, 1; mov.u32 %r7, 1; {_TILE}"
    assert "all threads of a warp" in fault("K0708", body, threads=16)
    part = body.replace("mma", "setp.eq.u32 %p0, %r2, 3; @%p0 bra out; mma") + " out:"
    assert "all threads of a warp" in fault("K0708", part, threads=32)
    assert "`{`" in fault("K0707", body.replace("{%r6, %r7}, {%r4}", "%r6, {%r4}"), threads=32)


def test_threads_part_and_meet() -> None:
    """Collatz: every thread goes round another number of times."""
    body = f"""{_OWN}
    ld.global.b32 %r4, [%rd2]; mov.u32 %r5, 0;
loop: setp.le.u32 %p0, %r4, 1; @%p0 bra out;
    and.b32 %r6, %r4, 1; setp.eq.u32 %p1, %r6, 0; @!%p1 bra odd;
    shr.u32 %r4, %r4, 1; bra next;
odd: mad.lo.u32 %r4, %r4, 3, 1;
next: add.u32 %r5, %r5, 1; bra.uni loop;
out: st.global.b32 [%rd3], %r5;
"""

    def rounds(n: int) -> int:
        return 0 if n <= 1 else 1 + rounds(3 * n + 1 if n % 2 else n // 2)

    found = np.frombuffer(run(body, np.arange(16, dtype=np.uint32), threads=8, blocks=2), np.uint32)
    assert found.tolist() == [rounds(n) for n in range(16)]


_SHARED = "    .shared .align 4 .b8 s[64]; .local .align 8 .b8 l[16];\n"
_REVERSED = f"""{_SHARED}{_OWN}
    mov.u64 %rd4, s; mad.wide.u32 %rd5, %r2, 4, %rd4;
    ld.global.b32 %r4, [%rd2]; st.shared.b32 [%rd5], %r4;
    {{barrier}}
    sub.u32 %r5, %r1, %r2; mad.wide.u32 %rd6, %r5, 4, %rd4;
    ld.shared.b32 %r6, [%rd6+-4]; st.local.b32 [l+8], %r6; ld.local.b32 %r7, [l+8];
    st.global.b32 [%rd3], %r7;
"""


def test_a_barrier_orders() -> None:
    values = np.arange(16, dtype=np.uint32)
    found = run(_REVERSED.replace("{barrier}", "bar.sync 0;"), values, threads=8, blocks=2)
    assert found == values.reshape(2, 8)[:, ::-1].tobytes()


def test_a_missing_barrier_is_a_race() -> None:
    """Within a warp it would go well on a GPU that runs in step, and on no other."""
    message = fault("K0708", _REVERSED.replace("{barrier}", ""), threads=8, blocks=2)
    assert "touches what another writes" in message


@pytest.mark.parametrize(("body", "threads", "blocks", "said"), [
    ("st.global.b32 [%rd1], %r3;", 2, 1, "writes what another writes"),
    ("st.global.b32 [%rd1], %r3;", 1, 2, "writes what another writes"),
    ("ld.global.b32 %r4, [%rd1+4]; st.global.b32 [%rd3], %r4;", 2, 1, "reads what another writes"),
    ("st.global.b32 [%rd3], 1; bar.sync 0; ld.global.b32 %r4, [%rd1];", 2, 2, "touches what another writes"),
    ("st.global.u8 [%rd3+1], %r3; st.global.u16 [%rd3+-2], %r3;", 2, 1, "in no object"),
])  # fmt: skip
def test_races_and_bounds(body: str, threads: int, blocks: int, said: str) -> None:
    assert said in fault("K0708", f"{_OWN}{body}", threads=threads, blocks=blocks)


@pytest.mark.parametrize(("body", "said"), [
    ("ld.global.b32 %r4, [%rd0+64];", "in no object"), ("ld.global.b32 %r4, [%rd0+-4];", "in no object"),
    ("ld.global.b64 %rd4, [%rd0+60];", "in no object"), ("st.global.b32 [0x0], %r4;", ""),
    ("ld.global.b32 %r4, [%rd0+2];", "no multiple"), ("add.s32 %r5, %r6, 1;", "before anything is in it"),
    ("ld.shared.b32 %r4, [s];", "what nobody wrote"), ("st.local.b32 [l+16], 3;", "in no object"),
    ("div.s32 %r4, 1, 0;", "division"), ("mov.u32 %r4, 0; rem.u32 %r4, %r4, %r4;", "division"),
    ("again: bra again;", "has not ended"),
])  # fmt: skip
def test_what_a_thread_may_not_do(body: str, said: str) -> None:
    code = "K0708" if said else "K0707"
    assert said in fault(code, f"{_SHARED}{_POINTERS}{body}", most_steps=1000)


@pytest.mark.parametrize("body", [
    "setp.eq.u32 %p0, %r2, 0; @%p0 bar.sync 0;",
    "setp.eq.u32 %p0, %r2, 0; @%p0 bra out; bar.sync 0; out:",
    "setp.eq.u32 %p0, %r2, 0; @%p0 bra other; bar.sync 0; bra out; other: bar.sync 0; out:",
    "setp.eq.u32 %p0, %r2, 0; @%p0 ret; bar.sync 0;",
])
def test_a_barrier_that_not_all_come_to(body: str) -> None:
    assert "threads of a block come to this barrier" in fault("K0708", f"{_OWN}{body}", threads=4)


def test_threads_part_at_a_uniform_branch() -> None:
    body = f"{_OWN} setp.eq.u32 %p0, %r2, 0; @%p0 bra.uni out; out:"
    assert "part at a branch" in fault("K0708", body, threads=4)


@pytest.mark.parametrize(("body", "said"), [
    ("add.rn.ftz.f32 %f0, %f1, %f2;", "modifiers"), ("add.f32 %f0, %f1, %f2;", "modifiers"),
    ("mad.rn.f32 %f0, %f1, %f2, %f3;", "modifiers"), ("fma.rz.f32 %f0, %f1, %f2, %f3;", "modifiers"),
    ("add.s16 %r0, %r1, %r2;", "modifiers"), ("ex2.approx.f32 %f0, %f1;", "no instruction"),
    ("atom.global.add.u32 %r0, [%rd0], 1;", "no instruction"), ("ld.global.nc.b32 %r0, [%rd0];", "modifiers"),
    ("ld.volatile.global.b32 %r0, [%rd0];", "modifiers"), ("bar.sync 0, 32;", "where `;`"),
    ("add.s32 %r0, %r1, %rd2;", "no operand of type"), ("add.s32 %r0, %r1, %f2;", "no operand of type"),
    ("add.s32 %r0, %r1;", "where `,`"), ("add.s32 %r0, %r1, %r99;", "no register"),
    ("add.s32 5, %r1, %r2;", "no register"), ("add.s32 %r0, %r1, 0f3F800000;", "no constant"),
    ("add.s32 %r0, %r1, 4294967296;", "more than 32 bits"), ("mul.rn.f32 %f0, %f1, 2;", "no operand"),
    ("bra nowhere;", "no label"), ("x: x: mov.u32 %r0, 1;", "already"), ("@%r0 bra x; x:", "no predicate"),
    ("mov.u64 %rd0, nothing;", "there is no"), ("ld.param.u64 %rd0, [c];", "no parameter"),
    ("mov.u32 %r0, %clock;", "no register"), ("mov.u32 %r0, %laneid;", "no register"),
    (".reg .b128 %q0;", "no type"), (".shared .b8 s[4] = {1};", "can't begin"), ("{ }", "word"),
    ("call foo;", "no instruction"), ("mov.u32 %r0, 09;", "begins no"), ("mov.u32 %r0, 'a';", "begins no"),
    (".pragma \"nounroll\";", "begins no"), ("/* ", "begins no"),
    ("mov.u32 %r0, 1; ret; mov.u32 %r0, 1;", ""),
])  # fmt: skip
def test_text_that_is_not_known(body: str, said: str) -> None:
    text = kernel(body)
    if not said:
        text = text.replace("    ret;\n}", "}")
        said = "does not end"
    with pytest.raises(KeraError) as caught:
        Machine(text)
    (found,) = caught.value.diagnostics
    assert found.code == "K0707" and said in found.message and "line" in found.message, found.message


@pytest.mark.parametrize(("text", "said"), [
    ("", "`.version`"), (".version 7.0\n.target compute_80\n.address_size 64\n", "no target"),
    (".version 7.0\n.target sm_80\n.address_size 32\n", "not from 64"),
    (_HEAD + ".const .b8 x[3];", "no directive"),
    (_HEAD + ".global .b8 x[2] = {1, 2, 3};", "more than it holds"),
    (_HEAD + ".global .b8 x[2] = {300};", "not from"), (_HEAD + ".global .align 3 .b8 x[2];", "aligned"),
    (_HEAD + ".global .b8 x; .global .b8 x;", "already"), (_HEAD + ".func f() { ret; }", "no directive"),
    (_HEAD + ".extern .shared .b8 x[];", "no directive"),
    (_HEAD + ".entry k(.param .f16 a) { ret; }", "no type"),
    (_HEAD + ".entry k() { ret; } .entry k() { ret; }", "already"), (_HEAD + ".entry k() { ret;", "word"),
    (_HEAD + ".entry k() .maxnreg 16 { ret; }", "`{`"),
])  # fmt: skip
def test_modules_that_are_not_known(text: str, said: str) -> None:
    with pytest.raises(KeraError) as caught:
        Machine(text)
    assert caught.value.diagnostics[0].code == "K0707" and said in caught.value.diagnostics[0].message


def test_variables_of_a_module() -> None:
    around = ".global .align 8 .u16 t[4] = {1, 0x102, -1}; .global .b32 z;"
    body = f"""{_POINTERS} mov.u64 %rd4, t;
    ld.global.b64 %rd5, [%rd4]; st.global.b64 [%rd1], %rd5;
    ld.global.u16 %r4, [t+2]; st.global.b32 [z], %r4;
    ld.global.s16 %r5, [t+4]; st.global.b32 [%rd1+8], %r5;"""
    found = run(body, np.zeros(1, np.uint8), around=around)
    assert found[:12] == bytes([1, 0, 2, 1, 255, 255, 0, 0]) + b"\xff" * 4


def test_results_that_were_never_written() -> None:
    machine = Machine(kernel(_POINTERS))
    address = machine.allocate(8)
    machine.launch("k", (1, 1), 1, [address, address])
    with pytest.raises(KeraError) as caught:
        machine.download(address, 8)
    assert "never written" in caught.value.diagnostics[0].message
