"""Element-wise float operations of the interpreter against SoftFloat, MPFR and exact integers.

``python -m tests.conformance.arithmetic`` runs 1,000,000 vectors per binary operation and format, 2,000,000
per fma, and every input of a 16-bit format per unary operation; with names such as ``fma:f64`` those alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from kera_hw.interp.evaluator import Context
from kera_hw.ops.registry import OPS
from kera_hw.ops.spec import EvalCall
from kera_hw.types import BF16, F16, F32, F64, FloatType, Type
from tests.conformance import oracle, report
from tests.conformance.report import Row
from tests.conformance.vectors import Bits, bits_dtype, draw, draw_near, every, one_nan, values_of

FORMATS = (F16, BF16, F32, F64)
LONG = 1_000_000


def interpreted(op: str, args: Sequence[Any], types: Sequence[Type], **attrs: Any) -> Any:
    """The registry's own answer."""
    spec = OPS[op]
    results = spec.infer(tuple(types), attrs)
    context = Context(len(args[0]))
    return spec.evaluate(EvalCall(context, tuple(args), tuple(types), results, attrs))[0]


def run_float(op: str, kind: FloatType, *columns: Bits) -> Bits:
    """Bit patterns in and out (or bools out)."""
    out = interpreted(op, [values_of(column, kind) for column in columns], [kind] * len(columns))
    return out if out.dtype == np.bool_ else out.view(bits_dtype(kind))


def operands(kind: FloatType, arity: int, count: int, rng: np.random.Generator) -> list[Bits]:
    """Edge-heavy operands; a third of the pairs are near each other, and of the addends near the product."""
    first = draw(kind, count, rng)
    if arity == 1:
        return [first]
    second = draw(kind, count, rng)
    second[::3] = draw_near(kind, first[::3], rng)
    if arity == 2:
        return [first, second]
    third = draw(kind, count, rng)
    product = run_float("floating.mul", kind, first, second)
    third[1::3] = draw_near(kind, product[1::3], rng)
    return [first, second, third]


# ---------------------------------------------------------------- what is checked


Choice = Callable[[int, int], int]


def _selected(kind: FloatType, better: Callable[[int, int], bool], wins_zero: int) -> Choice:
    """IEEE 754-2019 minimum or maximum on bit patterns, spelled out."""
    sign, nan = 1 << (kind.width_bits - 1), kind.canonical_nan
    infinity = ((1 << kind.exponent_bits) - 1) << kind.fraction_bits

    def choose(a: int, b: int) -> int:
        if (a & ~sign) > infinity or (b & ~sign) > infinity:
            return nan
        if not a & ~sign and not b & ~sign:
            return a if (a >> (kind.width_bits - 1)) == wins_zero else b
        return a if better(_signed(a, kind), _signed(b, kind)) else b

    return choose


def _signed(bits: int, kind: FloatType) -> int:
    """A number in the order of the values: sign and magnitude."""
    magnitude = bits & ((1 << (kind.width_bits - 1)) - 1)
    return -magnitude if bits >> (kind.width_bits - 1) else magnitude


def on_bits(kind: FloatType) -> dict[str, tuple[int, Callable[..., Any]]]:
    """Operations that SoftFloat lacks, defined on bit patterns as integers."""
    top = kind.width_bits - 1
    sign, nan, one = 1 << top, kind.canonical_nan, ((1 << (kind.exponent_bits - 1)) - 1) << kind.fraction_bits
    infinity = ((1 << kind.exponent_bits) - 1) << kind.fraction_bits

    def is_nan(a: int) -> bool:
        return (a & ~sign) > infinity

    return {
        "neg": (1, lambda a: nan if is_nan(a) else a ^ sign),
        "abs": (1, lambda a: nan if is_nan(a) else a & ~sign),
        "sign": (1, lambda a: a if is_nan(a) or not a & ~sign else one | (a & sign)),
        "relu": (1, lambda a: a if is_nan(a) or not a >> top else 0),
        "copysign": (2, lambda a, b: nan if is_nan(a) else (a & ~sign) | (b & sign)),
        "min": (2, _selected(kind, lambda a, b: a < b, 1)),
        "max": (2, _selected(kind, lambda a, b: a > b, 0)),
        "is_nan": (1, is_nan),
        "is_finite": (1, lambda a: (a & ~sign) < infinity),
    }


def checks(count: int = LONG, kinds: Sequence[FloatType] = FORMATS, exhaustive: bool = True) -> Iterator[Row]:
    """A row for every operation and format. ``exhaustive`` tries all inputs of a 16-bit unary operation."""
    for kind in kinds:
        rng = np.random.default_rng(kind.width_bits * 1000 + kind.exponent_bits)
        for verb in ROUNDED:
            yield rounded(verb, kind, count, exhaustive, rng)
        yield from _compared(kind, count, rng)
        yield from _integral(kind, count, exhaustive, rng)
        yield from _by_bits(kind, count, exhaustive, rng)


