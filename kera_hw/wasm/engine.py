"""Runs modules in wasmtime: memory in and out as arrays, a batch at a time."""
from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import wasmtime

from kera_hw.loops.program import Buffer
from kera_hw.schedule.software.batches import in_batches, items_at_once
from kera_hw.schedule.software.layout import aligned, element_bytes, native_dtype
from kera_hw.wasm.module import PAGE_BYTES
from kera_hw.wasm.program import WasmModule

Array = np.ndarray[Any, np.dtype[Any]]


@cache
def _engine() -> wasmtime.Engine:
    config = wasmtime.Config()
    config.wasm_simd = True
    config.cranelift_opt_level = "speed"
    config.parallel_compilation = False  # its threads are gone in a forked process, which would wait for them
    return wasmtime.Engine(config)


class Instance:
    """One instance of a module; a stream's state lives in it from call to call until ``reset``."""

    def __init__(self, module: WasmModule) -> None:
        self._module = module
        self._store = wasmtime.Store(_engine())
        compiled = wasmtime.Module(_engine(), module.binary)
        exports = wasmtime.Instance(self._store, compiled, []).exports(self._store)
        memory, run, reset = exports["memory"], exports["run"], exports["reset"]
        assert isinstance(memory, wasmtime.Memory)
        assert isinstance(run, wasmtime.Func) and isinstance(reset, wasmtime.Func)
        self._memory, self._run, self._reset = memory, run, reset

    def reset(self) -> None:
        """The state as it was at first."""
        self._reset(self._store)

    def run(self, params: Sequence[Array], items: int) -> list[Array]:
        """Result leaves of shape (items, *shape) from parameter leaves of such a shape, in native types."""
        module = self._module
        most = items_at_once((*module.params, *module.results))
        return in_batches(params, module.results, items, most, self._part)

    def _part(self, params: Sequence[Array], items: int) -> list[Array]:
        module = self._module
        pointers, top = list[int](), aligned(module.room)
        for buffer in (*module.params, *module.results):
            pointers.append(top)
            top += aligned(items * buffer.size * element_bytes(buffer.element))
        missing = top - self._memory.data_len(self._store)
        if missing > 0:
            try:
                self._memory.grow(self._store, -(-missing // PAGE_BYTES))
            except wasmtime.WasmtimeError as error:
                raise MemoryError(f"The module's memory can't have {top:,} bytes.") from error
        for buffer, pointer, values in zip(module.params, pointers, params):
            self._view(buffer, pointer, items)[...] = values
        self._run(self._store, items, *pointers)
        places = pointers[len(module.params) :]
        return [self._view(buffer, place, items).copy() for buffer, place in zip(module.results, places)]

    def _view(self, buffer: Buffer, pointer: int, items: int) -> Array:
        """The memory of a leaf as an array; good until the memory grows."""
        kind = native_dtype(buffer.element)
        size_bytes = items * buffer.size * kind.itemsize
        base = ctypes.addressof(self._memory.data_ptr(self._store).contents)
        raw = (ctypes.c_ubyte * size_bytes).from_address(base + pointer)
        return np.frombuffer(memoryview(raw), kind).reshape(items, *buffer.shape)
