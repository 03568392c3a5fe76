"""Conversions of the interpreter between floats, integers of every width and fixed point.

``python -m tests.conformance.conversions`` tries every input of a 16-bit source, also into every integer type
of 1 to 64 bits, and up to 1,000,000 edge-heavy inputs of f32 and f64.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import isfinite, isnan
from typing import Any

import numpy as np
import softfloatpy

from kera_hw.types import BF16, F16, F32, F64, FixType, FloatType, IntType, Type, numpy_dtype
from tests.conformance import oracle, report
from tests.conformance.arithmetic import FORMATS, LONG, interpreted
from tests.conformance.report import Row
from tests.conformance.vectors import Bits, bits_dtype, draw, draw_integers, every, values_of

INTEGERS = tuple(IntType(width, signed) for width in range(1, 65) for signed in (False, True))
EXACT = "exact integers"


def _sources(kind: FloatType, count: int, exhaustive: bool, rng: np.random.Generator) -> Bits:
    return every(kind) if exhaustive and kind.width_bits == 16 else draw(kind, count, rng)


def _row(
    source: Type, target: Type, by: str, got: Any, want: Any, exhaustive: bool, note: str = ""
) -> Row:
    differences = int(np.count_nonzero(np.asarray(got) != np.asarray(want)))
    return Row("convert.cast", f"{source} -> {target}", by, len(got), differences, exhaustive, note=note)


def float_to_float(count: int, exhaustive: bool = True) -> Iterator[Row]:
    """SoftFloat between f16, f32 and f64 and from f32 to bf16; MPFR to and from bf16 else."""
    rng = np.random.default_rng(1)
    for source in FORMATS:
        for target in FORMATS:
            if source == target:
                continue
            bits = _sources(source, count, exhaustive, rng)
            got = interpreted("convert.cast", [values_of(bits, source)], [source], type=target)
            want, by = _float_oracle(bits, source, target)
            complete = source.width_bits == 16 and len(bits) == 1 << 16
            yield _row(source, target, by, got.view(bits_dtype(target)), want, complete)


def _float_oracle(bits: Bits, source: FloatType, target: FloatType) -> tuple[Bits, str]:
    if BF16 not in (source, target):
        convert = getattr(softfloatpy, f"{source.name}_to_{target.name}")
        unit = oracle.soft(source)
        return oracle.soft(target).bits_out([convert(value) for value in unit.bits_in(bits)]), unit.name
    rounder, reader = oracle.mpfr(target), oracle.mpfr(source)
    return rounder.bits_out([rounder.rounded(value) for value in reader.bits_in(bits)]), rounder.name


def integer_to_float(count: int, kinds: Sequence[IntType] = INTEGERS) -> Iterator[Row]:
    """Every width: MPFR rounds the exact integer. i32, i64, u32 and u64 also by SoftFloat."""
    rng = np.random.default_rng(2)
    for source in kinds:
        numbers = draw_integers(source, max(count, 1 << 16) if source.width_bits <= 16 else count, rng)
        complete = len(numbers) == 1 << source.width_bits
        for target in FORMATS:
            got = interpreted("convert.cast", [numbers], [source], type=target).view(bits_dtype(target))
            rounder = oracle.mpfr(target)
            want = rounder.bits_out(rounder.integers(numbers.tolist()))
            yield _row(source, target, rounder.name, got, want, complete)
            if source.width_bits in (32, 64) and target != BF16:
                want = _soft_from(source, target, numbers)
                yield _row(source, target, "SoftFloat 3e", got, want, False, "32 and 64 bits")


def _soft_name(kind: IntType) -> str:
    return f"{'i' if kind.signed else 'ui'}{kind.width_bits}"


def _soft_from(source: IntType, target: FloatType, numbers: Bits) -> Bits:
    convert = getattr(softfloatpy, f"{_soft_name(source)}_to_{target.name}")
    make = getattr(softfloatpy, f"{'Int' if source.signed else 'UInt'}{source.width_bits}").from_int
    return oracle.soft(target).bits_out([convert(make(number)) for number in numbers.tolist()])


def float_to_integer(
    count: int, kinds: Sequence[IntType] = INTEGERS, exhaustive: bool = True
) -> Iterator[Row]:
    """Every width: Python's exact truncation, clamped."""
    rng = np.random.default_rng(3)
    for source in FORMATS:
        bits = _sources(source, count, exhaustive, rng)
        whole, place = np.unique(
            [_truncated(value) for value in oracle.as_doubles(bits, source).tolist()], return_inverse=True
        )
        values, complete = values_of(bits, source), source.width_bits == 16 and len(bits) == 1 << 16
        for target in kinds:
            got = interpreted("convert.cast", [values], [source], type=target)
            low, high = target.min, target.max
            distinct = [low if w < low else high if w > high else w for w in whole.tolist()]
            want = np.array(distinct, numpy_dtype(target))[place]
            yield _row(source, target, EXACT, got, want, complete)


