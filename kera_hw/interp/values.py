"""Values at the edge: Python and NumPy values to leaves and back, checked against their types.

Conventions: integers in the smallest dtype that holds them, fixed point as its raw integer, structs as
dicts, tuples as tuples; a tensor of structs is a dict of arrays. With a batch every array has the items as
its leading axis. Going in, a list of structs may also be just that: a list of dicts or of tuples, or a
structured array. Faults raise KeraError with K0911 to K0915.
"""
from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import isfinite
from typing import Any, NoReturn, cast

import numpy as np

from kera_hw.numerics import floatbits, floats
from kera_hw.numerics.arrays import Array, is_canonical
from kera_hw.support import Diagnostic, KeraError
from kera_hw.types import (
    F16,
    F32,
    F64,
    BoolType,
    FixType,
    FloatType,
    IntType,
    StructType,
    TensorType,
    TupleType,
    Type,
    element_type,
    leaf_types,
    numpy_dtype,
    shape_of,
)

Value = Any


def reject(code: str, message: str) -> NoReturn:
    """Raise the one diagnostic of an input at fault."""
    raise KeraError([Diagnostic(code, message)])


def flatten_value(kind: Type, value: Value, batch: int | None = None, name: str = "value") -> list[Array]:
    """The leaves of a value as canonical batch-first arrays, ``(1, ...)`` where ``batch`` is None.

    ``batch``: how many items the leading axis of each array must hold. ``name`` is for messages.
    """
    leaves: list[Array] = []
    _flatten(kind, value, () if batch is None else (batch,), name, leaves)
    return [leaf[np.newaxis] for leaf in leaves] if batch is None else leaves


def _flatten(kind: Type, value: Value, outer: tuple[int, ...], name: str, leaves: list[Array]) -> None:
    if isinstance(kind, (StructType, TupleType)) and outer and _is_list_of_items(kind, value):
        leaves += _stacked(kind, list(value), outer, name)
    elif isinstance(kind, StructType):
        items = _fields(kind, value, bool(outer))
        if items is None or set(items) != {field for field, _ in kind.fields}:
            names = ", ".join(field for field, _ in kind.fields)
            also = ", or as a list of such dicts" if outer else ""
            reject("K0911", f"`{name}` is a {kind}: give it as a dict with the fields {names}{also}.")
        for field, item in kind.fields:
            _flatten(item, items[field], outer, f"{name}.{field}", leaves)
    elif isinstance(kind, TupleType):
        parts = _positions(value)
        if parts is None or len(parts) != len(kind.items):
            also = f", each with the items of {outer[0]}" if outer else ""
            reject("K0911", f"`{name}` is a {kind}: give it as a tuple of {len(kind.items)} values{also}.")
        for position, item in enumerate(kind.items):
            _flatten(item, parts[position], outer, f"{name}.{position}", leaves)
    elif isinstance(kind, TensorType) and isinstance(kind.element, (StructType, TupleType)):
        _flatten(kind.element, value, outer + kind.shape, name, leaves)
    else:
        leaves.append(_leaf(kind, value, outer, name))


def _is_list_of_items(kind: StructType | TupleType, value: Value) -> bool:
    """Whether the value lists structs or tuples, where otherwise it would hold an array for each leaf.

    A tuple's arrays may come in a list as well, so that its items are told by being tuples themselves.
    """
    if isinstance(value, np.ndarray):
        array = cast("Array", value)
        return array.dtype == object and array.ndim > 0
    if not isinstance(value, list):
        return False
    items = cast("list[Value]", value)
    return isinstance(kind, StructType) or all(isinstance(item, (tuple, np.void)) for item in items)


def _stacked(kind: Type, items: list[Value], outer: tuple[int, ...], name: str) -> list[Array]:
    """The leaves of items given one by one along the first axis of ``outer``."""
    if len(items) != outer[0]:
        reject("K0912", f"`{name}` takes {outer[0]} of {kind}, but got {len(items)}.")
    rows: list[list[Array]] = []
    for position, item in enumerate(items):
        rows.append([])
        _flatten(kind, item, outer[1:], f"{name}[{position}]", rows[-1])
    if rows:
        return [np.stack(leaf) for leaf in zip(*rows, strict=True)]
    return [np.zeros(outer + shape_of(leaf), numpy_dtype(element_type(leaf))) for leaf in leaf_types(kind)]


