"""One item of an export on the interpreter as bit patterns: what counterexamples are held against."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kera_hw.graph.node import Export
from kera_hw.interp import run_region
from kera_hw.numerics import floatbits
from kera_hw.numerics.arrays import Array, unsigned_bits, wrap
from kera_hw.types import (
    BoolType,
    FixType,
    FloatType,
    IntType,
    TensorType,
    Type,
    bit_width,
    element_type,
    numpy_dtype,
    shape_of,
)


def scalars_of(kinds: Sequence[Type]) -> list[Type]:
    """The scalar type of every element of leaves, in order."""
    return [
        element_type(kind) for kind in kinds
        for _ in range(kind.size if isinstance(kind, TensorType) else 1)
    ]


def interpret(export: Export, bits: Sequence[int]) -> list[int]:
    """Patterns of result leaves' elements, then of next states', from those of parameters and states."""
    args: list[Array] = []
    used = 0
    for kind in export.region.params:
        count = len(scalars_of([kind]))
        values = _from_bits(element_type(kind), bits[used : used + count])
        args.append(values.reshape(1, *shape_of(kind)))
        used += count
    assert used == len(bits), "patterns and parameters differ in number"
    results = run_region(export.region, args, 1)
    found: list[int] = []
    for kind, value in zip(export.region.result_types, results):
        found += _to_bits(element_type(kind), np.ascontiguousarray(value).ravel())
    return found


def _from_bits(kind: Type, bits: Sequence[int]) -> Array:
    raw = np.array(bits, np.uint64)
    if isinstance(kind, FloatType):
        return floatbits.from_bits(raw.astype(f"u{numpy_dtype(kind).itemsize}"), kind)
    if isinstance(kind, BoolType):
        return raw != 0
    integer = kind.raw if isinstance(kind, FixType) else kind
    assert isinstance(integer, IntType)
    return wrap(raw, integer)


def _to_bits(kind: Type, values: Array) -> list[int]:
    if isinstance(kind, FloatType):
        return [int(v) for v in floatbits.to_bits(values)]
    return [int(v) for v in unsigned_bits(values, bit_width(kind))]
