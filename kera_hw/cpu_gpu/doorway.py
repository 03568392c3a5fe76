"""Small kernels as functions that CPython calls itself: arrays are looked at in machine code.

What is looked at are the fields of NumPy's arrays and scalars as its headers have them (``PyArrayObject`` in
``ndarraytypes.h``, ``arrayscalars.h``), at the same places since NumPy 1.7. That they are there is tried
before any use; where it is otherwise there are no such functions. The interpreter waits for the kernel.
"""
from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from kera_hw.cpu_gpu.memory import CodeMemory

OBJECT_TYPE, DATA, RANK, DIMENSIONS, DESCR, FLAGS = 8, 16, 24, 32, 56, 64
SCALAR_VALUE = 16
CONTIGUOUS, WRITEABLE = 0x1, 0x400
_FASTCALL = 0x80


@dataclass(frozen=True, slots=True)
class Leaf:
    """An argument by the addresses of its type and its dtype; a scalar of NumPy's has no dtype."""

    type: int
    descr: int | None = None
    shape: tuple[int, ...] = ()
    size_bytes: int = 0
    flags: int = CONTIGUOUS


@dataclass(frozen=True, slots=True)
class Door:
    """``leaves``: parameters, then the result. ``places`` is a table of their addresses, for the kernel."""

    leaves: tuple[Leaf, ...]
    kernel: int
    memory: int
    places: int


class _Method(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class Doorway:
    """``call``: takes what the leaves are, an array for the result, and what it gives back if it refuses.

    ``used``: what has to stay as long as it may be called.
    """

    def __init__(self, code: bytes, *used: object) -> None:
        memory = CodeMemory(code)
        method = _Method(b"kernel", memory.address, _FASTCALL, None)
        make = ctypes.pythonapi.PyCFunction_NewEx
        make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
        # What it is a method of has the reference to all that it needs.
        self.call: Callable[..., Any] = make(ctypes.addressof(method), (memory, method, *used), None)


def leaf_of(dtype: np.dtype[Any], shape: tuple[int, ...] | None, written: bool = False) -> Leaf:
    """What an array is, or a scalar without a shape."""
    if shape is None:
        return Leaf(id(dtype.type))
    size_bytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    return Leaf(id(np.ndarray), id(dtype), shape, size_bytes, CONTIGUOUS | (WRITEABLE if written else 0))


@cache
def fields_are_known() -> bool:
    """Whether objects of this interpreter and this NumPy have their fields where they are looked for."""
    if sys.implementation.name != "cpython" or not getattr(sys, "_is_gil_enabled", lambda: True)():
        return False
    array = np.zeros((3, 5), np.float32)
    read_only = array[:, :2]
    read_only.flags.writeable = False
    scalar = np.float64(0.3)
    return (
        _word(array, OBJECT_TYPE) == id(np.ndarray)
        and _word(array, DATA) == array.ctypes.data
        and _word(array, RANK, ctypes.c_int) == 2
        and [_at(_word(array, DIMENSIONS) + 8 * k, ctypes.c_int64) for k in range(2)] == [3, 5]
        and _word(array, DESCR) == id(array.dtype) == id(np.dtype(np.float32))
        and _word(array, FLAGS, ctypes.c_int) & (CONTIGUOUS | WRITEABLE) == CONTIGUOUS | WRITEABLE
        and _word(read_only, FLAGS, ctypes.c_int) & (CONTIGUOUS | WRITEABLE) == 0
        and _word(scalar, OBJECT_TYPE) == id(np.float64)
        and _word(scalar, SCALAR_VALUE, ctypes.c_double) == 0.3
        and _counts_references()
    )


def _counts_references() -> bool:
    """Whether an object's first word is how many references there are to it."""
    one = np.zeros(1)
    before = _word(one, 0, ctypes.c_int64)
    other = [one, one]
    return _word(one, 0, ctypes.c_int64) == before + len(other)


def _word(thing: Any, offset: int, kind: Any = ctypes.c_uint64) -> Any:
    return _at(id(thing) + offset, kind)


def _at(address: int, kind: Any) -> Any:
    return kind.from_address(address).value
