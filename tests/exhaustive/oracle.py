"""Correctly rounded elementary functions from MPFR, one value at a time."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import gmpy2
import numpy as np

from kera_hw.numerics import rounding
from kera_hw.numerics.arrays import Array
from kera_hw.numerics.host import ieee
from kera_hw.types import FloatType
from tests.conformance.oracle import format_context

# Wide enough that a value which is no tie of a format does not become one: the nearest to a tie are
# gelu and silu, about x/2 + x^2/3, at odd subnormals, where x^2 stands 2^-149 (f32) below x.
WIDE = gmpy2.context(precision=200)
# Beyond this e^(-x^2/2) is below 2^-1150: gelu is x or underflows in every format.
GELU_END = 40

Value = Any  # gmpy2.mpfr

_DIRECT: dict[str, Callable[[Value], Value]] = {
    name: getattr(WIDE, name) for name in ("exp", "exp2", "log", "log2", "sin", "cos", "tanh", "erf")
}


def _sigmoid(x: Value) -> Value:
    return WIDE.div(1, WIDE.add(1, WIDE.exp(-x)))


def _silu(x: Value) -> Value:
    return gmpy2.mpfr("-0") if x == -math.inf else WIDE.div(x, WIDE.add(1, WIDE.exp(-x)))


def _gelu(x: Value) -> Value:
    if abs(x) > GELU_END:
        return x if x > 0 else gmpy2.mpfr("-0")
    return WIDE.div(WIDE.mul(x, WIDE.erfc(WIDE.div(-x, WIDE.sqrt(2)))), 2)


REAL: dict[str, Callable[[Value], Value]] = {**_DIRECT, "sigmoid": _sigmoid, "silu": _silu, "gelu": _gelu}


@ieee
def correct(name: str, values: Array, kind: FloatType) -> Array:
    """The function at every element, each rounded once to the format by MPFR; NaNs are canonical."""
    context = format_context(kind)
    wide: list[float] = rounding.widen(values, kind).tolist()
    if name in _DIRECT:
        function = getattr(context, name)
        rounded = [float(function(x)) for x in wide]
    else:
        real = REAL[name]
        rounded = [float(context.plus(real(gmpy2.mpfr(x)))) for x in wide]
    return rounding.store(np.array(rounded, np.float64), kind)
