"""An independent model of integer, fixed-point and bit operations on Python's unbounded integers.

Written from the language's rules, sharing no code with kera_hw.numerics; tests compare the two.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import ceil, floor
from typing import Any

import numpy as np

from kera_hw.interp.evaluator import Context
from kera_hw.ops.registry import OPS
from kera_hw.ops.spec import Array, EvalCall
from kera_hw.types import FixType, FloatType, IntType, Type, element_type, numpy_dtype, shape_of

WIDTHS = (1, 2, 3, 7, 8, 13, 16, 31, 32, 33, 53, 63, 64)


def run_op(op: str, args: Sequence[Array], types: Sequence[Type], **attrs: Any) -> list[Array]:
    """Infer and evaluate one operation; checks that results are canonical arrays of the inferred types."""
    spec = OPS[op]
    results = spec.infer(tuple(types), attrs)
    batch = args[0].shape[0] if args else 1
    outs = list(spec.evaluate(EvalCall(Context(batch), tuple(args), tuple(types), results, attrs)))
    assert len(outs) == len(results)
    for out, kind in zip(outs, results):
        check_array(out, kind, batch)
    return outs


def check_array(out: Array, kind: Type, batch: int) -> None:
    """The array is what the type stores: dtype, shape, no value beyond the type, no NaN but the one."""
    assert out.dtype == numpy_dtype(kind), (out.dtype, kind)
    assert out.shape == (batch, *shape_of(kind)), (out.shape, kind)
    raw = raw_type(element_type(kind))
    if raw is not None and out.size:
        assert raw.min <= int(out.min()) and int(out.max()) <= raw.max, (kind, out)
    element = element_type(kind)
    if isinstance(element, FloatType):
        bits = np.ascontiguousarray(out).view(f"u{element.width_bits // 8}")
        infinity = ((1 << element.exponent_bits) - 1) << element.fraction_bits
        nans = bits[bits & np.array((1 << (element.width_bits - 1)) - 1, bits.dtype) > infinity]
        assert np.all(nans == element.canonical_nan), (kind, out)


def raw_type(kind: Type) -> IntType | None:
    if isinstance(kind, FixType):
        return IntType(kind.width_bits, kind.signed)
    return kind if isinstance(kind, IntType) else None


def bits_of(x: int, width: int) -> int:
    return x & ((1 << width) - 1)


def wrapped(x: int, kind: IntType) -> int:
    x %= 1 << kind.width_bits
    return x - (1 << kind.width_bits) if kind.signed and x >= 1 << (kind.width_bits - 1) else x


def clamped(x: int, kind: IntType) -> int:
    return sorted((kind.min, x, kind.max))[1]


def _quotient(a: int, b: int, kind: IntType) -> int:
    if b == 0:
        return -1
    exact = Fraction(a, b)
    return floor(exact) if exact >= 0 else ceil(exact)


def _remainder(a: int, b: int, kind: IntType) -> int:
    return a if b == 0 else a - b * _quotient(a, b, kind)


def _sign(a: int, kind: IntType) -> int:
    return (a > 0) - (a < 0)


def _reverse_bits(a: int, kind: IntType) -> int:
    return int(f"{bits_of(a, kind.width_bits):0{kind.width_bits}b}"[::-1], 2)


def _rotl(a: int, n: int, kind: IntType) -> int:
    width = kind.width_bits
    text = f"{bits_of(a, width):0{width}b}"
    n %= width
    return int(text[n:] + text[:n], 2)


def _clz(a: int, kind: IntType) -> int:
    return kind.width_bits - bits_of(a, kind.width_bits).bit_length()


def _ctz(a: int, kind: IntType) -> int:
    text = f"{bits_of(a, kind.width_bits):0{kind.width_bits}b}"
    return len(text) - len(text.rstrip("0"))


# Result of each, wrapped into the operand type afterwards unless the name says otherwise.
BINARY: dict[str, Callable[[int, int, IntType], int]] = {
    "add": lambda a, b, t: a + b,
    "sub": lambda a, b, t: a - b,
    "mul": lambda a, b, t: a * b,
    "div": _quotient,
    "rem": _remainder,
    "min": lambda a, b, t: min(a, b),
    "max": lambda a, b, t: max(a, b),
    "saturating_add": lambda a, b, t: clamped(a + b, t),
    "saturating_sub": lambda a, b, t: clamped(a - b, t),
    "saturating_mul": lambda a, b, t: clamped(a * b, t),
}
UNARY: dict[str, Callable[[int, IntType], int]] = {
    "neg": lambda a, t: -a,
    "abs": lambda a, t: abs(a),
    "sign": _sign,
}
LOGIC: dict[str, Callable[[int, int], int]] = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}
MOVING: dict[str, Callable[[int, int, IntType], int]] = {
    "shl": lambda a, n, t: a << min(n, 200),
    "shr": lambda a, n, t: a >> min(n, 200),
    "rotl": _rotl,
    "rotr": lambda a, n, t: _rotl(a, -n, t),
}
def polynomial_product(a: int, b: int) -> int:
    """Of polynomials over GF(2), coefficient by coefficient."""
    ones_a = [k for k in range(a.bit_length()) if a >> k & 1]
    ones_b = [k for k in range(b.bit_length()) if b >> k & 1]
    total = 0
    for degree in (i + j for i in ones_a for j in ones_b):
        total ^= 1 << degree
    return total


COUNTING: dict[str, Callable[[int, IntType], int]] = {
    "popcount": lambda a, t: f"{bits_of(a, t.width_bits):b}".count("1"),
    "clz": _clz,
    "ctz": _ctz,
}


def rounded(exact: Fraction, mode: str) -> int:
    """An exact value as an integer by rounding mode."""
    down = floor(exact)
    rest = exact - down
    if mode == "floor":
        return down
    if mode == "trunc":
        return down if exact >= 0 else ceil(exact)
    if mode == "half_up":
        return floor(exact + Fraction(1, 2))
    assert mode == "half_even"
    if rest == Fraction(1, 2):
        return down + down % 2
    return floor(exact + Fraction(1, 2))


def value_of(raw: int, kind: Type) -> Fraction:
    return Fraction(raw, 1 << kind.fraction_bits) if isinstance(kind, FixType) else Fraction(raw)


def edge_values(kind: IntType, seed: int, count: int) -> list[int]:
    """Edges, patterns and random values of an integer type, without repeats."""
    rng = np.random.default_rng(seed)
    width = kind.width_bits
    patterns = [
        0, 1, 2, 3, 5, -1, -2, -3, kind.min, kind.min + 1, kind.max, kind.max - 1,
        0x5555_5555_5555_5555, 0xAAAA_AAAA_AAAA_AAAA, 0x0123_4567_89AB_CDEF, 0xFFFF_0000_FFFF_0000,
        1 << (width // 2), (1 << (width // 2)) - 1, 1 << (width - 1),
    ]
    patterns += [int.from_bytes(rng.bytes(8), "little") for _ in range(count)]
    patterns += [int.from_bytes(rng.bytes(8), "little") >> int(rng.integers(0, 64)) for _ in range(count)]
    return list(dict.fromkeys(wrapped(value, kind) for value in patterns))


def array_of(values: Sequence[int], kind: Type) -> Array:
    return np.array(values, dtype=object).astype(numpy_dtype(kind))


def pairs(kind: IntType, seed: int, count: int = 6) -> tuple[list[int], list[int]]:
    """Every pair of edge values, as two lists."""
    values = edge_values(kind, seed, count)
    return [a for a in values for _ in values], [b for _ in values for b in values]