def _fields(kind: StructType, value: Value, columns: bool) -> Mapping[str, Value] | None:
    """Values by field; a single struct may be a tuple in the order of declaration."""
    if isinstance(value, Mapping):
        return cast("Mapping[str, Value]", value)
    if isinstance(value, (np.ndarray, np.void)):
        array = cast("Array", value)
        return None if array.dtype.names is None else {field: array[field] for field in array.dtype.names}
    if columns or not isinstance(value, tuple):
        return None
    parts = cast("tuple[Value, ...]", value)
    names: Any = getattr(cast("Any", value), "_fields", [field for field, _ in kind.fields])
    return dict(zip(names, parts, strict=True)) if len(names) == len(parts) else None


def _positions(value: Value) -> list[Value] | None:
    """The parts of a tuple; those of a structured array are its fields in order."""
    if isinstance(value, (np.ndarray, np.void)):
        array = cast("Array", value)
        return None if array.dtype.names is None else [array[field] for field in array.dtype.names]
    return list(cast("tuple[Value, ...]", value)) if isinstance(value, (tuple, list)) else None


def _leaf(kind: Type, value: Value, outer: tuple[int, ...], name: str) -> Array:
    shape, element = outer + shape_of(kind), element_type(kind)
    array = _array(value, element, name)
    if array.shape != shape:
        wanted = f"an array of shape {shape}" if shape else "a single value"
        found = f"{array.shape}" if shape else f"an array of shape {array.shape}"
        found = found if array.shape else "a single value"
        message = f"`{name}` of type {kind} takes {wanted}, but got {found}"
        if not outer and array.shape[1:] == shape:
            message += "; several items are a batch (`--batch`, `.batch()`)"
        reject("K0912", f"{message}.")
    if isinstance(element, BoolType):
        return array
    if isinstance(element, FloatType):
        return floatbits.canonical_nans(np.ascontiguousarray(array).reshape(shape), element)
    return _integers(array, element, name)


def _array(value: Value, element: Type, name: str) -> Array:
    """The value as an array of a dtype that goes with the element type."""
    if hasattr(value, "__dlpack__") and not isinstance(value, (np.ndarray, np.generic)):
        value = _exchanged(value, name)
    try:
        array: Array = np.asarray(cast("Any", value))
    except (ValueError, OverflowError, TypeError):
        reject("K0912", f"`{name}` is no array of numbers whose rows have one length.")
    if array.size == 0 and not isinstance(value, (np.ndarray, np.generic)):
        array = array.astype(numpy_dtype(element))  # an empty list has no dtype of its own
    dtype = array.dtype
    if isinstance(element, BoolType):
        fits = dtype == np.bool_
    elif isinstance(element, FloatType):
        if not isinstance(value, (np.ndarray, np.generic)):
            array = _nearest(array, element)
        fits = array.dtype == numpy_dtype(element)
    else:
        fits = dtype.kind in "iu" or (dtype.kind == "O" and _all_ints(array))
    if not fits:
        message = f"`{name}` of type {element} takes {_wanted(element)}, but got {_found(array)}"
        reject("K0913", f"{message}{_conversion(array, element)}.")
    return array


