"""Runs modules on a GPU or a machine that stands for one: memory asked for, filled, and launches made."""
from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Protocol

from kera_hw.cpu_gpu.gpu.kernels import GpuModule, Kernel
from kera_hw.numerics.arrays import Array
from kera_hw.schedule.software.batches import in_batches, items_at_once
from kera_hw.schedule.software.layout import element_bytes, native_dtype

MOST_ITEMS_OF_A_LAUNCH = 65_535
"""Of a grid's second axis."""
MOST_ITEMS_IN_TURN = 4_096
"""Of a launch whose items come one after another, so that none takes long; the state stays between them."""


class Device(Protocol):
    """What has a module loaded. Addresses are numbers."""

    def allocate(self, size_bytes: int) -> int: ...
    def free(self, address: int) -> None: ...
    def upload(self, address: int, data: Array) -> None: ...
    def download(self, address: int, size_bytes: int) -> Array: ...
    def launch(self, name: str, grid: tuple[int, int], threads: int, args: Sequence[int]) -> None: ...


class Instance:
    """One module on a device; a stream's state lives there from call to call until ``reset``."""

    def __init__(self, module: GpuModule, device: Device) -> None:
        self._module, self._device = module, device

    def reset(self) -> None:
        """The state as it was at first."""
        kernel = self._module.reset
        if kernel is not None:
            ports = len(self._module.params) + len(self._module.results)
            self._device.launch(kernel.name, (1, 1), kernel.threads, [1, 0, 0, *[0] * ports])

    def run(self, params: Sequence[Array], items: int) -> list[Array]:
        """Result leaves of shape (items, *shape) from parameter leaves of such a shape, in native types."""
        module = self._module
        leaves = *module.params, *module.results
        if module.plan.in_turn:
            most = min(items_at_once(leaves), MOST_ITEMS_IN_TURN)
        else:
            most = items_at_once(leaves, module.plan.item_bytes)
        return in_batches(params, module.results, items, most, self._part)

    def _part(self, params: Sequence[Array], items: int) -> list[Array]:
        module = self._module
        sizes = [
            items * one.size * element_bytes(one.element) for one in (*module.params, *module.results)
        ]
        memory_bytes = module.plan.item_bytes * (1 if module.plan.in_turn else items)
        with self._memory([memory_bytes, *sizes]) as (memory, *places):
            for place, values in zip(places, params):
                self._device.upload(place, values)
            self.launch(items, [memory, *places])
            found: list[Array] = []
            first = len(module.params)
            for buffer, place, size in zip(module.results, places[first:], sizes[first:]):
                kind = native_dtype(buffer.element)
                raw = self._device.download(place, size)
                found.append(raw.view(kind).reshape(items, *buffer.shape))
        return found

    @contextmanager
    def _memory(self, sizes: Sequence[int]) -> Generator[list[int]]:
        made: list[int] = []
        try:
            made.extend(map(self._device.allocate, sizes))
            yield made
        finally:
            for address in reversed(made):
                self._device.free(address)

    def launch(self, items: int, pointers: Sequence[int]) -> None:
        """All kernels, on what lies on the device: memory that regions hand on, parameters, results."""
        for kernel in self._module.kernels:
            self._launch(kernel, items, pointers)

    def _launch(self, kernel: Kernel, items: int, pointers: Sequence[int]) -> None:
        """A kernel for all items; those of a grid's second axis in as many launches as it takes."""
        if kernel.unit == "batch":
            self._device.launch(kernel.name, (1, 1), kernel.threads, [items, 0, *pointers])
        elif kernel.unit == "item":
            blocks = -(-items // kernel.threads)
            self._device.launch(kernel.name, (blocks, 1), kernel.threads, [items, 0, *pointers])
        else:
            blocks = -(-kernel.rounds // kernel.threads)
            for first in range(0, items, MOST_ITEMS_OF_A_LAUNCH):
                several = min(MOST_ITEMS_OF_A_LAUNCH, items - first)
                self._device.launch(kernel.name, (blocks, several), kernel.threads, [items, first, *pointers])
