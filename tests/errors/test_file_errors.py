"""Files that are no programs, and more mistakes than a screen holds."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from kera_hw.driver.session import load_program
from kera_hw.frontend.parser import parse
from kera_hw.support import Diagnostic, Severity, SourceFile, Span, render_diagnostic
from tests.unit.cli_support import Kera

NOISE = np.random.default_rng(5).integers(0, 256, 100_000, np.uint8).tobytes()
SCREEN_BYTES = 12_000


@pytest.fixture
def kera(capsys: pytest.CaptureFixture[str]) -> Kera:
    return Kera(capsys)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (NOISE, "is not text"),
        (Path(sys.executable).resolve().read_bytes()[:1_000_000], "is not text"),
        (bytes(1000), "is not text: 100 % of its bytes"),
        ("pub fn f(x: u8) -> u8 { x }".encode("utf-16"), "is UTF-16 and not UTF-8 text"),
    ],
    ids=["noise", "program", "zeros", "utf16"],
)
@pytest.mark.parametrize("command", ["check", "fmt", "run"])
def test_a_file_that_is_not_text_is_one_mistake(
    kera: Kera, tmp_path: Path, command: str, data: bytes, words: str
) -> None:
    path = tmp_path / "x.kera"
    path.write_bytes(data)
    done = kera(command, path)
    assert done.status == 1 and done.err.count("error[") == 1 and len(done.err) < 300
    assert f"error[K0012]: {path} {words}" in done.err
    assert [row["code"] for row in kera(command, path, "--json").json["diagnostics"]] == ["K0012"]
    unit, _ = parse(SourceFile(str(path), data))
    assert unit.node.data == data


def test_an_imported_file_that_is_not_text(kera: Kera, tmp_path: Path) -> None:
    (tmp_path / "lib.kera").write_bytes(NOISE)
    (tmp_path / "main.kera").write_text("use lib::f;\npub fn g(x: u8) -> u8 { f(x) }\n")
    done = kera("check", tmp_path / "main.kera")
    assert done.status == 1 and f"{tmp_path / 'lib.kera'} is not text" in done.err
    assert len(done.err) < 2000


@pytest.mark.parametrize(
    "text", ["// Grüße, 世界, \x1b[0m\nconst A: u8 = 1;\n", "// \ufffd" * 30, "\0 // one\n"]
)
def test_text_with_odd_characters_is_still_text(text: str) -> None:
    _, found = parse(SourceFile.from_text(text))
    assert "K0012" not in [item.code for item in found]


def test_a_file_of_mistakes_is_shown_as_a_screen_and_counted(kera: Kera, tmp_path: Path) -> None:
    paths = [tmp_path / "a.kera", tmp_path / "b.kera"]
    for path in paths:
        path.write_text("".join(f"const C{k}: u8 = missing{k};\n" for k in range(1500)))
    done = kera("check", *paths)
    assert done.status == 1 and done.err.count("error[K0201]") == 20
    for path in paths:
        assert f"... and 1490 more in {path}; --json has them." in done.err
    assert len(done.err) < SCREEN_BYTES
    data = kera("check", *paths, "--json").json
    assert len(data["diagnostics"]) == 2000 and data["diagnostics_left_out"] == 1000


def test_no_warning_takes_the_place_of_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    from kera_hw.cli.output import Output

    file = SourceFile("x.kera", b"abc")
    warnings = [Diagnostic("K0606", f"{k}.", file, Span(0, 1), severity=Severity.WARNING) for k in range(40)]
    Output(False).diagnostics([*warnings, Diagnostic("K0201", "The error.", file, Span(1, 2))])
    shown = capsys.readouterr().err
    assert "The error." in shown and shown.count("K0606") == 9 and "31 more" in shown


@pytest.mark.parametrize("column", [0, 30, 2500, 4990])
def test_a_long_line_is_cut_around_the_caret(column: int) -> None:
    data = bytearray(b"x" * 5000)
    data[column : column + 5] = b"wrong"
    for end in (column + 5, 5000):
        item = Diagnostic("K0201", "Here.", SourceFile("x.kera", bytes(data)), Span(column, end))
        lines = render_diagnostic(item).splitlines()
        assert lines[1].endswith(f"x.kera:1:{column + 1}") and max(map(len, lines)) < 140
        source, marks = lines[3], lines[4]
        start = marks.index("^")
        assert source[start : start + 5] == "wrong" and len(marks) <= len(source)
        assert source.endswith("…") == (column < 4900) and ("| …" in source) == (column > 40)


def test_a_short_line_is_whole() -> None:
    file = SourceFile("x.kera", b"let abc = 1;")
    assert "1 | let abc = 1;" in render_diagnostic(Diagnostic("K0201", "Here.", file, Span(4, 7)))


def test_loading_a_picture_is_quick_and_one_diagnostic(tmp_path: Path) -> None:
    path = tmp_path / "x.kera"
    path.write_bytes(NOISE * 100)
    assert [item.code for item in load_program(path).diagnostics] == ["K0012"]
