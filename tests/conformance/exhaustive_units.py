"""Every input of f32 units of one operand through their lowered graphs: roots, reciprocals, conversions.

    python -m tests.conformance.exhaustive_units sqrt rsqrt to_i32 [--first 0 --last 0xffff]

The graph becomes C++ (``lowered_cpp``), compiled with g++. What is right is said by the processor's own IEEE
operations (its square root, division, rounding and conversions), by an exact test in 128-bit integers for the
reciprocal root, and by the carry of an addition for bf16, which no processor at hand rounds to. A run over
all 2^32 inputs is recorded in ``results/exhaustive_<name>.json`` with the hash of the graph it was made with.
"""
from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from kera_hw.graph.node import Ref, Region
from kera_hw.graph.store import Store
from kera_hw.rtl.lower.builder import Builder, width_of
from kera_hw.rtl.lower.floats import convert, divide, integral, sqrt
from kera_hw.types import BF16, F16, F32, F64, FloatType, IntType
from tests.conformance import identity, report
from tests.conformance.lowered_cpp import emit_function
from tests.conformance.report import Row

LAST = 0xFFFF_FFFF
Lowering = Callable[[Builder, Ref], Ref]


@dataclass(frozen=True, slots=True)
class Case:
    """A unit, and C++ that says whether ``got`` is right for the input bits ``u``, the float ``x``."""

    op: str
    dtype: str
    oracle: str
    lower: Lowering
    right: str


_IEEE = "the processor's IEEE {}"
_NATIVE = {F16: "(_Float16)", F64: "(double)"}


def _unit(lower: Callable[[Builder, FloatType, Ref], Ref]) -> Lowering:
    return lambda builder, word: lower(builder, F32, word)


def _to(target: FloatType, builder: Builder, word: Ref) -> Ref:
    return convert.between(builder, F32, target, word)


def _to_integer(target: IntType, builder: Builder, word: Ref) -> Ref:
    return convert.to_integer(builder, F32, target, word)


def _from_integer(source: IntType, target: FloatType, builder: Builder, word: Ref) -> Ref:
    return convert.from_integer(builder, source, target, builder.cast(word, source))


def _saturated(target: IntType) -> str:
    """The processor's truncation where the value is in range; 0 for NaN."""
    least, past = float(target.min), float(target.max + 1)
    native = f"({'' if target.signed else 'u'}int{target.width_bits}_t)"
    return (
        f"got == (x != x ? 0 : x >= {past.hex()} ? {target.max:#x}ull : x <= {least.hex()} ? "
        f"{target.min & (1 << target.width_bits) - 1:#x}ull : "
        f"(uint64_t){native}x & {(1 << target.width_bits) - 1:#x}ull)"
    )


def _cases() -> dict[str, Case]:
    found = {
        "sqrt": Case("floating.sqrt", "f32", _IEEE.format("square root"), _unit(sqrt.lower_sqrt),
                     "got == bits(__builtin_sqrtf(x))"),
        "recip": Case("floating.recip", "f32", _IEEE.format("division"), _unit(divide.lower_recip),
                      "got == bits(1.0f / x)"),
        "rsqrt": Case("floating.rsqrt", "f32", "the midpoints beside it, squared in 128-bit integers",
                      _unit(sqrt.lower_rsqrt), "is_rsqrt(u, (uint32_t)got)"),
    }
    natives = {"floor": "floorf", "ceil": "ceilf", "round": "nearbyintf", "trunc": "truncf"}
    for mode, name in natives.items():
        found[mode] = Case(
            f"floating.{mode}", "f32", _IEEE.format("rounding to integral"),
            _unit(integral.UNITS[f"floating.{mode}"].lower), f"got == bits(__builtin_{name}(x))",
        )
    for width in (32, 64):
        for signed in (True, False):
            kind = IntType(width, signed)
            found[f"to_{kind}"] = Case(
                "convert.cast", f"f32 -> {kind}", _IEEE.format("conversion in range"),
                partial(_to_integer, kind), _saturated(kind),
            )
    for kind, native in _NATIVE.items():
        found[f"to_{kind}"] = Case(
            "convert.cast", f"f32 -> {kind}", _IEEE.format("conversion"), partial(_to, kind),
            f"got == bits({native}x)",
        )
    found["to_bf16"] = Case(
        "convert.cast", "f32 -> bf16", "half a place added to the bits, ties seen", partial(_to, BF16),
        "got == (x != x ? 0x7fc0 : (u + 0x7fffu + (u >> 16 & 1)) >> 16)",
    )
    for signed in (True, False):
        kind = IntType(32, signed)
        for target, native in {F32: "(float)", F16: "(_Float16)(double)"}.items():
            by = _IEEE.format("conversion") if target == F32 else "libgcc's conversion of the exact double"
            found[f"{target}_of_{kind}"] = Case(
                "convert.cast", f"{kind} -> {target}", by, partial(_from_integer, kind, target),
                f"got == bits({native}({'' if signed else 'u'}int32_t)u)",
            )
    return found


CASES = _cases()

