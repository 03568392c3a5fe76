"""The interpreter of AMDGCN on text written by hand: what instructions give, and what is refused."""
from __future__ import annotations

import re

import numpy as np
import pytest

from kera_hw.cpu_gpu.amdgcn.interpreter.machine import Machine
from kera_hw.cpu_gpu.amdgcn.interpreter.meanings import MEANINGS
from kera_hw.cpu_gpu.amdgcn.table import instructions
from kera_hw.numerics.arrays import Array
from kera_hw.support import KeraError

_FRAME = """
    .amdgcn_target "amdgcn-amd-amdhsa--{processor}"
    .text
    .globl k
    .p2align 8
    .type k,@function
k:
{body}
    s_endpgm
    .section .rodata,"a",@progbits
    .p2align 6
    .amdhsa_kernel k
        .amdhsa_group_segment_fixed_size 1024
        .amdhsa_private_segment_fixed_size 0
        .amdhsa_kernarg_size 16
        .amdhsa_user_sgpr_kernarg_segment_ptr 1
        .amdhsa_system_sgpr_workgroup_id_x 1
        .amdhsa_system_sgpr_workgroup_id_y 1
        .amdhsa_system_sgpr_workgroup_id_z 0
        .amdhsa_system_vgpr_workitem_id 0
        .amdhsa_next_free_vgpr 40
        .amdhsa_next_free_sgpr 24
        .amdhsa_accum_offset 32
        .amdhsa_reserve_vcc 1
        .amdhsa_float_round_mode_32 0
        .amdhsa_float_round_mode_16_64 0
        .amdhsa_float_denorm_mode_32 3
        .amdhsa_float_denorm_mode_16_64 3
        .amdhsa_dx10_clamp 1
        .amdhsa_ieee_mode 1
        .amdhsa_tg_split 0
    .end_amdhsa_kernel
    .data
    .p2align 3
table:
    .byte 7, 0, 0, 0
    .zero 4
    .amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.kernels:
  - .name: k
    .kernarg_segment_size: 16
    .group_segment_fixed_size: 1024
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .max_flat_workgroup_size: 256
...
    .end_amdgpu_metadata
"""
_POINTERS = """
    s_load_dwordx2 s[4:5], s[0:1], 0
    s_load_dwordx2 s[6:7], s[0:1], 8
    s_waitcnt lgkmcnt(0)
    v_mov_b32 v2, s4
    v_mov_b32 v3, s5
    v_mov_b32 v4, s6
    v_mov_b32 v5, s7
    v_mov_b32 v1, 256
    v_mul_lo_u32 v6, s2, v1
    v_add_u32 v6, v6, v0
    v_mad_u64_u32 v[8:9], vcc, v6, 4, v[2:3]
    v_mad_u64_u32 v[10:11], vcc, v6, 4, v[4:5]
"""
"""Then v6 has a thread's number among all, if blocks have 256; its words are at v[8:9] and at v[10:11]."""


def kernel(body: str, processor: str = "gfx90a") -> str:
    return _FRAME.format(body="\n".join(part.strip() for part in body.split(";")), processor=processor)


def run(
    body: str, values: Array, *, threads: int = 1, blocks: int = 1, out_bytes: int = 64,
    most_steps: int = 10_000,
) -> bytes:
    """What a kernel leaves at its second argument, given the values at the first."""
    machine = Machine(kernel(body), most_steps)
    a, b = machine.allocate(values.nbytes), machine.allocate(out_bytes)
    machine.upload(a, values)
    machine.upload(b, np.zeros(out_bytes, np.uint8))
    machine.launch("k", (blocks, 1), threads, [a, b])
    return machine.download(b, out_bytes).tobytes()


def fault(code: str, body: str, threads: int = 1, blocks: int = 1, most_steps: int = 10_000) -> str:
    with pytest.raises(KeraError) as caught:
        run(body, np.arange(512, dtype=np.uint32), threads=threads, blocks=blocks, out_bytes=4096,
            most_steps=most_steps)  # fmt: skip
    (found,) = caught.value.diagnostics
    assert found.code == code, found.message
    return found.message


