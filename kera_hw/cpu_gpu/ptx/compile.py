"""An export as PTX: lowered to loops, joined, written out in native operations, cut into kernels."""
from __future__ import annotations

from dataclasses import replace

from kera_hw.cpu_gpu.gpu.kernels import GpuModule, build_module
from kera_hw.cpu_gpu.ptx.program import Ptx
from kera_hw.graph import Export
from kera_hw.legal.native import Native
from kera_hw.lower.export import TABLE as LOOPS
from kera_hw.schedule.software.grids import LEAST_ROUNDS
from kera_hw.schedule.software.native import native_program, rows_of
from kera_hw.support import deep_recursion
from kera_hw.target import TargetTable

HAS = (
    "bit-counts", "copysign", "fma", "minimum", "rotations", "saturating-conversions", "unsigned-conversions",
)
"""What PTX has beyond the native set."""
BEYOND_NATIVE: Native = rows_of(HAS)

TABLE: TargetTable[object] = replace(LOOPS, name="ptx", noun="PTX")
"""Whatever has loops has kernels: native operations are all that is left of it."""


@deep_recursion()
def compile_export(export: Export, least_rounds: int = LEAST_ROUNDS, fingerprint: str = "") -> GpuModule:
    """The module of an export without observations; loops of fewer rounds are no grids.

    Raises KeraError: K0701 for an operation without loops, K0705 for what is larger than GPUs take.
    """
    return build_module(native_program(export, TABLE, BEYOND_NATIVE), Ptx(), least_rounds, fingerprint)
