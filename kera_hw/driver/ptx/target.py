"""PTX as a target: kernels of an export, run on a GPU, or by our interpreter where there is none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kera_hw.cpu_gpu.gpu.device import Device, Instance
from kera_hw.cpu_gpu.gpu.kernels import GpuModule, Kernel
from kera_hw.cpu_gpu.ptx.compile import compile_export
from kera_hw.cpu_gpu.ptx.cuda import Gpu, find_gpu
from kera_hw.cpu_gpu.ptx.interpreter.machine import Machine
from kera_hw.cpu_gpu.ptx.program import TARGET
from kera_hw.driver.session import identity
from kera_hw.driver.software import Made, SoftwareExecutor, to_compile
from kera_hw.graph import Export, Graph
from kera_hw.loops.program import Buffer
from kera_hw.schedule.software.layout import element_bytes


def design_kernels(graph: Graph, export: Export) -> GpuModule:
    """The kernels of an export, whose text names its graph. Raises KeraError (K07xx)."""
    return compile_export(to_compile(graph, export), fingerprint=identity(graph, export)["fingerprint"])


def make_ptx(graph: Graph, export: Export, kept: Mapping[str, bytes]) -> Made:
    """What a build writes. Raises KeraError (K07xx)."""
    module = design_kernels(graph, export)
    plan = ptx_plan(graph, export, module)
    summary = (
        f"{export.name} for {TARGET}: kernels a batch: {len(module.kernels)}, "
        f"nests of loops that run as threads: {module.vector_loops}"
    )
    return Made({f"{export.name}.ptx": module.text.encode()}, plan, summary)


def ptx_plan(graph: Graph, export: Export, module: GpuModule) -> dict[str, Any]:
    """What was decided, as plain data: launches in order, memory, and what crosses to the device and back."""
    plan = module.plan
    return {
        "function": export.name,
        "target": "ptx",
        "sm": TARGET,
        **identity(graph, export),
        "text_bytes": len(module.text),
        "kernels": [_kernel(kernel) for kernel in module.kernels],
        "reset": None if module.reset is None else _kernel(module.reset),
        "transfers": [*_transfers(module)],
        "device_bytes": {
            "module": module.data_bytes,
            "item": 0 if plan.in_turn else plan.item_bytes,
            "batch": plan.item_bytes if plan.in_turn else 0,
            "block": plan.shared_bytes,
            "thread": max((one.slot_bytes for one in plan.regions if one.space == "local"), default=0),
        },
        "tensor_cores": "not used: what is computed is written out in operations on scalars",
    }


def _kernel(kernel: Kernel) -> dict[str, Any]:
    return {
        "name": kernel.name, "thread_for": kernel.unit, "threads_of_a_block": kernel.threads,
        "rounds_of_an_item": kernel.rounds, "instructions": kernel.instructions, "reason": kernel.reason,
    }  # fmt: skip


def _transfers(module: GpuModule) -> Iterator[dict[str, Any]]:
    """Ports cross once a batch, from and to memory that is not pinned; nothing crosses between kernels."""
    for ports, source, target in ((module.params, "host", "device"), (module.results, "device", "host")):
        for port in ports:
            yield {"what": port.name, "from": source, "to": target, "bytes_of_an_item": _size(port)}


def _size(port: Buffer) -> int:
    return port.size * element_bytes(port.element)


def ptx_executor(graph: Graph, export: Export) -> SoftwareExecutor:
    """Compiles an export. Raises KeraError: K07xx, K0709 where the driver of a GPU refuses."""
    module = design_kernels(graph, export)
    driver = find_gpu()
    device: Device = Machine(module.text) if driver is None else Gpu(driver, module.text)
    plan = ptx_plan(graph, export, module) | {"runs_on": "interpreter" if driver is None else driver.name}
    return SoftwareExecutor(export, module.params, Instance(module, device), plan)