def test_every_row_has_a_meaning() -> None:
    """Of vector instructions; those that carry or choose by vcc are the machine's own."""
    others = re.compile(r"v_(\w+_co_u32|cndmask_b32)")
    vector = {name for name in instructions() if name.startswith("v_") and not others.fullmatch(name)}
    assert vector <= set(MEANINGS)


@pytest.mark.parametrize(("text", "wanted"), [
    ("v_mov_b32 v12, -16", 0xFFFF_FFF0), ("v_bfrev_b32 v12, 1", 1 << 31),
    ("v_ffbh_u32 v12, 0", 0xFFFF_FFFF), ("v_ffbh_u32 v12, 1", 31), ("v_ffbl_b32 v12, 64", 6),
    ("v_mov_b32 v13, 3; v_sub_u32 v12, 1, v13", 0xFFFF_FFFE),
    # The amount comes first, and counts modulo the width.
    ("v_mov_b32 v13, 1; v_lshlrev_b32 v12, 33, v13", 2),
    ("v_mov_b32 v13, -8; v_ashrrev_i32 v12, 1, v13", 0xFFFF_FFFC),
    ("v_mov_b32 v13, 0x80; v_bfe_i32 v12, v13, 0, 8", 0xFFFF_FF80),
    ("v_mov_b32 v13, 0xf0f; v_bcnt_u32_b32 v12, v13, 1", 9),
    ("v_mov_b32 v13, 1; v_mov_b32 v14, 2; v_alignbit_b32 v12, v13, v14, 1", 0x8000_0001),
    ("v_mov_b32 v13, -1; v_mul_hi_u32 v12, v13, v13", 0xFFFF_FFFE),
    # Rounded to nearest even, subnormal numbers kept.
    ("v_mov_b32 v13, 0x33800000; v_add_f32 v12, 0x3f800000, v13", 0x3F80_0000),
    ("v_mov_b32 v13, 0x3f000000; v_mul_f32 v12, 0x00800000, v13", 0x0040_0000),
    ("v_mov_b32 v13, 0x80000000; v_min_f32 v12, 0, v13", 0x8000_0000),
    ("v_mov_b32 v13, 0x7fc00000; v_max_f32 v12, 0x3f800000, v13", 0x3F80_0000),
    ("v_cvt_i32_f32 v12, 0x7f800000", 0x7FFF_FFFF), ("v_cvt_u32_f32 v12, 0xbfc00000", 0),
    ("v_cvt_i32_f32 v12, 0x7fc00000", 0), ("v_rndne_f32 v12, 0x40200000", 0x4000_0000),
    ("v_cvt_f32_u32 v12, 0xffffffff", 0x4F80_0000), ("v_ldexp_f32 v12, 1, 2", 4),
    ("v_cvt_i32_f64 v12, -4.0", 0xFFFF_FFFC), ("v_frexp_exp_i32_f64 v12, 2.0", 2),
    ("v_fma_f64 v[14:15], 2.0, 2.0, -v[2:3]; v_cvt_i32_f64 v12, 4.0", 4),
    # Carries, and choices by them.
    ("v_mov_b32 v13, -1; v_add_co_u32 v14, vcc, 1, v13; v_addc_co_u32 v12, vcc, 0, v14, vcc", 1),
    ("v_mov_b32 v13, 1; v_sub_co_u32 v14, vcc, 0, v13; v_subb_co_u32 v12, vcc, 0, v13, vcc", 0xFFFF_FFFE),
    ("v_mov_b32 v13, 5; v_cmp_lt_u32 vcc, 3, v13; v_cndmask_b32 v12, 10, 20, vcc", 20),
    ("v_mov_b32 v13, 0x7fc00000; v_cmp_neq_f32 vcc, 0, v13; v_cndmask_b32 v12, 0, 1, vcc", 1),
    ("v_mov_b32 v13, 0x200; v_cmp_class_f64 vcc, 1.0, v13; v_cndmask_b32 v12, 0, 1, vcc", 0),
    ("v_mov_b32 v13, 0x100; v_cmp_class_f64 vcc, 1.0, v13; v_cndmask_b32 v12, 0, 1, vcc", 1),
    ("v_mov_b32 v13, 0x80; v_cmp_class_f64 vcc, 1, v13; v_cndmask_b32 v12, 0, 1, vcc", 1),
    # From where the code is to a variable.
    ("""s_getpc_b64 s[8:9]; s_add_u32 s8, s8, table@rel32@lo+4; s_addc_u32 s9, s9, table@rel32@hi+12
     v_mov_b32 v14, s8; v_mov_b32 v15, s9; global_load_dword v12, v[14:15], off; s_waitcnt vmcnt(0)""", 7),
    ("v_mov_b32 v13, 9; v_accvgpr_write_b32 a7, v13; v_accvgpr_read_b32 v12, a7", 9),
])  # fmt: skip
def test_what_instructions_give(text: str, wanted: int) -> None:
    body = f"{_POINTERS}{text}; global_store_dword v[10:11], v12, off"
    assert int.from_bytes(run(body, np.zeros(1, np.uint32))[:4], "little") == wanted


