"""Every input of an f32 elementary function through its lowered graph, against correct rounding.

    python -m tests.conformance.exhaustive_rtl exp [--first 0 --last 0xffff]
    python -m tests.conformance.exhaustive_rtl narrow   (all functions on f16 and bf16, in a minute)
    python -m tests.conformance.exhaustive_rtl general  (f32 by the general circuit, edges and at random)

The graph becomes C++ (``lowered_cpp``), compiled with g++. What it should give is read off the C library's
double-precision function: where both ends of an error interval of 2^-47, far wider than its errors, round to
one float, that float is right. A 113-bit function decides the close calls, MPFR those it finds close again.
A run over all inputs is recorded in ``results/rtl_<name>.json`` with the hash of the graph it was made with.
"""
from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from kera_hw.graph.node import Export, Region
from kera_hw.graph.store import Store
from kera_hw.interp import run_region
from kera_hw.numerics.elementary import FUNCTIONS
from kera_hw.numerics.floatbits import to_bits
from kera_hw.rtl.lower import FlatDesign, flatten_export
from kera_hw.rtl.lower.builder import Builder
from kera_hw.rtl.lower.floats.elementary import FUNCTIONS_F32
from kera_hw.rtl.lower.floats.elementary.narrow import lower_narrow
from kera_hw.types import BF16, F16, F32, FloatType, IntType, numpy_dtype
from tests.conformance import identity, report
from tests.conformance.lowered_cpp import emit_function
from tests.conformance.report import Row
from tests.elementary_arguments import arguments
from tests.exhaustive.oracle import correct

NARROW = "narrow"
"""Instead of a function's name: all of them on f16 and bf16."""
GENERAL = "general"
"""Those on f32 that have no circuit of their own."""
_LAST = 0xFFFF_FFFF

# Per function: the double and the 113-bit expression of x.
_MODELS = {
    "exp": ("exp(x)", "expq(x)"),
    "exp2": ("exp2(x)", "exp2q(x)"),
    "log": ("log(x)", "logq(x)"),
    "log2": ("log2(x)", "log2q(x)"),
    "tanh": ("tanh(x)", "tanhq(x)"),
    "erf": ("erf(x)", "erfq(x)"),
    "sigmoid": ("1.0 / (1.0 + exp(-x))", "1 / (1 + expq(-x))"),
    # Near 0 silu is x / 2 + x^2 / 4: the nudge breaks ties to the side on which it lies.
    "silu": (
        "x == -INFINITY ? -0.0 : x / (1.0 + exp(-x))",
        "fabsq(x) < 0x1p-80Q ? x * (0.5Q + (x > 0 ? 0x1p-60Q : -0x1p-60Q)) : x / (1 + expq(-x))",
    ),
    "gelu": ("0.5 * x * erfc(x * -0x1.6a09e667f3bcdp-1)", "x * erfcq(-x / sqrtq(2)) / 2"),
    "sin": ("sin(x)", "sinq(x)"),
    "cos": ("cos(x)", "cosq(x)"),
}

_STRIDE = 1021
_FEW, _MOST = 101 << 23, 134 << 23  # below 2^-25 (less an octave), from 128 on
_SIGN = 1 << 31

# Ranges in which a comparison selects one constant: arguments whose fixed-point form is 0, or too large, of
# exp and its kin; negative ones of log. Quick runs sample them.
_CONSTANT: dict[str, list[tuple[int, int]]] = {
    "exp": [(0, _FEW), (_MOST, _SIGN + _FEW), (_SIGN + _MOST, _LAST)],
    "exp2": [(0, _FEW), (_MOST + (1 << 23), _SIGN + _FEW), (_SIGN + _MOST + (1 << 23), _LAST)],
    "sigmoid": [(_MOST, _SIGN - 1), (_SIGN + _MOST, _LAST)],
    "log": [(_SIGN + 1, _LAST)],
    "log2": [(_SIGN + 1, _LAST)],
    "silu": [(_SIGN + _MOST, _LAST)],
}

