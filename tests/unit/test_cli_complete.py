"""What the shell offers after a tabulator."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kera_hw.cli.main import app

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
pub fn first(x: u8) -> u8 { x }
fn private(x: u8) -> u8 { x }
pub stream second(x: u8) -> u8 { x + missing }
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.kera").write_text(PROGRAM)
    (tmp_path / "notes.txt").write_text("")
    (tmp_path / "lib").mkdir()
    shutil.copy(ROOT / "examples" / "fir.kera", tmp_path / "lib" / "fir.kera")
    (tmp_path / "lib" / "old.keg").write_bytes(b"")
    (tmp_path / "deep" / "down").mkdir(parents=True)
    (tmp_path / "out" / "fir").mkdir(parents=True)
    (tmp_path / "out" / "fir" / "receipt.json").write_text("{}")


def offered(line: str) -> list[str]:
    """What is offered for the last word of a command line, which may be empty."""
    words = line.split(" ")
    request = {
        "_KERA_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1),
        "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1",
    }
    done = CliRunner().invoke(app, [], prog_name="kera", env={**os.environ, **request})
    return done.output.split()


DEVICES = ["ecp5-25k", "ecp5-45k", "ecp5-85k"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("kera check ", ["a.kera", "lib/fir.kera", "lib/old.keg"]),
        ("kera plan a", ["a.kera"]),
        ("kera run lib/", ["lib/fir.kera", "lib/old.keg"]),
        ("kera diff a.kera lib/o", ["lib/old.keg"]),
        ("kera fmt de", ["deep/"]),
        ("kera plan a.kera --fn ", ["first", "second"]),
        ("kera verify a.kera --fn s", ["second"]),
        ("kera build lib/fir.kera --fn ", ["fir"]),
        ("kera plan missing.kera --fn ", []),
        ("kera plan a.kera --device ecp5", DEVICES),
        ("kera run a.kera --device ecp5", DEVICES),
        ("kera build a.kera --target fpga:ecp5", [f"fpga:{name}" for name in DEVICES]),
        ("kera run a.kera --target ", ["interp", "rtl", *(f"fpga:{name}" for name in DEVICES)]),
        ("kera verify a.kera --targets interp,r", ["interp,rtl"]),
        ("kera verify a.kera --targets rtl,r", []),
        ("kera verify --receipt out/", ["out/fir"]),
        ("kera plan a.kera --interface ", ["stream", "none", "axis", "axi-lite"]),
        ("kera build a.kera --emitter a", ["amaranth"]),
        ("kera build a.kera --emit ", ["verilog", "bitstream", "obj", "header", "so"]),
        ("kera explain k090", [f"k090{k}" for k in range(1, 9)]),
        ("kera explain K0301", ["K0301"]),
        ("kera explain round_t", ["round_to"]),
    ],
)
def test_values_are_offered(line: str, words: list[str]) -> None:
    found = offered(line)
    assert set(words) <= set(found)
    assert found == words or "--target" in line
