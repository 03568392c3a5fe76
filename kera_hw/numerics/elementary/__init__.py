"""Elementary functions: correctly rounded on f16, bf16 and f32, a published algorithm on f64."""
from __future__ import annotations

from functools import cache

import numpy as np

from kera_hw.numerics.arrays import Array
from kera_hw.numerics.elementary import narrow
from kera_hw.numerics.elementary.program import Program, trace
from kera_hw.numerics.elementary.run import Runner
from kera_hw.numerics.floatbits import canonical_nans
from kera_hw.types import FloatType, numpy_dtype

FUNCTIONS: tuple[str, ...] = (
    "exp", "exp2", "log", "log2", "sin", "cos", "tanh", "sigmoid", "erf", "gelu", "silu",
)


@cache
def program(name: str) -> Program:
    """The f64 program behind a function of ``FUNCTIONS`` on f16, bf16 and f32."""
    return trace(narrow.ALGORITHMS[name])


@cache
def _runner(name: str) -> Runner:
    return Runner(program(name))


def evaluate(name: str, values: Array, kind: FloatType) -> Array:
    """A function of ``FUNCTIONS`` at every element of an array of the format's dtype; NaNs are canonical."""
    assert kind.name != "f64", "f64 has algorithms of its own"
    with np.errstate(all="ignore"):
        result = _runner(name)(np.ascontiguousarray(values).reshape(-1).astype(np.float64))
        # bf16 by way of f32: rounding twice never differs (tested on all inputs).
        if kind.name == "bf16":
            result = result.astype(np.float32)
        narrowed = result.astype(numpy_dtype(kind))
    return canonical_nans(narrowed, kind).reshape(values.shape)