_MAIN = """
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <quadmath.h>
%(function)s
enum { BLOCK = 4096 };
static uint32_t got[BLOCK];
static uint32_t bits(float f) { uint32_t u; memcpy(&u, &f, 4); return f != f ? 0x7fc00000u : u; }
static float value(uint32_t u) { float f; memcpy(&f, &u, 4); return f; }
int main(int, char **argv) {
  uint64_t total = 0, wrong = 0, close = 0;
  for (argv++; *argv; argv += 3) {
   uint64_t last = strtoull(argv[1], 0, 0), step = strtoull(argv[2], 0, 0);
   for (uint64_t start = strtoull(argv[0], 0, 0); start <= last; start += BLOCK * step) {
    uint64_t count = (last - start) / step + 1 < BLOCK ? (last - start) / step + 1 : BLOCK;
    total += count;
    for (uint64_t k = 0; k < count; k++) got[k] = (uint32_t)lowered(start + k * step);
    for (uint64_t k = 0; k < count; k++) {
      uint32_t u = (uint32_t)(start + k * step);
      double x = value(u), y = %(double)s;
      uint32_t low = bits((float)(y * (1 - 0x1p-47))), high = bits((float)(y * (1 + 0x1p-47)));
      if (low == high) {
        if (got[k] == low) continue;
      } else {
        close++;
        __float128 q = x;
        {
          const __float128 x = q;
          q = %(quad)s;
        }
        const __float128 margin = fabsq(q) * (__float128)0x1p-100;
        low = bits((float)(q - margin));
        if (low != bits((float)(q + margin))) { printf("close %%08x %%08x\\n", u, got[k]); continue; }
        if (got[k] == low) continue;
      }
      wrong++;
      if (wrong <= 100) printf("wrong %%08x got %%08x want %%08x\\n", u, got[k], low);
    }
   }
  }
  printf("count %%llu close %%llu wrong %%llu\\n", (unsigned long long)total,
    (unsigned long long)close, (unsigned long long)wrong);
}
"""


def region_of(name: str) -> Region:
    """The lowered graph of a function: one 32-bit word to another."""
    store = Store()
    builder = Builder(store)
    word = store.param(0, IntType(32, False))
    return store.region([word.type], [FUNCTIONS_F32[name](builder, F32, word)])


def spans(name: str, quick: bool) -> list[tuple[int, int, int]]:
    """(first, last, step) that cover all inputs; ``quick`` goes in strides where the result is a constant.

    Which inputs those are follows from the graph: a comparison of the exponent field, or the sign, selects
    a constant there, whatever the rest computes.
    """
    constant = _CONSTANT.get(name, []) if quick else []
    found: list[tuple[int, int, int]] = []
    position = 0
    for first, last in constant:
        if position < first:
            found.append((position, first - 1, 1))
        found += [(first, last, _STRIDE), (last, last, 1)]
        position = last + 1
    return [*found, (position, _LAST, 1)] if position <= _LAST else found


