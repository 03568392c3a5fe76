"""Arithmetic of one format on working arrays: each result rounded once.

f32 and f64 work in their own host units; f16 and bf16 in f64, on values of their own grid. A sum or product
of two of those is exact in f64 or, like a quotient or root, has so many more bits than twice the format's
that rounding twice is rounding once (Figueroa, "When is double rounding innocuous?", 1995). A fused
multiply-add goes through round-to-odd. NaNs are canonical only once stored.

Callers wrap what they do in ``host.ieee``.
"""
from __future__ import annotations

from functools import cache

import numpy as np

from kera_hw.numerics import floatbits
from kera_hw.numerics.arrays import Array
from kera_hw.numerics.fused import fma64, sum_to_odd
from kera_hw.numerics.host import check_host
from kera_hw.numerics.rounding import is_small, quantise, store, widen
from kera_hw.types import FloatType, numpy_dtype


class Unit:
    """The native formats: storage form is working form."""

    def __init__(self, kind: FloatType) -> None:
        self.kind = kind
        self.dtype = np.dtype(np.float64) if is_small(kind) else numpy_dtype(kind)

    def load(self, values: Array) -> Array:
        """Storage form to working form, exactly."""
        return values

    def store(self, values: Array) -> Array:
        """Working form to storage form, NaNs canonical."""
        return floatbits.canonical_nans(values, self.kind)

    def round(self, values: Array) -> Array:
        """A host result brought onto the format's grid."""
        return values

    def full(self, shape: tuple[int, ...], value: float) -> Array:
        """A working array of one value, which the format holds."""
        return np.full(shape, value, self.dtype)

    def add(self, a: Array, b: Array) -> Array:
        return self.round(a + b)

    def sub(self, a: Array, b: Array) -> Array:
        return self.round(a - b)

    def mul(self, a: Array, b: Array) -> Array:
        return self.round(a * b)

    def div(self, a: Array, b: Array) -> Array:
        return self.round(a / b)

    def sqrt(self, a: Array) -> Array:
        return self.round(np.sqrt(a))

    def fma(self, a: Array, b: Array, c: Array) -> Array:
        """a * b + c in one rounding."""
        if self.dtype.itemsize == 8:
            return fma64(a, b, c)
        product = a.astype(np.float64) * b.astype(np.float64)  # 48 bits, never beyond f64's range
        return sum_to_odd(product, c.astype(np.float64)).astype(np.float32)


class SmallUnit(Unit):
    """f16 and bf16."""

    def load(self, values: Array) -> Array:
        return widen(values, self.kind)

    def store(self, values: Array) -> Array:
        return store(values, self.kind)

    def round(self, values: Array) -> Array:
        return quantise(values, self.kind)

    def fma(self, a: Array, b: Array, c: Array) -> Array:
        return quantise(sum_to_odd(a * b, c), self.kind)


@cache
def unit_of(kind: FloatType) -> Unit:
    """The format's unit. Raises KeraError (K0703) where the host's arithmetic is not IEEE 754's."""
    check_host()
    return SmallUnit(kind) if is_small(kind) else Unit(kind)
