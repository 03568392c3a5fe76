"""Float units on formats that are none of the four: their lowered graphs against MPFR and exact values.

``python -m tests.conformance.odd_formats`` takes every format of 2 to 6 exponent bits and 1 to 10 fraction
bits: every value for operations of one operand, every pair of values up to 8 bits a value, every triple up
to 6 bits, and 200,000 edge-heavy pairs and triples of wider ones. The interpreter runs the lowered graph.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from kera_hw.graph.node import Ref
from kera_hw.graph.store import Store
from kera_hw.interp import run_region
from kera_hw.rtl.lower.builder import Builder
from kera_hw.rtl.lower.floats import add, compare, convert, divide, fma, integral, iterative, mul, sqrt
from kera_hw.rtl.lower.floats.fields import Format
from kera_hw.types import BF16, F16, F32, F64, FixType, FloatType, IntType, numpy_dtype
from tests.conformance import identity, oracle, report
from tests.conformance.arithmetic import on_bits
from tests.conformance.report import Row
from tests.conformance.vectors import Bits

FORMATS = tuple(FloatType(f"e{e}m{f}", e, f) for e in range(2, 7) for f in range(1, 11))
"""Named by their bits. e5m10 is f16 under another name."""
PAIR_BITS, TRIPLE_BITS = 8, 6
"""Widths up to which every pair, and every triple, of values is tried."""
BINARY = {"add": add.lower_add, "sub": add.lower_sub, "mul": mul.lower_mul, "div": divide.lower_div}
UNARY = {"sqrt": sqrt.lower_sqrt, "recip": divide.lower_recip, "rsqrt": sqrt.lower_rsqrt}
FOLDED = {"div": iterative.lower_div, "sqrt": iterative.lower_sqrt}
RELATIONS = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal,
}
INTEGRAL = {"floor": np.floor, "ceil": np.ceil, "round": np.rint, "trunc": np.trunc}
INTEGERS = tuple(IntType(width, signed) for width in (1, 2, 5, 8, 33, 64) for signed in (False, True))
FIXED = (
    FixType(8, 4, True), FixType(6, 6, False), FixType(8, 8, True), FixType(33, 20, True),
    FixType(12, 0, False), FixType(64, 64, False),
)
OTHERS = (F16, BF16, F32, FORMATS[2], FORMATS[13], FORMATS[41])  # beside the four: e2m3, e3m4, e6m2

Lowering = Callable[..., Ref]


def word_dtype(kind: FloatType) -> np.dtype[Any]:
    return numpy_dtype(IntType(kind.width_bits, False))


def run_unit(lowering: Lowering, kind: FloatType, columns: Sequence[Bits]) -> Bits:
    """The lowered graph of a unit, on bit patterns."""
    builder = Builder(Store())
    word = IntType(kind.width_bits, False)
    params = [builder.store.param(i, word) for i in range(len(columns))]
    region = builder.store.region([word] * len(columns), [lowering(builder, kind, *params)])
    (result,) = run_region(region, list(columns), batch=len(columns[0]))
    return result


# Values


def tried(kind: FloatType, arity: int, count: int, rng: np.random.Generator) -> tuple[list[Bits], bool]:
    """Columns of bit patterns, and whether they are all there are."""
    limit = {2: PAIR_BITS, 3: TRIPLE_BITS}.get(arity, 17)
    if kind.width_bits <= limit and 1 << (kind.width_bits * arity) <= count:
        index = np.arange(1 << (kind.width_bits * arity))
        mask = (1 << kind.width_bits) - 1
        columns = [index >> (kind.width_bits * k) & mask for k in range(arity)]
        return [column.astype(word_dtype(kind)) for column in columns], True
    return drawn(kind, arity, count, rng), False


def drawn(kind: FloatType, arity: int, count: int, rng: np.random.Generator) -> list[Bits]:
    """Random columns; in half of the rows later operands lie near the first one's bits, of either sign."""
    mask, sign = (1 << kind.width_bits) - 1, 1 << (kind.width_bits - 1)
    columns = [rng.integers(0, mask + 1, count) for _ in range(arity)]
    for column in columns[1:]:
        step = rng.integers(-3, 4, count) << rng.choice([0, kind.fraction_bits], count)
        near = (columns[0] + step & mask) ^ rng.integers(0, 2, count) * sign
        column[:] = np.where(rng.integers(0, 2, count) == 0, column, near)
    return [column.astype(word_dtype(kind)) for column in columns]