def run(name: str, parts: list[tuple[int, int, int]]) -> list[str]:
    """The native program's lines on (first, last, step) ranges."""
    double, quad = _MODELS[name]
    function = emit_function(region_of(name), "lowered")
    with tempfile.TemporaryDirectory() as work:
        source, binary = Path(work) / "model.cpp", Path(work) / "model"
        source.write_text(_MAIN % {"function": function, "double": double, "quad": quad})
        flags = ["-O3", "-march=native", "-ffp-contract=off", "-fext-numeric-literals"]
        subprocess.run(["g++", *flags, "-o", binary, source, "-lquadmath"], check=True)
        bounds = [str(value) for part in parts for value in part]
        done = subprocess.run([binary, *bounds], check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def settle(name: str, lines: list[str]) -> int:
    """Of the inputs left undecided, how many differ from MPFR's result."""
    pairs = np.array([[int(v, 16) for v in line.split()[1:]] for line in lines], np.uint32).reshape(-1, 2)
    return int((to_bits(correct(name, pairs[:, 0].copy().view(np.float32), F32)) != pairs[:, 1]).sum())


def narrow() -> Iterator[Row]:
    """All functions on 16-bit formats, run by the interpreter."""
    words = np.arange(1 << 16, dtype=np.uint16)
    for kind in (F16, BF16):
        for name in FUNCTIONS:
            region = narrow_region(name, kind)
            (got,) = run_region(region, [words], batch=len(words))
            wanted = correct(name, words.view(numpy_dtype(kind)), kind).view(np.uint16)
            wrong, graph = int((got != wanted).sum()), identity.digits(region)
            yield Row(name, kind.name, "MPFR", len(words), wrong, True, "lowered graph", graph=graph)


def narrow_region(name: str, kind: FloatType) -> Region:
    """The lowered graph of a function on a 16-bit format: one word to another."""
    store = Store()
    word = store.param(0, IntType(16, False))
    return store.region([word.type], [lower_narrow(name, Builder(store), kind, word)])


def general() -> Iterator[Row]:
    """Functions written out in arithmetic of f64, run by the interpreter."""
    values = arguments(F32, 80_000)
    for name in FUNCTIONS:
        if name not in FUNCTIONS_F32:
            region = general_region(name)
            (got,) = run_region(region, [values], batch=len(values))
            wrong = int((to_bits(got) != to_bits(correct(name, values, F32))).sum())
            graph = identity.digits(region)
            yield Row(name, "f32", "MPFR", len(values), wrong, False, "lowered graph", graph=graph)


@cache
def general_region(name: str) -> Region:
    """The lowered graph of a function on f32 by its expansion."""
    store = Store()
    region = store.region([F32], [store.op(f"floating.{name}", store.param(0, F32))])
    flat = flatten_export(Export(name, "fn", (("x", F32),), F32, region), Store())
    assert isinstance(flat, FlatDesign)
    return flat.region


def graph_of(record: str, row: Mapping[str, Any]) -> str:
    """Today's hash of what a row of ``rtl_narrow``, ``rtl_general`` or ``rtl_<function>`` is about."""
    if record == f"rtl_{GENERAL}":
        return identity.digits(general_region(row["op"]))
    if record == f"rtl_{NARROW}":
        return identity.digits(narrow_region(row["op"], F16 if row["dtype"] == "f16" else BF16))
    return identity.digits(region_of(row["op"]))


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=[*sorted(FUNCTIONS_F32), NARROW, GENERAL])
    parser.add_argument("--first", default="0")
    parser.add_argument("--last", default=hex(_LAST))
    parser.add_argument("--quick", action="store_true", help="only sample where the result is a constant")
    asked = parser.parse_args(arguments)
    command = f"python -m tests.conformance.exhaustive_rtl {asked.name}" + " --quick" * asked.quick
    if asked.name == NARROW:
        return report.write("rtl_narrow", narrow(), command)
    if asked.name == GENERAL:
        return report.write("rtl_general", general(), command)
    first, last = int(asked.first, 0), int(asked.last, 0)
    part_only = (first, last) != (0, _LAST)

    def rows() -> list[Row]:
        parts = [(first, last, 1)] if part_only else spans(asked.name, asked.quick)
        *lines, total = run(asked.name, parts)
        print("\n".join([*lines, total]))
        wrong = int(total.split()[-1]) + settle(asked.name, [s for s in lines if s.startswith("close")])
        count = int(total.split()[1])
        note = "a comparison selects a constant on all other inputs, sampled" * asked.quick
        oracle, graph = "libm f64 with a margin, libquadmath, MPFR", identity.digits(region_of(asked.name))
        return [Row(asked.name, "f32", oracle, count, wrong, True, "lowered graph", note, graph)]

    if part_only:
        return rows()[0].differences
    return report.write(f"rtl_{asked.name}", (row for _ in (0,) for row in rows()), command)


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1:])))
