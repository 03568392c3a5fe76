"""Functions without a circuit of their own: the general one gives the reference's bits; its cost is said."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kera_hw.graph.node import Export
from kera_hw.graph.store import Store
from kera_hw.interp import run_region
from kera_hw.numerics.elementary import FUNCTIONS, evaluate
from kera_hw.rtl.lower import FlatDesign, flatten_export
from kera_hw.rtl.lower.floats.elementary import FUNCTIONS_F32
from kera_hw.support import Diagnostic
from kera_hw.types import F32, F64, FloatType, TensorType
from tests.elementary_arguments import arguments
from tests.unit.cli_support import Kera

GENERAL = [
    *((name, F32) for name in FUNCTIONS if name not in FUNCTIONS_F32), *((name, F64) for name in FUNCTIONS),
]
QUICK = [("sin", F32), ("exp", F64), ("log2", F64), ("erf", F64)]


def flattened(name: str, kind: FloatType) -> FlatDesign | Diagnostic:
    store = Store()
    region = store.region([kind], [store.op(f"floating.{name}", store.param(0, kind))])
    return flatten_export(Export("f", "fn", (("x", kind),), kind, region), Store())


def check(name: str, kind: FloatType) -> None:
    design = flattened(name, kind)
    assert isinstance(design, FlatDesign)
    assert design.general == {f"`{name}` on {kind}": pytest.approx(1, abs=0.01)}
    values = arguments(kind, 4000)
    (found,) = run_region(design.region, [values], len(values))
    bits = np.dtype(f"u{kind.width_bits // 8}")
    wanted = evaluate(name, values, kind)
    wrong = np.flatnonzero(found.view(bits) != wanted.view(bits))
    assert not len(wrong), [(hex(values.view(bits)[i]), found[i], wanted[i]) for i in wrong[:5]]


@pytest.mark.parametrize(("name", "kind"), QUICK, ids=str)
def test_a_general_circuit_is_its_function(name: str, kind: FloatType) -> None:
    check(name, kind)


@pytest.mark.long
@pytest.mark.parametrize(("name", "kind"), [case for case in GENERAL if case not in QUICK], ids=str)
def test_every_general_circuit_is_its_function(name: str, kind: FloatType) -> None:
    check(name, kind)


def test_any_nan_gives_the_canonical_one() -> None:
    """A payload, or the sign that the function turns over, reaches no result."""
    design = flattened("sin", F64)
    assert isinstance(design, FlatDesign)
    nans = [0x7FF0000000000001, 0xFFF8000000000000, 0x7FFFFFFFFFFFFFFF]
    odd = np.array([*nans, 0xFFF0000000000000], np.uint64)
    (found,) = run_region(design.region, [odd.view(np.float64)], len(odd))
    assert found.view(np.uint64).tolist() == [F64.canonical_nan] * 4


def test_functions_with_a_circuit_of_their_own_keep_it() -> None:
    design = flattened("exp", F32)
    assert isinstance(design, FlatDesign) and design.general == {}


def test_too_many_are_refused_with_what_each_takes() -> None:
    store, kind = Store(), TensorType(F64, (4,))
    region = store.region([kind], [store.op("floating.erf", store.param(0, kind))])
    found = flatten_export(Export("f", "fn", (("x", kind),), kind, region), Store())
    assert isinstance(found, Diagnostic) and found.code == "K0610"
    assert "`erf` on f64" in found.notes[0]


@pytest.mark.long
def test_the_plan_says_what_it_takes_and_the_simulation_agrees(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "p.kera"
    path.write_text("pub fn f(x: f32) -> f32 { sin(x) }\n")
    circuit = ("--clock", "80MHz", "--device", "ecp5-85k")
    kera = Kera(capsys)
    planned = kera("plan", path, *circuit)
    assert planned.status == 0
    assert "note[K0618]: `sin` on f32 has no circuit of its own" in planned.out + planned.err
    verified = kera("verify", path, "--targets", "interp,rtl", "--vectors", "200", *circuit)
    assert verified.status == 0 and "0 differing bits" in verified.out
