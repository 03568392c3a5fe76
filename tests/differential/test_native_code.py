"""Native programs as C++ on this processor give the registry's bits."""
from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from kera_hw.legal.legalise import legalise
from kera_hw.numerics.arrays import Array
from kera_hw.ops.choosing import FLOATS
from kera_hw.ops.registry import FAMILIES
from kera_hw.ops.spec import Trait
from kera_hw.types import IntType, numpy_dtype
from tests.exhaustive import native_cpp
from tests.exhaustive.pairs import FLAGS, PRELUDE
from tests.legal_cases import Case, case, operands, program_of, reference, sampled
from tests.native_machine import strange

native = pytest.mark.skipif(shutil.which("g++") is None, reason="the check is native code: it needs g++")
GROUPS = ("integer", "fixed", "floating", "compare", "convert", "bits")
_LANES = 300


def _cases(family: str) -> list[Case]:
    """Some types of each operation; every format of those on floats, and of conversions."""
    found: list[Case] = []
    for spec in FAMILIES[family]:
        if Trait.ELEMENTWISE in spec.traits and spec.name != "integer.add_carry":  # has two results
            samples = sorted(sampled(spec.name, 8), key=str)
            found += samples if family in ("floating", "convert") else samples[:: max(1, len(samples) // 12)]
    if family == "convert":
        whole = [IntType(width, signed) for width in (8, 32, 33, 64) for signed in (True, False)]
        pairs = [(a, b) for a in FLOATS for b in (*FLOATS, *whole)] + [(a, b) for a in whole for b in FLOATS]
        found += [case("convert.cast", (a,), {"type": b}) for a, b in pairs if a != b]
    return found


def _source(item: Case, name: str) -> str:
    """The operation over arrays."""
    program = legalise(program_of(item))
    params, (result,) = program.of_kind("param"), program.of_kind("result")
    given = ", ".join(f"const {native_cpp.ctype(p.element)} *p{k}" for k, p in enumerate(params))
    args = ", ".join(f"p{k}[i]" for k in range(len(params)))
    kind = native_cpp.ctype(result.element)
    return native_cpp.function(program, f"{name}_scalar") + (
        f'extern "C" void {name}({given}, {kind} *out, long count) '
        f"{{ for (long i = 0; i < count; i++) out[i] = {name}_scalar({args}); }}\n"
    )


def _run(library: ctypes.CDLL, name: str, args: list[Array], out: Array) -> None:
    pointers = [ctypes.c_void_p(item.ctypes.data) for item in (*args, out)]
    getattr(library, name)(*pointers, ctypes.c_long(len(out)))


@native
@pytest.mark.parametrize("family", GROUPS)
def test_a_processor_gives_the_bits(family: str, tmp_path: Path) -> None:
    cases = _cases(family)
    assert len(cases) > 20
    source, binary = tmp_path / "native.cpp", tmp_path / "native.so"
    source.write_text(PRELUDE + "".join(_source(item, f"f{k}") for k, item in enumerate(cases)))
    subprocess.run(["g++", *FLAGS, "-O1", "-shared", "-fPIC", str(source), "-o", str(binary)], check=True)
    library = ctypes.CDLL(str(binary))
    for k, item in enumerate(cases):
        args = operands(item.kinds, _LANES, k)
        (wanted,) = reference(item, args)
        out = np.empty(len(wanted), numpy_dtype(item.types[0]))
        _run(library, f"f{k}", [np.ascontiguousarray(strange(arg)) for arg in args], out)
        word = np.dtype(f"u{out.dtype.itemsize}")
        bad = np.flatnonzero(out.view(word) != np.ascontiguousarray(wanted).view(word))
        assert not len(bad), (item, [(*(arg[i] for arg in args), out[i], wanted[i]) for i in bad[:4]])
