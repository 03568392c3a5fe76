"""Each lexical and syntax mistake gives its one diagnostic, rendered as in the golden file beside it.

``KERA_BLESS=1 pytest tests/errors/test_syntax_errors.py`` rewrites the golden files.
"""
from __future__ import annotations

import os
from pathlib import Path

import pytest

from kera_hw.frontend.parser import format_source, parse
from kera_hw.support import CODES, SourceFile, render_diagnostics

CASES = sorted((Path(__file__).parent / "syntax").glob("*.kera"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_one_mistake_gives_one_diagnostic(path: Path) -> None:
    file = SourceFile(path.name, path.read_bytes())
    unit, diagnostics = parse(file)
    assert unit.node.data == file.data
    rendered = render_diagnostics(diagnostics) + "\n"
    golden = path.with_suffix(".txt")
    if os.environ.get("KERA_BLESS"):
        golden.write_text(rendered, encoding="utf-8")
    assert [diagnostic.code for diagnostic in diagnostics] == [path.stem.split("_")[0]]
    assert rendered == golden.read_text(encoding="utf-8")


def test_every_code_has_a_case() -> None:
    ours = {code for code in CODES if code[:3] in ("K00", "K01")}
    assert {path.stem.split("_")[0] for path in CASES} == ours


def test_the_formatter_refuses_files_with_mistakes() -> None:
    formatted, diagnostics = format_source(SourceFile.from_text("fn f( { }"))
    assert formatted is None
    assert diagnostics


def test_checking_goes_on_after_a_mistake() -> None:
    text = "fn f() {\n    let a = ;\n    let b = 1 2;\n    g(a, ]);\n}\nstruct S { a }\nconst X: = 1;\n"
    _, diagnostics = parse(SourceFile.from_text(text))
    lines = [text[: d.span.start].count("\n") + 1 for d in diagnostics if d.span]
    assert lines == [2, 3, 4, 6, 7]


@pytest.mark.parametrize(
    "text",
    [
        "(" * 20_000, "fn f() " + "{" * 5_000, "const A: u32 = " + "1 + " * 3_000 + "1;",
        "const A: u32 = " + "-!" * 5_000 + "x;", "fn f(x: " + "[" * 5_000,
        "const A: u32 = x" + ".a" * 3_000 + ";", "fn f() { if a {} " + "else if a {} " * 3_000 + "}",
        "fn f() { match x { " + "(" * 5_000, "const A: u8 = " + "+ " * 20_000,
        "const A: u8 = " + "not " * 5_000, "const A: u8 = " + "a ? " * 5_000, "fn f() { " + "{1" * 5_000,
        "const A: u8 = " + "a if " * 5_000,
    ],
    ids=["parens", "blocks", "sum", "prefix", "types", "fields", "else-if", "patterns", "plus",
         "not", "ternary", "copies", "python-if"],
)
def test_depth_is_bounded(text: str) -> None:
    unit, diagnostics = parse(SourceFile.from_text(text))
    assert unit.node.text == text
    assert len(diagnostics) == 1
