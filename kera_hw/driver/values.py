"""Values at the edge: inputs from files and literals, results into files and onto the terminal."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn, cast

import numpy as np

from kera_hw.driver.files import MAX_DATA_BYTES, read_bytes, write_atomically
from kera_hw.graph import Export
from kera_hw.interp.values import item_count
from kera_hw.numerics import floatbits
from kera_hw.support import Diagnostic, KeraError
from kera_hw.types import (
    BF16,
    FloatType,
    StructType,
    TensorType,
    TupleType,
    Type,
    element_type,
    leaf_types,
    numpy_dtype,
)

Array = np.ndarray[Any, np.dtype[Any]]


def _reject(message: str) -> NoReturn:
    """K0905: the value given on the command line cannot be used."""
    raise KeraError([Diagnostic("K0905", message)])


def read_inputs(export: Export, given: Sequence[str]) -> dict[str, Any]:
    """Values by parameter name from `NAME=file.npy`, `NAME=file.npz` (fields as `a.b`) or `NAME=JSON`.

    Raises KeraError with K0901 or K0905. Shapes and ranges are for the target to check.
    """
    values = read_some_inputs(export, given)
    missing = [name for name, _ in export.params if name not in values]
    if missing:
        _reject(f"`{export.name}` needs a value for `{missing[0]}`; give it as -i {missing[0]}=...")
    return values


def read_some_inputs(export: Export, given: Sequence[str]) -> dict[str, Any]:
    """The same for any of the parameters."""
    kinds = dict(export.params)
    values: dict[str, Any] = {}
    for item in given:
        name, equals, text = item.partition("=")
        if not equals or name not in kinds:
            names = ", ".join(kinds) or "none"
            _reject(f"`{item}` does not name a parameter as NAME=VALUE; `{export.name}` takes: {names}.")
        if name in values:
            _reject(f"The parameter `{name}` is given twice.")
        values[name] = _read_value(name, text, kinds[name])
    return values


def count_items(export: Export, own: Mapping[str, Any]) -> int:
    """Of a user's inputs, batched. Raises KeraError (K0915) where that is not the same in all of them."""
    counts = {item_count(kind, own[name]) for name, kind in export.params if leaf_types(kind)}
    if len(counts) != 1 or None in counts:
        message = "Items of your own have the items along the leading axis of every input, as many in each."
        raise KeraError([Diagnostic("K0915", message)])
    return counts.pop() or 0


def _read_value(name: str, text: str, kind: Type) -> Any:
    path = Path(text)
    if path.suffix in (".npy", ".npz"):
        return _read_numpy(name, path, kind)
    try:
        parsed = _parsed(text)
    except (ValueError, RecursionError):
        _reject(f"`{text}` is no value of type {kind} for `{name}`; write JSON or name a .npy file.")
    return _literal(parsed, kind, name)


def _parsed(text: str) -> Any:
    """JSON, or as a scalar what the language and results also write: 0xff, 0b101, nan, inf, -inf."""
    if text in _WORDS:
        return text
    if re.fullmatch(r"-?0[box][0-9a-fA-F_]+", text):
        return int(text, 0)
    return json.loads(text, parse_float=Decimal)


