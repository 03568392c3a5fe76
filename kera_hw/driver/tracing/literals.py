"""Python's and NumPy's values as Kera text."""
from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

from kera_hw.ops.spec import Array

_NAMES = {np.dtype(np.bool_): "bool", np.dtype(ml_dtypes.bfloat16): "bf16"}


def kera_type(dtype: np.dtype[Any]) -> str | None:
    """The scalar type that a NumPy dtype is the storage of; None where there is none."""
    if dtype in _NAMES:
        return _NAMES[dtype]
    if dtype.kind in "iuf" and dtype.itemsize in ((2, 4, 8) if dtype.kind == "f" else (1, 2, 4, 8)):
        return f"{dtype.kind}{8 * dtype.itemsize}"
    return None


def number(value: float) -> str | None:
    """A literal that takes its type from where it stands; None for an infinity or a NaN, which has none."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and not math.isfinite(value):
        return None
    text = repr(value).replace("e+", "e")
    return f"({text})" if text.startswith("-") else text


def array_text(array: Array, kind: str) -> str:
    """An array, or a NumPy scalar, of the storage of ``kind`` as an expression of it."""
    if array.dtype.kind in "fV" and not np.isfinite(array.astype(np.float64)).all():
        bits = array.view(f"u{array.dtype.itemsize}")
        return f"bitcast::<{kind}>({array_text(bits, f'u{8 * array.dtype.itemsize}')})"
    if array.ndim and array.tobytes() == array.ravel()[:1].tobytes() * array.size:
        element = array.flat[0] if array.size else np.zeros((), array.dtype)[()]
        return f"[{_element(element, kind)}; {', '.join(map(str, array.shape))}]"
    return _nested(array, kind)


def _nested(array: Array, kind: str) -> str:
    if array.ndim == 0:
        return _element(array[()], kind)
    if array.ndim > 1:
        return f"[{', '.join(_nested(row, kind) for row in array)}]"
    plain: list[Any] = (array.astype(np.float64) if array.dtype.kind in "fV" else array).tolist()
    texts = [text.lower() if kind == "bool" else text for text in map(repr, plain)]
    if texts and kind != "bool":
        texts[0] += kind  # the rest follow the first
    return f"[{', '.join(texts).replace('e+', 'e')}]"


def _element(value: Any, kind: str) -> str:
    if kind == "bool":
        return "true" if value else "false"
    plain = float(value) if value.dtype.kind in "fV" else int(value)
    return f"({plain!r}{kind})".replace("e+", "e") if plain < 0 else f"{plain!r}{kind}".replace("e+", "e")
