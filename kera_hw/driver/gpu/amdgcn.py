"""AMDGCN as a target: kernels of an export as text for one of AMD's processors, run by our interpreter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kera_hw.cpu_gpu.amdgcn.compile import compile_export
from kera_hw.cpu_gpu.amdgcn.interpreter.machine import Machine
from kera_hw.cpu_gpu.amdgcn.program import PROCESSORS
from kera_hw.cpu_gpu.gpu.device import Instance
from kera_hw.cpu_gpu.gpu.kernels import GpuModule
from kera_hw.driver.gpu.plan import gpu_plan
from kera_hw.driver.session import identity
from kera_hw.driver.software import Made, SoftwareExecutor, to_compile
from kera_hw.graph import Export, Graph


def design_kernels(graph: Graph, export: Export, target: str) -> GpuModule:
    """The kernels of an export, whose text names its graph. Raises KeraError (K07xx)."""
    fingerprint = identity(graph, export)["fingerprint"]
    return compile_export(to_compile(graph, export), processor(target), fingerprint=fingerprint)


def processor(target: str) -> str:
    """That a target means: `amdgcn` is the first."""
    return target if target in PROCESSORS else PROCESSORS[0]


def amdgcn_plan(graph: Graph, export: Export, module: GpuModule, target: str) -> dict[str, Any]:
    cores = "not used: what is computed is written out in operations on scalars"
    return gpu_plan(graph, export, module, target, {"processor": processor(target), "matrix_cores": cores})


def make_amdgcn(graph: Graph, export: Export, kept: Mapping[str, bytes], target: str) -> Made:
    """What a build writes. Raises KeraError (K07xx)."""
    module = design_kernels(graph, export, target)
    plan = amdgcn_plan(graph, export, module, target)
    summary = (
        f"{export.name} for {processor(target)}: kernels a batch: {len(module.kernels)}, "
        f"nests of loops that run as threads: {module.vector_loops}"
    )
    return Made({f"{export.name}.s": module.text.encode()}, plan, summary)


def amdgcn_executor(graph: Graph, export: Export, target: str) -> SoftwareExecutor:
    """Compiles an export. Raises KeraError (K07xx)."""
    module = design_kernels(graph, export, target)
    plan = amdgcn_plan(graph, export, module, target) | {"runs_on": "interpreter"}
    return SoftwareExecutor(export, module.params, Instance(module, Machine(module.text)), plan)
