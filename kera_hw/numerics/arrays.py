"""The array form of integers: storage dtypes, canonical width, 64-bit working form."""
from __future__ import annotations

from typing import Any

import numpy as np

from kera_hw.types import IntType, numpy_dtype

Array = np.ndarray[Any, np.dtype[Any]]

UINT64 = np.dtype(np.uint64)
INT64 = np.dtype(np.int64)
ALL_ONES = np.uint64(0xFFFF_FFFF_FFFF_FFFF)


def canonical(raw: Array, kind: IntType) -> Array:
    """An array in the type's storage dtype, whatever its upper bits, reduced modulo 2^W."""
    spare_bits = 8 * raw.dtype.itemsize - kind.width_bits
    if spare_bits == 0:
        return raw
    if kind.signed:
        return (raw << spare_bits) >> spare_bits
    return raw & raw.dtype.type(kind.max)


def wrap(values: Array, kind: IntType) -> Array:
    """Integers of any dtype (also bool) reduced modulo 2^W into the type's storage."""
    dtype = numpy_dtype(kind)
    return canonical(values if values.dtype == dtype else values.astype(dtype), kind)


def is_canonical(raw: Array, kind: IntType) -> bool:
    """Whether a storage array holds only values of the type."""
    return bool(np.array_equal(canonical(raw, kind), raw))


def wide(values: Array) -> Array:
    """The same values in 64 bits of the same signedness; bool becomes unsigned."""
    return values.astype(INT64 if values.dtype.kind == "i" else UINT64, copy=False)


def pattern(values: Array) -> Array:
    """Sign-extended 64-bit patterns as uint64: arithmetic modulo 2^64."""
    return values.astype(UINT64, copy=False)


def unsigned_bits(values: Array, width_bits: int) -> Array:
    """The W bits of each value as a non-negative number, in the unsigned dtype of the same size."""
    if values.dtype.kind != "i":
        return values
    raw = values.view(np.dtype(f"u{values.dtype.itemsize}"))
    return raw & raw.dtype.type((1 << width_bits) - 1)


def clip(values: Array, low: int, high: int) -> Array:
    """Clamp to ``[low, high]``, which may exceed the array's dtype on either side; keeps the dtype."""
    info = np.iinfo(values.dtype)
    kind = values.dtype.type
    if low > info.min:
        values = np.maximum(values, kind(low))
    if high < info.max:
        values = np.minimum(values, kind(high))
    return values


def uniform(values: Array) -> int | None:
    """The one integer a scalar batch holds in every lane, where its layout shows that at no cost."""
    if values.ndim == 1 and (values.strides[0] == 0 or values.shape[0] == 1) and values.shape[0]:
        return int(values[0])
    return None
