"""Diagnostics are data: a stable code, a severity, spans, one sentence, and a fix where one is known."""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from kera_hw.support.codes import CODES
from kera_hw.support.source import SourceFile, Span


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Label:
    """A secondary place with a few words on why it matters."""

    span: Span
    message: str
    file: SourceFile | None = None


@dataclass(frozen=True, slots=True)
class Fix:
    """A suggested edit: replace ``span`` by ``replacement``; ``safe`` when a tool may apply it unasked."""

    message: str
    span: Span | None = None
    replacement: str | None = None
    safe: bool = False


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One mistake, said once. ``file`` and ``span`` are absent only where no source text exists."""

    code: str
    message: str
    file: SourceFile | None = None
    span: Span | None = None
    labels: tuple[Label, ...] = ()
    notes: tuple[str, ...] = ()
    fix: Fix | None = None
    severity: Severity = Severity.ERROR

    def __post_init__(self) -> None:
        assert self.code in CODES, f"diagnostic code {self.code} is not in support/codes.py"

    def __repr__(self) -> str:
        where = f" {self.file.path}" if self.file is not None else ""
        if self.file is not None and self.span is not None:
            where += ":{}:{}".format(*self.file.line_column(self.span.start))
        return f"<{self.severity.value} {self.code}{where}: {self.message}>"

    @property
    def is_error(self) -> bool:
        return self.severity is Severity.ERROR

    def to_json(self) -> dict[str, object]:
        """Plain JSON object; lines and columns are one-based, offsets are bytes."""

        def place(file: SourceFile | None, span: Span | None) -> dict[str, object] | None:
            if file is None or span is None:
                return None
            line, column = file.line_column(span.start)
            end_line, end_column = file.line_column(span.end)
            return {
                "path": file.path, "start": span.start, "end": span.end,
                "line": line, "column": column, "end_line": end_line, "end_column": end_column,
            }

        return {
            "code": self.code,
            "severity": self.severity.value,
            "message": self.message,
            "location": place(self.file, self.span),
            "labels": [
                {"message": label.message, "location": place(label.file or self.file, label.span)}
                for label in self.labels
            ],
            "notes": list(self.notes),
            "fix": None if self.fix is None else {
                "message": self.fix.message,
                "location": place(self.file, self.fix.span),
                "replacement": self.fix.replacement,
                "safe": self.fix.safe,
            },
        }


@dataclass
class Diagnostics:
    """An append-only sink that stages share; identical diagnostics are kept once."""

    items: list[Diagnostic] = field(default_factory=list[Diagnostic])
    _seen: set[tuple[str, str | None, Span | None]] = field(
        default_factory=set[tuple[str, str | None, Span | None]]
    )

    def add(self, diagnostic: Diagnostic) -> None:
        path = diagnostic.file.path if diagnostic.file else None
        key = (diagnostic.code + diagnostic.message, path, diagnostic.span)
        if key not in self._seen:
            self._seen.add(key)
            self.items.append(diagnostic)

    def extend(self, diagnostics: Iterable[Diagnostic]) -> None:
        for diagnostic in diagnostics:
            self.add(diagnostic)

    @property
    def has_errors(self) -> bool:
        return any(item.is_error for item in self.items)

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)