_MAIN = """
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
%(function)s
enum { BLOCK = 4096 };
static %(word)s results[BLOCK];
[[maybe_unused]] static uint64_t bits(float f) {
  uint32_t u; memcpy(&u, &f, 4); return f != f ? 0x7fc00000u : u;
}
[[maybe_unused]] static uint64_t bits(_Float16 f) {
  uint16_t u; memcpy(&u, &f, 2); return f != f ? 0x7e00u : u;
}
[[maybe_unused]] static uint64_t bits(double f) {
  uint64_t u; memcpy(&u, &f, 8); return f != f ? 0x7ff8000000000000ull : u;
}
static float value(uint32_t u) { float f; memcpy(&f, &u, 4); return f; }
// A float's significand, 24 bits with the highest set, and exponent: significand * 2^exponent.
static uint64_t split(uint32_t u, int &exponent) {
  uint64_t significand = u & 0x7fffff;
  int field = u >> 23 & 255;
  exponent = (field ? field : 1) - 150;
  if (field) return significand | 0x800000;
  while (!(significand & 0x800000)) { significand <<= 1; exponent--; }
  return significand;
}
// Whether 1 / sqrt(x) lies between r's midpoints a and b: a^2 x < 1 < b^2 x. Neither can be equal.
[[maybe_unused]] static bool is_rsqrt(uint32_t x, uint32_t r) {
  if ((x & 0x7fffffff) == 0) return r == ((x & 0x80000000) | 0x7f800000);
  if (x >> 31 || x > 0x7f800000) return r == 0x7fc00000;
  if (x == 0x7f800000) return r == 0;
  if (r < 0x800000 || r >= 0x7f800000) return false;
  int ex, er;
  unsigned __int128 mx = split(x, ex), mr = split(r, er);
  // In units of 2^(er - 2): a quarter of r's place, for below a power of two midpoints are nearer.
  unsigned __int128 a = 4 * mr - (mr == 0x800000 ? 1 : 2), b = 4 * mr + 2;
  int one = -(ex + 2 * (er - 2));
  if (one < 0 || one > 126) return false;
  unsigned __int128 unit = (unsigned __int128)1 << one;
  return a * a * mx < unit && unit < b * b * mx;
}
[[gnu::always_inline]] static inline bool right(uint32_t u, uint64_t result) {
  const uint64_t got = result & %(mask)s;
  [[maybe_unused]] const float x = value(u);
  return %(right)s;
}
int main(int, char **argv) {
  uint64_t first = strtoull(argv[1], 0, 0), last = strtoull(argv[2], 0, 0), wrong = 0;
  for (uint64_t start = first; start <= last; start += BLOCK) {
    uint64_t count = last - start + 1 < BLOCK ? last - start + 1 : BLOCK;
    for (uint32_t k = 0; k < count; k++) results[k] = lowered((uint32_t)start + k);
    uint32_t bad = 0;
    for (uint32_t k = 0; k < count; k++) bad |= !right((uint32_t)start + k, results[k]);
    for (uint32_t k = 0; bad && k < count; k++) {
      if (right((uint32_t)start + k, results[k]) || ++wrong > 100) continue;
      printf("wrong %%08x got %%llx\\n", (uint32_t)start + k, (unsigned long long)results[k]);
    }
  }
  printf("count %%llu wrong %%llu\\n", (unsigned long long)(last - first + 1), (unsigned long long)wrong);
}
"""


def region_of(case: Case) -> Region:
    """The lowered graph: one 32-bit word to another."""
    store = Store()
    word = store.param(0, IntType(32, False))
    return store.region([word.type], [case.lower(Builder(store), word)])


def run(case: Case, first: int = 0, last: int = LAST) -> list[str]:
    """The native program's lines: up to 100 wrong inputs, and the counts."""
    region = region_of(case)
    width = width_of(region.results[0].type)
    parts = {
        "function": emit_function(region, "lowered"), "right": case.right,
        "mask": f"{(1 << width) - 1:#x}ull", "word": f"uint{32 if width <= 32 else 64}_t",
    }
    with tempfile.TemporaryDirectory() as work:
        source, binary = Path(work) / "model.cpp", Path(work) / "model"
        source.write_text(_MAIN % parts)
        flags = ["-O3", "-march=native", "-ffp-contract=off", "-fno-math-errno", "-std=c++17"]
        subprocess.run(["g++", *flags, "-o", binary, source], check=True)
        done = subprocess.run([binary, str(first), str(last)], check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def row_of(case: Case, lines: list[str]) -> Row:
    """What a run found."""
    _, count, _, wrong = lines[-1].split()
    return Row(
        case.op, case.dtype, case.oracle, int(count), int(wrong), int(count) == 1 << 32, "model",
        graph=identity.digits(region_of(case)),
    )


def graph_of(record: str, _row: Mapping[str, Any]) -> str:
    """Today's hash of what ``exhaustive_<name>`` is about."""
    return identity.digits(region_of(CASES[record.removeprefix("exhaustive_")]))


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="+", choices=sorted(CASES))
    parser.add_argument("--first", default="0")
    parser.add_argument("--last", default=hex(LAST))
    asked = parser.parse_args(arguments)
    bounds = int(asked.first, 0), int(asked.last, 0)
    differences = 0
    for name in asked.names:
        def rows(name: str = name) -> list[Row]:
            lines = run(CASES[name], *bounds)
            print("\n".join(lines), flush=True)
            return [row_of(CASES[name], lines)]

        if bounds != (0, LAST):
            differences += rows()[0].differences
            continue
        command = f"python -m tests.conformance.exhaustive_units {name}"
        differences += report.write(f"exhaustive_{name}", (row for _ in (0,) for row in rows()), command)
    return int(differences != 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
