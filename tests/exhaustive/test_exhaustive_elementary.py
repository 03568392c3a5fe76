"""Every f32 input of every elementary function against MPFR, and the committed records of that."""
from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path

import gmpy2
import numpy as np
import pytest

from kera_hw.numerics import elementary
from kera_hw.numerics.elementary import FUNCTIONS, coefficients, narrow
from kera_hw.numerics.elementary.program import Trace, real_bits, trace
from kera_hw.types import F32
from tests.exhaustive import run
from tests.exhaustive.oracle import REAL, WIDE

native = pytest.mark.skipif(shutil.which("g++") is None, reason="the check is native code: it needs g++")


@native
def test_a_misrounded_input_is_found(tmp_path: Path) -> None:
    """exp2 without its patches is wrong at one known input of this range, and right at the others."""
    outcome = run.run(run.build("exp2", tmp_path), 0x3B42_0000, 0x3B42_FFFF)
    assert outcome.checked == 1 << 16
    assert run.misrounded("exp2", outcome.inputs, outcome.results).tolist() == [0x3B42_9D37]


@native
def test_a_result_far_off_is_found(tmp_path: Path) -> None:
    wrong = trace(lambda x: (x > 5.0).real(narrow.tanh(x) * (1 - 2.0**-24), narrow.tanh(x)))
    outcome = run.run(run.build("tanh", tmp_path, wrong), 0x409F_0000, 0x40A0_FFFF)
    assert len(run.misrounded("tanh", outcome.inputs, outcome.results)) > 30_000


@native
def test_the_native_program_equals_numpy(tmp_path: Path) -> None:
    assert run.same_as_numpy("gelu", run.build("gelu", tmp_path), 1 << 18) == 0


@pytest.mark.long
@native
@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_f32_input_is_misrounded(name: str) -> None:
    record = run.check(name)
    assert record["inputs"] == run.INPUTS
    assert record["differences"] == 0, record["misrounded"]
    assert record["numpy_blocks_unlike_native"] == 0
    committed = json.loads((run.RESULTS / f"{name}.json").read_text())
    assert record["checksum"] == committed["checksum"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_committed_record_covers_every_input_without_a_difference(name: str) -> None:
    """Of the program as it is now: whoever changes a step or a constant has to run the check again."""
    record = json.loads((run.RESULTS / f"{name}.json").read_text())
    assert record["program_sha256"] == run.program_digest(name)
    assert record["inputs"] == 1 << 32
    assert record["differences"] == 0 and record["numpy_blocks_unlike_native"] == 0
    found = np.array([int(bits, 16) for bits in record["misrounded_before_patches"]], np.uint32)
    places = np.array([place for place, _ in coefficients.PATCHES[name]], np.float32).view(np.uint32)
    assert sorted(found.tolist()) == sorted(places.tolist())
    assert not len(run.left_by_patches(name, found))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_patches_change_nothing_but_their_inputs(name: str) -> None:
    """The patched program is the unpatched one, then for each patch a comparison of x and a selection."""
    bare, whole = run.unpatched(name), elementary.program(name, F32)
    assert whole.steps[: len(bare.steps)] == bare.steps and whole.tables == bare.tables
    value = bare.result
    for place, _ in coefficients.PATCHES[name]:
        select = next(
            i for i, step in enumerate(whole.steps)
            if step.verb == "select" and step.arguments[2:] == (value,)
        )
        hit, constant = (whole.steps[a] for a in select_parts(whole, select))
        assert hit.verb == "eq" and hit.arguments[0] == 0 and constant.verb == "real"
        assert whole.steps[hit.arguments[1]].parameter == real_bits(place)
        value = select
    assert whole.result == value


def select_parts(program: Trace, index: int) -> tuple[int, int]:
    """The steps that give a selection's flag and its first choice."""
    flag, yes, _ = program.steps[index].arguments
    return flag, yes


# The expressions of run.FILTERS, in the same library through Python.
HOST: dict[str, Callable[[float], float]] = {
    **{name: getattr(math, name) for name in ("exp", "exp2", "log", "log2", "sin", "cos", "tanh", "erf")},
    "sigmoid": lambda x: 1.0 / (1.0 + math.exp(-x)),
    "gelu": lambda x: 0.5 * x * math.erfc(-x * float.fromhex("0x1.6a09e667f3bcdp-1")),
    "silu": lambda x: x / (1.0 + math.exp(-x)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_host_library_is_far_within_the_margin_it_is_granted(name: str) -> None:
    """The filter's own errors: at most a sixteenth of the margin on samples of every size."""
    random = np.random.default_rng(2)
    sizes = np.exp2(random.uniform(-30, 6.4, 1500)) * random.choice([-1.0, 1.0], 1500)
    near = np.concatenate([random.uniform(-14, 14, 1000), 1 + random.normal(0, 1e-3, 200)])
    inputs = np.concatenate([sizes, near]).astype(np.float32).astype(np.float64)
    if name in ("log", "log2"):
        inputs = np.abs(inputs)
    if name == "gelu":
        inputs = inputs[inputs > -14.5]  # beyond, the result has underflowed
    elif name in ("sin", "cos"):
        inputs = np.concatenate([inputs, inputs * 2.0**100])
    margin = float.fromhex(run.MARGINS[name])
    for x in inputs.tolist():
        exact = REAL[name](gmpy2.mpfr(x))
        assert abs(WIDE.sub(gmpy2.mpfr(HOST[name](x)), exact)) <= abs(exact) * margin / 16, (name, x)
