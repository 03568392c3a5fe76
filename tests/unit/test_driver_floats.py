"""Floats at the edge: numbers in by one rounding, one NaN, results as text, JSON and files, items to try."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import kera_hw
from kera_hw.driver.sampling import random_value, to_bits
from kera_hw.driver.values import show_array
from kera_hw.frontend.sema.typing.literals import literal_value
from kera_hw.interp import flatten_value
from kera_hw.support import KeraError
from kera_hw.types import BF16, F16, F32, F64, FloatType, TensorType
from tests.conformance.vectors import special_bits
from tests.unit.cli_support import Kera

FORMATS = (F16, BF16, F32, F64)
PROGRAM = """
const THIRD: f16 = 1.0 / 3.0;
pub fn same(x: f32, y: [bf16; 2], z: f16) -> (f32, [bf16; 2], f16) { (x, y, z) }
pub fn triple(x: bf16) -> bf16 { fma(x, 2.0, x) }
pub fn third() -> f16 { THIRD }
pub fn nothing(x: f64) -> f64 { x - x }
test "a constant is what the run gives" { assert_eq(third(), 0.3333f16); assert_eq(sqrt(2.0f16), 1.414f16); }
test "zeros keep their signs" { assert_eq(-0.0f32 + -0.0, -0.0); assert(recip(-0.0f32) < 0.0); }
test "one NaN" { let n = 0.0f32 / 0.0; assert(n != n); assert_eq(bitcast::<u32>(-n), 0x7fc00000u32); }
test "an axis sums in its order" {
    let x: [f32; 4] = [1e8, 1.0, -1e8, 1.0];
    assert_eq(sum(x, order: sequential), 1.0);
    assert_eq(sum(x, order: tree), 0.0);
    assert_eq(sum(x, order: exact), 2.0);
}
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("floats") / "p.kera"
    file.write_text(PROGRAM)
    return file


@pytest.fixture
def kera(capsys: pytest.CaptureFixture[str]) -> Kera:
    return Kera(capsys)


def bits(value: Any) -> int:
    array = np.asarray(value)
    return int(array.view(f"u{array.dtype.itemsize}"))


# Halfway between two bf16 but for a bit that f32 drops, which would go down by way of f32.
TIE_AND_A_BIT = 1 + 2.0**-8 + 2.0**-40


def test_a_python_number_rounds_once(path: Path) -> None:
    triple = kera_hw.load(path).function("triple")
    assert bits(triple(x=1.0)) == bits(ml_dtypes.bfloat16(3.0))
    same = kera_hw.load(path).function("same")
    _, y, z = same(x=1, y=[TIE_AND_A_BIT, 2**8 + 1 + 2**-30], z=1 + 2.0**-11 + 2.0**-40)
    assert [bits(item) for item in y] == [0x3F81, 0x4381] and bits(z) == 0x3C01
    assert bits(same(x=(1 << 90) + (1 << 66) + 1, y=[0, 0], z=0)[0]) == 0x6C800001  # a tie and a bit
    assert bits(same(x=10**60, y=[0, 0], z=0)[0]) == 0x7F800000


@pytest.mark.parametrize("kind", FORMATS, ids=str)
def test_numbers_arrive_as_literals_would(kind: FloatType) -> None:
    rng = np.random.default_rng(4)
    for number in [*(rng.standard_normal(50) * 10.0 ** rng.integers(-12, 5, 50)).tolist(), 3, -7, 1 << 70]:
        found = flatten_value(kind, number)[0][0]
        want = literal_value(Fraction(number), number < 0, kind)
        assert want is None or bits(found) == bits(want), number


def test_every_nan_becomes_the_one(path: Path) -> None:
    same = kera_hw.load(path).function("same")
    y = np.array([0xFFC1, 0x7F81], np.uint16).view(ml_dtypes.bfloat16)
    x = np.array(0xFF800001, np.uint32).view(np.float32)[()]
    found = same(x=x, y=y, z=np.float16(1))
    assert bits(found[0]) == 0x7FC00000 and found[1].view(np.uint16).tolist() == [0x7FC0, 0x7FC0]