def encoded(values: Bits, kind: FloatType) -> Bits:
    """Bit patterns of doubles that the format holds exactly; the one NaN."""
    fraction, bias = kind.fraction_bits, (1 << (kind.exponent_bits - 1)) - 1
    top = (1 << kind.exponent_bits) - 1
    finite = np.where(np.isfinite(values), np.abs(values), 0.0)
    field = np.where(finite == 0, 1, np.maximum(np.frexp(finite)[1] - 1 + bias, 1))
    scaled = np.ldexp(finite, fraction + bias - field)
    whole = scaled.astype(np.int64)
    assert (whole == scaled).all() and (field < top).all(), "not a value of the format"
    bits = np.where(np.isinf(values), top << fraction, ((field - 1) << fraction) + whole)
    bits |= np.signbit(values).astype(np.int64) << (kind.width_bits - 1)
    return np.where(np.isnan(values), kind.canonical_nan, bits).astype(word_dtype(kind))


def by_mpfr(function: Callable[..., Any], kind: FloatType, columns: Sequence[Bits]) -> Bits:
    """Results of MPFR in the format, from operands' bits."""
    judge = oracle.mpfr(kind)
    if len(columns[0]) < 1 << kind.width_bits:
        rows = zip(*map(judge.bits_in, columns))
    else:
        table = judge.bits_in(np.arange(1 << kind.width_bits))
        rows = zip(*([table[k] for k in column.tolist()] for column in columns))
    return encoded(np.array([float(function(*row)) for row in rows]), kind)


def to_format(kind: FloatType, values: Bits) -> Bits:
    """Doubles rounded once to the format by MPFR, as bits."""
    judge = oracle.mpfr(kind)
    exact = oracle.mpfr(F64).bits_in(values.view(np.uint64))
    return encoded(np.array([float(judge.rounded(value)) for value in exact]), kind)


# What is checked


def _row(op: str, dtype: object, by: str, wrong: Bits, complete: bool, note: str = "") -> Row:
    return Row(op, str(dtype), by, len(wrong), int(np.count_nonzero(wrong)), complete, "model", note)


def rounded(kind: FloatType, count: int, rng: np.random.Generator) -> Iterator[Row]:
    """Everything correctly rounded, also the folded units (which no format of few exponents has)."""
    judge = oracle.mpfr(kind)
    units = {2: BINARY, 1: UNARY, 3: {"fma": fma.lower_fma}}
    for arity, lowerings in units.items():
        columns, complete = tried(kind, arity, count, rng)
        for verb, lowering in lowerings.items():
            want, op = by_mpfr(getattr(judge, verb), kind, columns), f"floating.{verb}"
            yield _row(op, kind, "MPFR", run_unit(lowering, kind, columns) != want, complete)
            if verb in FOLDED and not Format(kind).is_deep:
                got = run_unit(FOLDED[verb], kind, columns)
                yield _row(op, kind, "MPFR", got != want, complete, "folded")


def ordered(kind: FloatType, count: int, rng: np.random.Generator) -> Iterator[Row]:
    """Comparisons and integral values of the exact values in f64; extremes by their definition."""
    columns, complete = tried(kind, 2, count, rng)
    x, y = (oracle.as_doubles(column, kind) for column in columns)
    for verb, relation in RELATIONS.items():
        got = run_unit(compare.UNITS[f"compare.{verb}"].lower, kind, columns)
        yield _row(f"compare.{verb}", kind, "exact values in f64", got != relation(x, y), complete)
    for verb in ("min", "max"):
        choose = on_bits(kind)[verb][1]
        want = np.array(list(map(choose, *(column.tolist() for column in columns))))
        got = run_unit(compare.UNITS[f"floating.{verb}"].lower, kind, columns)
        yield _row(f"floating.{verb}", kind, "the definition on integers", got != want, complete)
    whole, complete = tried(kind, 1, count, rng)
    values = oracle.as_doubles(whole[0], kind)
    for verb, function in INTEGRAL.items():
        got = run_unit(integral.UNITS[f"floating.{verb}"].lower, kind, whole)
        want = to_format(kind, function(values))
        yield _row(f"floating.{verb}", kind, "exact values in f64", got != want, complete)


