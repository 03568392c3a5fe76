"""Hardware's element-wise operations beside add, mul and their kin: lowered graphs and simulated Verilog.

    python -m tests.conformance.rtl_elementwise compared f64     (relations, extremes, signs, integral values)
    python -m tests.conformance.rtl_elementwise converted f64    (to integers and to the other formats)
    python -m tests.conformance.rtl_elementwise integers         (integers to every format)
    python -m tests.conformance.rtl_elementwise functions f16    (elementary functions)

A design of several results takes 1,000,000 edge-heavy vectors, or every input of a 16-bit type where there is
one operand. Each vector goes through the lowered graph, run by the interpreter, and through the Verilog, run
by Verilator once unhindered and once under random stalls. A run writes ``results/rtl_<what>_<format>.json``.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from kera_hw.driver.rtl_target import RtlExecutor
from kera_hw.driver.session import load_program
from kera_hw.driver.targets import TargetOptions
from kera_hw.interp import run_region
from kera_hw.numerics.elementary import FUNCTIONS
from kera_hw.rtl.lower.floats.table import UNITS
from kera_hw.types import BF16, FloatType, IntType, numpy_dtype
from tests.conformance import arithmetic, identity, oracle, report
from tests.conformance.arithmetic import FORMATS, operands
from tests.conformance.report import Row
from tests.conformance.vectors import Bits, bits_dtype, draw, draw_integers, every, one_nan, values_of
from tests.exhaustive.oracle import correct

RELATIONS = {"eq": "a == b", "ne": "a != b", "lt": "a < b", "le": "a <= b", "gt": "a > b", "ge": "a >= b"}
INTEGRAL = ("floor", "ceil", "round", "trunc")
BY_BITS = {
    "min": "min(a, b)", "max": "max(a, b)", "copysign": "copysign(a, b)", "neg": "-a", "abs": "abs(a)",
    "sign": "sign(a)", "relu": "relu(a)", "is_nan": "is_nan(a)", "is_finite": "is_finite(a)",
}
DEFINITION = "the definition on integers"
WIDTHS = (1, 8, 13, 16, 31, 32, 33, 63, 64)
INTEGERS = tuple(IntType(width, signed) for width in WIDTHS for signed in (True, False))
NARROW = tuple(source for source in INTEGERS if source.width_bits <= 16)
WIDE = tuple(source for source in INTEGERS if source.width_bits > 16)
Check = Callable[[FloatType, int], Iterator[Row]]
_CHUNK = 200_000


@dataclass(frozen=True)
class Unit:
    """A program of several results: its parameters, and expressions with their types."""

    params: str
    results: Sequence[tuple[str, str]]

    def source(self) -> str:
        kinds, values = (", ".join(part) for part in zip(*((kind, text) for text, kind in self.results)))
        several = len(self.results) > 1
        body = f"({kinds}) {{ ({values}) }}" if several else f"{kinds} {{ {values} }}"
        return f"pub fn unit({self.params}) -> {body}\n"


def unit_compared(kind: FloatType) -> Unit:
    name = str(kind)
    results = [(text, "bool") for text in RELATIONS.values()]
    results += [(f"{verb}(a)", name) for verb in INTEGRAL]
    results += [(text, "bool" if verb.startswith("is_") else name) for verb, text in BY_BITS.items()]
    return Unit(f"a: {kind}, b: {kind}", results)


def unit_converted(kind: FloatType) -> Unit:
    return Unit(f"a: {kind}", [(f"a as {target}", str(target)) for target in [*INTEGERS, *_others(kind)]])


def _others(kind: FloatType) -> list[FloatType]:
    return [other for other in FORMATS if other != kind]


def unit_of_integers(sources: Sequence[IntType]) -> Unit:
    params = ", ".join(f"x{k}: {source}" for k, source in enumerate(sources))
    return Unit(params, [(f"x{k} as {kind}", str(kind)) for k in range(len(sources)) for kind in FORMATS])


def unit_function(name: str, kind: FloatType) -> Unit:
    return Unit(f"a: {kind}", [(f"{name}(a)", str(kind))])


def graph_of(record: str, row: Mapping[str, Any]) -> str:
    """Today's hash of what a row of ``rtl_<what>[_<format>]`` is about."""
    _, what, *rest = record.split("_")
    if what == "integers":
        width = int(row["dtype"].split()[0][1:])
        return identity.lowered(unit_of_integers(NARROW if width <= 16 else WIDE).source())
    kind = next(kind for kind in FORMATS if [kind.name] == rest)
    match what:
        case "compared":
            unit = unit_compared(kind)
        case "converted":
            unit = unit_converted(kind)
        case _:
            unit = unit_function(row["op"].partition(".")[2], kind)
    return identity.lowered(unit.source())


