"""Kera's types as Amaranth's shapes: what a kernel's ports hold reads and is written as it was meant."""
from __future__ import annotations

from fractions import Fraction
from math import copysign, isinf, isnan
from typing import Any, SupportsFloat, cast

import numpy as np
from amaranth.hdl import ShapeLike, signed, unsigned
from amaranth.lib import data

from kera_hw.numerics import floatbits
from kera_hw.rtl.emit.naming import field_name
from kera_hw.types import FixType, FloatType, IntType, StructType, TensorType, TupleType, Type


class FloatConst(data.Const):
    """A float that a simulation reads: ``float(...)`` is its value, its fields are those of the format."""

    def __float__(self) -> float:
        layout = cast("FloatLayout", self.shape())
        return layout.value(self.as_bits())


class FloatLayout(data.StructLayout):
    """A floating-point number as the bits of its format: ``fraction``, ``exponent`` and ``sign``.

    Constants and a simulation take a Python float, rounded once to the nearest, or the bits as an int.
    """

    def __init__(self, kind: FloatType) -> None:
        super().__init__({"fraction": kind.fraction_bits, "exponent": kind.exponent_bits, "sign": 1})
        self.kind = kind

    def const(self, init: Any) -> FloatConst:
        """Called by Amaranth."""
        if isinstance(init, int):
            return self.from_bits(init & (1 << self.kind.width_bits) - 1)
        if isinstance(init, SupportsFloat) and not isinstance(init, data.Const):
            return self.from_bits(self.bits(float(init)))
        return self.from_bits(super().const(init).as_bits())

    def from_bits(self, raw: int) -> FloatConst:
        """Called by Amaranth."""
        return FloatConst(self, raw)

    def value(self, bits: int) -> float:
        """The number with these bits: Python's floats hold those of every format."""
        words = np.array([bits], f"u{self.kind.width_bits // 8}")
        return float(floatbits.from_bits(words, self.kind)[0])

    def bits(self, value: float) -> int:
        """The bits of the nearest number of the format, ties to even; any NaN is the one NaN."""
        if isnan(value):
            return self.kind.canonical_nan
        negative = copysign(1, value) < 0
        if isinf(value):
            return floatbits.infinity(self.kind, negative)
        return floatbits.nearest(Fraction(value), self.kind, negative)


def shape_of_type(kind: Type) -> ShapeLike:
    """The shape of a value: integers with their sign, fixed point as its raw integer, the rest as layouts.

    The layouts are Kera's packing: no padding, the first field or element lowest.
    """
    if isinstance(kind, StructType):
        return data.StructLayout({field_name(name): shape_of_type(item) for name, item in kind.fields})
    if isinstance(kind, TupleType):
        return data.StructLayout({str(k): shape_of_type(item) for k, item in enumerate(kind.items)})
    if isinstance(kind, TensorType):
        shape = shape_of_type(kind.element)
        for extent in reversed(kind.shape):
            shape = data.ArrayLayout(shape, extent)
        return shape
    if isinstance(kind, FloatType):
        return FloatLayout(kind)
    if isinstance(kind, (IntType, FixType)):
        return signed(kind.width_bits) if kind.signed else unsigned(kind.width_bits)
    return unsigned(1)
