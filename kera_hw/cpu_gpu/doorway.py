"""Small kernels as functions that CPython calls itself: arrays are looked at in machine code.

What is looked at are the fields of NumPy's arrays and scalars as its headers have them (``PyArrayObject`` in
``ndarraytypes.h``, ``arrayscalars.h``), at the same places since NumPy 1.7. That they are there is tried
before any use; where it is otherwise there are no such functions. The interpreter waits for the kernel.
"""
from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from kera_hw.cpu_gpu.memory import CodeMemory

TUPLE_SIZE, TUPLE_ITEMS = 16, 24
OBJECT_TYPE, DATA, RANK, DIMENSIONS, DESCR, FLAGS = 8, 16, 24, 32, 56, 64
SCALAR_VALUE = 16
CONTIGUOUS, WRITEABLE = 0x1, 0x400
_FASTCALL, _WITH_KEYWORDS = 0x80, 0x2


@dataclass(frozen=True, slots=True)
class Leaf:
    """An argument by the addresses of its type and its dtype; a scalar of NumPy's has no dtype."""

    type: int
    descr: int | None = None
    shape: tuple[int, ...] = ()
    size_bytes: int = 0
    flags: int = CONTIGUOUS


@dataclass(frozen=True, slots=True)
class Keywords:
    """Arguments by name, in this order; the names are interned. With others, and while ``turn`` is held,
    ``otherwise`` is called."""

    names: tuple[str, ...]
    turn: Any
    otherwise: Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Named:
    """The same as addresses: of the names, of the byte that says whether a turn is taken, of what is called
    otherwise and of the function that calls it (``PyObject_Vectorcall``)."""

    names: tuple[int, ...]
    held: int
    otherwise: int
    call: int


@dataclass(frozen=True, slots=True)
class Door:
    """``leaves``: parameters, then the result. ``places`` is a table of their addresses, for the kernel;
    without one, that is filled and nothing else done."""

    leaves: tuple[Leaf, ...]
    kernel: int | None
    memory: int
    places: int
    named: Named | None = None


class _Method(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class Doorway:
    """``call``: takes what the leaves are, an array for the result, and what it gives back if it refuses; or
    the same by ``keywords``, but for the last.

    ``places``: of the leaves of the last call. ``used``: what has to stay as long as it may be called.
    """

    def __init__(self, code: bytes, keywords: bool, places: Any, *used: object) -> None:
        memory = CodeMemory(code)
        self.places = places
        flags = _FASTCALL | (_WITH_KEYWORDS if keywords else 0)
        method = _Method(b"kernel", memory.address, flags, None)
        make = ctypes.pythonapi.PyCFunction_NewEx
        make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
        # What it is a method of has the reference to all that it needs.
        self.call: Callable[..., Any] = make(ctypes.addressof(method), (memory, method, places, *used), None)


def leaf_of(dtype: np.dtype[Any], shape: tuple[int, ...] | None, written: bool = False) -> Leaf:
    """What an array is, or a scalar without a shape."""
    if shape is None:
        return Leaf(id(dtype.type))
    size_bytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    return Leaf(id(np.ndarray), id(dtype), shape, size_bytes, CONTIGUOUS | (WRITEABLE if written else 0))


def named(keywords: Keywords) -> Named | None:
    """Where the code finds what it needs of keywords; None where locks do not show whether they are held."""
    byte = held_byte()
    call = ctypes.cast(ctypes.pythonapi.PyObject_Vectorcall, ctypes.c_void_p).value
    if byte is None or call is None:
        return None
    return Named(tuple(map(id, keywords.names)), id(keywords.turn) + byte, id(keywords.otherwise), call)


@cache
def held_byte() -> int | None:
    """Where in a lock of Python's there is a byte that is 1 while it is held, and else 0: found by trial."""
    lock = threading.Lock()
    size_bytes = lock.__sizeof__()
    free, held = list[bytes](), list[bytes]()
    for _ in range(2):
        free.append(ctypes.string_at(id(lock), size_bytes))
        with lock:
            held.append(ctypes.string_at(id(lock), size_bytes))
    places = [
        k for k in range(size_bytes)
        if all(image[k] == 0 for image in free) and all(image[k] == 1 for image in held)
    ]
    return places[0] if len(places) == 1 else None


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
        and _word(("a", "b"), TUPLE_SIZE) == 2 and _word(("a", array), TUPLE_ITEMS + 8) == id(array)
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
