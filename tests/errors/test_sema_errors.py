"""One wrong program a row: its code, and the place of the carets between « and »."""
from __future__ import annotations

import pytest

from kera_hw.support import CODES, LINTS, Diagnostic, SourceFile, Span
from tests.errors.sema_rows import ROWS
from tests.unit.sema_support import check_text

MODULES = {"dsp": "const TAPS: u32 = 4; fn window(x: u8) -> u8 { x } struct Frame { a: u8 }"}


def marked(text: str) -> tuple[str, list[Span]]:
    """The source without its marks, and the byte spans they enclose."""
    source, spans, start = "", list[Span](), 0
    for character in text:
        if character == "«":
            start = len(source.encode())
        elif character == "»":
            spans.append(Span(start, len(source.encode())))
        else:
            source += character
    return source, spans


@pytest.mark.parametrize(("code", "text"), ROWS, ids=[f"{code}-{text[:60]}" for code, text in ROWS])
def test_one_mistake_one_diagnostic(code: str, text: str) -> None:
    source, spans = marked(text)
    program, found, file = check_text(source, MODULES)
    shown = [(item.code, item.message, file.text(item.span) if item.span else "") for item in found]
    assert [item.code for item in found] == [code] * len(spans), shown
    assert [item.span for item in found] == spans, shown
    assert (program is None) == any(item.is_error for item in found)
    for item in found:
        _readable(item, file)


def _readable(item: Diagnostic, file: SourceFile) -> None:
    assert item.message[-1] in ".?" and item.message[0] not in "abcdefghijklmnopqrstuvwxyz", item.message
    assert "Unknown" not in item.message and "None" not in item.message, item.message
    assert item.file is not None
    if item.fix is not None and item.fix.replacement is not None:
        assert item.fix.span is not None and item.fix.span.end <= len(file.data)


def test_every_code_has_a_row() -> None:
    tried = {code for code, _ in ROWS}
    ours = {code for code in CODES if code.startswith(("K02", "K03"))} | {"K0403", "K0501", "K0503", "K0504"}
    assert ours - tried - LINTS == {"K0301"}


@pytest.mark.parametrize(("text", "fixed"), [
    ("const GO: u2 = 0; const LEAD: u2 = 1; fn f(p: u2) -> u8 { match p { GO => 1, LAED => 2, _ => 3 } }",
     "const GO: u2 = 0; const LEAD: u2 = 1; fn f(p: u2) -> u8 { match p { GO => 1, LEAD => 2, _ => 3 } }"),
    ("fn f(x: u8) -> u16 { x }", "fn f(x: u8) -> u16 { x as u16 }"),
    ("fn f(alpha: u8) -> u8 { alpa }", "fn f(alpha: u8) -> u8 { alpha }"),
    ("fn f(x: u8) -> u8 { let y = x; y = 1; y }", "fn f(x: u8) -> u8 { let mut y = x; y = 1; y }"),
    ("fn g(x: &[u8; 2]) -> u8 { x[0] } fn f(x: [u8; 2]) -> u8 { g(x) }",
     "fn g(x: &[u8; 2]) -> u8 { x[0] } fn f(x: [u8; 2]) -> u8 { g(&x) }"),
    ("fn f(x: f32) -> f32 { print(\"x\", x); x }", "fn f(x: f32) -> f32 ! io { print(\"x\", x); x }"),
    ("fn f(x: f32) { print(\"x\", x); }", "fn f(x: f32) -> () ! io { print(\"x\", x); }"),
    ("fn f(x: u8) -> bool { x as bool }", "fn f(x: u8) -> bool { x != 0 }"),
    ("fn f(x: [f32; 4], y: device [f32; 4]) -> [f32; 4] { x + y }",
     "fn f(x: [f32; 4], y: device [f32; 4]) -> [f32; 4] { x + to_host(y) }"),
    ("fn f(x: [f32; 4]) -> f32 { sum(x, order: tre) }", "fn f(x: [f32; 4]) -> f32 { sum(x, order: tree) }"),
])
def test_fix_repairs(text: str, fixed: str) -> None:
    _, found, file = check_text(text)
    assert len(found) == 1
    fix = found[0].fix
    assert fix is not None and fix.span is not None and fix.replacement is not None
    made = file.data[: fix.span.start] + fix.replacement.encode() + file.data[fix.span.end:]
    assert made.decode() == fixed
    program, again, _ = check_text(fixed)
    assert program is not None and not again