def converted(kind: FloatType, others: Sequence[FloatType], count: int, rng: np.random.Generator
              ) -> Iterator[Row]:
    """To other formats; to and from integers and fixed point."""
    whole, complete = tried(kind, 1, count, rng)
    values = oracle.as_doubles(whole[0], kind)
    for other in others:
        got = run_unit(partial(_between, other), kind, whole)
        wrong = got != to_format(other, values)
        yield _row("convert.cast", f"{kind} -> another format", "MPFR", wrong, complete)
    for target in (*INTEGERS, *FIXED):
        want = np.array([_nearest(v, target) for v in values.tolist()], numpy_dtype(target))
        got = run_unit(partial(_to_raw, target), kind, whole)
        label = "integers" if isinstance(target, IntType) else "fixed point"
        yield _row("convert.cast", f"{kind} -> {label}", "exact rationals", got != want, complete)
        yield _from_raw(kind, target, label, rng)


def _between(other: FloatType, builder: Builder, kind: FloatType, word: Ref) -> Ref:
    return convert.between(builder, kind, other, word)


def _to_raw(target: IntType | FixType, builder: Builder, kind: FloatType, word: Ref) -> Ref:
    return convert.to_integer(builder, kind, target, word)


def _nearest(value: float, target: IntType | FixType) -> int:
    """Toward zero for integers, half to even for fixed point; saturating, NaN gives 0."""
    raw, fraction = convert.raw_type(target)
    if value != value:
        return 0
    if abs(value) == float("inf"):
        return raw.max if value > 0 else raw.min
    exact = Fraction(value) * (1 << fraction)
    return min(max(int(exact) if isinstance(target, IntType) else round(exact), raw.min), raw.max)


def _from_raw(kind: FloatType, source: IntType | FixType, label: str, rng: np.random.Generator) -> Row:
    raw, fraction = convert.raw_type(source)
    complete = raw.width_bits <= 8
    if complete:
        numbers = np.arange(raw.min, raw.max + 1).astype(numpy_dtype(raw))
    else:
        shifts = rng.integers(0, 64, 4000).astype(np.uint64)
        wide = rng.integers(0, 1 << 64, 4000, dtype=np.uint64) >> shifts
        numbers = np.array([raw.wrap(n) for n in wide.tolist()], numpy_dtype(raw))
    builder = Builder(Store())
    result = convert.from_integer(builder, source, kind, builder.store.param(0, raw))
    (got,) = run_region(builder.store.region([raw], [result]), [numbers], batch=len(numbers))
    judge = oracle.mpfr(kind)
    values = [float(judge.scaled(number, -fraction)) for number in numbers.tolist()]
    wrong = got != encoded(np.array(values), kind)
    return _row("convert.cast", f"{label} -> {kind}", "MPFR", wrong, complete)


def checks(
    kinds: Sequence[FloatType] = FORMATS, count: int = 1 << 18, others: Sequence[FloatType] = OTHERS
) -> Iterator[Row]:
    """Rows of each format."""
    for kind in kinds:
        rng = np.random.default_rng(kind.exponent_bits * 100 + kind.fraction_bits)
        yield from rounded(kind, count, rng)
        yield from ordered(kind, count, rng)
        yield from converted(kind, others, count, rng)


def merged(rows: Iterable[Row]) -> Iterator[Row]:
    """Rows of one operation over all formats: those that tried all inputs, and the others."""
    found: dict[tuple[str, ...], Row] = {}
    kinds: dict[tuple[str, ...], set[str]] = {}
    for row in rows:
        name = next(word for word in row.dtype.split() if word.startswith("e"))
        key = (row.op, row.dtype.replace(name, "*"), row.oracle, row.note, str(row.exhaustive))
        kinds.setdefault(key, set()).add(name)
        old = found.get(key, Row(row.op, "", row.oracle, 0, 0, row.exhaustive, "model", row.note))
        label = row.dtype.replace(name, f"{len(kinds[key])} odd formats")
        found[key] = Row(
            row.op, label, row.oracle, old.vectors + row.vectors, old.differences + row.differences,
            row.exhaustive, "model", row.note, graph_of(),
        )
    yield from found.values()


def graph_of(_record: str = "", _row: object = None) -> str:
    """Today's hash of the units' code: too many graphs to name."""
    units = (add, compare, convert, divide, fma, integral, iterative, mul, sqrt)
    return identity.digest([module.__name__ for module in units], "kera_hw.rtl.lower")


if __name__ == "__main__":
    sys.exit(report.write("odd_formats", merged(checks()), "python -m tests.conformance.odd_formats") != 0)
