"""The build directory: what is in it, that it is whole, repeatable and honest."""

from __future__ import annotations

import hashlib
import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import kera_hw
from kera_hw.cli.main import main
from kera_hw.driver import build as build_module

ROOT = Path(__file__).resolve().parents[2]
FIR = ROOT / "examples" / "fir.kera"


def files_of(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir() if path.is_file()}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("build")
    assert main(["build", str(FIR), "--emit", "verilog", "-o", str(out)]) == 0
    return out


def test_the_directory_holds_what_was_promised(built: Path) -> None:
    verilog = {"fir.v", "fir_instance.v", "fir_instance.py"}
    assert files_of(built) == {"fir.keg", *verilog, "plan.json", "report.html", "receipt.json"}
    plan = json.loads((built / "plan.json").read_text())
    assert {"latency_cycles", "initiation_interval", "estimate"} <= set(plan) and "achieved" not in plan
    assert kera_hw.load(built / "fir.keg").fingerprint == plan["fingerprint"] == kera_hw.load(FIR).fingerprint


def test_the_receipt_has_the_hash_of_every_file(built: Path) -> None:
    receipt = json.loads((built / "receipt.json").read_text())
    assert set(receipt["artefacts"]) == files_of(built) - {"receipt.json"}
    for name, item in receipt["artefacts"].items():
        data = (built / name).read_bytes()
        assert item == {"size_bytes": len(data), "sha3_256": hashlib.sha3_256(data).hexdigest()}
    assert receipt["tools"]["kera-hw"]


def test_the_same_build_gives_the_same_bytes(built: Path, tmp_path: Path) -> None:
    assert main(["build", str(FIR), "--emit", "verilog", "-o", str(tmp_path)]) == 0
    for name in files_of(built):
        assert (tmp_path / name).read_bytes() == (built / name).read_bytes(), name


