"""An export as a module: lowered to loops, joined, written out in native operations, encoded."""
from __future__ import annotations

from dataclasses import replace

from kera_hw.graph import Export, Graph
from kera_hw.legal.native import Domain, Native
from kera_hw.lower.export import TABLE as LOOPS
from kera_hw.schedule.software.common import without_repeats
from kera_hw.schedule.software.guards import guarded_rounds
from kera_hw.schedule.software.native import native_program, rows_of
from kera_hw.schedule.software.tiling import Registers
from kera_hw.support import deep_recursion
from kera_hw.target import TargetTable
from kera_hw.wasm.fused import FUSED
from kera_hw.wasm.program import WasmModule, build_module
from kera_hw.wasm.vectors import VECTOR_BITS

HAS = ("bit-counts", "copysign", "minimum", "rotations", "saturating-conversions", "unsigned-conversions")
"""What WebAssembly has beyond the native set, besides the fused product of f32, which is made here."""
BEYOND_NATIVE: Native = {**rows_of(HAS), FUSED: Domain.TOTAL}
REGISTERS = Registers(12, VECTOR_BITS, fused=False, engine=True)
"""Of the machines that engines run on, x86-64 has the fewest, 16. V8 keeps one for itself, and its allocation
spills before the others are full: two vectors of four rows ran fastest of the tiles tried, by a third."""

TABLE: TargetTable[object] = replace(LOOPS, name="wasm", noun="WebAssembly")
"""Whatever has loops has a module: native operations are all that is left of it."""


@deep_recursion()
def compile_export(
    export: Export, vectors: bool = True, fingerprint: str = "", graph: Graph | None = None
) -> WasmModule:
    """The module of an export without observations; without ``vectors``, one round at a time.

    ``fingerprint`` is what the module says it was made from, in a section of its own; ``graph`` knows where
    the export's nodes stand in source. Raises KeraError: K0701 for an operation without loops, K0705 for what
    is larger than engines take.
    """
    program = native_program(export, TABLE, BEYOND_NATIVE, REGISTERS if vectors else None, graph)
    program = without_repeats(program)
    if vectors:
        program = guarded_rounds(program, VECTOR_BITS)
    return build_module(program, vectors, fingerprint)
