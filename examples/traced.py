"""Programs written in Python: the filter of `fir.kera`, and a layer of a network, run as machine code."""
from __future__ import annotations

from typing import Annotated, Any

import numpy as np

import kera_hw
from kera_hw import fn

TAPS = np.array([-12, -28, -33, 0, 98, 256, 430, 545, 545, 430, 256, 98, 0, -33, -28, -12], np.int16)
WEIGHTS = np.linspace(-1, 1, 32 * 8, dtype=np.float32).reshape(32, 8)


@kera_hw.trace
def fir(x: np.int16) -> np.int32:
    """A stream, since it has state: the value of ``line`` goes on to the next item."""
    line = kera_hw.state("[i16; 16]", 0)
    line.value = fn.shift_in(line.value, x)
    return fn.sum(fn.zip(line.value, TAPS, lambda a, b: fn.mul_wide(a, b)))


@kera_hw.trace
def layer(x: Annotated[Any, "[f32; 4, 32]"]):
    hidden = x @ WEIGHTS
    hidden = np.where(hidden > 0, hidden, hidden * np.float32(0.1))
    return fn.softmax(hidden, axis=1)


if __name__ == "__main__":
    print(fir.fingerprint)
    print(fir.function("fir", target="cpu").batch(x=np.array([1000, 0, 0, 0], np.int16)))
    rows = layer.function("layer", target="cpu")(x=np.ones((4, 32), np.float32))
    print(rows.shape, rows.dtype)
    print(layer.source)
