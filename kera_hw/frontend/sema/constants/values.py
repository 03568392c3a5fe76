"""Values in interpreter form as text, and as bit patterns."""
from __future__ import annotations

from typing import Any

import numpy as np

from kera_hw.ops.spec import Array
from kera_hw.types import BoolType, FixType, FloatType, StructType, TensorType, TupleType, Type, element_type

_MOST_ELEMENTS = 64


def bit_pattern(kind: Type, value: Array) -> Array:
    """The elements' bits as unsigned 64-bit integers, as wide as the element type."""
    element = element_type(kind)
    array = np.ascontiguousarray(value).reshape(np.shape(value))
    if isinstance(element, FloatType):
        return array.view(np.dtype(f"u{element.width_bits // 8}")).astype(np.uint64)
    width = getattr(element, "width_bits", 1)
    mask = np.uint64((1 << width) - 1)
    wide = array.astype(np.uint64) if array.dtype.kind in "bu" else array.astype(np.int64).view(np.uint64)
    return wide & mask


def format_value(kind: Type, value: Any) -> str:
    """A value as it would be written in source, long tensors shortened. ``value``: as in ``hir.Const``."""
    if isinstance(kind, StructType):
        fields = (f"{name}: {format_value(item, v)}" for (name, item), v in zip(kind.fields, value))
        return f"{kind} {{ {', '.join(fields)} }}"
    if isinstance(kind, TupleType):
        items = [format_value(item, v) for item, v in zip(kind.items, value)]
        return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
    if isinstance(kind, TensorType):
        return _format_tensor(kind, value, [_MOST_ELEMENTS])
    return _format_scalar(kind, value)


def _format_tensor(kind: TensorType, value: Any, budget: list[int]) -> str:
    extent, *rest = kind.shape
    inner = TensorType(kind.element, tuple(rest), kind.space) if rest else kind.element
    items: list[str] = []
    for index in range(extent):
        if budget[0] <= 0:
            items.append("…")
            break
        item = _element(value, index)
        if isinstance(inner, TensorType):
            items.append(_format_tensor(inner, item, budget))
        else:
            budget[0] -= 1
            items.append(format_value(inner, item))
    return f"[{', '.join(items)}]"


def _element(value: Any, index: int) -> Any:
    """One element of a tensor; of a tensor of products, the tuple of its parts."""
    return tuple(_element(part, index) for part in value) if isinstance(value, tuple) else value[index]  # pyright: ignore[reportUnknownVariableType]


def _format_scalar(kind: Type, value: Any) -> str:
    item = np.asarray(value).item()
    if isinstance(kind, BoolType):
        return "true" if item else "false"
    if isinstance(kind, FixType):
        return _format_fixed(item, kind.fraction_bits)
    if isinstance(kind, FloatType):
        return repr(float(item))
    return str(item)


def _format_fixed(raw: int, fraction_bits: int) -> str:
    """The exact decimal of raw * 2^-F: one digit after the point for each fraction bit, zeros stripped."""
    digits = str(abs(raw) * 5**fraction_bits).rjust(fraction_bits + 1, "0")
    whole, fraction = digits[: len(digits) - fraction_bits], digits[len(digits) - fraction_bits :]
    return f"{'-' if raw < 0 else ''}{whole}.{fraction.rstrip('0') or '0'}"
