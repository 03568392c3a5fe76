"""`kera bench`: what it measures, compares and says."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kera_hw
from kera_hw.driver.bench import compared, measure
from tests.unit.cli_support import Kera

SOURCE = """pub fn scaled(x: [f32; 64], a: f32) -> [f32; 64] { x * a }
pub stream total(x: i32) -> i32 { state s: i32 = 0; s = s + x; s }
pub fn both(x: (u8, bool)) -> (u8, bool) { x }
"""
PEER = """import numpy as np
def same(x, a): return x * a
def near(x, a): return np.nextafter(x * a, np.float32(9))
def wide(x, a): return (x * a).astype(np.float64)
def short(x, a): return x[1:]
def total(x): return np.cumsum(x, dtype=np.int32)
def both(x): return x
def broken(x, a): raise ValueError("no")
number = 3
"""


@pytest.fixture
def kera(capsys: pytest.CaptureFixture[str]) -> Kera:
    return Kera(capsys)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "k.kera").write_text(SOURCE)
    (tmp_path / "peer.py").write_text(PEER)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "k.kera"


def test_figures_of_a_function_and_a_peer(kera: Kera, file: Path) -> None:
    options = ("--against", "peer.py:same", "--seconds", 0.02, "-o", "f.json", "--json")
    done = kera("bench", f"{file}:scaled", *options)
    assert done.status == 0, done.err
    found: Any = done.json
    assert found["ok"] and found["target"] == "cpu" and found["function"] == "scaled"
    assert found["fingerprint"] == kera_hw.load(file).function("scaled").fingerprint
    for times in (found, found["other"]):
        assert 0 < times["minimum_s"] <= times["median_s"] and times["samples"] >= 5
    assert found["bytes_a_call"] == 64 * 4 * 2 + 4
    assert found["items_per_s"] == pytest.approx(1 / found["median_s"])
    assert found["agreement"] == {
        "equal": True, "differing": 0, "elements": 64, "largest_difference": None, "what": "",
    }
    assert {"cpu", "kera", "numpy", "python", "load"} <= found["machine"].keys() and found["plan"]["isa"]
    assert found["flags"]["seconds"] == 0.02
    written = json.loads(Path("f.json").read_text())
    assert written == {key: found[key] for key in written}


def test_what_differs_is_said_and_no_error(kera: Kera, file: Path) -> None:
    def said(peer: str) -> str:
        done = kera("bench", file, "--fn", "scaled", "--against", f"peer.py:{peer}", "--seconds", 0.01)
        assert done.status == 0, done.err
        return done.out

    assert "other bits in 64 of 64 elements, by" in said("near")
    assert "it gives float64, and this float32" in said("wide")
    assert "it gives an array of shape (63,)" in said("short")


def test_batches_streams_and_tuples(kera: Kera, file: Path) -> None:
    options = ("--seconds", 0.01, "--json", "--target", "interp")
    found = kera("bench", f"{file}:total", "--items", 100, "--against", "peer:total", *options).json
    assert found["agreement"]["equal"] and found["agreement"]["elements"] == 100
    assert found["items_per_s"] == pytest.approx(100 / found["median_s"])
    assert kera("bench", f"{file}:both", "--against", "peer.py:both", *options).json["agreement"]["equal"]


@pytest.mark.parametrize("options, code", [
    (["--against", "peer.py:broken"], "K0925"), (["--against", "peer.py:absent"], "K0925"),
    (["--against", "nowhere_at_all:f"], "K0925"), (["--against", "peer.py:number"], "K0925"),
    (["--against", "absent.py:f"], "K0925"), (["--against", "peer"], "K0925"), (["--items", "0"], "K0908"),
    (["--seconds", "0"], "K0908"), (["--target", "abacus"], "K0903"), (["-i", "y=1"], "K0905"),
    (["-i", "a=[1, 2]"], "K0912"), (["--seed", "-1"], "K0908"),
])  # fmt: skip
def test_a_call_at_fault(kera: Kera, file: Path, options: list[str], code: str) -> None:
    done = kera("bench", f"{file}:scaled", *options, "--json")
    assert (done.status, done.json["diagnostics"][0]["code"]) == (2, code)


def test_names_of_functions(kera: Kera, file: Path) -> None:
    assert kera("bench", file).status == 2  # there are several
    assert kera("bench", f"{file}:absent").status == 2
    assert kera("bench", f"{file}:scaled", "--fn", "scaled").status == 2
    odd = file.rename("a:b")
    assert kera("bench", odd, "--fn", "total", "--seconds", 0.01).status == 0


def test_samples_last_long_enough() -> None:
    calls = 0

    def call() -> None:
        nonlocal calls
        calls += 1

    times = measure(call, 0.02)
    assert times.calls_per_sample > 1000 and calls >= times.samples * times.calls_per_sample
    assert times.minimum_s <= times.median_s < 1e-4


def test_differences_of_numbers() -> None:
    export = kera_hw.compile("pub fn f(x: [f32; 3]) -> [f32; 3] { x }").graph.exports[0]
    mine = np.array([1, np.nan, np.inf], np.float32)
    assert compared(export, mine, mine.copy(), None).equal
    other = compared(export, mine, np.array([1.5, np.nan, np.inf], np.float32), None)
    assert (other.differing, other.largest_difference) == (1, 0.5)
    assert compared(export, mine, np.array([1, 2, np.inf], np.float32), None).largest_difference == np.inf