def _columns(
    kind: FloatType, arity: int, count: int, exhaustive: bool, rng: np.random.Generator
) -> list[Bits]:
    if arity == 1 and exhaustive and kind.width_bits == 16:
        return [every(kind)]
    return operands(kind, arity, count, rng)


def _row(op: str, kind: FloatType, by: str, columns: Sequence[Bits], got: Bits, want: Bits) -> Row:
    complete = len(columns) == 1 and kind.width_bits == 16 and len(columns[0]) == 1 << 16
    return Row(op, kind.name, by, len(columns[0]), int(np.count_nonzero(got != want)), complete)


ROUNDED = {"add": 2, "sub": 2, "mul": 2, "div": 2, "fma": 3, "sqrt": 1, "recip": 1, "rsqrt": 1}


def rounded(verb: str, kind: FloatType, count: int, exhaustive: bool, rng: np.random.Generator) -> Row:
    """One correctly rounded operation; ``count`` vectors, twice as many of fma."""
    by = oracle.mpfr(kind) if verb in ("recip", "rsqrt") else oracle.unit(kind)
    arity = ROUNDED[verb]
    columns = _columns(kind, arity, count * (2 if arity == 3 else 1), exhaustive, rng)
    want = by.bits_out(oracle.apply(by, getattr(by, verb), *columns))
    got = run_float(f"floating.{verb}", kind, *columns)
    return _row(f"floating.{verb}", kind, by.name, columns, got, want)


def wide(kind: FloatType, bits: Bits) -> tuple[oracle.SoftFloat, Bits, str]:
    """SoftFloat's unit for a format, with bf16 as the upper half of f32, which is exact."""
    if kind != BF16:
        return oracle.soft(kind), bits, oracle.SoftFloat.name
    return oracle.soft(F32), bits.astype(np.uint32) << np.uint32(16), "SoftFloat 3e on the same values in f32"


def _compared(kind: FloatType, count: int, rng: np.random.Generator) -> Iterator[Row]:
    for verb in ("eq", "ne", "lt", "le", "gt", "ge"):
        columns = operands(kind, 2, count, rng)
        (unit, a, by), (_, b, _) = wide(kind, columns[0]), wide(kind, columns[1])
        base = {"ne": "eq", "gt": "lt", "ge": "le"}.get(verb, verb)
        pair = (b, a) if verb in ("gt", "ge") else (a, b)
        found = np.array(oracle.apply(unit, getattr(unit, base), *pair), np.bool_)
        want = ~found if verb == "ne" else found
        yield _row(f"compare.{verb}", kind, by, columns, run_float(f"compare.{verb}", kind, *columns), want)


def _integral(kind: FloatType, count: int, exhaustive: bool, rng: np.random.Generator) -> Iterator[Row]:
    for verb in ("floor", "ceil", "round", "trunc"):
        columns = _columns(kind, 1, count, exhaustive, rng)
        unit, bits, by = wide(kind, columns[0])
        want = unit.bits_out(oracle.apply(unit, unit.integral(verb), bits))
        if kind == BF16:
            want = one_nan((want >> np.uint32(16)).astype(np.uint16), BF16)
        yield _row(f"floating.{verb}", kind, by, columns, run_float(f"floating.{verb}", kind, *columns), want)


def _by_bits(kind: FloatType, count: int, exhaustive: bool, rng: np.random.Generator) -> Iterator[Row]:
    for verb, (arity, function) in on_bits(kind).items():
        columns = _columns(kind, arity, count, exhaustive, rng)
        got = run_float(f"floating.{verb}", kind, *columns)
        want = np.array(list(map(function, *(column.tolist() for column in columns))), got.dtype)
        yield _row(f"floating.{verb}", kind, "the definition on integers", columns, got, want)


def chosen(names: Sequence[str]) -> Iterator[Row]:
    """The rounded operations named ``fma:f64`` and so on, after a change to one of them."""
    for name in names:
        verb, _, format_name = name.partition(":")
        kind = next(kind for kind in FORMATS if kind.name == format_name)
        yield rounded(verb, kind, LONG, True, np.random.default_rng())


if __name__ == "__main__":
    command = "python -m tests.conformance.arithmetic"
    if sys.argv[1:]:
        sys.exit(report.replace("arithmetic", chosen(sys.argv[1:])) != 0)
    sys.exit(report.write("arithmetic", checks(), command) != 0)
