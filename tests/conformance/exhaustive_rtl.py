"""Run the lowered graph of an f32 elementary function on every input against correct rounding.

    .venv/bin/python -m tests.conformance.exhaustive_rtl exp [FIRST LAST]

The graph becomes C++ (``lowered_cpp``). What it should give is read off the C library's double-precision
function: where both ends of its error interval (2^-47, far above what the library claims) round to one float,
that float is right; the few close calls are decided by libquadmath's 113-bit function, and those it finds
close again are listed and decided by MPFR.
"""
from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from kera_hw.graph.store import Store
from kera_hw.rtl.lower.builder import Builder
from kera_hw.rtl.lower.floats.elementary import FUNCTIONS_F32
from kera_hw.types import F32, IntType
from tests.conformance.lowered_cpp import emit_function

RESULTS = Path(__file__).parent / "results"

# Per function: the double and the 113-bit expression of x.
_MODELS = {
    "exp": ("exp(x)", "expq(x)"),
    "exp2": ("exp2(x)", "exp2q(x)"),
    "log": ("log(x)", "logq(x)"),
    "log2": ("log2(x)", "log2q(x)"),
    "tanh": ("tanh(x)", "tanhq(x)"),
    "erf": ("erf(x)", "erfq(x)"),
    "sigmoid": ("1.0 / (1.0 + exp(-x))", "1 / (1 + expq(-x))"),
}

_MAIN = """
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <quadmath.h>
%(function)s
static uint32_t bits(float f) { uint32_t u; memcpy(&u, &f, 4); return f != f ? 0x7fc00000u : u; }
int main(int argc, char **argv) {
  uint64_t first = strtoull(argv[1], 0, 0), last = strtoull(argv[2], 0, 0), wrong = 0, close = 0;
  for (uint64_t i = first; i <= last; i++) {
    uint32_t u = (uint32_t)i;
    float f;
    memcpy(&f, &u, 4);
    double x = f, y = %(double)s;
    uint32_t got = (uint32_t)lowered(u);
    uint32_t low = bits((float)(y * (1 - 0x1p-47))), high = bits((float)(y * (1 + 0x1p-47)));
    if (low == high) {
      if (got == low) continue;
    } else {
      close++;
      __float128 q = f;
      q = %(quad)s;
      __float128 m = fabsq(q) * (__float128)0x1p-100;
      uint32_t a = bits((float)(q - m)), b = bits((float)(q + m));
      if (a != b) { printf("close %%08x\\n", u); continue; }
      if (got == a) continue;
      low = a;
    }
    wrong++;
    if (wrong <= 200) printf("wrong %%08x got %%08x want %%08x\\n", u, got, low);
  }
  printf("count %%llu close %%llu wrong %%llu\\n", (unsigned long long)(last - first + 1),
    (unsigned long long)close, (unsigned long long)wrong);
}
"""


def lowered_source(name: str) -> str:
    """The C++ function ``lowered`` of one function's graph."""
    store = Store()
    builder = Builder(store)
    word = store.param(0, IntType(32, False))
    result = FUNCTIONS_F32[name](builder, F32, word)
    return emit_function(store.region([word.type], [result]), "lowered")


def run(name: str, first: int, last: int) -> list[str]:
    """The program's lines."""
    double, quad = _MODELS[name]
    with tempfile.TemporaryDirectory() as work:
        source, binary = Path(work) / "model.cpp", Path(work) / "model"
        source.write_text(_MAIN % {"function": lowered_source(name), "double": double, "quad": quad})
        subprocess.run(
            ["g++", "-O2", "-march=native", "-fext-numeric-literals", "-o", binary, source, "-lquadmath"],
            check=True,
        )
        done = subprocess.run([binary, str(first), str(last)], check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=sorted(_MODELS))
    parser.add_argument("first", nargs="?", default="0")
    parser.add_argument("last", nargs="?", default="0xffffffff")
    asked = parser.parse_args(arguments)
    begun = time.monotonic()
    for line in run(asked.name, int(asked.first, 0), int(asked.last, 0)):
        print(line)
    print(f"{time.monotonic() - begun:.1f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