class Design:
    """A unit as hardware, which it runs."""

    def __init__(self, unit: Unit) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "unit.kera"
            path.write_text(unit.source())
            loaded = load_program(path)
        assert loaded.graph is not None, loaded.diagnostics
        self.executor = RtlExecutor(loaded.graph, loaded.graph.exports[0], TargetOptions())
        self.several = len(unit.results) > 1

    def results(self, columns: dict[str, Any]) -> dict[str, Sequence[Any]]:
        """What the graph and the Verilog give, by executor."""
        count = len(next(iter(columns.values())))
        graph = run_region(self.executor.design.flat.region, list(columns.values()), batch=count)
        verilog = self.executor.run(columns, count)
        return {"model": graph, "rtl": verilog if self.several else [verilog]}


class Tally:
    """How many results of each operation of a design differed, by executor."""

    def __init__(self, design: Design, size: int) -> None:
        self.design = design
        self.wrong = {"model": [0] * size, "rtl": [0] * size}
        self.total = 0

    def add(self, columns: dict[str, Any], wants: Sequence[Bits]) -> None:
        self.total += len(wants[0])
        for where, found in self.design.results(columns).items():
            assert len(found) == len(wants)
            for k, (got, want) in enumerate(zip(found, wants)):
                self.wrong[where][k] += _differing(got, want)

    def rows(self, names: Sequence[str], dtypes: Sequence[str], by: Sequence[str], complete: bool
             ) -> Iterator[Row]:
        graph = identity.digits(self.design.executor.design.flat.region)
        for k, (name, dtype, who) in enumerate(zip(names, dtypes, by)):
            for where, wrong in self.wrong.items():
                yield Row(name, dtype, who, self.total, wrong[k], complete, where, graph=graph)


def _differing(found: Any, want: Bits) -> int:
    got = np.asarray(found)
    return int(np.count_nonzero((got.view(want.dtype) if got.dtype.kind in "fV" else got) != want))


def compared(kind: FloatType, count: int) -> Iterator[Row]:
    """Relations and integral values against SoftFloat, extremes and signs by their definition on bits."""
    by_bits, name = arithmetic.on_bits(kind), str(kind)
    design = Design(unit_compared(kind))
    names = [f"compare.{verb}" for verb in RELATIONS]
    names += [f"floating.{verb}" for verb in (*INTEGRAL, *BY_BITS)]
    tally, rng = Tally(design, len(names)), np.random.default_rng(kind.width_bits * 100 + kind.exponent_bits)
    soft = ""
    while tally.total < count:
        a, b = operands(kind, 2, min(_CHUNK, count - tally.total), rng)
        wants, soft = _by_softfloat(kind, a, b)
        for verb in BY_BITS:
            arity, function = by_bits[verb]
            rows = map(function, *(column.tolist() for column in (a, b)[:arity]))
            wants.append(np.array(list(rows), np.bool_ if verb.startswith("is_") else bits_dtype(kind)))
        tally.add({"a": values_of(a, kind), "b": values_of(b, kind)}, wants)
    by = [soft] * (len(RELATIONS) + len(INTEGRAL)) + [DEFINITION] * len(BY_BITS)
    yield from tally.rows(names, [name] * len(names), by, False)


def _by_softfloat(kind: FloatType, a: Bits, b: Bits) -> tuple[list[Bits], str]:
    """Relations and integral values, and whose they are."""
    (unit, x, who), (_, y, _) = arithmetic.wide(kind, a), arithmetic.wide(kind, b)
    eq, lt, le, gt, ge = (
        np.array(oracle.apply(unit, function, *pair), np.bool_) for function, pair in (
            (unit.eq, (x, y)), (unit.lt, (x, y)), (unit.le, (x, y)), (unit.lt, (y, x)), (unit.le, (y, x)),
        )
    )
    wants: list[Bits] = [eq, ~eq, lt, le, gt, ge]
    for verb in INTEGRAL:
        whole = unit.bits_out(oracle.apply(unit, unit.integral(verb), x))
        wants.append(one_nan((whole >> np.uint32(16)).astype(np.uint16), BF16) if kind == BF16 else whole)
    return wants, who


