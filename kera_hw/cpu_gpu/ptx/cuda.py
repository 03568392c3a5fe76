"""Kernels on a GPU, through the CUDA driver API, which comes with NVIDIA's driver and needs no toolkit.

The driver compiles the text for the GPU at hand. Calls are those of `cuda.h`, by their names with the version
that has 64-bit addresses.
"""
from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol, cast

import numpy as np

from kera_hw.numerics.arrays import Array
from kera_hw.support import Diagnostic, KeraError

LEAST_CAPABILITY = (7, 5)
_LIBRARIES = ("libcuda.so.1", "libcuda.so", "nvcuda.dll")
_OUT_OF_MEMORY = 2
_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_...
_LOG, _LOG_BYTES = 5, 6  # CU_JIT_ERROR_LOG_BUFFER, ..._SIZE_BYTES
_LOG_SIZE = 1 << 14
_HANDLE, _INT, _ADDRESS, _SIZE = ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64, ctypes.c_size_t
_WORD = ctypes.c_uint
_CALLS: dict[str, tuple[Any, ...]] = {
    "cuInit": (_WORD,),
    "cuDeviceGetCount": (ctypes.POINTER(_INT),),
    "cuDeviceGet": (ctypes.POINTER(_INT), _INT),
    "cuDeviceGetName": (ctypes.c_char_p, _INT, _INT),
    "cuDeviceGetAttribute": (ctypes.POINTER(_INT), _INT, _INT),
    "cuDevicePrimaryCtxRetain": (ctypes.POINTER(_HANDLE), _INT),
    "cuCtxSetCurrent": (_HANDLE,),
    "cuCtxSynchronize": (),
    "cuModuleLoadDataEx": (
        ctypes.POINTER(_HANDLE), ctypes.c_char_p, _WORD, ctypes.POINTER(_INT), ctypes.POINTER(_HANDLE),
    ),
    "cuModuleUnload": (_HANDLE,),
    "cuModuleGetFunction": (ctypes.POINTER(_HANDLE), _HANDLE, ctypes.c_char_p),
    "cuMemAlloc_v2": (ctypes.POINTER(_ADDRESS), _SIZE),
    "cuMemFree_v2": (_ADDRESS,),
    "cuMemcpyHtoD_v2": (_ADDRESS, _HANDLE, _SIZE),
    "cuMemcpyDtoH_v2": (_HANDLE, _ADDRESS, _SIZE),
    "cuLaunchKernel": (_HANDLE, *(_WORD,) * 7, _HANDLE, ctypes.POINTER(_HANDLE), ctypes.POINTER(_HANDLE)),
}  # fmt: skip


class Library(Protocol):
    """The driver: functions that give an error's number, 0 for none."""

    def __getattr__(self, name: str) -> Any: ...


@dataclass(frozen=True)
class Driver:
    """A GPU with a context. ``name``: what the driver calls it."""

    library: Library
    context: int
    name: str

    def call(self, name: str, *args: Any) -> None:
        """In the context, whatever thread this is. Raises KeraError (K0709), MemoryError."""
        _call(self.library, "cuCtxSetCurrent", self.context)
        _call(self.library, name, *args)


def _status(library: Library, name: str, args: Sequence[Any]) -> int:
    function = getattr(library, name)
    function.argtypes, function.restype = _CALLS[name], ctypes.c_int
    return function(*args)


def _call(library: Library, name: str, *args: Any) -> None:
    status = _status(library, name, args)
    if status == _OUT_OF_MEMORY:
        raise MemoryError("The GPU has no more memory.")
    if status:
        raise KeraError([Diagnostic("K0709", f"The driver of the GPU answers {status} to `{name}`.")])


@cache
def find_gpu() -> Driver | None:
    """The first GPU that takes our kernels; None where there is no driver or no such GPU."""
    for path in _LIBRARIES:
        try:
            return open_driver(cast(Library, ctypes.CDLL(path)))
        except OSError:
            continue
    return None


def open_driver(library: Library) -> Driver | None:
    """The first GPU of a driver that takes our kernels, if there is one. Raises KeraError (K0709)."""
    count = _INT()
    if _status(library, "cuInit", [0]) or _status(library, "cuDeviceGetCount", [ctypes.byref(count)]):
        return None
    for which in range(count.value):
        device, major, minor, context = _INT(), _INT(), _INT(), _HANDLE()
        _call(library, "cuDeviceGet", ctypes.byref(device), which)
        for found, attribute in ((major, _MAJOR), (minor, _MINOR)):
            _call(library, "cuDeviceGetAttribute", ctypes.byref(found), attribute, device)
        if (major.value, minor.value) < LEAST_CAPABILITY:
            continue
        name = ctypes.create_string_buffer(256)
        _call(library, "cuDeviceGetName", name, len(name), device)
        _call(library, "cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        return Driver(library, context.value or 0, name.value.decode(errors="replace"))
    return None


class Gpu:
    """A module on a GPU. A launch ends before it returns; one that is enqueued, by ``wait``."""

    def __init__(self, driver: Driver, text: str) -> None:
        self._driver = driver
        module, log = _HANDLE(), ctypes.create_string_buffer(_LOG_SIZE)
        options = (_INT * 2)(_LOG, _LOG_BYTES)
        values = (_HANDLE * 2)(ctypes.addressof(log), _LOG_SIZE)
        try:
            driver.call("cuModuleLoadDataEx", ctypes.byref(module), text.encode() + b"\0", 2, options, values)
        except KeraError as error:
            said = log.value.decode(errors="replace").strip()
            message = f"{error.diagnostics[0].message} {said}".strip()
            raise KeraError([Diagnostic("K0709", message)]) from None
        self._module = module
        self._functions: dict[str, int | None] = {}
        weakref.finalize(self, _status, driver.library, "cuModuleUnload", [module]).atexit = False

    def allocate(self, size_bytes: int) -> int:
        address = _ADDRESS()
        self._driver.call("cuMemAlloc_v2", ctypes.byref(address), max(size_bytes, 1))
        return address.value

    def free(self, address: int) -> None:
        self._driver.call("cuMemFree_v2", address)

    def upload(self, address: int, data: Array) -> None:
        if data.nbytes:
            whole = np.ascontiguousarray(data)
            self._driver.call("cuMemcpyHtoD_v2", address, whole.ctypes.data, whole.nbytes)

    def download(self, address: int, size_bytes: int) -> Array:
        data = np.empty(size_bytes, np.uint8)
        if size_bytes:
            self._driver.call("cuMemcpyDtoH_v2", data.ctypes.data, address, size_bytes)
        return data

    def launch(self, name: str, grid: tuple[int, int], threads: int, args: Sequence[int]) -> None:
        self.enqueue(name, grid, threads, args)
        self.wait()

    def wait(self) -> None:
        """Until all that was launched has ended."""
        self._driver.call("cuCtxSynchronize")

    def enqueue(self, name: str, grid: tuple[int, int], threads: int, args: Sequence[int]) -> None:
        """Launches go one after another. All parameters of our kernels are 64 bits wide."""
        values = [_ADDRESS(arg) for arg in args]
        pointers = (_HANDLE * len(values))(*(ctypes.addressof(value) for value in values))
        shape = (*grid, 1, threads, 1, 1)
        self._driver.call("cuLaunchKernel", self._function(name), *shape, 0, None, pointers, None)

    def _function(self, name: str) -> int | None:
        if name not in self._functions:
            function = _HANDLE()
            self._driver.call("cuModuleGetFunction", ctypes.byref(function), self._module, name.encode())
            self._functions[name] = function.value
        return self._functions[name]
