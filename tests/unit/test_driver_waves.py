"""Waveforms: the items asked for or those that fail, in a format that is what its name says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from kera_hw.driver import rtl_target
from kera_hw.driver.hardware import HardwareDesign, design_hardware
from kera_hw.rtl.toolchain import verilator
from kera_hw.rtl.toolchain.process import ToolMissing
from tests.unit.cli_support import Kera

PROGRAM = """
pub stream acc(sample: i16) -> i16 {
    state total: i16 = 0;
    total = total + sample;
    total
}
pub fn join(left: u8, right: u8) -> u8 { left + right }
"""
JOIN = ["run", "--fn", "join", "-i", "left=1", "-i", "right=1"]
BENCH = "kera_bench_top"
HAS_LZ4 = Path("/usr/include/lz4.h").exists()


@pytest.fixture
def kera(capsys: pytest.CaptureFixture[str]) -> Kera:
    return Kera(capsys)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "p.kera"
    path.write_text(PROGRAM)
    return path


class Vcd:
    """Values of signals over time, read independently of what wrote them."""

    def __init__(self, path: Path) -> None:
        text = path.read_text()
        assert text.startswith(("$version", "$date"))
        codes, scopes = dict[str, list[str]](), list[str]()
        for scope, ends, code, name in re.findall(
            r"\$scope module (\S*) *\$end|(\$upscope)|\$var wire +\d+ (\S+) (\S+)", text
        ):
            if ends:
                scopes.pop()
            elif not code:
                scopes.append(scope)
            else:  # around the design ports are joined into few wide ones, some under names of its own
                codes.setdefault(code, []).extend([name] if BENCH in scopes[:-1] else [])
        self.names = {name for names in codes.values() for name in names}
        self.rows: list[dict[str, int]] = []
        current = dict[str, int]()
        for line in text[text.index("$enddefinitions"):].splitlines()[1:]:
            if line.startswith("#"):
                self.rows.append(dict(current))
                continue
            match = re.fullmatch(r"b([01]+) (\S+)|([01])(\S+)", line)
            if match is not None:
                value = int(match[1] or match[3], 2)
                current.update((name, value) for name in codes[match[2] or match[4]])
        self.rows.append(current)

    def at_edges(self) -> list[dict[str, int]]:
        """What stands just before each rising edge of the clock."""
        pairs = zip(self.rows[1:], self.rows[2:])
        return [low for low, high in pairs if not low.get("clk") and high.get("clk")]

    def taken(self, valid: str, ready: str, bus: str) -> list[int]:
        rows = [row for row in self.at_edges() if not row.get("rst")]
        return [row[bus] for row in rows if row.get(valid) and row.get(ready)]


def test_a_run_shows_its_items_and_results(kera: Kera, path: Path, tmp_path: Path) -> None:
    wave = tmp_path / "deep" / "out.vcd"
    done = kera("run", path, "--fn", "acc", "-i", "sample=[5, 7, -1]", "--batch", "--wave", wave)
    assert done.status == 0 and f"wrote {wave}" in done.out and "[ 5, 12, 11]" in done.out
    vcd = Vcd(wave)
    assert vcd.taken("in_valid", "in_ready", "in_sample") == [5, 7, 0xFFFF]
    assert vcd.taken("out_valid", "out_ready", "out_data") == [5, 12, 11]
    for name in ("total", "sample"):  # as in the source, with the stage behind it
        assert any(re.fullmatch(rf"{name}_s\d+", signal) for signal in vcd.names), vcd.names
    data = kera("run", path, "--fn", "join", "-i", "left=1", "-i", "right=2", "--wave", wave, "--json").json
    assert data["target"] == "rtl" and data["wave"] == str(wave) and data["result"] == 3
    assert Vcd(wave).taken("out_valid", "out_ready", "out_data") == [3]


def test_an_equal_comparison_shows_the_items_given_else_the_first(
    kera: Kera, path: Path, tmp_path: Path
) -> None:
    wave = tmp_path / "out.vcd"
    call = ["verify", path, "--fn", "acc", "--vectors", "90", "--wave", wave]
    assert kera(*call, "-i", "sample=[3, 4]").status == 0
    assert Vcd(wave).taken("out_valid", "out_ready", "out_data") == [3, 7]
    data = kera(*call, "--json").json
    assert data["equal"] and data["wave"] == str(wave)
    assert len(Vcd(wave).taken("out_valid", "out_ready", "out_data")) == 32


def test_a_difference_shows_the_smallest_items_that_fail(
    kera: Kera, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def faulty(*given: Any) -> HardwareDesign:
        """With a bit of the sum turned over for large left operands."""
        design = design_hardware(*given)
        old = "assign sum_s0 = sum_s0_chain[7:0];"
        assert old in design.emitted.verilog
        text = design.emitted.verilog.replace(old, old[:-1] + " ^ {7'd0, left_s0[7]};")
        return design.with_verilog(text)

    monkeypatch.setattr(rtl_target, "design_hardware", faulty)
    wave = tmp_path / "out.vcd"
    call = ["verify", path, "--fn", "join", "--latency", "1", "--interface", "none", "--vectors", "50"]
    done = kera(*call, "--wave", wave, "--json")
    assert done.status == 1, done.out
    mismatch, = done.json["mismatches"]
    assert mismatch["item"] == 0 and mismatch["inputs"]["left"] == [128]
    right = mismatch["inputs"]["right"][0]
    assert any(row.get("in_left") == 128 and row.get("in_right") == right for row in Vcd(wave).rows)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ([*JOIN, "--wave", "x.txt"], "ending in .vcd or .fst"),
        ([*JOIN, "--wave", "x.vcd", "--target", "interp"], "simulated circuit"),
        (["verify", "--fn", "join", "--wave", "x"], "ending in .vcd or .fst"),
        (["verify", "--fn", "join", "--wave", "x.vcd", "--formal"], "no waveform"),
    ],
    ids=["suffix", "interpreter", "verify", "proof"],
)  # fmt: skip
def test_what_has_no_waveform_is_told(kera: Kera, path: Path, call: list[str], words: str) -> None:
    done = kera(call[0], path, *call[1:])
    assert done.status == 2 and words in done.err
    assert not Path("x.vcd").exists()


@pytest.mark.skipif(not HAS_LZ4, reason="lz4.h is not installed, without which Verilator writes no FST")
def test_an_fst_is_one(kera: Kera, path: Path, tmp_path: Path) -> None:
    wave = tmp_path / "out.fst"
    done = kera("run", path, "--fn", "acc", "-i", "sample=[5, 7, -1]", "--batch", "--wave", wave)
    assert done.status == 0, done.err
    data = wave.read_bytes()
    # A header block: its kind is 0 and its length 329.
    assert data[:9] == bytes([0]) + (329).to_bytes(8, "big")


def test_without_its_headers_an_fst_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verilator, "_FST_HEADERS", {"no-such-header.h": "no-such-package"})
    with pytest.raises(ToolMissing) as caught:
        verilator._require_fst(tmp_path)  # pyright: ignore[reportPrivateUsage]
    assert caught.value.diagnostic.code == "K0950"
    assert "apt-get install no-such-package" in caught.value.diagnostic.notes[0]
    assert ".vcd" in caught.value.diagnostic.notes[0]
