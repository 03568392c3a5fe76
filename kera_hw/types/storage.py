"""How scalars travel in NumPy arrays.

Integers use the smallest dtype that holds them, fixed point its raw integer, bool ``bool_``; f16/f32/f64
the NumPy floats and bf16 ``ml_dtypes.bfloat16``. Integers wider than a word are arrays of Python's.
"""
from __future__ import annotations

import ml_dtypes
import numpy as np

from kera_hw.types.dtypes import (
    BF16,
    F16,
    F32,
    F64,
    WORD_BITS,
    BoolType,
    FixType,
    FloatType,
    IntType,
    TensorType,
    Type,
)

FORMATS = (F16, BF16, F32, F64)
"""The float formats of the language. Others are for circuits inside, which carry their bits as integers."""
_FLOATS: dict[str, np.dtype[np.generic]] = {
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
}
_SIZES_BYTES = (1, 1, 1, 1, 2, 4, 8)
"""By the number of digits of a width less one: of 1 to 8 bits, 9 to 16, and so on."""
_INTEGERS = {
    signed: tuple([np.dtype(f"{'i' if signed else 'u'}{size}") for size in _SIZES_BYTES])
    for signed in (False, True)
}


def is_wide(kind: Type) -> bool:
    """Whether the type is an integer wider than any of the language."""
    return isinstance(kind, IntType) and kind.width_bits > WORD_BITS


def item_bytes(kind: Type) -> int:
    """Bytes of an element in a constant's canonical form."""
    if isinstance(kind, IntType) and is_wide(kind):
        return -(-kind.width_bits // 8)
    return numpy_dtype(kind).itemsize


def numpy_dtype(kind: Type) -> np.dtype[np.generic]:
    """The storage dtype of a scalar type, or of a tensor's elements."""
    if isinstance(kind, TensorType):
        return numpy_dtype(kind.element)
    if isinstance(kind, BoolType):
        return np.dtype(np.bool_)
    if isinstance(kind, FixType):
        return numpy_dtype(kind.raw)
    if isinstance(kind, FloatType):
        return _FLOATS[kind.name]
    assert isinstance(kind, IntType), f"{kind} has no array form"
    if is_wide(kind):
        return np.dtype(object)
    return _INTEGERS[kind.signed][(kind.width_bits - 1).bit_length()]
