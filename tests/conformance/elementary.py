"""Elementary functions of the interpreter against MPFR: every input of f16 and bf16, samples of f32.

That every f32 input is right is shown by ``python -m tests.exhaustive.run``, how far f64 is from the real
value by ``tests.exhaustive.wide``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import gmpy2
import numpy as np

from kera_hw.numerics.elementary import FUNCTIONS
from kera_hw.types import BF16, F16, F32, F64, FloatType
from tests.conformance import oracle, report
from tests.conformance.arithmetic import run_float
from tests.conformance.report import Row
from tests.conformance.vectors import Bits, bits_dtype, draw, every, one_nan

# Enough for one rounding after it to be right: no result is that close to a tie unless it is exact.
_WIDE = gmpy2.context(precision=400)


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + gmpy2.exp(-x))


def _silu(x: Any) -> Any:
    return x if x == 0 else gmpy2.mpfr("-0") if gmpy2.is_infinite(x) and x < 0 else x * _sigmoid(x)


def _gelu(x: Any) -> Any:
    if x == 0 or gmpy2.is_infinite(x):
        return gmpy2.mpfr("-0") if x < 0 else x
    return x * gmpy2.erfc(-x / gmpy2.sqrt(gmpy2.mpfr(2))) / 2


REAL: dict[str, Callable[[Any], Any]] = {
    "exp": gmpy2.exp, "exp2": gmpy2.exp2, "log": gmpy2.log, "log2": gmpy2.log2, "sin": gmpy2.sin,
    "cos": gmpy2.cos, "tanh": gmpy2.tanh, "erf": gmpy2.erf, "sigmoid": _sigmoid, "silu": _silu, "gelu": _gelu,
}
assert set(REAL) == set(FUNCTIONS)


def real_values(name: str, kind: FloatType, bits: Bits) -> list[Any]:
    """The function to 400 bits."""
    arguments = oracle.mpfr(kind).bits_in(bits)
    gmpy2.set_context(_WIDE)
    return [REAL[name](value) for value in arguments]


def rounded(name: str, kind: FloatType, bits: Bits) -> Bits:
    """The function rounded once."""
    unit = oracle.mpfr(kind)
    return unit.bits_out([unit.rounded(value) for value in real_values(name, kind, bits)])


def near_one(kind: FloatType, count: int, rng: np.random.Generator) -> Bits:
    """Arguments at which the functions do something."""
    bias = (1 << (kind.exponent_bits - 1)) - 1
    exponent = rng.integers(bias - 30, bias + 10, count).astype(np.uint64) << np.uint64(kind.fraction_bits)
    fraction = rng.integers(0, 1 << kind.fraction_bits, count).astype(np.uint64)
    sign = rng.integers(0, 2, count).astype(np.uint64) << np.uint64(kind.width_bits - 1)
    return one_nan((exponent | fraction | sign).astype(bits_dtype(kind)), kind)


def correctly_rounded(kind: FloatType, count: int) -> Iterator[Row]:
    """Every input of a 16-bit format, ``count`` edges and usual arguments of f32."""
    rng = np.random.default_rng(21)
    exhaustive = kind.width_bits == 16
    for name in FUNCTIONS:
        half = count // 2
        bits = every(kind) if exhaustive else np.concatenate(
            [draw(kind, count - half, rng), near_one(kind, half, rng)]
        )
        got = run_float(f"floating.{name}", kind, bits)
        wrong = int(np.count_nonzero(got != rounded(name, kind, bits)))
        yield Row(f"floating.{name}", kind.name, "MPFR", len(bits), wrong, exhaustive)


def within_an_ulp(count: int) -> Iterator[Row]:
    """f64: a difference is an error of one unit in the last place or more, or a wrong special value."""
    rng = np.random.default_rng(22)
    for name in FUNCTIONS:
        half = count // 2
        bits = np.concatenate([draw(F64, count - half, rng), near_one(F64, half, rng)])
        got = run_float(f"floating.{name}", F64, bits)
        unit = oracle.mpfr(F64)
        truth = real_values(name, F64, bits)
        want = unit.bits_out([unit.rounded(value) for value in truth])
        worst, wrong = 0.0, 0
        for found, best, exact in zip(got.tolist(), want.tolist(), truth):
            if found == best:
                error = 0.5  # at most: it is the nearest
            else:
                error = _error_ulp(found, best, exact)
            worst, wrong = max(worst, error), wrong + (error >= 1)
        yield Row(
            f"floating.{name}", "f64", "MPFR", count, wrong, note=f"within 1 ulp; at most {worst:.3f} found"
        )


def _error_ulp(found: int, best: int, exact: Any) -> float:
    """Distance from the real value in units of the nearest number's last place; far where not finite."""
    pair = oracle.as_doubles(np.array([found, best], np.uint64), F64).tolist()
    if not all(np.isfinite(pair)) or (pair[0] == 0) != (pair[1] == 0) or (pair[0] < 0) != (pair[1] < 0):
        return 99.0
    gmpy2.set_context(_WIDE)
    return float(abs(gmpy2.mpfr(pair[0]) - exact) / gmpy2.mpfr(float(np.spacing(abs(pair[1])))))


def checks(count: int = 200_000) -> Iterator[Row]:
    for kind in (F16, BF16, F32):
        yield from correctly_rounded(kind, count)


if __name__ == "__main__":
    sys.exit(report.write("elementary", checks(), "python -m tests.conformance.elementary") != 0)
