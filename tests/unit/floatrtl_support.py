"""For the tests of float units: edge-heavy operands, foreign oracles, and units as regions of integers."""
from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import gmpy2
import numpy as np

from kera_hw.graph.node import Ref, Region
from kera_hw.graph.store import Store
from kera_hw.interp import run_region
from kera_hw.rtl.lower.builder import Builder
from kera_hw.types import BF16, F16, F32, F64, FloatType, IntType, numpy_dtype
from tests.conformance.oracle import SOFT_KINDS, apply, mpfr, soft
from tests.conformance.vectors import bits_dtype

FORMATS = (F16, BF16, F32, F64)
Lowering = Callable[..., Ref]

_SOFT_OPS = ("add", "sub", "mul", "div", "sqrt", "fma")
ARITY = {"fma": 3, "add": 2, "sub": 2, "mul": 2, "div": 2, "sqrt": 1, "recip": 1, "rsqrt": 1}


def operand(kind: FloatType, rng: random.Random) -> int:
    """A bit pattern: any, or one near a corner of exponent or fraction."""
    fraction, top = kind.fraction_bits, (1 << kind.exponent_bits) - 1
    bias = top >> 1
    if rng.random() < 0.25:
        return rng.getrandbits(kind.width_bits)
    near = bias + rng.randint(-fraction - 4, fraction + 4)
    exponent = rng.choice([0, 0, 1, 2, near, near, near, top - 1, top - 2, top, rng.randrange(top + 1)])
    exponent = min(max(exponent, 0), top)
    full = (1 << fraction) - 1
    long = rng.getrandbits(fraction)
    bits = rng.choice([
        0, 1, full, full - 1, 1 << rng.randrange(fraction), full ^ (1 << rng.randrange(fraction)),
        long, long, long, full >> rng.randrange(fraction), long & -(1 << rng.randrange(fraction)) & full,
    ])
    return rng.getrandbits(1) << (kind.width_bits - 1) | exponent << fraction | bits


def operands(kind: FloatType, arity: int, count: int, seed: int) -> list[list[int]]:
    """Columns of operands; a third of the later ones are near what cancels or ties with the first."""
    rng = random.Random(seed)
    columns = [[operand(kind, rng) for _ in range(count)] for _ in range(arity)]
    for row in range(count):
        if arity > 1 and rng.random() < 0.3:
            _relate(kind, columns, row, rng)
    return columns


def _relate(kind: FloatType, columns: list[list[int]], row: int, rng: random.Random) -> None:
    """Make the last operand about minus the product of the first two (or the first one itself)."""
    mask, sign = (1 << kind.width_bits) - 1, 1 << (kind.width_bits - 1)
    first = columns[0][row]
    if len(columns) == 3:
        first = foreign("mul", kind, [[first], [columns[1][row]]])[0] ^ sign
    nudge = rng.choice([0, 0, 1, -1, 2, -2, 1 << kind.fraction_bits, -(1 << kind.fraction_bits)])
    columns[-1][row] = first + nudge & mask


def is_nan(kind: FloatType, word: int) -> bool:
    """Whether a pattern is any NaN."""
    magnitude = word & ((1 << (kind.width_bits - 1)) - 1)
    return magnitude > ((1 << kind.exponent_bits) - 1) << kind.fraction_bits


def oracle_name(op: str, kind: FloatType) -> str:
    """Who decides an operation."""
    return "SoftFloat" if kind.name in SOFT_KINDS and op in _SOFT_OPS else "MPFR"


def foreign(op: str, kind: FloatType, columns: Sequence[Sequence[int]]) -> list[int]:
    """Results by SoftFloat where it has the operation, by MPFR elsewhere, with the one NaN."""
    if oracle_name(op, kind) == "SoftFloat":
        judge = soft(kind)
        arrays = [np.array(column, bits_dtype(kind)) for column in columns]
        return judge.bits_out(apply(judge, getattr(judge, op), *arrays)).tolist()
    found = [_by_mpfr(op, kind, row) for row in zip(*columns)]
    return [kind.canonical_nan if is_nan(kind, word) else word for word in found]


def decode(kind: FloatType, word: int) -> gmpy2.mpfr:
    """A pattern's exact value."""
    fraction, top = kind.fraction_bits, (1 << kind.exponent_bits) - 1
    bias, field = top >> 1, word >> fraction & top
    bits = word & ((1 << fraction) - 1)
    with gmpy2.context(precision=64, emax=1 << 20, emin=-(1 << 20)):
        if field == top:
            value = gmpy2.nan() if bits else gmpy2.inf()
        else:
            significand = bits | (1 << fraction if field else 0)
            value = gmpy2.mul_2exp(gmpy2.mpfr(significand), (field or 1) + (1 << 16) - bias - fraction)
            value = gmpy2.div_2exp(value, 1 << 16)
        return -value if word >> (kind.width_bits - 1) else value


def encode(kind: FloatType, value: gmpy2.mpfr) -> int:
    """The pattern of a value that the format holds exactly."""
    fraction, top = kind.fraction_bits, (1 << kind.exponent_bits) - 1
    bias = top >> 1
    if gmpy2.is_nan(value):
        return kind.canonical_nan
    sign = int(gmpy2.is_signed(value)) << (kind.width_bits - 1)
    if gmpy2.is_infinite(value):
        return sign | top << fraction
    if value == 0:
        return sign
    significand, exponent = (int(part) for part in value.as_mantissa_exp())
    significand = abs(significand)
    field = exponent + significand.bit_length() - 1 + bias
    shift = exponent + bias + fraction - max(field, 1)
    scaled = significand << shift if shift >= 0 else significand >> -shift
    assert shift >= 0 or scaled << -shift == significand, "not a value of the format"
    return sign | (scaled if field < 1 else ((field - 1) << fraction) + scaled)


def _by_mpfr(op: str, kind: FloatType, row: Sequence[int]) -> int:
    """For any format, also those that no NumPy dtype holds."""
    return encode(kind, getattr(mpfr(kind), op)(*(decode(kind, word) for word in row)))


def unit(lowering: Lowering, kind: FloatType, arity: int, carry_logic: bool = False) -> Region:
    """A unit alone, as a region over words."""
    builder = Builder(Store(), carry_logic=carry_logic)
    word = IntType(kind.width_bits, False)
    params = [builder.store.param(i, word) for i in range(arity)]
    return builder.store.region([word] * arity, [lowering(builder, kind, *params)])


def run(region: Region, kind: FloatType, columns: Sequence[Sequence[int]]) -> list[int]:
    """The unit's results, by the interpreter."""
    dtype = numpy_dtype(IntType(kind.width_bits, False))
    args = [np.array(column, dtype=dtype) for column in columns]
    (result,) = run_region(region, args, batch=len(columns[0]))
    return [int(word) for word in result]


def check(lowering: Lowering, op: str, kind: FloatType, count: int, seed: int = 1) -> None:
    """Compare a unit with the foreign oracle."""
    columns = operands(kind, ARITY[op], count, seed)
    got, want = run(unit(lowering, kind, ARITY[op]), kind, columns), foreign(op, kind, columns)
    digits = kind.width_bits // 4
    bad = [
        (tuple(f"{word:0{digits}x}" for word in row), f"got {g:0{digits}x}", f"want {w:0{digits}x}")
        for *row, g, w in zip(*columns, got, want) if g != w
    ]
    assert not bad, f"{len(bad)} of {count} wrong: {bad[:4]}"
