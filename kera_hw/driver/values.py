"""Values at the edge: reading inputs from files and literals, saving results, random and corner items."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from kera_hw.driver.files import read_bytes, write_atomically
from kera_hw.driver.options import Executor
from kera_hw.graph import Export
from kera_hw.support import Diagnostic, KeraError
from kera_hw.types import (
    BoolType,
    FixType,
    FloatType,
    IntType,
    StructType,
    TensorType,
    TupleType,
    Type,
    element_type,
    numpy_dtype,
    shape_of,
)

Array = np.ndarray[Any, np.dtype[Any]]


def fault(message: str) -> KeraError:
    """K0905: the value given on the command line cannot be used."""
    return KeraError([Diagnostic("K0905", message)])


def read_inputs(export: Export, given: Sequence[str], batch: bool) -> dict[str, Any]:
    """Values by parameter name from `NAME=file.npy`, `NAME=file.npz` (fields as `a.b`) or `NAME=literal`."""
    kinds = dict(export.params)
    values: dict[str, Any] = {}
    for item in given:
        name, equals, text = item.partition("=")
        if not equals or name not in kinds:
            names = ", ".join(kinds) or "none"
            raise fault(f"`{item}` does not name a parameter; `{export.name}` takes: {names}.")
        if name in values:
            raise fault(f"The parameter `{name}` is given twice.")
        values[name] = _read_value(name, text, kinds[name])
    missing = [name for name in kinds if name not in values]
    if missing:
        raise fault(f"`{export.name}` needs a value for `{missing[0]}`; give it as -i {missing[0]}=...")
    return values


def _read_value(name: str, text: str, kind: Type) -> Any:
    path = Path(text)
    if path.suffix in (".npy", ".npz"):
        data = read_bytes(path)
        if isinstance(data, Diagnostic):
            raise KeraError([data])
        try:
            loaded = np.load(io.BytesIO(data), allow_pickle=False)
            return loaded if isinstance(loaded, np.ndarray) else _from_npz(dict(loaded), kind)
        except (ValueError, OSError, EOFError, KeyError, MemoryError) as error:
            raise fault(f"The file {path} for `{name}` is no usable NumPy file: {error}.") from None
    try:
        return _literal(json.loads(text), kind)
    except (ValueError, TypeError, OverflowError, RecursionError):
        raise fault(f"`{text}` is no value of type {kind} for `{name}`; write JSON or name a .npy.") from None


def _literal(value: Any, kind: Type) -> Any:
    """A JSON value as a value of the type: objects for structs, lists for tuples and tensors."""
    if isinstance(kind, StructType):
        return {name: _literal(value[name], item) for name, item in kind.fields}
    if isinstance(kind, TupleType):
        return tuple(_literal(v, item) for v, item in zip(value, kind.items, strict=True))
    array = np.asarray(value)
    if isinstance(element_type(kind), FloatType):
        return array.astype(numpy_dtype(kind))
    return array


def _from_npz(arrays: Mapping[str, Array], kind: Type, prefix: str = "") -> Any:
    """Nested values from flat names: fields and positions are joined by dots."""
    if isinstance(kind, TensorType) and isinstance(kind.element, (StructType, TupleType)):
        kind = kind.element
    if isinstance(kind, StructType):
        return {name: _from_npz(arrays, item, f"{prefix}{name}.") for name, item in kind.fields}
    if isinstance(kind, TupleType):
        return tuple(_from_npz(arrays, item, f"{prefix}{i}.") for i, item in enumerate(kind.items))
    return arrays[prefix[:-1]]


def flatten_named(value: Any, prefix: str = "") -> Iterator[tuple[str, Array]]:
    """Leaves of a value with dotted names, as `.npz` files hold them."""
    if isinstance(value, Mapping):
        for name, item in cast("Mapping[str, Any]", value).items():
            yield from flatten_named(item, f"{prefix}{name}.")
    elif isinstance(value, tuple):
        for i, item in enumerate(cast("tuple[Any, ...]", value)):
            yield from flatten_named(item, f"{prefix}{i}.")
    else:
        yield prefix[:-1] or "result", np.asarray(value)


def save_npz(path: Path, value: Any) -> None:
    """Writes the leaves of a value; one plain array is called `result`. bf16 is stored as its raw bits."""
    arrays = {
        name: array.view(np.uint16) if array.dtype.name == "bfloat16" else array
        for name, array in flatten_named(value)
    }
    stream = io.BytesIO()
    np.savez(stream, **cast("Any", arrays))
    write_atomically(path, stream.getvalue())


def describe_value(value: Any) -> str:
    """For a terminal: one line a leaf."""
    rows = list(flatten_named(value))
    if len(rows) == 1 and rows[0][0] == "result":
        return _show(rows[0][1])
    return "\n".join(f"{name} = {_show(array)}" for name, array in rows)


def _show(array: Array) -> str:
    return np.array2string(array, threshold=64, max_line_width=100)


def run_inputs(export: Export, executor: Executor, values: Mapping[str, Any], batch: bool) -> Any:
    """Runs one item, or a batch along the leading axis."""
    from kera_hw.driver.api import Function

    function = Function(export, executor)
    return function.batch(**values) if batch else function(**values)


def map_leaves(value: Any, change: Callable[[Array], Array]) -> Any:
    """The same structure with every array changed."""
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value).items()
        return {name: map_leaves(item, change) for name, item in items}
    if isinstance(value, tuple):
        return tuple(map_leaves(item, change) for item in cast("tuple[Any, ...]", value))
    return change(np.asarray(value))


def random_value(kind: Type, count: int, rng: np.random.Generator, outer: tuple[int, ...] = ()) -> Any:
    """``count`` items of a type: a mix of uniform, corner, small and sparse bit patterns in every leaf."""
    if isinstance(kind, StructType):
        return {name: random_value(item, count, rng, outer) for name, item in kind.fields}
    if isinstance(kind, TupleType):
        return tuple(random_value(item, count, rng, outer) for item in kind.items)
    if isinstance(kind, TensorType):
        return random_value(kind.element, count, rng, outer + kind.shape)
    return _random_scalars(kind, (count, *outer, *shape_of(kind)), rng)


def _random_scalars(kind: Type, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    if isinstance(kind, BoolType):
        return rng.integers(0, 2, shape).astype(np.bool_)
    width = kind.width_bits if isinstance(kind, (IntType, FixType, FloatType)) else 1
    bits = (
        rng.integers(0, 1 << 64, shape, dtype=np.uint64, endpoint=False)
        if width
        else np.zeros(shape, np.uint64)
    )
    corners = np.array(
        sorted(
            {
                0,
                1,
                2,
                3,
                (1 << width) - 1,
                (1 << width) - 2,
                1 << (width - 1),
                (1 << (width - 1)) - 1,
                ((1 << (width - 1)) + 1) % (1 << width),
                0x5555555555555555 & ((1 << width) - 1),
            }
        ),
        np.uint64,
    )
    # An item is of one mood throughout, so that whole tensors of corners occur.
    mood = rng.integers(0, 8, shape[:1]).reshape(-1, *([1] * (len(shape) - 1)))
    small = bits % np.uint64(16)
    sparse = np.uint64(1) << (bits % np.uint64(width))
    picked = corners[(bits % np.uint64(len(corners))).astype(np.intp)]
    bits = np.where(mood == 0, picked, np.where(mood == 1, small, np.where(mood == 2, sparse, bits)))
    return from_bits(kind, bits & np.uint64((1 << width) - 1))


def from_bits(kind: Type, bits: Array) -> Array:
    """Raw bit patterns (uint64, below 2^W) as values of a scalar type in its storage dtype."""
    dtype = numpy_dtype(kind)
    if isinstance(kind, BoolType):
        return bits.astype(np.bool_)
    if isinstance(kind, FloatType):
        raw = bits.astype(f"u{dtype.itemsize}")
        exponent = ((1 << kind.exponent_bits) - 1) << kind.fraction_bits
        magnitude = raw & raw.dtype.type((1 << (kind.width_bits - 1)) - 1)
        return np.where(magnitude > exponent, raw.dtype.type(kind.canonical_nan), raw).view(dtype)
    raw_kind = kind.raw if isinstance(kind, FixType) else kind
    assert isinstance(raw_kind, IntType)
    if not raw_kind.signed:
        return bits.astype(dtype)
    shift = np.uint64(64 - raw_kind.width_bits)
    return ((bits << shift).view(np.int64) >> np.int64(int(shift))).astype(dtype)


def to_bits(kind: Type, values: Array) -> Array:
    """The raw bit patterns (uint64) of values in storage form; the inverse of ``from_bits``."""
    if isinstance(kind, FloatType):
        return values.view(f"u{values.dtype.itemsize}").astype(np.uint64)
    width = kind.width_bits if isinstance(kind, (IntType, FixType)) else 1
    return values.astype(np.int64 if values.dtype.kind == "i" else np.uint64).view(np.uint64) & np.uint64(
        (1 << width) - 1
    )
