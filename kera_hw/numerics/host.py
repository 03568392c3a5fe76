"""The host's IEEE 754 units: used through NumPy for f32 and f64 after one probe of what they do.

A library loaded into the process may have set them to flush subnormals or to another rounding. Then
nothing computed here could be trusted, so the first use asks and refuses with K0703.
"""
from __future__ import annotations

from functools import cache

import numpy as np

from kera_hw.numerics.arrays import Array
from kera_hw.support import Diagnostic, KeraError

_LANES = 67  # enough for the widest vector loop and its scalar remainder

# As decorator: IEEE exceptions are no errors here, every result is defined.
ieee = np.errstate(all="ignore")


@cache
def check_host() -> None:
    """Raise KeraError (K0703) unless NumPy rounds to nearest even and keeps subnormals in f32 and f64."""
    with np.errstate(all="ignore"):
        sound = _sound(np.dtype(np.float32), 23, -126) and _sound(np.dtype(np.float64), 52, -1022)
    if not sound:
        raise KeraError([Diagnostic(
            "K0703",
            "The floating-point unit of this process flushes subnormals or does not round to nearest even, "
            "so floats cannot be computed exactly.",
            notes=("A library built with -ffast-math may have changed its mode; run without that library.",),
        )])


def _sound(dtype: np.dtype[np.floating], fraction_bits: int, least_exponent: int) -> bool:
    """Sums, products, quotients and roots whose results differ under any other mode."""

    def lanes(significand: float, exponent: int) -> Array:
        return np.full(_LANES, np.ldexp(np.float64(significand), exponent), dtype)

    one, ulp, least = lanes(1, 0), lanes(1, -fraction_bits), lanes(1, least_exponent)
    tiny, half = lanes(1, least_exponent - fraction_bits), lanes(0.5, 0)
    cases = (
        (one + ulp * half, one), (-one - ulp * half, -one),
        (one + ulp + ulp * half, one + ulp + ulp), (-one - ulp - ulp * half, -one - ulp - ulp),
        (least - tiny + tiny, least), (least * half + least * half, least),
        (tiny * lanes(1.5, 0), tiny + tiny), (tiny * half, lanes(0, 0)), (tiny / lanes(0.75, 0), tiny),
        (np.sqrt(tiny) * np.sqrt(tiny), tiny), (one / lanes(3, 0) * lanes(3, 0), one),
    )
    exact = tiny > 0
    for found, wanted in cases:
        exact &= found == wanted
    return bool(exact.all())