def _exchanged(value: Value, name: str) -> Array:
    """An array of another library that lies in this processor's memory, as one of NumPy's."""
    try:
        return np.from_dlpack(value)
    except (BufferError, TypeError, RuntimeError, ValueError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        reject("K0912", f"`{name}` is an array that cannot be had by DLPack: {reason}")


_HOST_FLOATS = {2: F16, 4: F32, 8: F64}


def _nearest(array: Array, element: FloatType) -> Array:
    """Python's numbers in the format, each rounded once as a literal would be; others stay as they are."""
    if array.dtype.kind in "iu":
        return floats.from_integer(array, element)
    if array.dtype.kind == "f" and array.dtype.itemsize in _HOST_FLOATS:
        return floats.convert(array, _HOST_FLOATS[array.dtype.itemsize], element)
    if array.dtype.kind == "O" and _all_finite(array):
        bits = [floatbits.nearest(Fraction(item), element) for item in array.flat]
        word = np.dtype(f"u{numpy_dtype(element).itemsize}")
        return np.array(bits, word).view(numpy_dtype(element)).reshape(array.shape)
    return array


def _all_finite(array: Array) -> bool:
    return all(_is_int(item) or (isinstance(item, float) and isfinite(item)) for item in array.flat)


def _is_int(item: object) -> bool:
    return isinstance(item, int) and not isinstance(item, bool)


def _all_ints(array: Array) -> bool:
    return all(_is_int(item) for item in array.flat)


def _wanted(element: Type) -> str:
    if isinstance(element, BoolType):
        return "bool values"
    if isinstance(element, FloatType):
        return f"{numpy_dtype(element).name} values"
    if not isinstance(element, FixType):
        return "integers"
    scale = f", values times 2^{element.fraction_bits}" if element.fraction_bits else ""
    return f"raw integers{scale}"


def _conversion(array: Array, element: Type) -> str:
    """How to convert an array of other numbers in NumPy, where that loses no more than precision."""
    if isinstance(element, FloatType) and array.dtype.kind in "iuf":
        module = "np" if numpy_dtype(element).kind == "f" else "ml_dtypes"
        return f"; convert it with `.astype({module}.{numpy_dtype(element).name})`"
    return ""


def _found(array: Array) -> str:
    if array.dtype.kind in "US":
        return "text"
    if array.dtype.names is not None:
        return f"a structured array of {', '.join(array.dtype.names)}"
    if array.dtype.kind == "O" and array.size:
        return f"{type(array.flat[0]).__name__} values"
    return f"{array.dtype.name} values"


def _integers(array: Array, element: Type, name: str) -> Array:
    raw = element.raw if isinstance(element, FixType) else element
    assert isinstance(raw, IntType)
    dtype = numpy_dtype(raw)
    if array.dtype == dtype:
        if not is_canonical(array, raw):
            _out_of_range(array, element, raw, name)
        return array
    if array.size and (int(array.min()) < raw.min or int(array.max()) > raw.max):
        _out_of_range(array, element, raw, name)
    return array.astype(dtype)


def _out_of_range(array: Array, element: Type, raw: IntType, name: str) -> NoReturn:
    low, high = int(array.min()), int(array.max())
    found = low if low < raw.min else high
    reject("K0914", f"`{name}` of type {element} holds {raw.min} to {raw.max}, but got {found}.")


def item_count(kind: Type, value: Value) -> int | None:
    """Items along the leading axis of a batched value, read off its first leaf; None where it has none."""
    if isinstance(kind, TensorType) and isinstance(kind.element, (StructType, TupleType)):
        return item_count(kind.element, value)
    if isinstance(kind, (StructType, TupleType)) and _is_list_of_items(kind, value):
        return len(value)
    if isinstance(kind, StructType):
        fields = _fields(kind, value, True) or {}
        return _first_count([(item, fields[name]) for name, item in kind.fields if name in fields])
    if isinstance(kind, TupleType):
        return _first_count(list(zip(kind.items, _positions(value) or [])))
    try:
        shape = np.shape(value)
    except ValueError:
        return None
    return shape[0] if shape else None


def _first_count(parts: list[tuple[Type, Value]]) -> int | None:
    for kind, value in parts:
        found = item_count(kind, value)
        if found is not None:
            return found
    return None


def unflatten_value(kind: Type, leaves: list[Array], batch: bool = True) -> Value:
    """The value of batch-first leaves: with ``batch`` arrays of all items, without it the first item."""
    value, rest = _unflatten(kind, leaves if batch else [leaf[0] for leaf in leaves])
    assert not rest, "more leaves than the type has"
    return value


def _unflatten(kind: Type, leaves: list[Array]) -> tuple[Value, list[Array]]:
    if isinstance(kind, TensorType) and isinstance(kind.element, (StructType, TupleType)):
        return _unflatten(kind.element, leaves)
    if isinstance(kind, StructType):
        fields: dict[str, Value] = {}
        for name, item in kind.fields:
            fields[name], leaves = _unflatten(item, leaves)
        return fields, leaves
    if isinstance(kind, TupleType):
        items: list[Value] = []
        for item in kind.items:
            value, leaves = _unflatten(item, leaves)
            items.append(value)
        return tuple(items), leaves
    return leaves[0], leaves[1:]