def test_a_failed_build_leaves_the_earlier_one(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> str:
        raise RuntimeError("no report today")

    assert main(["build", str(FIR), "--emit", "verilog", "-o", str(tmp_path)]) == 0
    before = {name: (tmp_path / name).read_bytes() for name in files_of(tmp_path)}
    monkeypatch.setattr(build_module, "render_report", broken)
    changed = ["--latency", "9"]
    assert main(["build", str(FIR), "--emit", "verilog", "-o", str(tmp_path), *changed]) == 70
    assert {name: (tmp_path / name).read_bytes() for name in files_of(tmp_path)} == before


class _Page(HTMLParser):
    """Counts tags and collects what points elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.references: list[str] = []
        self.tags: dict[str, int] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] = self.tags.get(tag, 0) + 1
        self.references += [value or "" for name, value in attrs if name in ("src", "href", "xlink:href")]
        if tag not in ("meta", "br", "link", "img"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] = self.tags.get(tag, 0) + 1

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, f"</{tag}> closes something else"


def read_page(text: str) -> _Page:
    page = _Page()
    page.feed(text)
    page.close()
    assert page.open == []
    return page


def test_the_report_stands_alone(built: Path) -> None:
    text = (built / "report.html").read_text()
    page = read_page(text)
    assert page.references == [] and "script" not in page.tags and "url(" not in text
    assert "prefers-color-scheme:dark" in text
    plan = json.loads((built / "plan.json").read_text())
    assert plan["fingerprint"] in text and f"<b>{plan['latency_cycles']}</b>" in text
    # The pipeline in time, by source line, a path, a waveform, the graph.
    assert page.tags["svg"] >= 5
    assert "mul_wide(a, b)" in text and "reduce.sum" in text


def test_names_from_the_source_cannot_break_the_report(tmp_path: Path) -> None:
    program = tmp_path / "a<b>&c.kera"
    program.write_text('pub fn f(x: u8) -> u8 { x + 1 /* <script>alert("x")</script> </pre> */ }\n')
    assert main(["build", str(program), "--emit", "verilog", "-o", str(tmp_path / "out")]) == 0
    page = read_page((tmp_path / "out" / "report.html").read_text())
    assert "script" not in page.tags


def test_too_large_a_design_is_refused_before_synthesis(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "large.kera"
    program.write_text(
        "pub fn f(x: u64, y: u64, z: u64) -> (u64, u64, u64, u64) {\n"
        "    (x / (y | 1), x / (z | 1), y / (x | 1), (x ^ z) / (y | 3))\n}\n"
    )
    assert main(["build", str(program), "--target", "fpga:ice40-up5k", "-o", str(tmp_path / "o")]) == 1
    assert "K0604" in capsys.readouterr().err
    assert files_of(tmp_path / "o") == set()


def _figures(fmax_mhz: float) -> dict[str, Any]:
    return {
        "lut": 1, "ff": 1, "dsp": 0, "bram": 0, "fmax_mhz": fmax_mhz, "serial_shell": None,
        "bitstream": "fir.bit", "critical_path": [
            {"kind": "clk-to-q", "cell": "a", "delay_ns": 0.525, "source": None},
            {"kind": "routing", "cell": "b", "delay_ns": 2.0, "source": None},
        ],
    }


@pytest.mark.parametrize(
    ("reached", "rounds", "best"),
    [([160.0], 1, 160.0), ([140.0, 155.0], 2, 155.0), ([140.0, 130.0, 120.0], 3, 140.0)],
    ids=["at once", "second round", "never"],
)
def test_a_missed_clock_plans_again_with_slower_wires(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    reached: list[float], rounds: int, best: float,
) -> None:
    scales: list[float] = []

    def place(design: Any, seed: int, directory: Path, progress: Any) -> dict[str, Any]:
        scales.append(design.scale)
        (directory / "fir.bit").write_text(f"round {len(scales)}")
        return _figures(reached[len(scales) - 1])

    monkeypatch.setattr(build_module, "_implement", place)
    capsys.readouterr()
    assert main(["build", str(FIR), "--clock", "150MHz", "-o", str(tmp_path), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert len(data["rounds"]) == len(scales) == rounds
    assert scales == sorted(scales) and scales[0] == 1.0 and (rounds == 1 or scales[-1] > 1.05)
    assert data["achieved"]["fmax_mhz"] == best
    told = {"from": "a", "to": "b", "wires_ns": 2.0, "logic_ns": 0.525}
    assert all(row["slowest"] == told for row in data["rounds"])
    assert (tmp_path / "fir.bit").read_text() == f"round {reached.index(best) + 1}"
    codes = [item["code"] for item in data["diagnostics"]]
    assert ("K0606" in codes) == (best < 150)


def test_a_process_that_misses_its_clock_is_planned_again_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "sums.kera"
    program.write_text("""
pub fn sums(x: [i16; 300]) -> [i32; 300] {
    let mut y = [0i32; 300];
    let mut acc: i32 = 0;
    for i in 0..300 {
        acc += mul_wide(x[i], x[299 - i]);
        y[i] = acc;
    }
    y
}
""")
    seen: list[Any] = []

    def place(design: Any, seed: int, directory: Path, progress: Any) -> dict[str, Any]:
        seen.append(design)
        (directory / "fir.bit").write_text("")
        return _figures(130.0 if len(seen) == 1 else 190.0)

    monkeypatch.setattr(build_module, "_implement", place)
    capsys.readouterr()
    asked = ["--clock", "180MHz", "--ii", "400", "-o", str(tmp_path), "--json"]
    assert main(["build", str(program), *asked]) == 0
    data = json.loads(capsys.readouterr().out)
    assert len(seen) == 2 and all(design.keeps_loops for design in seen)
    slow = seen[1].scale
    assert slow == round(180 / 130, 3) and data["rounds"][-1]["scale"] == slow
    before, after = (sum(part.plan.latency_cycles for part in design.parts) for design in seen)
    assert after > before  # stages more, for wires that are slower
