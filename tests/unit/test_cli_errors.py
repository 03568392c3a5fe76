"""Bad calls and bad files: the right status, a sentence that helps, never a traceback."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from kera_hw.cli import program_commands
from tests.unit.cli_support import Kera

FIR = Path(__file__).resolve().parents[2] / "examples" / "fir.kera"

_PROGRAMS = Path(tempfile.mkdtemp(prefix="kera-test-"))
POINTS, PAIRS = _PROGRAMS / "points.kera", _PROGRAMS / "pairs.kera"


@pytest.fixture(scope="module", autouse=True)
def programs() -> Iterator[None]:
    POINTS.write_text("struct P { r: u8, g: f32 }\npub fn f(p: P) -> f32 { p.g }\n")
    PAIRS.write_text("pub fn f(t: (u8, i8)) -> i8 { t.1 }\n")
    yield
    shutil.rmtree(_PROGRAMS)


@pytest.fixture
def kera(capsys: pytest.CaptureFixture[str]) -> Kera:
    return Kera(capsys)


CALLS = [
    ([], "Usage: kera"),
    (["frobnicate"], "No such command"),
    (["check"], "Missing argument"),
    (["check", "no-such-file.kera"], "does not exist"),
    (["check", "/"], "is a directory"),
    (["check", "/dev/zero"], "no regular file"),
    (["fmt", "no-such-file.kera"], "does not exist"),
    (["explain", "K9999"], "no diagnostic, built-in, operation or target K9999"),
    (["plan", FIR, "--clock", "fast"], "such as 150MHz"),
    (["plan", FIR, "--clock", "5000MHz"], "from 1 to 1,000"),
    (["plan", FIR, "--clock", "-3"], "clock"),
    (["plan", FIR, "--latency", "0"], "latency"),
    (["plan", FIR, "--fn", "nope"], "its exports are: fir"),
    (["plan", FIR, "--target", "fpga:nope"], "ecp5-85k"),
    (["plan", FIR, "--interface", "usb"], "one of stream, none, axis, axi-lite; `usb` is not"),
    (["build", FIR], "out"),
    (["build", FIR, "--emit", "gold", "-o", "x"], "one of verilog, bitstream; `gold` is not"),
    (["run", FIR], "-i x=..."),
    (["run", FIR, "-i", "x"], "NAME=VALUE"),
    (["run", FIR, "-i", "y=1"], "takes: x"),
    (["run", FIR, "-i", "x=1", "-i", "x=2"], "given twice"),
    (["run", FIR, "-i", "x=40000"], "-32768 to 32767"),
    (["run", FIR, "-i", "x=1.5"], "integers"),
    (["run", FIR, "-i", "x=true"], "integers"),
    (["run", FIR, "-i", "x=null"], "integers"),
    (["run", FIR, "-i", 'x="7"'], "text"),
    (["run", FIR, "-i", "x=[1, 2]"], "shape"),
    (["run", FIR, "-i", "x=[[1], [2, 3]]", "--batch"], "`x`"),
    (["run", FIR, "-i", "x=" + "[" * 100_000], "JSON"),
    (["run", POINTS, "-i", 'p=[{"r": 1, "g": 2}, {"r": 3}]', "--batch"], "`p[1]` is a P"),
    (["run", POINTS, "-i", 'p=[{"r": 1, "g": "x"}]', "--batch"], "`p[0].g` of type f32 takes"),
    (["run", POINTS, "-i", 'p={"r": [1], "g": [{}]}', "--batch"], "`p.g` of type f32 takes"),
    (["run", POINTS, "-i", 'p={"r": 300, "g": 1}'], "`p.r` of type u8 holds 0 to 255"),
    (["run", POINTS, "-i", 'p={"r": 300, "g": 1}', "--target", "rtl"], "`p.r` of type u8 holds 0 to 255"),
    (["run", POINTS, "-i", "p=3"], "a dict with the fields r, g"),
    (["run", PAIRS, "-i", "t=[1, 2, 3]", "--batch"], "`t` of type (u8, i8) takes a list of 2 values"),
    (["run", PAIRS, "-i", "t=[1, 128]"], "`t.1` of type i8 holds -128 to 127"),
    (["run", FIR, "-i", "x=missing.npy"], "does not exist"),
    (["run", FIR, "-i", "x=1", "--target", "abacus"], "interp, rtl"),
    (["verify", FIR, "--targets", "interp"], "two targets"),
    (["verify", FIR, "--targets", "interp,abacus"], "no target `abacus`"),
    (["verify", FIR, "--vectors", "0"], "vectors"),
]


def _label(value: list[object] | str) -> str:
    """The same in every process: folders of a run are no part of it."""
    parts = [value] if isinstance(value, str) else [getattr(part, "name", part) for part in value]
    return " ".join(map(str, parts))[:40]


@pytest.mark.parametrize(("arguments", "words"), CALLS, ids=_label)
def test_bad_calls_end_with_2(kera: Kera, arguments: list[object], words: str) -> None:
    done = kera(*arguments)
    assert done.status == 2 and words in done.err, done.err
    assert done.out == ""


@pytest.mark.parametrize(("arguments", "words"), CALLS[1:], ids=_label)
def test_bad_calls_in_json(kera: Kera, arguments: list[object], words: str) -> None:
    done = kera(*arguments, "--json")
    assert done.status == 2 and done.err == ""
    assert not done.json["ok"]
    assert words in str(done.json["diagnostics"])


@pytest.mark.parametrize(
    "data",
    [b"\x00\xff" * 500, b"KEG\0garbage", b"\x1b[31mhello", b"pub fn f(", b"}" * 3000, b"\xef\xbb\xbffn"],
    ids=["binary", "keg", "escape", "open", "brackets", "bom"],
)
def test_files_that_are_no_programs_end_with_1(kera: Kera, tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.kera"
    path.write_bytes(data)
    done = kera("check", path)
    assert done.status == 1 and done.err.startswith("error[K0")
    assert "\x1b" not in done.err and "\x00" not in done.err
    assert len(done.err) < 40_000
    data_out = kera("check", path, "--json")
    assert data_out.status == 1 and data_out.json["diagnostics"]


def test_a_huge_file_is_refused_at_once(kera: Kera, tmp_path: Path) -> None:
    path = tmp_path / "huge.kera"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    done = kera("check", path)
    assert done.status == 2 and "larger than" in done.err


@pytest.mark.parametrize(
    "content", [b"", b"\x93NUMPY\x01\x00", b"PK\x03\x04rubbish", b"\x80\x04K\x01."],
    ids=["empty", "cut", "zip", "pickle"],
)
@pytest.mark.parametrize("suffix", ["npy", "npz"])
def test_unusable_numpy_files(kera: Kera, tmp_path: Path, content: bytes, suffix: str) -> None:
    path = tmp_path / f"x.{suffix}"
    path.write_bytes(content)
    done = kera("run", FIR, "-i", f"x={path}")
    assert done.status == 2 and "no usable NumPy file" in done.err


def test_an_npz_without_the_array_is_named(kera: Kera, tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", a=np.zeros(2, np.int16), b=np.zeros(2, np.int16))
    done = kera("run", FIR, "-i", f"x={tmp_path}/x.npz", "--batch")
    assert done.status == 2 and "`x`" in done.err


@pytest.mark.parametrize("array", [np.zeros(3, np.float64), np.zeros((2, 2), np.int16), np.zeros(2, "U3")])
def test_arrays_of_another_kind(kera: Kera, tmp_path: Path, array: np.ndarray) -> None:
    np.save(tmp_path / "x.npy", array)
    done = kera("run", FIR, "-i", f"x={tmp_path}/x.npy", "--batch")
    assert done.status == 2 and "`x`" in done.err


def test_an_array_of_another_float_says_how_to_convert_it(kera: Kera, tmp_path: Path) -> None:
    np.savez(tmp_path / "p.npz", r=np.zeros(3, np.uint8), g=np.zeros(3))
    done = kera("run", POINTS, "-i", f"p={tmp_path / 'p.npz'}", "--batch")
    assert done.status == 2 and "`p.g`" in done.err and "`.astype(np.float32)`" in done.err


def test_results_that_cannot_be_written(kera: Kera, tmp_path: Path) -> None:
    done = kera("run", FIR, "-i", "x=1", "-o", tmp_path)
    assert done.status == 2 and f"{tmp_path} cannot be written" in done.err
    (tmp_path / "file").write_text("")
    done = kera("build", FIR, "--emit", "verilog", "-o", tmp_path / "file")
    assert done.status == 2 and "cannot be written" in done.err


def test_a_program_at_fault_ends_with_1_everywhere(kera: Kera, tmp_path: Path) -> None:
    path = tmp_path / "bad.kera"
    path.write_text("pub fn f(x: [u8; 4], i: u8) -> u8 { x[i] }\n")
    for command in (["check"], ["plan"], ["run", "-i", "x=1"], ["test"], ["inspect"], ["verify"]):
        done = kera(command[0], path, *command[1:])
        assert done.status == 1 and "K0301" in done.err, command
    assert kera("build", path, "-o", tmp_path / "out").status == 1
    assert not (tmp_path / "out").exists()


def test_an_impossible_schedule_is_the_programs_fault(kera: Kera) -> None:
    done = kera("plan", FIR, "--clock", "300MHz", "--latency", "1")
    assert done.status == 1 and "K060" in done.err


def test_a_bug_of_ours_ends_with_70_and_a_short_report(
    kera: Kera, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("made up\nfor this test")

    monkeypatch.setattr(program_commands, "load_or_fail", broken)
    done = kera("test", FIR)
    assert done.status == 70 and "ZeroDivisionError: made up" in done.err and "bug in kera" in done.err
    assert len(done.err.splitlines()) < 6
    done = kera("test", FIR, "--json")
    assert done.status == 70 and "ZeroDivisionError" in done.json["internal_error"]["error"]


def test_a_missing_tool_ends_with_3(kera: Kera, monkeypatch: pytest.MonkeyPatch) -> None:
    from kera_hw.rtl.toolchain import verilator
    from kera_hw.rtl.toolchain.process import ToolMissing

    def absent() -> Path:
        raise ToolMissing("verilator", "Install it.")

    monkeypatch.setattr(verilator, "_root", absent)
    done = kera("run", FIR, "-i", "x=1", "--target", "rtl")
    assert done.status == 3 and "K0950" in done.err and "Install it." in done.err