def _truncated(value: float) -> int:
    if isnan(value):
        return 0
    return int(value) if isfinite(value) else (1 << 80 if value > 0 else -(1 << 80))


def soft_to_integer(count: int) -> Iterator[Row]:
    """SoftFloat on values within range, where its answer does not depend on a machine."""
    rng = np.random.default_rng(4)
    for source in (F16, F32, F64):
        for target in (IntType(w, s) for w in (32, 64) for s in (False, True)):
            bits = draw(source, count, rng)
            exact = oracle.as_doubles(bits, source)
            inside = (exact > float(target.min) - 1) & (exact < float(target.max + 1))
            bits = bits[inside]
            convert = getattr(softfloatpy, f"{source.name}_to_{_soft_name(target)}")
            mode = softfloatpy.RoundingMode.MIN_MAG
            numbers = [convert(value, mode, False).to_int() for value in oracle.soft(source).bits_in(bits)]
            got = interpreted("convert.cast", [values_of(bits, source)], [source], type=target)
            want = np.array(numbers, numpy_dtype(target))
            yield _row(source, target, "SoftFloat 3e", got, want, False, "values in range")


def formats(count: int, rng: np.random.Generator) -> list[FixType]:
    """Formats at the ends and ``count`` random ones."""
    extremes = ((1, 0), (1, 1), (8, 8), (64, 0), (64, 63), (64, 64))
    ends = [FixType(w, f, s) for w, f in extremes for s in (False, True)]
    widths = rng.integers(1, 65, count).tolist()
    return ends + [FixType(w, int(rng.integers(0, w + 1)), bool(rng.integers(0, 2))) for w in widths]


def fixed(count: int, formats_tried: int) -> Iterator[Row]:
    """To floats MPFR rounds the exact value; from floats exact rationals round half to even and clamp."""
    rng = np.random.default_rng(5)
    for fix in formats(formats_tried, rng):
        numbers = draw_integers(fix.raw, count, rng)
        for kind in FORMATS:
            got = interpreted("convert.cast", [numbers], [fix], type=kind).view(bits_dtype(kind))
            rounder = oracle.mpfr(kind)
            want = rounder.bits_out([rounder.scaled(n, -fix.fraction_bits) for n in numbers.tolist()])
            yield _row(fix, kind, rounder.name, got, want, len(numbers) == 1 << fix.width_bits)
            bits = draw(kind, count, rng)
            bits[::4] = _near_grid(kind, fix, len(bits[::4]), rng)
            values = oracle.as_doubles(bits, kind).tolist()
            raw = np.array([_fixed(value, fix) for value in values], numpy_dtype(fix))
            found = interpreted("convert.cast", [values_of(bits, kind)], [kind], type=fix)
            yield _row(kind, fix, "exact rationals", found, raw, False)


def _near_grid(kind: FloatType, fix: FixType, count: int, rng: np.random.Generator) -> Bits:
    """Halves of the format's last place: ties."""
    halves = rng.integers(-64, 65, count).astype(np.float64)
    with np.errstate(all="ignore"):
        return interpreted(
            "convert.cast", [np.ldexp(halves, -fix.fraction_bits - 1)], [F64], type=kind
        ).view(bits_dtype(kind))


def _fixed(value: float, fix: FixType) -> int:
    if isnan(value):
        return 0
    if not isfinite(value):
        return fix.raw.max if value > 0 else fix.raw.min
    nearest = round(Fraction(value) * (1 << fix.fraction_bits))  # half to even
    return min(max(nearest, fix.raw.min), fix.raw.max)


def merged(rows: Iterator[Row], label: str) -> Iterator[Row]:
    """Rows of one float format, direction and oracle as one: a table of 128 widths tells nobody more."""
    found: dict[tuple[str, str], Row] = {}
    for row in rows:
        source, target = row.dtype.split(" -> ")
        dtype = f"{label} -> {target}" if target in _NAMES else f"{source} -> {label}"
        old = found.get((dtype, row.oracle), Row(row.op, dtype, row.oracle, 0, 0, True))
        found[dtype, row.oracle] = Row(
            row.op, dtype, row.oracle, old.vectors + row.vectors, old.differences + row.differences,
            old.exhaustive and row.exhaustive, note=row.note,
        )
    yield from found.values()


_NAMES = {kind.name for kind in FORMATS}


def checks(count: int = LONG) -> Iterator[Row]:
    yield from float_to_float(count)
    yield from merged(integer_to_float(max(count // 50, 1 << 10)), "integers of 1 to 64 bits")
    yield from merged(float_to_integer(max(count // 10, 1 << 10)), "integers of 1 to 64 bits")
    yield from soft_to_integer(count)
    yield from merged(fixed(max(count // 500, 500), 60), "fixed point")


if __name__ == "__main__":
    sys.exit(report.write("conversions", checks(), "python -m tests.conformance.conversions") != 0)