def converted(kind: FloatType, count: int) -> Iterator[Row]:
    """To integers against exact truncation, to other formats against MPFR."""
    others = _others(kind)
    targets = [*INTEGERS, *others]
    design = Design(unit_converted(kind))
    complete = kind.width_bits == 16 and count >= 1 << 16
    bits = every(kind) if complete else draw(kind, count, np.random.default_rng(kind.width_bits))
    wholes = [_whole(value) for value in oracle.as_doubles(bits, kind).tolist()]
    exact, wants = oracle.mpfr(kind).bits_in(bits), list[Bits]()
    for target in INTEGERS:
        low, high = target.min, target.max
        wants.append(np.array([min(max(whole, low), high) for whole in wholes], numpy_dtype(target)))
    for target in others:
        rounder = oracle.mpfr(target)
        wants.append(rounder.bits_out([rounder.rounded(value) for value in exact]))
    tally = Tally(design, len(targets))
    tally.add({"a": values_of(bits, kind)}, wants)
    by = ["exact integers"] * len(INTEGERS) + ["MPFR"] * len(others)
    dtypes = [f"{kind} -> {target}" for target in targets]
    yield from tally.rows(["convert.cast"] * len(targets), dtypes, by, complete)


def _whole(value: float) -> int:
    """Toward zero; infinities beyond every type, NaN 0."""
    if value != value:
        return 0
    return int(value) if abs(value) != float("inf") else (1 << 80 if value > 0 else -(1 << 80))


def integers(count: int) -> Iterator[Row]:
    """To all formats, MPFR rounding the exact integer; every value of 16 bits and less."""
    yield from _from_integers(NARROW, 1 << 16)
    yield from _from_integers(WIDE, count)


def _from_integers(sources: Sequence[IntType], count: int) -> Iterator[Row]:
    """One design of all sources: those of fewer values than others go round again."""
    design, columns, wants = Design(unit_of_integers(sources)), dict[str, Bits](), list[Bits]()
    for k, source in enumerate(sources):
        numbers = np.resize(draw_integers(source, count, np.random.default_rng(source.width_bits)), count)
        columns[f"x{k}"] = numbers
        for kind in FORMATS:
            rounder = oracle.mpfr(kind)
            wants.append(rounder.bits_out(rounder.integers(numbers.tolist())))
    tally = Tally(design, len(wants))
    tally.add(columns, wants)
    names = [f"{source} -> {kind}" for source in sources for kind in FORMATS]
    sizes = [min(count, 1 << source.width_bits) for source in sources for _ in FORMATS]
    for k, row in enumerate(tally.rows(["convert.cast"] * len(names), names, ["MPFR"] * len(names), False)):
        size = sizes[k // len(tally.wrong)]
        complete = size == 1 << sources[k // (len(tally.wrong) * len(FORMATS))].width_bits
        yield replace(row, vectors=size, exhaustive=complete)


def functions(kind: FloatType, count: int) -> Iterator[Row]:
    """Elementary functions that have a unit on the format; every input of 16 bits."""
    complete = kind.width_bits == 16 and count >= 1 << 16
    bits = every(kind) if complete else draw(kind, count, np.random.default_rng(kind.width_bits))
    values = values_of(bits, kind)
    for name in FUNCTIONS:
        if kind not in UNITS[f"floating.{name}"].formats:
            continue
        tally = Tally(Design(unit_function(name, kind)), 1)
        tally.add({"a": values}, [correct(name, values, kind).view(bits_dtype(kind))])
        yield from tally.rows([f"floating.{name}"], [str(kind)], ["MPFR"], complete)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    kinds = {"compared": compared, "converted": converted, "functions": functions}
    parser.add_argument("what", choices=[*kinds, "integers"])
    parser.add_argument("formats", nargs="*", choices=[[], *(kind.name for kind in FORMATS)])
    parser.add_argument("--count", type=int, default=arithmetic.LONG)
    asked = parser.parse_args(arguments)
    command = f"python -m tests.conformance.rtl_elementwise {asked.what}"
    if asked.what == "integers":
        return int(report.write("rtl_integers", integers(asked.count), command) != 0)
    differences = 0
    for kind in FORMATS:
        if kind.name in asked.formats or not asked.formats:
            rows = kinds[asked.what](kind, asked.count)
            differences += report.write(f"rtl_{asked.what}_{kind}", rows, f"{command} {kind}")
    return int(differences != 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
