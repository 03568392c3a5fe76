"""Modules of AMDGCN: code, and what a loader is told of each kernel (AMDHSA code object, version 5)."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from kera_hw.cpu_gpu.amdgcn.finish import finish
from kera_hw.cpu_gpu.amdgcn.writer import ARGUMENT_BYTES, AmdWriter
from kera_hw.cpu_gpu.gpu.kernels import Kernel, Language
from kera_hw.cpu_gpu.gpu.writer import Writer
from kera_hw.cpu_gpu.machine.code import VReg
from kera_hw.schedule.software.grids import Threads
from kera_hw.schedule.software.layout import ALIGNMENT_BYTES

PROCESSORS = ("gfx90a", "gfx942")
"""CDNA 2 and CDNA 3: Instinct MI200 and MI300."""
WAVE = 64
"""Threads that run in step."""
_ROW_BYTES = 32


class AmdGcn(Language[VReg]):
    """Kernels for one processor; code for another does not run on it."""

    threads = Threads(in_step=WAVE, local=False, for_items=WAVE)

    def __init__(self, processor: str) -> None:
        self._processor = processor

    def writer(self, name: str, parameters: Sequence[str]) -> AmdWriter:
        return AmdWriter(name, parameters)

    def finished(self, writer: Writer[VReg], kernel: Kernel) -> tuple[list[str], Kernel]:
        assert isinstance(writer, AmdWriter)
        writer.code.op("s_endpgm")
        done = finish(writer.code, kernel, self._processor, writer.shared_bytes)
        resources = {
            "vector_registers": done.vectors, "accumulation_registers": done.accumulators,
            "scalar_registers": writer.scalars, "spilled_values": done.spilled,
            "shared_bytes": writer.shared_bytes + done.spilled_bytes,
            "argument_bytes": ARGUMENT_BYTES * len(writer.parameters),
        }
        made = replace(kernel, instructions=done.instructions, resources=resources)
        name = kernel.name
        head = ["", f"\t.globl {name}", "\t.p2align 8", f"\t.type {name},@function", f"{name}:"]
        return [*head, *done.lines, *_descriptor(made)], made

    def variable(self, name: str, size_bytes: int, data: bytes) -> str:
        rows = [f"\t.p2align {ALIGNMENT_BYTES.bit_length() - 1}", f"{name}:"]
        pieces = (data[first : first + _ROW_BYTES] for first in range(0, len(data), _ROW_BYTES))
        rows += (f"\t.byte {', '.join(map(str, piece))}" for piece in pieces)
        if size_bytes > len(data):
            rows.append(f"\t.zero {size_bytes - len(data)}")
        return "\n".join(rows)

    def module(
        self, title: str, variables: Sequence[str], kernels: Sequence[tuple[list[str], Kernel]]
    ) -> str:
        head = [f"; {title}", f'\t.amdgcn_target "amdgcn-amd-amdhsa--{self._processor}"', "\t.text"]
        written = [line for text, _ in kernels for line in text]
        data = ["", "\t.data", *variables] if variables else []
        return "\n".join([*head, *written, *data, "", *_metadata(kernel for _, kernel in kernels)]) + "\n"


def _descriptor(kernel: Kernel) -> Iterator[str]:
    """What the machine is set to: rounding to nearest even, subnormal numbers kept, no scratch memory."""
    found = kernel.resources
    offset = -(-max(found["vector_registers"], 4) // 4) * 4
    accumulators = found["accumulation_registers"]
    settings = {
        "group_segment_fixed_size": found["shared_bytes"], "private_segment_fixed_size": 0,
        "kernarg_size": found["argument_bytes"], "user_sgpr_kernarg_segment_ptr": 1,
        "system_sgpr_workgroup_id_x": 1, "system_sgpr_workgroup_id_y": 1, "system_sgpr_workgroup_id_z": 0,
        "system_vgpr_workitem_id": 0, "next_free_vgpr": offset + accumulators if accumulators else offset,
        "next_free_sgpr": found["scalar_registers"], "accum_offset": offset, "reserve_vcc": 1,
        "float_round_mode_32": 0, "float_round_mode_16_64": 0, "float_denorm_mode_32": 3,
        "float_denorm_mode_16_64": 3, "dx10_clamp": 1, "ieee_mode": 1, "tg_split": 0,
    }
    yield from ["", '\t.section .rodata,"a",@progbits', "\t.p2align 6", f"\t.amdhsa_kernel {kernel.name}"]
    yield from (f"\t\t.amdhsa_{name} {value}" for name, value in settings.items())
    yield from ["\t.end_amdhsa_kernel", "\t.text"]


def _metadata(kernels: Iterable[Kernel]) -> Iterator[str]:
    """For the runtime that launches them."""
    yield from ["\t.amdgpu_metadata", "---", "amdhsa.version: [1, 2]", "amdhsa.kernels:"]
    for kernel in kernels:
        found = kernel.resources
        count = found["argument_bytes"] // ARGUMENT_BYTES
        yield f"  - .name: {kernel.name}"
        yield f"    .symbol: {kernel.name}.kd"
        rows = {
            "kernarg_segment_size": found["argument_bytes"], "kernarg_segment_align": ARGUMENT_BYTES,
            "group_segment_fixed_size": found["shared_bytes"], "private_segment_fixed_size": 0,
            "wavefront_size": WAVE, "sgpr_count": found["scalar_registers"],
            "vgpr_count": found["vector_registers"], "agpr_count": found["accumulation_registers"],
            "max_flat_workgroup_size": kernel.threads,
        }
        yield from (f"    .{name}: {value}" for name, value in rows.items())
        yield "    .args:"
        yield from (
            f"      - {{.size: {ARGUMENT_BYTES}, .offset: {ARGUMENT_BYTES * k}, .value_kind: by_value}}"
            for k in range(count)
        )
    yield from ["...", "\t.end_amdgpu_metadata"]