def _read_numpy(name: str, path: Path, kind: Type) -> Any:
    data = read_bytes(path, MAX_DATA_BYTES)
    if isinstance(data, Diagnostic):
        raise KeraError([data])
    try:
        loaded: Any = np.load(io.BytesIO(data), allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return _stored(cast("Array", loaded), kind)
        return _from_npz(dict(loaded), kind)
    except KeyError as error:
        _reject(f"The file {path} holds no array {error} for `{name}` of type {kind}.")
    except (ValueError, OSError, EOFError, MemoryError, SyntaxError, zipfile.BadZipFile) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        _reject(f"The file {path} for `{name}` is no usable NumPy file: {reason}.")


def _literal(value: Any, kind: Type, name: str) -> Any:
    """A JSON value as a value of the type: objects for structs, lists for tuples and tensors.

    A list for a struct is a list of objects; what does not fit the type stays for the target to refuse.
    """
    if isinstance(kind, TensorType) and isinstance(kind.element, (StructType, TupleType)):
        return _literal(value, kind.element, name)
    if isinstance(kind, StructType):
        if isinstance(value, list):
            return [_literal(item, kind, f"{name}[{i}]") for i, item in enumerate(cast("list[Any]", value))]
        if not isinstance(value, dict):
            return value
        fields, known = cast("dict[str, Any]", value), dict(kind.fields)
        return {
            field: _literal(item, known[field], f"{name}.{field}") if field in known else item
            for field, item in fields.items()
        }
    if isinstance(kind, TupleType):
        parts = cast("list[Any]", value)
        if not isinstance(value, list) or len(parts) != len(kind.items):
            need = f"a list of {len(kind.items)} values, in a batch each a list itself"
            _reject(f"`{name}` of type {kind} takes {need}.")
        return tuple(_literal(v, item, f"{name}.{i}") for i, (v, item) in enumerate(zip(parts, kind.items)))
    return _number(value, element_type(kind))


_WORDS = {"nan": Decimal("nan"), "inf": Decimal("inf"), "-inf": Decimal("-inf")}
_BEYOND = 5000  # a decimal exponent past every format's range, where exact rationals would be huge


def _number(value: Any, element: Type) -> Any:
    """A JSON number, or a list of them, for an element type: a decimal rounds once into a float format.

    ``"nan"``, ``"inf"`` and ``"-inf"`` are what results say for what JSON lacks.
    """
    if isinstance(value, list):
        return [_number(item, element) for item in cast("list[Any]", value)]
    number = _WORDS.get(value) if isinstance(value, str) else value
    if isinstance(element, FloatType) and isinstance(number, (int, Decimal)) and not isinstance(value, bool):
        dtype = numpy_dtype(element)
        bits = _float_bits(Decimal(number), element)
        return np.array(bits, np.dtype(f"u{dtype.itemsize}")).view(dtype)[()]
    return float(value) if isinstance(value, Decimal) else value


def _float_bits(value: Decimal, kind: FloatType) -> int:
    if value.is_nan():
        return kind.canonical_nan
    negative, exponent = value.is_signed(), value.adjusted()
    if value.is_infinite() or exponent > _BEYOND:
        return floatbits.infinity(kind, negative)
    if exponent < -_BEYOND:
        return negative << (kind.width_bits - 1)
    return floatbits.nearest(Fraction(value), kind, negative)


def _from_npz(arrays: Mapping[str, Array], kind: Type, prefix: str = "") -> Any:
    """Nested values from flat names: fields and positions are joined by dots. KeyError names what lacks."""
    if isinstance(kind, TensorType) and isinstance(kind.element, (StructType, TupleType)):
        kind = kind.element
    if isinstance(kind, StructType):
        if not prefix and _is_structured(arrays):
            return _stored(next(iter(arrays.values())), kind)
        return {name: _from_npz(arrays, item, f"{prefix}{name}.") for name, item in kind.fields}
    if isinstance(kind, TupleType):
        if not prefix and _is_structured(arrays):
            return _stored(next(iter(arrays.values())), kind)
        return tuple(_from_npz(arrays, item, f"{prefix}{i}.") for i, item in enumerate(kind.items))
    if not prefix and len(arrays) == 1:
        return _stored(next(iter(arrays.values())), kind)
    return _stored(arrays[prefix[:-1] or "result"], kind)


def _is_structured(arrays: Mapping[str, Array]) -> bool:
    return len(arrays) == 1 and next(iter(arrays.values())).dtype.names is not None


def _stored(array: Array, kind: Type) -> Any:
    """bf16 travels in files as its bits: as ``save_npz`` writes them, or as NumPy does, without a name.

    A structured array becomes its fields, by name for a struct and in order for a tuple.
    """
    fields = array.dtype.names
    if isinstance(kind, TensorType) and fields is not None:
        kind = kind.element
    if isinstance(kind, StructType) and fields is not None:
        return {name: _stored(array[name], dict(kind.fields).get(name, kind)) for name in fields}
    if isinstance(kind, TupleType) and fields is not None and len(fields) == len(kind.items):
        return tuple(_stored(array[name], item) for name, item in zip(fields, kind.items))
    if element_type(kind) == BF16 and array.dtype in (np.dtype(np.uint16), np.dtype("V2")):
        return array.view(numpy_dtype(BF16))
    return array


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
    """Writes the leaves of a value; one plain array is called `result`. bf16 is stored as its raw bits.

    A path that ends in `.npy` takes a value of one leaf. Raises KeraError (K0905) for several, OSError.
    """
    arrays = {
        name: array.view(np.uint16) if array.dtype.name == "bfloat16" else array
        for name, array in flatten_named(value)
    }
    stream = io.BytesIO()
    if path.suffix == ".npy":
        if len(arrays) != 1:
            _reject(f"{path} holds one array, but the result has {len(arrays)}; write an .npz file.")
        np.save(stream, next(iter(arrays.values())))
    else:
        np.savez(stream, **cast("Any", arrays))
    write_atomically(path, stream.getvalue())


def describe_value(value: Any) -> str:
    """For a terminal: one line a leaf."""
    rows = list(flatten_named(value))
    if len(rows) == 1 and rows[0][0] == "result":
        return show_array(rows[0][1])
    return "\n".join(f"{name} = {show_array(array)}" for name, array in rows)


# More elements than this are shown without their bit patterns.
_SHOWN_BITS = 8


def show_array(array: Array) -> str:
    """For people: floats as the shortest decimal that reads back as the same number, few also with bits."""
    text = np.array2string(
        array, threshold=64, max_line_width=100, separator=", ", floatmode="unique",
        formatter={"bool": lambda value: "true" if value else "false"} if array.dtype.kind == "b" else None,
    )
    if array.dtype.kind in "biu" or not 0 < array.size <= _SHOWN_BITS:
        return text
    size_bytes = array.dtype.itemsize
    words = np.ascontiguousarray(array).reshape(-1).view(np.dtype(f"u{size_bytes}"))
    return f"{text} ({', '.join(f'0x{word:0{2 * size_bytes}x}' for word in words.tolist())})"
