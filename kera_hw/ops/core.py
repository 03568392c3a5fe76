"""Parameters of regions and constants."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kera_hw.numerics import floatbits
from kera_hw.numerics.arrays import Array, is_canonical
from kera_hw.ops.rules import Types, check_count, check_format, check_leaf, fail
from kera_hw.ops.spec import Attrs, EvalCall, OpSpec, Trait
from kera_hw.types import (
    BoolType,
    FixType,
    FloatType,
    IntType,
    TensorType,
    TokenType,
    Type,
    element_type,
    is_wide,
    item_bytes,
    numpy_dtype,
    shape_of,
)


def _infer_param(types: Types, attrs: Attrs) -> Types:
    check_count("core.param", types, 0)
    kind: Type = attrs["type"]
    if not isinstance(kind, TokenType):
        check_leaf("core.param", kind)
        check_format("core.param", kind)
    return (kind,)


def _param(call: EvalCall) -> Sequence[Array]:
    raise AssertionError("parameters are bound by whoever evaluates the region")


def decode_constant(kind: Type, data: bytes) -> Array:
    """The array of a constant's canonical bytes, without a batch axis, read-only."""
    if isinstance(kind, IntType) and is_wide(kind):
        return np.array(int.from_bytes(data, "little", signed=kind.signed), object)
    dtype = numpy_dtype(kind)
    return np.frombuffer(data, dtype.newbyteorder("<")).astype(dtype, copy=False).reshape(shape_of(kind))


def _infer_constant(types: Types, attrs: Attrs) -> Types:
    check_count("core.constant", types, 0)
    kind, data = attrs["type"], attrs["value"]
    check_leaf("core.constant", kind)
    check_format("core.constant", kind)
    size = kind.size if isinstance(kind, TensorType) else 1
    if len(data) != size * item_bytes(element_type(kind)):
        fail(f"A constant of type {kind} does not have {len(data)} bytes.")
    if not _holds(kind, data):
        fail(f"A constant of type {kind} has bits beyond its type or a NaN that is not the canonical one.")
    return (kind,)


def _holds(kind: Type, data: bytes) -> bool:
    element = element_type(kind)
    if isinstance(element, BoolType):
        return not data.strip(b"\0\1")
    array = decode_constant(kind, data)
    if isinstance(kind, IntType) and is_wide(kind):
        return kind.min <= int(array) <= kind.max
    if isinstance(element, FloatType):
        bits = floatbits.to_bits(array)
        return bool(np.array_equal(bits, floatbits.to_bits(floatbits.canonical_nans(array, element))))
    if isinstance(element, FixType):
        element = element.raw
    assert isinstance(element, IntType)
    return is_canonical(array, element)


def _constant(call: EvalCall) -> Sequence[Array]:
    array = decode_constant(call.types[0], call.attrs["value"])
    return (np.broadcast_to(array, (call.context.batch, *array.shape)),)


TABLE: tuple[OpSpec, ...] = (
    OpSpec(
        "core.param", "Parameter number `index` of the region that holds it.",
        _infer_param, _param, frozenset({Trait.SOURCE}), attrs=("index", "type"),
    ),
    OpSpec(
        "core.constant", "A constant; `value` is its array in C order, little-endian, in the storage type.",
        _infer_constant, _constant, frozenset({Trait.SOURCE}), attrs=("type", "value"),
    ),
)