def test_lanes_part_and_meet() -> None:
    """Odd threads take their square, even ones stay; under a mask that is kept and put back."""
    body = f"""{_POINTERS}
    global_load_dword v12, v[8:9], off; v_and_b32 v13, 1, v6; v_cmp_ne_u32 vcc, 0, v13
    s_and_saveexec_b64 s[8:9], vcc; s_cbranch_execz .Lo; s_waitcnt vmcnt(0); v_mul_lo_u32 v12, v12, v12
    .Lo:; s_mov_b64 exec, s[8:9]; s_waitcnt vmcnt(0); global_store_dword v[10:11], v12, off"""
    values = np.arange(512, dtype=np.uint32)
    found = run(body, values, threads=256, blocks=2, out_bytes=2048)
    assert found == np.where(values % 2 == 1, values * values, values).tobytes()


def test_waves_of_a_block_hand_over_at_a_barrier() -> None:
    body = f"""{_POINTERS}
    global_load_dword v12, v[8:9], off; v_lshlrev_b32 v13, 2, v0; s_waitcnt vmcnt(0); ds_write_b32 v13, v12
    s_waitcnt lgkmcnt(0); s_barrier; v_sub_u32 v14, 0x3fc, v13; ds_read_b32 v15, v14; s_waitcnt lgkmcnt(0)
    global_store_dword v[10:11], v15, off"""
    values = np.arange(256, dtype=np.uint32)
    assert run(body, values, threads=256, out_bytes=1024) == values[::-1].tobytes()
    assert "nothing orders them" in fault("K0708", body.replace("s_barrier;", ""), threads=256)


@pytest.mark.parametrize(("body", "said"), [
    ("global_load_dword v12, v[8:9], off; v_add_u32 v13, 1, v12", "has waited"),
    ("global_load_dword v12, v[8:9], off; global_load_dword v13, v[8:9], off; s_waitcnt vmcnt(1);"
     "v_add_u32 v13, 1, v12", "has waited"),
    ("global_load_dword v12, v[8:9], off; v_mov_b32 v12, 1", "has waited"),
    ("s_load_dwordx2 s[8:9], s[0:1], 0; v_mov_b32 v12, s8", "has waited"),
    ("v_mov_b32 v12, 1; global_store_dword v[10:11], v12, off; s_barrier", "before its accesses"),
    ("v_add_u32 v12, 1, v20", "before anything is in it"), ("s_mov_b32 s9, s20", "before anything is in it"),
    ("v_cndmask_b32 v12, 0, 1, vcc", "before anything is in it"),
    ("v_mov_b32 v12, 0; v_mov_b32 v13, 0; global_load_dword v14, v[12:13], off", "in no object"),
    ("global_load_dword v14, v[8:9], off offset:2", "no multiple"),
    ("v_mov_b32 v12, 0; ds_read_b32 v13, v12", "what nobody wrote"),
    ("v_mov_b32 v12, 0; v_mov_b32 v13, 1; ds_write_b32 v12, v13 offset:1024", "in no object"),
    (".Lo:; s_branch .Lo", "has not ended"), ("s_load_dwordx2 s[8:9], s[0:1], 16", "no argument"),
])  # fmt: skip
def test_what_a_wave_may_not_do(body: str, said: str) -> None:
    assert said in fault("K0708", f"{_POINTERS}{body}", most_steps=1000)


