"""What each command prints and does when all is well."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.unit.cli_support import Kera

ROOT = Path(__file__).resolve().parents[2]
FIR = ROOT / "examples" / "fir.kera"

POINTS = """
struct Point { x: i8, y: i8 }
pub fn flip(p: Point, pair: (u4, bool)) -> (Point, u4) {
    (Point { x: p.y, y: p.x }, if pair.1 { pair.0 } else { 0 })
}
pub fn total(v: [Point; 2]) -> i8 { v[0].x + v[1].y }
pub fn big(x: u64) -> u64 { x + 1 }
"""


@pytest.fixture
def kera(capsys: pytest.CaptureFixture[str]) -> Kera:
    return Kera(capsys)


@pytest.fixture
def points(tmp_path: Path) -> Path:
    path = tmp_path / "points.kera"
    path.write_text(POINTS)
    return path


def test_check_names_exports_and_fingerprint(kera: Kera) -> None:
    done = kera("check", FIR)
    assert done.status == 0 and "fine (stream fir)" in done.out and "keg:sha3-256:" in done.out


def test_check_json_is_one_object(kera: Kera, points: Path) -> None:
    data = kera("check", FIR, points, "--json").json
    assert data["ok"] and [len(row["exports"]) for row in data["files"]] == [1, 3]
    assert data["diagnostics"] == []


def test_test_reports_each_and_fails_with_the_place(kera: Kera, tmp_path: Path) -> None:
    path = tmp_path / "t.kera"
    path.write_text('test "good" { assert_eq(1, 1); }\ntest "bad" { assert_eq(1u8 + 1, 3u8); }\n')
    done = kera("test", path)
    assert done.status == 1
    assert "ok     good" in done.out and "FAILED bad" in done.out and "1 passed, 1 failed" in done.out
    assert "K0920" in done.err and ":2:" in done.err
    assert kera("test", path, "--filter", "good").status == 0
    none = kera("test", path, "--filter", "god")
    assert none.status == 0 and "0 passed, 0 failed: no test has `god` in its name" in none.out
    rows = kera("test", path, "--json").json["tests"]
    assert rows == [{"name": "good", "passed": True}, {"name": "bad", "passed": False}]


def test_run_shows_bools_as_the_language_writes_them(kera: Kera, tmp_path: Path) -> None:
    path = tmp_path / "b.kera"
    path.write_text("pub fn odd(x: u8) -> bool { x.bit(0) }\n")
    assert kera("run", path, "-i", "x=3").out == "true\n"
    assert kera("run", path, "-i", "x=[3, 4]", "--batch").out == "[true, false]\n"
    done = kera("run", path, "-i", "x=[3, 4]")
    assert done.status != 0 and "`--batch`" in done.err


def test_run_reads_literals_of_every_shape(kera: Kera, points: Path) -> None:
    done = kera("run", points, "--fn", "flip", "-i", 'p={"x": 1, "y": -2}', "-i", "pair=[9, true]", "--json")
    assert done.json["result"] == [{"x": -2, "y": 1}, 9]
    done = kera("run", points, "--fn", "total", "-i", 'v={"x": [1, 2], "y": [3, 4]}', "--json")
    assert done.json["result"] == 5
    assert kera("run", points, "--fn", "big", "-i", f"x={2**64 - 2}", "--json").json["result"] == 2**64 - 1


def test_run_reads_and_writes_numpy_files(kera: Kera, points: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "p.npz", x=np.array([1, 2], np.int8), y=np.array([3, 4], np.int8))
    np.savez(tmp_path / "pair.npz", **{"0": np.array([5, 6], np.uint8), "1": np.array([True, False])})
    out = tmp_path / "new" / "out.npz"
    done = kera(
        "run", points, "--fn", "flip", "-i", f"p={tmp_path}/p.npz", "-i", f"pair={tmp_path}/pair.npz",
        "--batch", "-o", out,
    )
    assert done.status == 0, done.err
    with np.load(out) as result:
        assert {name: result[name].tolist() for name in result} == {
            "0.x": [3, 4], "0.y": [1, 2], "1": [5, 0],
        }


def test_items_may_be_listed_one_by_one(kera: Kera, points: Path, tmp_path: Path) -> None:
    items = [{"x": k, "y": -k} for k in range(4)]
    rows = np.array([(k, -k) for k in range(4)], [("x", "i1"), ("y", "i1")])
    pairs = np.array([(k, k > 1) for k in range(4)], [("a", "u1"), ("b", "?")])
    np.save(tmp_path / "p.npy", rows)
    np.savez(tmp_path / "pair.npz", pair=pairs)
    pair = f"pair={tmp_path / 'pair.npz'}"
    for given in (f"p={json.dumps(items)}", f"p={tmp_path / 'p.npy'}"):
        for target in ("interp", "rtl"):
            call = ["run", points, "--fn", "flip", "-i", given, "-i", pair, "--target", target]
            done = kera(*call, "--batch", "--json")
            assert done.status == 0, done.out
            assert done.json["result"][0] == {"x": [0, -1, -2, -3], "y": [0, 1, 2, 3]}
            assert done.json["result"][1] == [0, 0, 2, 3]
    done = kera("run", points, "--fn", "total", "-i", 'v=[{"x": 1, "y": 2}, {"x": 3, "y": 4}]')
    assert done.status == 0 and done.out == "5\n"


def test_a_stream_runs_from_reset_and_results_can_be_inputs(kera: Kera, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([1, 0, 0], np.int16))
    first = tmp_path / "y.npy"
    assert kera("run", FIR, "-i", f"x={tmp_path}/x.npy", "--batch", "-o", first).status == 0
    assert np.load(first).tolist() == [-12, -28, -33]
    assert kera("run", FIR, "-i", f"x={first}", "--batch", "--json").json["result"][0] == 144


def test_inspect_prints_hashes_and_writes_files(kera: Kera, tmp_path: Path) -> None:
    svg, keg = tmp_path / "g.svg", tmp_path / "g.keg"
    done = kera("inspect", FIR, "--fn", "fir", "--svg", svg, "--keg", keg, "--plan")
    assert done.status == 0 and "reduce.sum" in done.out and "M mul" in done.out
    text = svg.read_text()
    assert text.startswith("<svg") and "reduce.sum" in text and "<style>" in text
    ours, theirs = (kera("check", path, "--json").json["files"][0]["fingerprint"] for path in (FIR, keg))
    assert ours == theirs


def test_plan_says_the_same_as_its_json(kera: Kera) -> None:
    data = kera("plan", FIR, "--json").json
    assert {"lut", "ff", "dsp", "bram", "fmax_mhz"} <= set(data["estimate"])
    assert data["schedule"]["latency_cycles"] == data["latency_cycles"] >= 1
    longer = kera("plan", FIR, "--latency", data["latency_cycles"] + 3, "--json").json
    assert longer["latency_cycles"] == data["latency_cycles"] + 3
    assert f"latency {data['latency_cycles']} cycles" in kera("plan", FIR).out


def test_the_interval_of_a_recurrence_is_explained(kera: Kera, tmp_path: Path) -> None:
    path = tmp_path / "loop.kera"
    path.write_text("pub stream f(x: u32) -> u32 { state s: u32 = 1; s = s * s + (x / (s | 1)); s }\n")
    data = kera("plan", path, "--clock", "60MHz", "--json").json
    assert data["initiation_interval"] > 1
    assert "`s`" in data["recurrence"] and "loop.kera:1" in data["recurrence"]


def test_diff_counts_edits_and_dependants(kera: Kera, tmp_path: Path) -> None:
    changed = tmp_path / "changed.kera"
    changed.write_text(FIR.read_text().replace("545, 545", "545, 546"))
    assert kera("diff", FIR, FIR).status == 0
    done = kera("diff", FIR, changed, "--json")
    assert done.status == 1
    data = done.json
    assert data["exports"]["changed"] == ["fir"]
    assert [row["edited"] for row in data["added"]].count(True) == 1
    # The constant, what maps over it, and the sum; nothing else has a new name.
    assert len(data["added"]) == len(data["removed"]) == 3
    renamed = tmp_path / "renamed.kera"
    renamed.write_text(FIR.read_text().replace("line", "delay"))
    assert "nodes kept" in kera("diff", FIR, changed).out
    assert kera("diff", FIR, renamed, "--json").json["removed"] == []


def test_fmt_changes_white_space_once(kera: Kera, tmp_path: Path) -> None:
    path = tmp_path / "f.kera"
    path.write_text("pub fn f(x:u8)->u8{x+1}\n")
    assert kera("fmt", "--check", path).status == 1
    assert path.read_text() == "pub fn f(x:u8)->u8{x+1}\n"
    assert kera("fmt", path).status == 0
    assert kera("fmt", "--check", path).status == 0
    assert kera("check", path).status == 0


def test_explain_and_doctor(kera: Kera) -> None:
    assert "index not proved in range" in kera("explain", "k0301").out
    assert "formal refuses floating.rsqrt on every type: " in kera("explain", "rsqrt").out
    assert "refuses" not in kera("explain", "shift_in").out
    data = kera("explain", "floating.rsqrt", "--json").json
    assert data["types"] == "floats" and data["refused"]["interp"] == []
    assert [(row["types"], row["wholly"]) for row in data["refused"]["formal"]] == [
        (["f16", "bf16", "f32", "f64"], True)
    ]
    assert "\n  floating.rsqrt on every type\n" in kera("explain", "formal").out
    rows = kera("explain", "formal", "--json").json["refused"]
    assert {"neural.rms_norm", "floating.exp"} <= {row["operation"] for row in rows}
    assert kera("explain", "interp").out == "interp computes every operation on every type.\n"
    data = kera("doctor", "--json").json
    assert "ecp5-85k" in data["devices"] and "interp" in data["targets"]
    assert all(row["remedy"] for row in data["tools"] if not row["found"])


def test_every_command_has_help_with_an_example(kera: Kera) -> None:
    listed = kera("--help").out
    names = ["check", "test", "fmt", "explain", "inspect", "diff", "plan", "build", "run", "verify", "doctor"]
    for name in names:
        assert f"\n  {name} " in listed
        done = kera(name, "--help")
        assert done.status == 0 and "Example" in done.out and f"kera {name}" in done.out, name


@pytest.mark.parametrize("command, usual", [
    ("run", "interp"), ("test", "interp"), ("verify", "rtl"), ("bench", "cpu"),
])  # fmt: skip
def test_help_names_the_target_that_a_command_takes_unasked(kera: Kera, command: str, usual: str) -> None:
    text = " ".join(kera(command, "--help").out.replace("\u2502", " ").split())
    assert f"(default: {usual})" in text
    options = {"run": ["-i", "x=1"], "bench": ["--seconds", 0.01]}.get(command)
    if options is not None:  # the others say nothing of it, or compile a simulation
        assert kera(command, FIR, *options, "--json").json["target"] == usual


def test_the_shell_can_complete_commands() -> None:
    request = {"_KERA_COMPLETE": "complete_bash", "COMP_WORDS": "kera ve", "COMP_CWORD": "1"}
    environment = {**os.environ, **request}
    done = subprocess.run(
        [sys.executable, "-c", "from kera_hw.cli.main import entry; entry()"], env=environment, cwd=ROOT,
        capture_output=True, text=True, timeout=60,
    )
    assert done.stdout.split() == ["verify"]


def test_output_has_no_colour_where_it_is_unwelcome(tmp_path: Path) -> None:
    path = tmp_path / "bad.kera"
    path.write_text("pub fn f(x: u8) -> u16 { x }\n")
    done = subprocess.run(
        [sys.executable, "-m", "kera_hw.cli.main", "check", str(path)], cwd=ROOT,
        env={**os.environ, "NO_COLOR": "1"}, capture_output=True, text=True, timeout=60,
    )
    assert done.returncode == 1 and "\x1b" not in done.stderr + done.stdout


def test_a_closed_pipe_is_no_error() -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", f"{sys.executable} -m kera_hw.cli.main inspect {FIR} | head -n 1"], cwd=ROOT,
        capture_output=True, text=True, timeout=60,
    )
    assert done.stdout.startswith("graph keg:") and done.stderr == ""


def test_json_of_everything_is_strict(kera: Kera) -> None:
    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    for arguments in (["inspect", FIR], ["plan", FIR], ["doctor"], ["explain", "K0301"]):
        json.loads(kera(*arguments, "--json").out, parse_constant=refuse)
