"""Elementary functions as lowered graphs: 16-bit formats on every argument, f32 at hard ones, against MPFR.

That every f32 argument is right is shown by ``python -m tests.conformance.exhaustive_rtl NAME``.
"""
from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from kera_hw.graph.node import Region
from kera_hw.graph.store import Store
from kera_hw.interp import run_region
from kera_hw.numerics.elementary import FUNCTIONS
from kera_hw.rtl.lower.builder import Builder
from kera_hw.rtl.lower.floats import table
from kera_hw.rtl.lower.floats.elementary import FUNCTIONS_F32
from kera_hw.types import BF16, F16, F32, FloatType, IntType, numpy_dtype
from tests.conformance.exhaustive_rtl import spans
from tests.conformance.report import RESULTS
from tests.elementary_arguments import HARD_F32
from tests.exhaustive.oracle import correct
from tests.tidy.repo import ROOT


def region_of(name: str, kind: FloatType) -> Region:
    store = Store()
    word = store.param(0, IntType(kind.width_bits, False))
    result = table.apply(Builder(store), f"floating.{name}", kind, word)
    return store.region([word.type], [result])


def check(name: str, kind: FloatType, words: np.ndarray) -> None:
    (got,) = run_region(region_of(name, kind), [words], batch=len(words))
    wanted = correct(name, words.view(numpy_dtype(kind)), kind).view(words.dtype)
    wrong = np.flatnonzero(got != wanted)
    shown = [f"{words[i]:x}: {got[i]:x}, not {wanted[i]:x}" for i in wrong[:5]]
    assert not len(wrong), f"{len(wrong)} differ: {shown}"


@pytest.mark.parametrize("kind", (F16, BF16), ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_argument_of_16_bits(name: str, kind: FloatType) -> None:
    check(name, kind, np.arange(1 << 16, dtype=np.uint16))


@pytest.mark.parametrize("name", FUNCTIONS_F32)
def test_f32_at_corners_and_at_random(name: str) -> None:
    rng = np.random.default_rng(7)
    exponents = np.arange(256, dtype=np.uint32) << 23
    fractions = np.array([0, 1, 2, 0x3FFFFF, 0x400000, 0x7FFFFE, 0x7FFFFF], dtype=np.uint32)
    corners = (exponents[:, None] + fractions).ravel()
    # Everything of interest happens between 2^-30 and 2^8.
    near = rng.integers(97 << 23, 135 << 23, 6000, dtype=np.uint32)
    words = np.concatenate([corners, near, rng.integers(0, 1 << 31, 1000, dtype=np.uint32)])
    check(name, F32, np.concatenate([words, words | np.uint32(1 << 31), np.array(HARD_F32, dtype=np.uint32)]))


@pytest.mark.parametrize("name", FUNCTIONS_F32)
def test_every_f32_argument_is_on_record(name: str) -> None:
    record = json.loads((RESULTS / f"rtl_{name}.json").read_text())
    parts = spans(name, record["command"].endswith("--quick"))
    assert record["vectors"] == sum((last - first) // step + 1 for first, last, step in parts)
    assert record["differences"] == 0


def test_tables_are_those_derived() -> None:
    script = ROOT / "tools/derive_rtl_elementary.py"
    done = subprocess.run([sys.executable, script, "--check", "exponential"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.long
def test_all_tables_are_those_derived() -> None:
    script = ROOT / "tools/derive_rtl_elementary.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