def test_a_barrier_that_not_all_waves_come_to() -> None:
    body = f"{_POINTERS}v_cmp_lt_u32 vcc, 63, v0; s_cbranch_vccz .Lo; s_barrier; .Lo:"
    assert "1 of 2 waves of a block come to this barrier" in fault("K0708", body, threads=128)


@pytest.mark.parametrize("body", [
    "v_mac_f32 v1, v2, v3", "v_mad_f32 v1, v2, v3, v4", "v_add_f16 v1, v2, v3", "v_add_u32 v1, v2",
    "v_add_u32 v99, v2, v3", "v_accvgpr_read_b32 v1, a8", "s_mov_b32 s30, 0", "s_branch .Lnowhere",
    "s_add_u32 s8, s8, table@rel32@lo+4", "global_load_dword v1, v[2:3], off glc", "s_sleep 1",
    "v_add_f32 v1, |v2|, v3", "v_add_f32 v1, v2, v3 clamp", "v_readlane_b32 s4, v1, 0",
    "s_waitcnt lgkmcnt(1)", "flat_load_dword v1, v[2:3]", "s_setreg_b32 hwreg(HW_REG_MODE), s4",
    "buffer_load_dword v1, v2, s[4:7], 0",
    "v_cndmask_b32 v1, 0x12345678, v2, vcc", ".Lx:; .Lx:",
])  # fmt: skip
def test_text_that_is_not_known(body: str) -> None:
    assert "line" in fault("K0707", body)


@pytest.mark.parametrize(("old", "new"), [
    ("float_denorm_mode_32 3", "float_denorm_mode_32 0"), ("float_round_mode_32 0", "float_round_mode_32 1"),
    ("ieee_mode 1", "ieee_mode 0"), (".amdhsa_tg_split 0", ".amdhsa_forward_progress 1"),
    ("gfx90a", "gfx1100"), (".wavefront_size: 64", ".wavefront_size: 32"),
    ("accum_offset 32", "accum_offset 30"), (".amdhsa_kernarg_size 16", ".amdhsa_kernarg_size 24"),
    (".byte 7", ".byte 700"), ("- .name: k", "- .name: j"),
    ("@progbits", "@nobits"), (".amdhsa_reserve_vcc 1", ""), ("    s_endpgm", "    s_nop 0"),
])  # fmt: skip
def test_modules_that_are_not_known(old: str, new: str) -> None:
    text = kernel(_POINTERS)
    assert old in text
    with pytest.raises(KeraError) as caught:
        Machine(text.replace(old, new))
    assert caught.value.diagnostics[0].code == "K0707"


@pytest.mark.parametrize(("body", "fits"), [
    ("v_cmp_eq_u32 vcc, 0, v0; v_cndmask_b32 v1, 0, 1, vcc", False),
    ("v_cmp_eq_u32 vcc, 0, v0; s_nop 0; v_cndmask_b32 v1, 0, 1, vcc", False),
    ("v_cmp_eq_u32 vcc, 0, v0; s_nop 1; v_cndmask_b32 v1, 0, 1, vcc", True),
    ("v_rcp_f64 v[2:3], 2.0; v_mul_f64 v[4:5], v[2:3], 2.0", False),
    ("v_rcp_f64 v[2:3], 2.0; v_mov_b32 v1, 0; v_mul_f64 v[4:5], v[2:3], 2.0", True),
])
def test_instructions_that_are_too_near(body: str, fits: bool) -> None:
    """On gfx942."""
    text = kernel(body, "gfx942")
    if fits:
        Machine(text)
    else:
        with pytest.raises(KeraError) as caught:
            Machine(text)
        assert "too few instructions" in caught.value.diagnostics[0].message
    Machine(kernel(body))
