"""What was decided for a GPU, as plain data: launches in order, memory, what crosses to it and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kera_hw.cpu_gpu.gpu.kernels import GpuModule, Kernel
from kera_hw.driver.session import identity
from kera_hw.graph import Export, Graph
from kera_hw.loops.program import Buffer
from kera_hw.schedule.software.layout import element_bytes

PAGEABLE = "ordinary memory of the host: the driver copies it through its own pinned memory"


def gpu_plan(
    graph: Graph, export: Export, module: GpuModule, target: str, more: Mapping[str, Any]
) -> dict[str, Any]:
    """``more``: what one language says besides."""
    plan = module.plan
    transfers = [*_transfers(module)]
    return {
        "function": export.name,
        "target": target,
        **more,
        **identity(graph, export),
        "text_bytes": len(module.text),
        "kernels": [_kernel(kernel) for kernel in module.kernels],
        "launches_a_batch": len(module.kernels),
        "reset": None if module.reset is None else _kernel(module.reset),
        "transfers": transfers,
        "transferred": {
            "host_to_device": _sum(transfers, "host"), "device_to_host": _sum(transfers, "device"),
            "between_kernels": {"copies_a_batch": 0, "bytes_of_an_item": 0},
            "module_bytes": module.data_bytes,
        },
        "device_bytes": {
            "module": module.data_bytes,
            "item": 0 if plan.in_turn else plan.item_bytes,
            "batch": plan.item_bytes if plan.in_turn else 0,
            "block": plan.shared_bytes,
            "thread": max((one.slot_bytes for one in plan.regions if one.space == "local"), default=0),
        },
    }


def _kernel(kernel: Kernel) -> dict[str, Any]:
    return {
        "name": kernel.name, "thread_for": kernel.unit, "threads_of_a_block": kernel.threads,
        "rounds_of_an_item": kernel.rounds, "instructions": kernel.instructions, "reason": kernel.reason,
        "loops_of_byte_products": kernel.byte_products,
        "tensor_cores": f"not used: {kernel.tiles}" if kernel.tiles else "used for all of it",
        **kernel.resources,
    }  # fmt: skip


def _transfers(module: GpuModule) -> Iterator[dict[str, Any]]:
    """Ports cross once a batch, from and to memory that is not pinned; nothing crosses between kernels."""
    for ports, source, target in ((module.params, "host", "device"), (module.results, "device", "host")):
        for port in ports:
            yield {
                "what": port.name, "from": source, "to": target, "copies_a_batch": 1,
                "bytes_of_an_item": _size(port), "pinned": False, "reason": PAGEABLE,
            }  # fmt: skip


def _sum(transfers: list[dict[str, Any]], source: str) -> dict[str, int]:
    """Of all that begin at the host or at the device."""
    own = [one for one in transfers if one["from"] == source]
    return {
        "copies_a_batch": sum(one["copies_a_batch"] for one in own),
        "bytes_of_an_item": sum(one["bytes_of_an_item"] for one in own),
        "pinned_bytes_of_an_item": sum(one["bytes_of_an_item"] for one in own if one["pinned"]),
    }


def _size(port: Buffer) -> int:
    return port.size * element_bytes(port.element)


def plan_text(plan: Mapping[str, Any]) -> list[str]:
    """For people: launches, then what crosses."""
    found = [f"{plan['function']} for {plan['target']}: launches a batch: {plan['launches_a_batch']}"]
    for kernel in plan["kernels"]:
        what = f"a thread for each {kernel['thread_for']}" if kernel["thread_for"] != "batch" else "one block"
        found.append(f"  {kernel['name']}: {what}, {kernel['instructions']} instructions; {kernel['reason']}")
    for row in plan["transfers"]:
        way = f"{row['from']} to {row['to']}"
        pinned = "pinned" if row["pinned"] else "not pinned"
        size_bytes = row["bytes_of_an_item"]
        found.append(f"  {row['what']}: {way} once a batch, {size_bytes} bytes an item, {pinned}")
    if plan.get("tensor_cores"):
        found.append(f"  tensor cores: {plan['tensor_cores']}")
    return found
