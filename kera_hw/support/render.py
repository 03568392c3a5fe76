"""Diagnostics as text: source lines with carets, optional ANSI colour."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from kera_hw.support.diagnostic import Diagnostic, Label, Severity
from kera_hw.support.source import SourceFile, Span

_COLOURS = {Severity.ERROR: "31;1", Severity.WARNING: "33;1", Severity.NOTE: "36;1"}


def render_diagnostics(diagnostics: Iterable[Diagnostic], colour: bool = False) -> str:
    """All diagnostics, a blank line between."""
    return "\n\n".join(render_diagnostic(item, colour) for item in diagnostics)


def render_diagnostic(diagnostic: Diagnostic, colour: bool = False) -> str:
    """One diagnostic: header, source excerpt with carets, labels, notes, fix. No trailing newline."""

    def paint(text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if colour else text

    accent = _COLOURS[diagnostic.severity]
    head = paint(f"{diagnostic.severity.value}[{diagnostic.code}]", accent)
    lines = [f"{head}: {paint(diagnostic.message, '1')}"]
    if diagnostic.file is not None and diagnostic.span is not None:
        lines += _excerpt(diagnostic.file, diagnostic.span, "^", "", accent, paint)
    for label in diagnostic.labels:
        lines += _label_lines(diagnostic, label, paint)
    lines += [f"  = note: {note}" for note in diagnostic.notes]
    if diagnostic.fix is not None:
        text = diagnostic.fix.message.rstrip(" .:")
        replacement = (diagnostic.fix.replacement or "").strip()
        if replacement not in text and "\n" not in replacement:
            text += f": `{replacement}`"
        lines.append(f"  = {paint('help', '32;1')}: {text}")
    return "\n".join(lines)


def _label_lines(diagnostic: Diagnostic, label: Label, paint: _Paint) -> list[str]:
    file = label.file or diagnostic.file
    if file is None:
        return [f"  = note: {label.message}"]
    return _excerpt(file, label.span, "-", label.message, "34;1", paint)


class _Paint(Protocol):
    def __call__(self, text: str, code: str) -> str: ...


# Longer lines (generated tables, minified text) are shown around the caret.
_WIDEST, _BEFORE_CARET = 120, 40


def _window(text: str, column: int, width: int) -> tuple[str, int, int]:
    """The piece of a long line that is shown, with the caret's column and width in it."""
    if len(text) <= _WIDEST:
        return text, column, width
    start = max(0, min(column - 1 - _BEFORE_CARET, len(text) - _WIDEST))
    end = start + _WIDEST
    piece = ("…" if start else "") + text[start:end] + ("…" if end < len(text) else "")
    shift = start - (1 if start else 0)
    return piece, column - shift, min(width, end - (column - 1))


def _excerpt(file: SourceFile, span: Span, mark: str, message: str, code: str, paint: _Paint) -> list[str]:
    line, column = file.line_column(span.start)
    end_line, end_column = file.line_column(span.end)
    # One column a character, and nothing that a terminal would obey.
    text = "".join(c if c.isprintable() else " " if c == "\t" else "\ufffd" for c in file.line_text(line))
    width = (end_column if end_line == line else len(text) + 1) - column
    gutter = " " * len(str(line))
    width = max(1, min(width, len(text) + 1 - column))
    text, shown_at, width = _window(text, column, width)
    marks = paint(mark * width, code)
    tail = f" {message}" if message else ""
    return [
        f"{gutter}--> {file.path}:{line}:{column}",
        f"{gutter} |",
        f"{line} | {text}",
        f"{gutter} | {' ' * (shown_at - 1)}{marks}{tail}",
    ]
