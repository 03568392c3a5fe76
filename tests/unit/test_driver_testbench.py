"""Exported benches: they pass on what was built, in each simulator, and fail on what was not."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import kera_hw
from kera_hw.rtl.toolchain.tools import require
from tests.unit.cli_support import Kera

PROGRAM = """
struct P { r: u8, g: i12 }
pub stream acc(x: i16) -> i16 {
    state s: i16 = 3;
    s = s + x;
    s
}
pub fn plus(left: u8, right: u8) -> u8 { left + right }
pub fn mixed(p: P, k: [bool; 3], x: f32) -> (P, [f32; 2], bool) {
    (P { r: p.r + 1, g: -p.g }, [x * 1.5, -x], k[0] & k[2])
}
pub stream ratio(a: u12) -> u12 {
    state last: u12 = 1;
    let old = last;
    last = a;
    if old == 0 { 0 } else { a / old }
}
pub fn seven() -> u8 { 7 }
pub fn std(x: u8) -> u8 { x ^ 255 }
"""

needs_icarus = pytest.mark.skipif(
    shutil.which("iverilog") is None, reason="Icarus Verilog is not installed: apt-get install iverilog"
)


@pytest.fixture
def kera(capsys: pytest.CaptureFixture[str]) -> Kera:
    return Kera(capsys)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "p.kera"
    path.write_text(PROGRAM)
    return path


def export(kera: Kera, path: Path, name: str, *options: object, kind: str = "verilog") -> Path:
    out = path.parent / "out"
    call = ["build", path, "--fn", name, "--emit", "verilog", "-o", out, "--testbench", kind]
    done = kera(*call, "--vectors", "40", *options)
    assert done.status == 0, done.err
    return out


def icarus(out: Path, name: str, verilog: str | None = None) -> tuple[int, str]:
    """Exit status and output of the bench in Icarus, on the Verilog of the build or another."""
    source = out / f"{name}.v"
    if verilog is not None:
        assert verilog != source.read_text(), "nothing was changed"
        source = out / "changed.v"
        source.write_text(verilog)
    program = out / "bench"
    argv = ["iverilog", "-g2012", "-o", str(program), str(source), str(out / f"{name}_tb.sv")]
    subprocess.run(argv, check=True, timeout=120)
    done = subprocess.run([str(program)], capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout + done.stderr


CASES: list[tuple[str, list[str]]] = [
    ("acc", []), ("acc", ["--latency", "6"]), ("acc", ["--ii", "3"]), ("acc", ["--interface", "none"]),
    ("acc", ["--interface", "none", "--ii", "4", "--latency", "5"]), ("plus", []), ("plus", ["--ii", "2"]),
    ("plus", ["--interface", "none", "--latency", "3"]), ("mixed", []), ("mixed", ["--interface", "none"]),
    ("ratio", []), ("ratio", ["--interface", "none"]), ("seven", []), ("acc", ["--emitter", "amaranth"]),
    ("mixed", ["--target", "fpga:ice40-hx8k"]),
]  # fmt: skip


@needs_icarus
@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_a_bench_passes_on_what_was_built(kera: Kera, path: Path, name: str, options: list[str]) -> None:
    status, text = icarus(export(kera, path, name, *options), name)
    assert status == 0 and text.startswith(f"PASS: {name}, 52 items"), text


@needs_icarus
def test_a_bench_is_called_as_its_module_is(kera: Kera, path: Path) -> None:
    status, text = icarus(export(kera, path, "std"), "std_")
    assert status == 0 and "PASS: std_" in text


FAULTS: list[tuple[str, list[str], str, str, str]] = [
    ("acc", [], r"\.d\(16'h", ".d(~16'h", "out_data is wrong"),
    ("acc", [], r"(initial|<=) 16'h3;", r"\1 16'h2;", "out_data is wrong"),
    ("acc", ["--latency", "4"], r"assign advance = [^;]*;", "assign advance = 1'b1;", "FAIL"),
    ("acc", ["--interface", "none"], r"if \(rst\)", "if (1'b0)", "out_data is wrong"),
    ("plus", ["--interface", "none"], r"a\(left_s(\d)\)", r"a(~left_s\1)", "out_data is wrong"),
]


@needs_icarus
@pytest.mark.parametrize(("name", "options", "old", "new", "words"), FAULTS, ids=range(len(FAULTS)))
def test_a_bench_fails_on_a_planted_fault(
    kera: Kera, path: Path, name: str, options: list[str], old: str, new: str, words: str
) -> None:
    out = export(kera, path, name, *options)
    status, text = icarus(out, name, re.sub(old, new, (out / f"{name}.v").read_text()))
    assert status != 0 and words in text and "PASS" not in text, text


@needs_icarus
def test_a_bench_fails_on_other_cycles(kera: Kera, path: Path) -> None:
    later = (export(kera, path, "acc", "--latency", "4") / "acc.v").read_text()
    status, text = icarus(export(kera, path, "acc", "--latency", "3"), "acc", later)
    assert status != 0 and "latency is not as planned" in text
    never = re.sub(r"assign out_valid = [^;]*;", "assign out_valid = 1'b0;", later)
    status, text = icarus(path.parent / "out", "acc", never)
    assert status != 0 and "missing" in text


@needs_icarus
def test_the_cocotb_bench_passes_and_fails(kera: Kera, path: Path) -> None:
    def run(out: Path, name: str = "acc") -> tuple[int, str]:
        argv = [sys.executable, f"{name}_cocotb.py"]
        done = subprocess.run(argv, cwd=out, capture_output=True, text=True, timeout=300, check=False)
        return done.returncode, done.stdout

    out = export(kera, path, "acc", kind="cocotb")
    status, text = run(out)
    assert status == 0 and "PASS: acc, 3 tests, 0 failed" in text, text
    source = out / "acc.v"
    source.write_text(re.sub(r"(initial|<=) 16'h3;", r"\1 16'h2;", source.read_text()))
    status, text = run(out)
    assert status == 1 and "FAIL: acc, 3 tests, 3 failed" in text
    status, text = run(export(kera, path, "acc", "--interface", "none", "--ii", "3", kind="cocotb"))
    assert status == 0 and "PASS: acc, 3 tests, 0 failed" in text, text
    status, text = run(export(kera, path, "plus", "--interface", "none", kind="cocotb"), "plus")
    assert status == 0 and "PASS: plus, 3 tests, 0 failed" in text and "SKIP=1" in text, text


@pytest.mark.long
def test_verilator_runs_the_bench(kera: Kera, path: Path) -> None:
    out = export(kera, path, "acc")
    root = require("verilator")
    text = (out / "acc_tb.sv").read_text()
    call = next(line for line in text.splitlines() if line.startswith("// $ verilator")).removeprefix("// $ ")
    environment = {**os.environ, "VERILATOR_ROOT": str(root), "PATH": f"{root / 'bin'}:{os.environ['PATH']}"}
    for verilog, status in ((None, 0), (re.sub(r"\.d\(16'h", ".d(~16'h", (out / "acc.v").read_text()), 1)):
        if verilog is not None:
            (out / "acc.v").write_text(verilog)
        subprocess.run(call.split(), cwd=out, env=environment, check=True, timeout=600, capture_output=True)
        done = subprocess.run([out / "obj_dir" / "Vacc_tb"], capture_output=True, text=True, check=False)
        assert (done.returncode != 0) == bool(status) and ("PASS" in done.stdout) == (status == 0)


def test_items_are_corners_ones_own_and_random_with_the_interpreters_results(
    kera: Kera, path: Path, tmp_path: Path
) -> None:
    own = np.array([1234, -4321], np.int16)
    np.save(tmp_path / "x.npy", own)
    out = export(kera, path, "acc", "-i", f"x={tmp_path / 'x.npy'}", kind="cocotb")
    data = json.loads((out / "acc_vectors.json").read_text())
    items = np.array([row["in_x"] for row in data["items"]], np.uint16).view(np.int16)
    assert len(items) == 12 + 2 + 40
    assert {0, 1, -1, 32767, -32768} <= set(items[:12].tolist()) and items[12:14].tolist() == own.tolist()
    expected = np.array([row["out_data"] for row in data["expected"]], np.uint16).view(np.int16)
    assert np.array_equal(kera_hw.load(path).function("acc").batch(x=items), expected)
    assert (data["protocol"], data["latency_cycles"], data["top"]) == ("stream", 1, "acc")


def test_benches_are_part_of_the_receipt(kera: Kera, path: Path) -> None:
    out = export(kera, path, "std", "--testbench", "cocotb")
    names = {"std__tb.sv", "std__cocotb.py", "std__vectors.json"}
    assert names <= set(json.loads((out / "receipt.json").read_text())["artefacts"])
    assert kera("verify", "--receipt", out).status == 0
    for name in names:
        whole = (out / name).read_text()
        (out / name).write_text(whole + " ")
        assert kera("verify", "--receipt", out).status == 1
        (out / name).write_text(whole)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--testbench", "vhdl"], "one of verilog, cocotb; `vhdl` is not"),
        (["--testbench", "verilog", "--vectors", "0"], "whole number of items from 1"),
        (["--testbench", "verilog", "-i", "x=[1, 2"], "`x`"),
        (["--testbench", "verilog", "-i", "x=5"], "leading axis"),
        (["-i", "x=[1]"], "name one with --testbench"),
        (["--testbench", "verilog", "--interface", "axis"], "`kera verify` with the same `--interface`"),
    ],
    ids=["kind", "count", "value", "no batch", "no bench", "beats"],
)
def test_what_no_bench_can_hold_is_told(kera: Kera, path: Path, options: list[str], words: str) -> None:
    done = kera("build", path, "--fn", "acc", "--emit", "verilog", "-o", path.parent / "o", *options)
    assert done.status == 2 and words in done.err, done.err
