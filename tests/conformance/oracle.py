"""Who says what is right: Berkeley SoftFloat, MPFR, and Python's unbounded integers.

Both scalar units work on objects of their library; ``bits_in`` and ``bits_out`` go between those and bit
patterns, where every NaN comes out as the canonical one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import gmpy2
import numpy as np
import softfloatpy

from kera_hw.types import FloatType
from tests.conformance.vectors import Bits, bits_dtype, one_nan

SOFT_KINDS = ("f16", "f32", "f64")
_EXACT = gmpy2.context(precision=64)  # holds every operand; the exponent range is MPFR's own


class SoftFloat:
    """f16, f32 and f64 by Berkeley SoftFloat 3e."""

    name = "SoftFloat 3e"

    def __init__(self, kind: FloatType) -> None:
        self.kind = kind
        self.type: Any = getattr(softfloatpy, f"Float{kind.width_bits}")
        softfloatpy.set_rounding_mode(softfloatpy.RoundingMode.NEAR_EVEN)
        self.add, self.sub, self.mul, self.div = (self._of(verb) for verb in ("add", "sub", "mul", "div"))
        self.sqrt, self.fma = self._of("sqrt"), self._of("mul_add")
        self.eq, self.lt, self.le = self._of("eq"), self._of("lt_quiet"), self._of("le_quiet")

    def _of(self, verb: str) -> Callable[..., Any]:
        return getattr(softfloatpy, f"{self.kind.name}_{verb}")

    def integral(self, mode: str) -> Callable[[Any], Any]:
        """round, floor, ceil or trunc."""
        modes = softfloatpy.RoundingMode
        known = {"round": modes.NEAR_EVEN, "floor": modes.MIN, "ceil": modes.MAX, "trunc": modes.MIN_MAG}
        chosen = known[mode]
        function = self._of("round_to_int")
        return lambda value: function(value, chosen, False)

    def bits_in(self, bits: Bits) -> list[Any]:
        size = self.kind.width_bits // 8
        data, make = bits.astype(bits_dtype(self.kind).newbyteorder(">")).tobytes(), self.type.from_bytes
        return [make(data[k : k + size]) for k in range(0, len(data), size)]

    def bits_out(self, values: Sequence[Any]) -> Bits:
        data = b"".join([value.to_bytes() for value in values])
        found = np.frombuffer(data, bits_dtype(self.kind).newbyteorder(">"))
        return one_nan(found.astype(bits_dtype(self.kind)), self.kind)


def format_context(kind: FloatType) -> Any:
    """The MPFR context whose numbers are those of the format, subnormals included."""
    bias = (1 << (kind.exponent_bits - 1)) - 1
    # MPFR counts exponents for significands in [1/2, 1).
    return gmpy2.context(
        precision=kind.fraction_bits + 1, emax=bias + 1, emin=2 - bias - kind.fraction_bits,
        subnormalize=True,
    )


class Mpfr:
    """Any format by MPFR, at its precision and exponent range, subnormals rounded once."""

    name = "MPFR"

    def __init__(self, kind: FloatType) -> None:
        self.kind = kind
        self.context = format_context(kind)
        self.add, self.sub, self.mul = self._in(gmpy2.add), self._in(gmpy2.sub), self._in(gmpy2.mul)
        self.div, self.sqrt, self.fma = self._in(gmpy2.div), self._in(gmpy2.sqrt), self._in(gmpy2.fma)
        self.lt, self.le = (lambda a, b: a < b), (lambda a, b: a <= b)
        self.eq: Callable[[Any, Any], bool] = lambda a, b: a == b
        self.rsqrt = self._in(_rsqrt)
        self.recip = self._in(lambda value: gmpy2.div(gmpy2.mpfr(1), value))

    def _in(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function in this format's context."""

        def call(*args: Any) -> Any:
            gmpy2.set_context(self.context)
            return function(*args)

        return call

    def scaled(self, number: int, exponent: int) -> Any:
        """number * 2^exponent rounded once."""
        gmpy2.set_context(_EXACT)
        exact = gmpy2.mpfr(number, max(number.bit_length(), 2))
        gmpy2.set_context(self.context)
        return gmpy2.mul_2exp(exact, exponent) if exponent >= 0 else gmpy2.div_2exp(exact, -exponent)

    def integers(self, numbers: Sequence[int]) -> list[Any]:
        """Exact integers, each rounded once."""
        gmpy2.set_context(self.context)
        return list(map(gmpy2.mpfr, numbers))

    def of(self, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """A function of MPFR in this format."""
        return self._in(function)

    def rounded(self, value: Any) -> Any:
        """An mpfr of another precision rounded once."""
        gmpy2.set_context(self.context)
        return gmpy2.add(value, gmpy2.mpfr(-0.0)) if value == 0 else gmpy2.mul_2exp(value, 0)

    def bits_in(self, bits: Bits) -> list[Any]:
        gmpy2.set_context(_EXACT)
        return [gmpy2.mpfr(value) for value in as_doubles(bits, self.kind).tolist()]

    def bits_out(self, values: Sequence[Any]) -> Bits:
        return from_doubles(np.array([float(value) for value in values], np.float64), self.kind)


def _rsqrt(value: Any) -> Any:
    if value == 0:
        return gmpy2.inf(-1 if gmpy2.is_signed(value) else 1)
    return gmpy2.rec_sqrt(value)


@cache
def soft(kind: FloatType) -> SoftFloat:
    return SoftFloat(kind)


@cache
def mpfr(kind: FloatType) -> Mpfr:
    return Mpfr(kind)


def unit(kind: FloatType) -> SoftFloat | Mpfr:
    """SoftFloat where it has the format, else MPFR."""
    return soft(kind) if kind.name in SOFT_KINDS else mpfr(kind)


def as_doubles(bits: Bits, kind: FloatType) -> Bits:
    """The exact values, field by field: sign, significand, exponent."""
    wide = bits.astype(np.int64) if kind.width_bits < 64 else bits.view(np.int64)
    fraction = wide & ((1 << kind.fraction_bits) - 1)
    biased = (wide >> kind.fraction_bits) & ((1 << kind.exponent_bits) - 1)
    bias = (1 << (kind.exponent_bits - 1)) - 1
    significand = np.where(biased == 0, fraction, fraction | (1 << kind.fraction_bits)).astype(np.float64)
    with np.errstate(all="ignore"):
        value = np.ldexp(significand, (np.maximum(biased, 1) - bias - kind.fraction_bits).astype(np.int32))
    value = np.where(biased == (1 << kind.exponent_bits) - 1, np.where(fraction != 0, np.nan, np.inf), value)
    negative = (wide >> (kind.width_bits - 1)) & 1 != 0
    return np.where(negative & ~np.isnan(value), -value, value)


def from_doubles(values: Bits, kind: FloatType) -> Bits:
    """Bit patterns of values that the format holds exactly."""
    if kind.name == "bf16":
        return one_nan((values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16), kind)
    with np.errstate(all="ignore"):
        return one_nan(values.astype(np.dtype(f"f{kind.width_bits // 8}")).view(bits_dtype(kind)), kind)


def apply(oracle: SoftFloat | Mpfr, function: Callable[..., Any], *columns: Bits) -> list[Any]:
    """The function on each row of bit patterns, as the library's objects."""
    return list(map(function, *(oracle.bits_in(column) for column in columns)))
