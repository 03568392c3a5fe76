"""PTX as a target: kernels of an export, run on a GPU, or by our interpreter where there is none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kera_hw.cpu_gpu.gpu.device import Device, Instance
from kera_hw.cpu_gpu.gpu.kernels import GpuModule
from kera_hw.cpu_gpu.ptx.compile import compile_export
from kera_hw.cpu_gpu.ptx.cuda import Gpu, find_gpu
from kera_hw.cpu_gpu.ptx.interpreter.machine import Machine
from kera_hw.cpu_gpu.ptx.program import TARGET
from kera_hw.driver.gpu.plan import gpu_plan
from kera_hw.driver.session import identity
from kera_hw.driver.software import Made, SoftwareExecutor, to_compile
from kera_hw.graph import Export, Graph


def design_kernels(graph: Graph, export: Export) -> GpuModule:
    """The kernels of an export, whose text names its graph. Raises KeraError (K07xx)."""
    return compile_export(to_compile(graph, export), fingerprint=identity(graph, export)["fingerprint"])


def ptx_plan(graph: Graph, export: Export, module: GpuModule) -> dict[str, Any]:
    used = sum(not kernel.tiles for kernel in module.kernels)
    loops = sum(kernel.byte_products for kernel in module.kernels)
    cores = f"used in {used} of {len(module.kernels)} kernels; dp4a in {loops} loops of others"
    return gpu_plan(graph, export, module, "ptx", {"processor": TARGET, "tensor_cores": cores})


def make_ptx(graph: Graph, export: Export, kept: Mapping[str, bytes]) -> Made:
    """What a build writes. Raises KeraError (K07xx)."""
    module = design_kernels(graph, export)
    plan = ptx_plan(graph, export, module)
    summary = (
        f"{export.name} for {TARGET}: kernels a batch: {len(module.kernels)}, "
        f"nests of loops that run as threads: {module.vector_loops}"
    )
    return Made({f"{export.name}.ptx": module.text.encode()}, plan, summary)


def ptx_executor(graph: Graph, export: Export) -> SoftwareExecutor:
    """Compiles an export. Raises KeraError: K07xx, K0709 where the driver of a GPU refuses."""
    module = design_kernels(graph, export)
    driver = find_gpu()
    device: Device = Machine(module.text) if driver is None else Gpu(driver, module.text)
    plan = ptx_plan(graph, export, module) | {"runs_on": "interpreter" if driver is None else driver.name}
    return SoftwareExecutor(export, module.params, Instance(module, device), plan)
