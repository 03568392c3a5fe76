"""ONNX models of single kernels, written by hand: a few messages of protocol buffers.

Numbers of fields are those of `onnx.proto`, versions 9 of the format and 20 of the operators.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

_KINDS = {"float32": 1, "int8": 3, "int32": 6, "int64": 7}
_IR_VERSION, _OPERATORS = 9, 20
Attribute = int | float | str | Sequence[int]


def _number(value: int) -> bytes:
    out = bytearray()
    value &= (1 << 64) - 1
    while True:
        value, low = value >> 7, value & 127
        out.append(low | (128 if value else 0))
        if not value:
            return bytes(out)


def _field(number: int, value: int | bytes | str | np.float32) -> bytes:
    """A field of a message: a varint, 32 bits, or bytes."""
    if isinstance(value, np.float32):
        return _number(number << 3 | 5) + value.tobytes()
    if isinstance(value, int):
        return _number(number << 3) + _number(value)
    raw = value.encode() if isinstance(value, str) else value
    return _number(number << 3 | 2) + _number(len(raw)) + raw


def _attribute(name: str, value: Attribute) -> bytes:
    if isinstance(value, int):
        return _field(1, name) + _field(3, value) + _field(20, 2)
    if isinstance(value, float):
        return _field(1, name) + _field(2, np.float32(value)) + _field(20, 1)
    if isinstance(value, str):
        return _field(1, name) + _field(4, value) + _field(20, 3)
    return _field(1, name) + b"".join(_field(8, one) for one in value) + _field(20, 7)


def node(kind: str, inputs: str, output: str, **attributes: Attribute) -> bytes:
    """One operator; ``inputs`` are names with blanks between them."""
    found = b"".join(_field(1, name) for name in inputs.split()) + _field(2, output) + _field(4, kind)
    return found + b"".join(_field(5, _attribute(*one)) for one in attributes.items())


def _value(name: str, kind: str, shape: Sequence[int] | None) -> bytes:
    dims = b"" if shape is None else _field(2, b"".join(_field(1, _field(1, one)) for one in shape))
    return _field(1, name) + _field(2, _field(1, _field(1, _KINDS[kind]) + dims))


def _constant(name: str, value: np.ndarray[Any, Any]) -> bytes:
    dims = b"".join(_field(1, one) for one in value.shape)
    return dims + _field(2, _KINDS[value.dtype.name]) + _field(8, name) + _field(9, value.tobytes())


def model(
    nodes: Sequence[bytes], inputs: Mapping[str, np.ndarray[Any, Any]],
    constants: Mapping[str, np.ndarray[Any, Any]], output: str = "float32",
) -> bytes:
    """The model whose result is `y`."""
    graph = [
        *(_field(1, one) for one in nodes), _field(2, "kernel"),
        *(_field(5, _constant(name, value)) for name, value in constants.items()),
        *(_field(11, _value(name, value.dtype.name, value.shape)) for name, value in inputs.items()),
        _field(12, _value("y", output, None)),
    ]  # fmt: skip
    operators = _field(1, "") + _field(2, _OPERATORS)
    return _field(1, _IR_VERSION) + _field(7, b"".join(graph)) + _field(8, operators)
