"""An export as AMDGCN: lowered to loops, joined, written out in native operations, cut into kernels."""
from __future__ import annotations

from dataclasses import replace

from kera_hw.cpu_gpu.amdgcn.program import PROCESSORS, WAVE, AmdGcn
from kera_hw.cpu_gpu.gpu.kernels import GpuModule, build_module
from kera_hw.graph import Export
from kera_hw.legal.native import Native
from kera_hw.lower.export import TABLE as LOOPS
from kera_hw.schedule.software.native import native_program, rows_of
from kera_hw.support import deep_recursion
from kera_hw.target import TargetTable
from kera_hw.types import FloatType, IntType

HAS = ("bit-counts", "copysign", "fma", "minimum", "rotations", "unsigned-conversions")
"""What AMDGCN has beyond the native set."""
_SATURATES_TO_WORDS = {
    row: domain for row, domain in rows_of(["saturating-conversions"]).items()
    if isinstance(row.operands[0], FloatType) and isinstance(row.result, IntType)
    and row.result.width_bits == 32
}
BEYOND_NATIVE: Native = {**rows_of(HAS), **_SATURATES_TO_WORDS}

TABLE: TargetTable[object] = replace(LOOPS, name="amdgcn", noun="AMDGCN")
"""Whatever has loops has kernels: native operations are all that is left of it."""


@deep_recursion()
def compile_export(
    export: Export, processor: str = PROCESSORS[0], least_rounds: int = WAVE, fingerprint: str = ""
) -> GpuModule:
    """The module of an export without observations; loops of fewer rounds are no grids.

    Raises KeraError: K0701 for an operation without loops, K0702 for what nests too deeply, K0705 for what is
    larger than these GPUs take.
    """
    program = native_program(export, TABLE, BEYOND_NATIVE)
    return build_module(program, AmdGcn(processor), least_rounds, fingerprint)