def test_wrong_numbers_are_told(path: Path) -> None:
    same = kera_hw.load(path).function("same")
    for x in (True, "1", None, np.float64(1), [1.0]):
        with pytest.raises(KeraError):
            same(x=x, y=[0, 0], z=0)


def test_in_file_tests_and_constants_use_floats(kera: Kera, path: Path) -> None:
    result = kera("test", str(path), "--json")
    assert result.status == 0, result
    assert bits(kera_hw.load(path).function("third")()) == 0x3555


def test_run_prints_the_shortest_text_and_the_bits(kera: Kera, path: Path) -> None:
    call = ["run", str(path), "--fn", "same", "-i", "x=0.1", "-i", 'y=["nan", 1e999999999]']
    result = kera(*call, "-i", "z=-0.0")
    assert result.status == 0
    assert "0 = 0.1 (0x3dcccccd)" in result.out and "1 = [nan, inf] (0x7fc0, 0x7f80)" in result.out
    assert "(0x8000)" in result.out


def test_json_says_infinities_and_nan_in_words_it_reads_again(kera: Kera, path: Path) -> None:
    call = ["run", str(path), "--fn", "same", "--json", "-i", "x=16777217", "-i"]
    result = kera(*call, 'y=["nan", "-inf"]', "-i", "z=5.9604644775390625e-8")
    data = result.json
    assert data["result"] == [16777216.0, ["nan", "-inf"], 2.0**-24]
    again = kera(*call, f"y={json.dumps(data['result'][1])}", "-i", f"z={data['result'][2]}")
    assert again.json["result"] == data["result"]
    assert kera(*call, 'y=["one", 2]', "-i", "z=1").status == 2


def test_a_scalar_reads_as_the_language_and_results_write_it(kera: Kera, path: Path, tmp_path: Path) -> None:
    result = kera("run", str(path), "--fn", "same", "-i", "x=-inf", "-i", "y=[1, 2]", "-i", "z=nan")
    assert "0 = -inf (0xff800000)" in result.out and "2 = nan (0x7e00)" in result.out
    program = tmp_path / "mask.kera"
    program.write_text("pub fn mask(x: u32) -> u32 { x & 0xff }")
    assert kera("run", str(program), "--fn", "mask", "-i", "x=0xab_cd").out.startswith("205")
    assert kera("run", str(program), "--fn", "mask", "-i", "x=0xx").status == 2


def test_files_carry_bf16_as_its_bits(kera: Kera, path: Path, tmp_path: Path) -> None:
    y, out = tmp_path / "y.npy", tmp_path / "out.npz"
    np.save(y, np.array([1.5, -2], ml_dtypes.bfloat16))
    call = ["run", str(path), "--fn", "same", "-i", "x=1", "-i", "z=1", "-o", str(out), "-i"]
    assert kera(*call, f"y={y}").status == 0
    stored = np.load(out)["1"]
    assert stored.dtype == np.uint16 and stored.tolist() == [0x3FC0, 0xC000]
    np.save(y, stored)
    assert kera(*call, f"y={y}").status == 0 and np.load(out)["1"].tolist() == [0x3FC0, 0xC000]


def test_a_float_that_differs_is_shown_by_its_bits() -> None:
    assert show_array(np.float32(0.1)[()]) == "0.1 (0x3dcccccd)"
    assert show_array(np.zeros(9, np.float16)).count("0x") == 0
    assert show_array(np.arange(3, dtype=np.int8)) == "[0, 1, 2]"


@pytest.mark.parametrize("kind", FORMATS, ids=str)
def test_items_to_try_reach_the_edges(kind: FloatType) -> None:
    drawn = random_value(TensorType(kind, (5,)), 3000, np.random.default_rng(1))
    patterns = to_bits(kind, drawn)
    edges = {bit for bit in special_bits(kind) if bit not in (2, 2 | 1 << (kind.width_bits - 1))}
    assert len(edges & set(patterns.reshape(-1).tolist())) >= len(edges) * 2 // 3
    bias = (1 << (kind.exponent_bits - 1)) - 1
    exponent = (patterns >> np.uint64(kind.fraction_bits)).astype(int) & ((1 << kind.exponent_bits) - 1)
    assert np.mean(np.abs(exponent - bias) <= 8) > 0.25
