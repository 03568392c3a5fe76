"""Calls whose arguments are arrays as machine code takes them go straight to it.

What is not (another dtype, lists, integers of odd widths) is left to the way that converts and checks, and
says what is wrong. A NaN may have any bits: native programs look no closer at those of a parameter
(``legal.legalise``). Scalars pass through places of their own.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Any, Protocol, cast

import numpy as np

from kera_hw.cpu_gpu.doorway import Doorway, Keywords, Leaf, leaf_of
from kera_hw.driver.values import Array
from kera_hw.graph import Export
from kera_hw.types import (
    FloatType,
    IntType,
    TensorType,
    Type,
    element_type,
    leaf_types,
    numpy_dtype,
    shape_of,
)

Call = Callable[[int, Any, int], None]


class OpenDoor(Protocol):
    """As of ``cpu_gpu.engine.Instance``."""

    def __call__(
        self, leaves: Sequence[Leaf], keywords: Keywords | None = None, enters: bool = True
    ) -> Doorway | None: ...



_CELL = ctypes.c_char
_REFUSED = object()
_MOST_WAITED_FOR_BYTES = 1 << 20
"""Of all arrays of a call for which other threads of Python wait, since it takes microseconds."""
_IN_PLACE = frozenset((8, 16, 32, 64))


@dataclass(frozen=True, slots=True)
class _Port:
    """A leaf: its name, what an array of it is; ``cell`` is the place of a scalar."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    is_float: bool
    cell: Array | None
    size_bytes: int


class Direct:
    """``run(items, ports, memory)`` as the code is called. Not for several threads at once."""

    def __init__(
        self, ports: Sequence[_Port], result: _Port, run: Call, memory: int, open_door: OpenDoor | None = None
    ) -> None:
        self._params, self._result = tuple(ports), result
        self._run, self._memory = run, memory
        self._names = [port.name for port in ports]
        self._places = (ctypes.c_void_p * (len(ports) + 1))()
        for k, port in enumerate((*ports, result)):
            if port.cell is not None:
                self._places[k] = port.cell.ctypes.data
        self._doorway: Doorway | None = None
        self._open_door: Callable[[Keywords], Doorway | None] | None = None
        self._enters = sum(port.size_bytes for port in (*ports, result)) <= _MOST_WAITED_FOR_BYTES
        if open_door is not None and result.cell is None:
            leaves = [leaf_of(port.dtype, None if port.cell is not None else port.shape) for port in ports]
            leaves.append(leaf_of(result.dtype, result.shape, written=True))
            self._doorway = open_door(leaves, enters=self._enters)
            self._open_door = partial(open_door, leaves) if self._enters else None

    def call(self, inputs: Mapping[str, Any], out: Array | None) -> Any:
        """One item's result; NotImplemented where that is for the other way."""
        params, places = self._params, self._places
        if len(inputs) != len(params):
            return NotImplemented
        try:
            if self._doorway is not None:
                target = np.empty(self._result.shape, self._result.dtype) if out is None else out
                found = self._doorway.call(*[inputs[name] for name in self._names], target, _REFUSED)
                if found is not _REFUSED:
                    if not self._enters:
                        self._run(1, self._doorway.places, self._memory)
                    return found
            for k, port in enumerate(params):
                value = inputs[port.name]
                if port.cell is not None:
                    if type(value) is int:
                        if port.is_float:
                            return NotImplemented
                    elif type(value) is not port.dtype.type:
                        return NotImplemented
                    port.cell[0] = value
                    continue
                if type(value) is not np.ndarray or value.dtype != port.dtype or value.shape != port.shape:
                    return NotImplemented
                if not value.flags.c_contiguous:
                    return NotImplemented
                places[k] = _address(value)
            return self._answered(out)
        except (KeyError, OverflowError):
            return NotImplemented

    def quick(self, turn: Lock, otherwise: Callable[..., Any]) -> Callable[..., Any] | None:
        """The shortest way: calls with parameters and `out` by name, in that order. Others, those with values
        that are not as the code takes them, and all while the turn is taken, go ``otherwise``."""
        if self._open_door is None:
            return None
        names = tuple(map(sys.intern, (*self._names, "out")))
        doorway = self._open_door(Keywords(names, turn, otherwise))
        return None if doorway is None else doorway.call

    def _meets_params(self, out: int) -> bool:
        """Whether results there would be written over what is still to be read."""
        end = out + self._result.size_bytes
        return any(
            port.cell is None and place < end and out < place + port.size_bytes
            for port, place in zip(self._params, self._places)
        )

    def _answered(self, out: Array | None) -> Any:
        result = self._result
        if result.cell is not None:
            if out is not None:
                return NotImplemented
            self._run(1, self._places, self._memory)
            return result.cell[0]
        if out is None:
            out = np.empty(result.shape, result.dtype)
        elif not fits(out, result.dtype, result.shape) or self._meets_params(_address(out)):
            return NotImplemented
        self._places[len(self._params)] = _address(out)
        self._run(1, self._places, self._memory)
        return out


def direct_of(
    export: Export, run: Call, memory: int, open_door: OpenDoor | None = None
) -> Direct | None:
    """The direct way of a function whose leaves machine code takes as they are; None where some are not."""
    kinds = [*export.params, ("", export.result)]
    if export.kind == "stream" or not all(_is_plain(kind) for _, kind in kinds):
        return None
    *params, result = (_port(name, kind) for name, kind in kinds)
    return Direct(params, result, run, memory, open_door)


def _is_plain(kind: Type) -> bool:
    """Whether a value is one array, or one scalar, of numbers that are held as they are."""
    leaves = leaf_types(kind)
    if len(leaves) != 1 or leaves[0] != kind:
        return False
    element = element_type(kind)
    size = np.prod(shape_of(kind), dtype=np.int64) if isinstance(kind, TensorType) else 1
    whole = isinstance(element, IntType) and element.width_bits in _IN_PLACE
    return bool(size) and (whole or (isinstance(element, FloatType) and element.width_bits >= 32))


def _port(name: str, kind: Type) -> _Port:
    dtype, is_tensor = numpy_dtype(element_type(kind)), isinstance(kind, TensorType)
    cell = None if is_tensor else np.zeros(1, dtype)
    shape, is_float = shape_of(kind), isinstance(element_type(kind), FloatType)
    size_bytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    return _Port(name, dtype, shape, is_float, cell, size_bytes)


def fits(out: object, dtype: np.dtype[Any], shape: tuple[int, ...]) -> bool:
    """Whether results of that type and shape can be written into an array as they are."""
    if not isinstance(out, np.ndarray):
        return False
    array = cast("Array", out)
    flags = array.flags
    return array.dtype == dtype and array.shape == shape and flags.c_contiguous and flags.writeable


def _address(array: Array) -> int:
    try:
        return ctypes.addressof(_CELL.from_buffer(cast("Any", array)))
    except TypeError:  # it may not be written to
        return array.ctypes.data
