"""Hardware's comparisons, extremes, integral values and conversions: their Verilog, simulated by Verilator.

``python -m tests.conformance.rtl_elementwise`` runs 1,000,000 edge-heavy pairs a format through one design of
all operations, and every input of a 16-bit format through one of all conversions (1,000,000 of f32 and f64),
each once unhindered and once under random stalls. Oracles: SoftFloat, exact integers, MPFR.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kera_hw.driver.rtl_target import RtlExecutor
from kera_hw.driver.session import load_program
from kera_hw.driver.targets import TargetOptions
from kera_hw.types import BF16, FloatType, IntType, numpy_dtype
from tests.conformance import arithmetic, oracle, report
from tests.conformance.arithmetic import FORMATS, operands
from tests.conformance.report import Row
from tests.conformance.vectors import Bits, bits_dtype, draw, draw_integers, every, one_nan, values_of

RELATIONS = {"eq": "a == b", "lt": "a < b", "le": "a <= b"}
INTEGRAL = ("floor", "ceil", "round", "trunc")
INTEGERS = tuple(IntType(width, signed) for width in (8, 13, 16, 32, 64) for signed in (True, False))
_CHUNK = 200_000


def executor_of(params: str, results: list[tuple[str, str]]) -> RtlExecutor:
    """A design of several results, from its expressions and their types."""
    kinds, values = ", ".join(kind for _, kind in results), ", ".join(text for text, _ in results)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "unit.kera"
        path.write_text(f"pub fn unit({params}) -> ({kinds}) {{ ({values}) }}\n")
        loaded = load_program(path)
    assert loaded.graph is not None, loaded.diagnostics
    return RtlExecutor(loaded.graph, loaded.graph.exports[0], TargetOptions())


def _wrong(found: Any, want: Bits) -> int:
    got = np.asarray(found)
    return int(np.count_nonzero((got.view(want.dtype) if got.dtype.kind in "fV" else got) != want))


def compared(kind: FloatType, count: int) -> Iterator[Row]:
    """Relations and integral values against SoftFloat, extremes by their definition on bits."""
    by_bits = arithmetic.on_bits(kind)
    results = [(text, "bool") for text in RELATIONS.values()]
    results += [(f"{verb}(a, b)", str(kind)) for verb in ("min", "max")]
    results += [(f"{verb}(a)", str(kind)) for verb in INTEGRAL]
    executor = executor_of(f"a: {kind}, b: {kind}", results)
    names = [f"compare.{verb}" for verb in RELATIONS]
    names += [f"floating.{verb}" for verb in ("min", "max", *INTEGRAL)]
    wrong, by, total = [0] * len(names), [""] * len(names), 0
    rng = np.random.default_rng(kind.width_bits * 100 + kind.exponent_bits)
    while total < count:
        a, b = operands(kind, 2, min(_CHUNK, count - total), rng)
        found = executor.run({"a": values_of(a, kind), "b": values_of(b, kind)}, len(a))
        (unit, x, who), (_, y, _) = arithmetic.wide(kind, a), arithmetic.wide(kind, b)
        wants = [np.array(oracle.apply(unit, getattr(unit, verb), x, y), np.bool_) for verb in RELATIONS]
        for verb in ("min", "max"):
            choose = by_bits[verb][1]
            wants.append(np.array(list(map(choose, a.tolist(), b.tolist())), bits_dtype(kind)))
        for verb in INTEGRAL:
            whole = unit.bits_out(oracle.apply(unit, unit.integral(verb), x))
            wants.append(one_nan((whole >> np.uint32(16)).astype(np.uint16), BF16) if kind == BF16 else whole)
        for k, want in enumerate(wants):
            wrong[k] += _wrong(found[k], want)
            by[k] = "the definition on integers" if names[k] in ("floating.min", "floating.max") else who
        total += len(a)
    for name, differences, who in zip(names, wrong, by):
        yield Row(name, kind.name, who, total, differences, False, "rtl")


def from_floats(kind: FloatType, count: int) -> Iterator[Row]:
    """To integers against exact truncation, to other formats against MPFR."""
    others = [other for other in FORMATS if other != kind]
    targets = [*INTEGERS, *others]
    executor = executor_of(f"a: {kind}", [(f"a as {target}", str(target)) for target in targets])
    complete = kind.width_bits == 16
    bits = every(kind) if complete else draw(kind, count, np.random.default_rng(kind.width_bits))
    found = executor.run({"a": values_of(bits, kind)}, len(bits))
    exact = oracle.as_doubles(bits, kind).tolist()
    reader = oracle.mpfr(kind)
    for target, got in zip(targets, found):
        if isinstance(target, IntType):
            low, high = target.min, target.max
            want = np.array([_clamped(value, low, high) for value in exact], numpy_dtype(target))
            who = "exact integers"
        else:
            rounder = oracle.mpfr(target)
            want = rounder.bits_out([rounder.rounded(value) for value in reader.bits_in(bits)])
            who = rounder.name
        differences = _wrong(got, want)
        yield Row("convert.cast", f"{kind} -> {target}", who, len(bits), differences, complete, "rtl")


def _clamped(value: float, low: int, high: int) -> int:
    if value != value:
        return 0
    if abs(value) == float("inf"):
        return high if value > 0 else low
    return min(max(int(value), low), high)


def from_integers(source: IntType, count: int) -> Iterator[Row]:
    """To all formats, MPFR rounding the exact integer; every value of 16 bits and less."""
    executor = executor_of(f"a: {source}", [(f"a as {kind}", str(kind)) for kind in FORMATS])
    numbers = draw_integers(source, max(count, 1 << 16), np.random.default_rng(source.width_bits))
    found = executor.run({"a": numbers}, len(numbers))
    for kind, got in zip(FORMATS, found):
        rounder = oracle.mpfr(kind)
        want = rounder.bits_out(rounder.integers(numbers.tolist()))
        complete = len(numbers) == 1 << source.width_bits
        dtype, differences = f"{source} -> {kind}", _wrong(got, want)
        yield Row("convert.cast", dtype, rounder.name, len(numbers), differences, complete, "rtl")


def checks(count: int, kinds: Sequence[FloatType] = FORMATS) -> Iterator[Row]:
    for kind in kinds:
        yield from compared(kind, count)
        yield from from_floats(kind, count)
    if tuple(kinds) != FORMATS:
        return
    for source in INTEGERS:
        yield from from_integers(source, count // 4)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=arithmetic.LONG)
    parser.add_argument("--formats", nargs="+", choices=[kind.name for kind in FORMATS], default=[])
    asked = parser.parse_args(arguments)
    kinds = tuple(kind for kind in FORMATS if kind.name in asked.formats) or FORMATS
    command = " ".join(["python -m tests.conformance.rtl_elementwise", *arguments])
    return int(report.write("rtl_elementwise", checks(asked.count, kinds), command) != 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
