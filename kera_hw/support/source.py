"""Source files and byte spans.

A span is a half-open range of byte offsets into the UTF-8 (or broken) bytes of one file; lines and
columns are derived, never stored.
"""
from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple


class Span(NamedTuple):
    """Half-open byte range ``[start, end)`` in one file."""

    start: int
    end: int

    def join(self, other: Span) -> Span:
        """The smallest span that covers both."""
        return Span(min(self.start, other.start), max(self.end, other.end))

    @property
    def length_bytes(self) -> int:
        return self.end - self.start


@dataclass(frozen=True)
class SourceFile:
    """One immutable source file: display path and exact bytes."""

    path: str
    data: bytes

    def __repr__(self) -> str:
        return f"<SourceFile {self.path}, {len(self.data)} bytes>"

    @staticmethod
    def from_text(text: str, path: str = "<text>") -> SourceFile:
        return SourceFile(path, text.encode("utf-8", "surrogatepass"))

    @cached_property
    def line_starts(self) -> tuple[int, ...]:
        """Byte offset at which each line begins."""
        starts, end = [0], self.data.find(b"\n")
        while end >= 0:
            starts.append(end + 1)
            end = self.data.find(b"\n", end + 1)
        return tuple(starts)

    def line(self, offset: int) -> int:
        """One-based line of a byte offset."""
        return bisect_right(self.line_starts, offset)

    def line_column(self, offset: int) -> tuple[int, int]:
        """One-based line and one-based column (in characters) of a byte offset."""
        offset = max(0, min(offset, len(self.data)))
        line = bisect_right(self.line_starts, offset) - 1
        prefix = self.data[self.line_starts[line] : offset]
        return line + 1, len(prefix.decode("utf-8", "replace")) + 1

    def line_text(self, line: int) -> str:
        """Text of a one-based line without its line break; undecodable bytes are replaced."""
        start = self.line_starts[line - 1]
        end = self.line_starts[line] if line < len(self.line_starts) else len(self.data)
        return self.data[start:end].decode("utf-8", "replace").rstrip("\r\n")

    def text(self, span: Span) -> str:
        """Decoded text of a span; undecodable bytes are replaced."""
        return self.data[span.start : span.end].decode("utf-8", "replace")
